"""A recording as a reader returns it, and a cleaned trace.

The two are apart on purpose: nothing in a `Recording` has been repaired, everything in a `Trace`
has been checked. Between them stands `trailveil.traces.cleaning.clean`, which counts what it did.

Neither shows a position when printed: a trace in a log or a traceback would be a leak.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue
from trailveil.traces.activities import ACTIVITIES
from trailveil.traces.fields import FIELDS, FieldValues, plain_name

NANOSECONDS = 1_000_000_000
"""Nanoseconds in a second: times are exact integers, seconds are for mathematics."""


N = TypeVar("N", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader saw in a file and did not take for the trace: numbers, never text.

    All are counts. `unreadable_times` had text that is no time, `impossible_years` named a year
    that 64-bit nanoseconds cannot hold (before 1677, after 2262); both arrive as NaT.
    `without_position` are records that claim no position, such as a heart rate between two fixes;
    `other_fields` the kinds of further fields that fixes had; `other_records` what else the file
    held (laps, areas, ...); `wrong_checksums` parts whose checksum does not fit. `lost_ends` is 1
    where the file is damaged or cut off, and what stood behind that could not be read.
    """

    routes: int = 0
    waypoints: int = 0
    empty_segments: int = 0
    misplaced_points: int = 0
    unreadable_times: int = 0
    impossible_years: int = 0
    without_position: int = 0
    other_fields: int = 0
    other_records: int = 0
    wrong_checksums: int = 0
    lost_ends: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recording:
    """What was recorded, in file order, before any cleaning.

    times: (n,) datetime64[ns], UTC where a zone was given; NaT where the fix has no readable time.
    naive: (n,) True where the time had no zone, so that `times` is then wall-clock time.
    positions: (n, 2) latitude and longitude in degrees (WGS84), NaN where unreadable; not checked
        against any range.
    segments: (n,) number of the segment of each fix, in file order, from 0. tracks: number of the
    track that each segment belongs to. fields: what was asked for besides, by the names of
    `trailveil.traces.fields`, (n,) each. names: what tracks are called, by their number, "" for
    none; empty unless it was asked for. activity: what the file states that it is, of
    `trailveil.traces.activities`; "" for nothing known. types: the same of each track, by its
    number; empty unless it was asked for.

    Raises InvalidValue where the shapes do not fit together.
    """

    times: NDArray[np.datetime64]
    naive: NDArray[np.bool_]
    positions: NDArray[np.float64]
    segments: NDArray[np.intp]
    tracks: tuple[int, ...]
    seen: Seen = field(default_factory=Seen)
    fields: FieldValues = ()
    names: tuple[str, ...] = ()
    activity: str = ""
    types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _hold(self, "times", np.array(self.times, dtype="datetime64[ns]"))
        _hold(self, "naive", np.array(self.naive, dtype=np.bool_))
        _hold_rows(self, len(self.times))
        if self.naive.shape != self.times.shape:
            raise InvalidValue(
                f"naive must be {self.times.shape}, got {self.naive.shape}: one flag for each time"
            )

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return f"Recording({len(self)} fixes, {len(self.tracks)} segments)"


class TimeSeries(Protocol):
    """What a release takes of a recording: increasing times, and a value at each."""

    @property
    def times(self) -> NDArray[np.int64]:
        """(n,) nanoseconds since 1970-01-01 UTC."""

    @property
    def seconds(self) -> NDArray[np.float64]:
        """(n,) since the first of them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace:
    """A cleaned trace: strictly increasing times, positions that are on the globe.

    times: (n,) int64, nanoseconds since 1970-01-01 UTC, strictly increasing. positions: (n, 2)
    latitude and longitude in degrees (WGS84), finite, within -90..90, -180..180. segments: (n,)
    number of the segment of each fix; a number may have no fixes left. tracks: number of the track
    that each segment belongs to. fields: what was asked for besides, by the names of
    `trailveil.traces.fields`, (n,) each, NaN where a
        fix does not state it. Nothing in them is protected.
    names: what tracks are called, by their number, "" for none; empty unless it was asked for.
    activity: what the file states that it is, of `trailveil.traces.activities`; "" for nothing
    known. types: the same of each track, by its number, to be written; empty unless it was asked
    for. repairs: sentences on what was mended in the recording, and on what was left out. timed:
    whether its times are written. seconds: (n,) since the first fix.

    The arrays are read-only: copies, unless nobody can write to those that are given. Raises
    InvalidValue where any of this does not hold.
    """

    times: NDArray[np.int64]
    positions: NDArray[np.float64]
    segments: NDArray[np.intp]
    tracks: tuple[int, ...]
    fields: FieldValues = ()
    names: tuple[str, ...] = ()
    activity: str = ""
    types: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    timed: bool = True
    seconds: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        _hold(self, "times", _whole(self.times, "times", np.int64))
        _hold(self, "seconds", seconds_since_the_first(self.times))
        _hold_rows(self, len(self.times))
        _check_increasing(self.times)
        _check_on_globe(self.positions)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def duration(self) -> float:
        """Seconds from the first time to the last, 0 where there are fewer than two."""
        return float(self.seconds[-1]) if len(self) else 0.0

    def __repr__(self) -> str:
        return f"Trace({len(self)} fixes, {self.duration:.0f} s)"

    def only(self, mask: ArrayLike) -> "Trace":
        """The fixes where `mask`, (n,) of bool, is True; segments keep their numbers.

        Raises InvalidValue where the mask has another shape or type.
        """
        rows = np.asarray(mask)
        if rows.dtype != np.bool_ or rows.shape != self.times.shape:
            raise InvalidValue(
                f"mask must be {self.times.shape} of bool, got {rows.shape} of {rows.dtype}: "
                "give one truth value for each fix"
            )
        return replace(
            self,
            times=self.times[rows],
            positions=self.positions[rows],
            segments=self.segments[rows],
            fields=rows_of_fields(self.fields, rows),
        )


def rows_of_fields(fields: FieldValues, rows: NDArray[np.bool_] | NDArray[np.intp]) -> FieldValues:
    """Some rows of fields, by a mask or by indices."""
    return tuple((name, values[rows]) for name, values in fields)


def _hold(owner: Recording | Trace, name: str, array: NDArray[np.generic]) -> None:
    """Store a read-only array in a frozen value."""
    array.flags.writeable = False
    object.__setattr__(owner, name, array)


def _hold_rows(owner: Recording | Trace, count: int) -> None:
    """Store what a recording and a trace share, after checking that it fits `count` fixes."""
    positions = constant(owner.positions, np.float64)
    segments = _whole(owner.segments, "segments", np.intp)
    tracks = tuple(int(track) for track in owner.tracks)
    if owner.times.shape != (count,):
        raise InvalidValue(f"times must have one dimension, got {owner.times.ndim}: flatten them")
    if positions.shape != (count, 2):
        raise InvalidValue(
            f"positions must be ({count}, 2), got {positions.shape}: one latitude and longitude "
            "for each time"
        )
    if segments.shape != (count,):
        raise InvalidValue(
            f"segments must be ({count},), got {segments.shape}: one number for each time"
        )
    if count and not 0 <= int(segments.min()) <= int(segments.max()) < len(tracks):
        raise InvalidValue(
            f"segments must be numbers from 0 to {len(tracks) - 1}, got {segments.min()} to "
            f"{segments.max()}: name the track of each segment in tracks"
        )
    _hold(owner, "positions", positions)
    _hold(owner, "segments", segments)
    object.__setattr__(owner, "tracks", tracks)
    object.__setattr__(owner, "fields", _fields(owner.fields, count))
    names = tuple(plain_name(name) for name in owner.names)
    types = tuple(owner.types)
    for of_tracks in (names, types):
        if of_tracks and len(of_tracks) <= max(tracks, default=-1):
            raise InvalidValue(
                f"names and types must be one for each track, got {len(of_tracks)}: add empty ones"
            )
    object.__setattr__(owner, "names", names)
    object.__setattr__(owner, "types", types)
    if not {owner.activity, *types} <= {"", *ACTIVITIES}:
        raise InvalidValue(f"activity must be one of {', '.join(ACTIVITIES)} or empty, got another")


def _fields(stated: FieldValues, count: int) -> FieldValues:
    """Copies of fields that cannot be written, after checking their names and shapes."""
    checked: list[tuple[str, NDArray[np.float64]]] = []
    for name, values in stated:
        numbers = constant(values, np.float64)
        if name not in FIELDS or name in dict(checked):
            raise InvalidValue(f"fields must be of {', '.join(FIELDS)}, each once, got others")
        if numbers.shape != (count,):
            raise InvalidValue(
                f"fields must be ({count},), got {numbers.shape}: one number, or NaN, for each time"
            )
        numbers.flags.writeable = False
        checked.append((name, numbers))
    return tuple(checked)


def _whole(
    values: ArrayLike, name: str, kind: type[np.signedinteger[Any]]
) -> NDArray[np.signedinteger[Any]]:
    raw = np.asarray(values)
    if raw.size and raw.dtype.kind not in "iu":
        raise InvalidValue(f"{name} must be integers, got {raw.dtype}: convert them exactly first")
    return constant(raw, kind)


def is_constant(array: NDArray[Any]) -> bool:
    """Whether nobody can write to an array, nor to what it is a part of."""
    return bool(array.flags.owndata and not array.flags.writeable)


def constant(values: ArrayLike, kind: type[N]) -> NDArray[N]:
    """An array that is constant already, else a copy."""
    array = np.asarray(values, dtype=kind)
    return array if is_constant(array) else array.copy()


def _check_increasing(times: NDArray[np.int64]) -> None:
    later = times[1:] > times[:-1]
    if not later.all():
        first = int(np.argmin(later)) + 1
        raise InvalidValue(
            f"times must strictly increase, got a fix at index {first} that is not later than the "
            "one before: clean the recording first"
        )


def _check_on_globe(positions: NDArray[np.float64]) -> None:
    good = (np.abs(positions) <= [90.0, 180.0]).all(axis=1)
    if not good.all():
        first = int(np.argmin(good))
        raise InvalidValue(
            "positions must be latitudes within -90..90 and longitudes within -180..180, got "
            f"something else at index {first}: clean the recording first"
        )


def seconds_since_the_first(times: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n,) seconds from nanoseconds (n,): the difference is exact, then divided once."""
    return np.asarray((times - times[:1]) / NANOSECONDS)


def cut_out(trace: Trace, released: NDArray[np.bool_]) -> Trace:
    """The released fixes (n,) of a trace: where segments begin inside a cut tells nothing.

    A segment begins only between two fixes that were recorded one after the other and are both
    released. What begins inside a cut, or at its edge, is part of what was before it: neither when
    in the cut somebody paused, nor whether they did, can be told from what leaves. A new track is
    one in any case.

    Where segments follow one another in time, their bounds are a function of `released`, of the
    tracks, and of bounds between two released fixes with none between.
    """
    part, rows = trace.only(released), np.flatnonzero(released)
    if rows.size == len(trace):
        return part
    owners = np.array(trace.tracks, dtype=np.intp)[part.segments]
    across = (np.diff(rows) > 1) & (np.diff(owners) == 0)
    return replace(part, segments=_joined(part.segments, across))


def _joined(numbers: NDArray[np.intp], across: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Numbers of what fixes (m,) belong to, those on both sides of a cut (m - 1,) as one.

    What has fixes on both sides of another's bound stays as it is: they do not follow in time.
    """
    known, first = np.unique(numbers, return_index=True)
    last = numbers.size - 1 - np.unique(numbers[::-1], return_index=True)[1]
    of = np.searchsorted(known, numbers)
    new = known.copy()
    for at in np.flatnonzero(across & (np.diff(numbers) != 0)).tolist():
        before, after = of[at], of[at + 1]
        if last[before] == at and first[after] == at + 1:
            new[after] = new[before]
    return np.asarray(new[of])
