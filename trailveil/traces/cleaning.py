"""From a recording to a trace: few repairs, each of them counted, and refusal where they are many.

In this order: times without a zone are refused unless the caller says which zone it was; fixes
without a usable position are dropped; fixes without a usable time are withheld; the rest is sorted
by time; of fixes at one time the first of the file is kept. Nothing is moved.

Latitude 0 with longitude 0 exactly is what receivers and programs write when they have no
position, so it counts as none. Times from before GPS began or after 2100 are those of a clock that
was not set, and count as none, unless most times of the recording are such: then they are at least
consistent. A local time that its zone has twice, or never, when clocks change names no one instant
and counts as none. Neither do a few times that are more than a year from all others, nor a few
places that are 100 km or more from the fixes around and could not have been reached: of a twentieth
of the fixes, or one, that is sure; more are kept, and counted as jumps.
"""

from dataclasses import dataclass, fields, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Refused, UnreadableInput, check_kind, check_number
from trailveil.traces.projection import metres_between
from trailveil.traces.readings import Readings, RecordedReadings
from trailveil.traces.strays import FASTEST, of_other_years, thrown
from trailveil.traces.trace import NANOSECONDS, Recording, Seen, Trace, rows_of_fields

_CLOCK_FROM = np.datetime64("1980-01-07", "ns")  # GPS began on the 6th: so reads an unset clock
_CLOCK_TO = np.datetime64("2100-01-01", "ns")
_ASSIGNED_FROM = np.datetime64("2000-01-01", "ns")
_LONGEST_STEP, _LONGEST = 86_400.0, 3e9
_JUMP = 1000.0  # metres between fixes that are no scatter

# In order of precedence: a fix that is lost for two reasons counts under the first.
_LOST = {
    "bad_positions": "no position on the globe",
    "bad_values": "no readable value",
    "null_positions": "latitude 0 and longitude 0, which stands for no position",
    "untimed": "no usable time",
    "unclear_clock": "a local time that its zone has twice or never",
    "unset_clock": "the time of a clock that was not set",
    "wrong_clock": "a time more than a year from all others, of a clock that was wrong",
    "thrown": "a place 100 km or more from the fixes around, where nobody gets so fast",
    "duplicates": "the time and place of another fix",
    "equal_times": "the time of another fix at a different place",
}
_KEPT = {
    "out_of_order": "were in the file after a later one, and are now sorted by time",
    "assumed_zone": "had a time without a zone, which is read in the zone that was stated",
    "assigned_times": "had no time, and are given times evenly apart, as was stated",
    "jumps": "are further from the one before than anybody moves (1 km or more, 350 m/s or more)",
}
_BESIDE = {
    "routes": "planned routes",
    "waypoints": "waypoints",
    "empty_segments": "segments without a fix",
    "misplaced_points": "points outside of any segment",
    "unreadable_times": "times that could not be read",
    "impossible_years": "times of a year before 1678 or after 2261",
    "without_position": "records that state no position",
    "other_fields": "further fields of fixes, kinds",
    "other_records": "other records or shapes",
}
# Of readings, which have no place.
_OF_READINGS = {
    "duplicates": "the time and value of another reading",
    "equal_times": "the time of another reading with a different value",
}
_SENTENCES = {
    **{name: f"Left out because they had {text}: {{}} {{}}." for name, text in _LOST.items()},
    **{name: f"Of the {{1}}, {{0}} {text}." for name, text in _KEPT.items()},
    **{
        name: f"The file also held {text}: {{}}; none is released."
        for name, text in _BESIDE.items()
    },
    "wrong_checksums": "Parts of the file with a wrong checksum, which may be damaged: {}.",
    "lost_ends": "Files that are damaged or cut off, and were read up to there: {}. "
    "What they held behind that is lost.",
}


_WITH_TIMES = {
    "fixes": "export the recorded activity with its times, or, where there are none, state how far "
    "apart the fixes are (--every SECONDS)",
    "readings": "export them with their times",
}


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What cleaning did, in numbers of fixes.

    `recorded` came in, `kept` went on. Each that did not is in exactly one of bad_positions,
    bad_values (of readings, which have no positions), null_positions, untimed, unclear_clock,
    unset_clock, wrong_clock, thrown, duplicates and equal_times. Beside that, out_of_order were
    sorted, assumed_zone had their zone and assigned_times their time from the caller, jumps are
    kept as they are, and `seen` is what the reader met.
    """

    recorded: int
    kept: int
    bad_positions: int
    bad_values: int
    null_positions: int
    untimed: int
    unclear_clock: int
    unset_clock: int
    wrong_clock: int
    thrown: int
    duplicates: int
    equal_times: int
    out_of_order: int
    assumed_zone: int
    assigned_times: int
    jumps: int
    seen: Seen

    def sentences(self, *, readings: bool = False) -> tuple[str, ...]:
        """Plain sentences for the report: on the whole, then on each count that is not zero.

        readings: whether they speak of readings and values, and not of fixes and places.
        """
        noun = "readings" if readings else "fixes"
        whole = f"{self.kept} of {self.recorded} recorded {noun} are used."
        counts = {name: n for name, n in self.counts().items() if n and name in _SENTENCES}
        said = {name: _SENTENCES[name] for name in counts}
        for name in _OF_READINGS.keys() & counts.keys() if readings else ():
            said[name] = said[name].replace(_LOST[name], _OF_READINGS[name])
        return (whole, *(said[name].format(n, noun) for name, n in counts.items()))

    def counts(self) -> dict[str, int]:
        """Every count by its name, those of the reader included."""
        ours = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "seen"}
        return ours | {part.name: getattr(self.seen, part.name) for part in fields(self.seen)}


def clean(
    recording: Recording,
    *,
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
    every: float | None = None,
) -> tuple[Trace, Cleaning]:
    """The trace of a recording, and what it took.

    Times without a zone are read as UTC with `assume_utc`, as local time with `zone`. A recording
    without any time is given times `every` seconds apart, from the beginning of 2000 on. Raises
    Refused for times without a zone and neither, and for `every` where there are times;
    UnreadableInput where more than half of the fixes have no usable time or position, or too little
    remains; InvalidValue for both options at once. No message holds a position or a time.
    """
    assigned = 0 if every is None else len(recording)
    if every is not None:
        recording = _with_times(recording, every)
    times, unclear = _in_utc(recording, assume_utc, zone)
    fates = _Fates(len(recording))
    _judge_positions(recording.positions, fates)
    rows, cleaning = _sorted_out(recording, times, unclear, recording.positions, fates)
    trace = Trace(
        times[rows].astype(np.int64),
        recording.positions[rows],
        recording.segments[rows],
        recording.tracks,
        rows_of_fields(recording.fields, rows),
        recording.names,
        recording.activity,
        recording.types,
    )
    cleaning = replace(cleaning, assigned_times=assigned, jumps=_jumps(trace))
    return replace(trace, repairs=cleaning.sentences()[1:]), cleaning


def clean_readings(
    recorded: RecordedReadings, *, assume_utc: bool = False, zone: ZoneInfo | None = None
) -> tuple[Readings, Cleaning]:
    """The cleaned readings of a time series, and what it took.

    What is said of times, repeats and refusals is as for `clean`; a reading without a readable
    value is dropped, and refused where they are most.
    """
    times, unclear = _in_utc(recorded, assume_utc, zone)
    fates = _Fates(len(recorded))
    bad = ~np.isfinite(recorded.values)
    if 2 * bad.sum() > len(recorded):
        raise UnreadableInput(
            f"most readings must have a number as value, got {bad.sum()} of {len(recorded)} "
            "without: name the right column"
        )
    fates.lose("bad_values", bad)
    rows, cleaning = _sorted_out(recorded, times, unclear, recorded.values[:, None], fates)
    about = recorded.unit, recorded.column
    readings = Readings(times[rows].astype(np.int64), recorded.values[rows], *about)
    return readings, cleaning


def _with_times(recording: Recording, every: float) -> Recording:
    """The recording with times evenly apart, in the order of the file."""
    check_number("--every", every)
    if not 1e-9 <= every <= _LONGEST_STEP or every * len(recording) > _LONGEST:
        raise InvalidValue(
            f"--every must be seconds of at most a day, and {_LONGEST:g} in all, got {every:g} for "
            f"{len(recording)} fixes: state how far apart they were"
        )
    noticed = recording.seen
    stated = int((~np.isnat(recording.times)).sum())
    stated += noticed.unreadable_times + noticed.impossible_years
    if stated:
        raise Refused(
            f"--every must be for recordings without times, got {stated} of {len(recording)} fixes "
            "with one: leave it out"
        )
    steps = np.round(np.arange(len(recording)) * (every * NANOSECONDS)).astype("timedelta64[ns]")
    return replace(
        recording, times=_ASSIGNED_FROM + steps, naive=np.zeros(len(recording), dtype=np.bool_)
    )


def _jumps(trace: Trace) -> int:
    """How many fixes lie further from the one before than anybody moves; they are kept."""
    metres = metres_between(trace.positions[:-1], trace.positions[1:])
    return int(((metres >= _JUMP) & (metres >= FASTEST * np.diff(trace.seconds))).sum())


def _sorted_out(
    recorded: Recording | RecordedReadings,
    times: NDArray[np.datetime64],
    unclear: NDArray[np.bool_],
    values: NDArray[np.float64],
    fates: "_Fates",
) -> tuple[NDArray[np.intp], Cleaning]:
    """The rows that are kept, by time, once what is wrong with values is known."""
    noun = "fixes" if isinstance(recorded, Recording) else "readings"
    _judge_times(times, unclear, fates, noun)
    usable = fates.kept
    fates.lose("wrong_clock", usable[of_other_years(times[usable])])
    if isinstance(recorded, Recording):
        usable = fates.kept
        fates.lose("thrown", usable[thrown(times[usable], values[usable])])
    out_of_order = _out_of_order(times[fates.kept])
    crowd = _judge_repeats(times, values, fates)
    cleaning = Cleaning(
        recorded=len(recorded),
        out_of_order=out_of_order,
        assumed_zone=int(recorded.naive.sum()),
        assigned_times=0,
        jumps=0,
        seen=recorded.seen,
        **fates.counts(),
    )
    _check_rest(cleaning, crowd, noun)
    return fates.kept[np.argsort(times[fates.kept], kind="stable")], cleaning


class _Fates:
    """What becomes of each fix: the first reason to lose it, or to be kept."""

    _NAMES = ("kept", *_LOST)

    def __init__(self, count: int) -> None:
        self._codes = np.zeros(count, dtype=np.intp)

    def lose(self, name: str, rows: NDArray[np.bool_] | NDArray[np.intp]) -> None:
        """Give up rows for a reason, those that had not been given up before."""
        chosen = np.zeros(len(self._codes), dtype=np.bool_)
        chosen[rows] = True
        self._codes[chosen & (self._codes == 0)] = self._NAMES.index(name)

    @property
    def kept(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._codes == 0)

    def counts(self) -> dict[str, int]:
        numbers = np.bincount(self._codes, minlength=len(self._NAMES))
        return dict(zip(self._NAMES, numbers.tolist(), strict=True))


def _in_utc(
    recording: Recording | RecordedReadings, assume_utc: bool, zone: ZoneInfo | None
) -> tuple[NDArray[np.datetime64], NDArray[np.bool_]]:
    """Times in UTC, NaT where none is known, and where that is because of the zone."""
    if zone is not None:
        check_kind("zone", zone, ZoneInfo, "such as ZoneInfo('Europe/Berlin')")
    if assume_utc and zone is not None:
        raise InvalidValue("only one of --assume-utc and --tz may be given, got both: choose one")
    times, naive = recording.times, recording.naive & ~np.isnat(recording.times)
    if not naive.any() or assume_utc:
        return times, np.zeros(len(times), dtype=np.bool_)
    if zone is None:
        raise Refused(
            f"times must say their zone, got {naive.sum()} of {len(times)} without: pass "
            "--assume-utc, or --tz ZONE (such as Europe/Berlin) if they are local"
        )
    seconds, inverse = np.unique(times[naive].astype("datetime64[s]"), return_inverse=True)
    shifts = np.array([_shift(moment, zone) for moment in seconds.astype(object)])
    result = times.copy()
    result[naive] -= shifts[inverse]
    return result, np.isnat(result) & naive


def _shift(wall: datetime, zone: ZoneInfo) -> np.timedelta64:
    """How far the zone is ahead of UTC at a wall-clock time, NaT where that is not clear."""
    earlier, later = (wall.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1))
    if earlier is None or earlier != later:
        return np.timedelta64("NaT", "s")
    return np.timedelta64(int(earlier.total_seconds()), "s")


def _judge_positions(positions: NDArray[np.float64], fates: _Fates) -> None:
    size = np.abs(positions)
    bad = ~np.all(size <= [90.0, 180.0], axis=1)  # True for NaN
    null = np.all(positions == 0, axis=1)
    swapped = (size[:, 0] > 90) & (size[:, 0] <= 180) & (size[:, 1] <= 90)
    if 2 * swapped.sum() > len(positions):
        raise UnreadableInput(
            f"latitudes must lie within -90..90, got {swapped.sum()} of {len(positions)} beyond, "
            "with longitudes that could be latitudes: they look swapped, swap them back"
        )
    if 2 * (bad | null).sum() > len(positions):
        raise UnreadableInput(
            f"most fixes must have a position in degrees (WGS84), got {(bad | null).sum()} of "
            f"{len(positions)} without (unreadable, off the globe or 0,0): export them again"
        )
    fates.lose("bad_positions", bad)
    fates.lose("null_positions", null)


def _judge_times(
    times: NDArray[np.datetime64], unclear: NDArray[np.bool_], fates: _Fates, noun: str
) -> None:
    missing = np.isnat(times)
    unset = ~missing & ((times < _CLOCK_FROM) | (times >= _CLOCK_TO))
    if 2 * unset.sum() > (~missing).sum():
        unset[:] = False
    lost = int((missing | unset).sum())
    if 2 * lost > len(times) and 2 * unclear.sum() > lost:
        raise UnreadableInput(
            f"local times must each name one instant, got {unclear.sum()} of {len(times)} in an "
            "hour that the stated zone has twice, or never, as its clocks change: export them with "
            "times in UTC or with their offset"
        )
    if 2 * lost > len(times):
        raise UnreadableInput(
            f"most {noun} must have a usable time, got {lost} of {len(times)} without (none, no "
            f"date, unreadable, or not of a year from 1677 to 2262): {_WITH_TIMES[noun]}"
        )
    fates.lose("unclear_clock", unclear)
    fates.lose("untimed", missing)
    fates.lose("unset_clock", unset)


def _out_of_order(times: NDArray[np.datetime64]) -> int:
    latest = np.maximum.accumulate(times.astype(np.int64))
    return int((times.astype(np.int64) < latest).sum())


def _judge_repeats(
    times: NDArray[np.datetime64], positions: NDArray[np.float64], fates: _Fates
) -> int:
    """Of the fixes at one time keep the first of the file. Returns how many share one at most."""
    usable = fates.kept
    moments = times[usable]
    if np.all(moments[1:] > moments[:-1]):
        return 0
    _, first, group = np.unique(moments, return_index=True, return_inverse=True)
    model = usable[first[group]]
    same = np.all(positions[usable] == positions[model], axis=1)
    fates.lose("duplicates", usable[same & (usable != model)])
    fates.lose("equal_times", usable[~same])
    return int(np.bincount(group[~same]).max(initial=-1)) + 1


def _check_rest(cleaning: Cleaning, crowd: int, noun: str) -> None:
    if cleaning.kept < 2:
        raise UnreadableInput(
            f"a recording must have two {noun} or more at different times, got "
            f"{cleaning.kept} of {cleaning.recorded} {_because(cleaning)}: record a longer one"
        )
    distinct = cleaning.recorded - cleaning.duplicates
    if 2 * crowd > distinct:
        raise UnreadableInput(
            f"times must tell {noun} apart, got {crowd} of {cleaning.recorded} at one instant: "
            "export the recording again, its clock stood still"
        )
    if 2 * cleaning.kept < distinct - cleaning.equal_times:  # what is left of equal times is a few
        raise UnreadableInput(
            f"at least half of the {noun} must be usable, got "
            f"{cleaning.kept} of {cleaning.recorded} {_because(cleaning)}: export them again"
        )


def _because(cleaning: Cleaning) -> str:
    """The reasons for which fixes were lost, the most frequent first, in brackets."""
    counts = cleaning.counts()
    lost = sorted((name for name in _LOST if counts[name]), key=lambda name: -counts[name])
    reasons = ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in lost[:3])
    return f"({reasons})" if reasons else "usable"
