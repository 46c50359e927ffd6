"""A recording as the page shows it: its track, what was found in it, and what was asked for.

All of this is the truth: it is for who recorded it, on the machine that holds the file.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.files.source import load as bytes_of
from trailveil.files.source import named
from trailveil.ledger import Ledger
from trailveil.ledger.commit import known_places, known_public
from trailveil.ledger.identity import ME
from trailveil.release.places import Visited
from trailveil.release.protect import requested
from trailveil.release.public import Position
from trailveil.release.request import Method, Request
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.formats import MOST_POINTS
from trailveil.traces.formats.table import format_of
from trailveil.traces.loading import cleaned
from trailveil.traces.selection import Chosen, Stretch
from trailveil.traces.stated_times import zone_of
from trailveil.traces.stops import stays
from trailveil.traces.trace import NANOSECONDS, Trace

DRAWN = 4000
"""Points of the track that are drawn at most; all fixes are protected."""
AUTO = "auto"
"""The activity that the file states, if it states one."""
_MOST_PARTS = 100
_LONGEST_TIME = 60
_LARGEST = 1e30  # as of the command line: squares of such numbers can be reckoned with


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Opened:
    """A recording and all that `protect` would be told of it besides what to protect.

    visits: the places with names that it visits. public: what is public around it. ends: what
    `protect` takes by itself, the ends that are at none of these. limit: of epsilon in total, or
    None.
    """

    source: Path
    output: Path
    trace: Trace
    cleaning: Cleaning
    ledger: Ledger
    visits: tuple[Visited, ...] = ()
    public: tuple[Position, ...] = ()
    ends: tuple[Stretch, ...] = ()
    subject: str = ME
    key: bytes | None = None
    key_file: Path | None = None
    limit: float | None = None
    zone: ZoneInfo | None = None
    options: tuple[str, ...] = ()
    """The options of `protect` that say the same, as words."""

    @property
    def read(self) -> tuple[Path, ...]:
        """The files that were read: none of them is ever written."""
        return (self.source, *(() if self.key_file is None else (self.key_file,)))


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What the page asks for: parts by one or two times each, as `protect` takes them."""

    parts: frozenset[tuple[str, ...]]
    radius: float
    epsilon: float
    method: Method = Method.CUT
    activity: str = AUTO


def opened(
    source: Path,
    output: Path,
    ledger: Ledger,
    *,
    content: bytes | None = None,
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
    every: float | None = None,
    **whose: Any,
) -> Opened:
    """Read and clean a recording, by the functions of `protect`. whose: the rest of `Opened`.

    content: of the file, where a browser sent it.
    """
    naive = None if assume_utc else zone
    data = bytes_of(source) if content is None else content
    recording = format_of(source, data).read(data, named(source), (), MOST_POINTS)
    trace, cleaning = cleaned(recording, source, assume_utc=assume_utc, zone=naive, every=every)
    opened = Opened(source, output, trace, cleaning, ledger, zone=zone or zone_of(trace), **whose)
    visits = known_places(ledger, trace, subject=opened.subject, key=opened.key)
    parts = requested(trace, Chosen(returns=False), Request(()), visits).stretches
    ends = tuple(part for part in parts if not part.variance)
    public = known_public(ledger, trace, opened.subject)
    return replace(opened, visits=tuple(visits), public=public, ends=ends)


def asked_in(stated: object) -> PageRequest:
    """What was asked for, from JSON of unknown origin. Raises InvalidValue for what is not that."""
    if not isinstance(stated, dict):
        raise InvalidValue("what is wanted must be an object, got another: reload the page")
    parts, method = stated.get("parts"), stated.get("mechanism", Method.CUT.value)
    if not isinstance(parts, list) or len(parts) > _MOST_PARTS:
        raise InvalidValue(f"parts must be a list of at most {_MOST_PARTS}: protect longer parts")
    if method not in [Method.CUT.value, Method.NOISE.value, Method.BOTH.value]:
        raise InvalidValue("mechanism must be cut, noise or both, got another: reload the page")
    activity = stated.get("activity", AUTO)
    if activity not in [AUTO, *ACTIVITIES]:
        raise InvalidValue("activity must be one of the list, got another: reload the page")
    return PageRequest(
        frozenset(_part(part) for part in parts),
        _number("radius", stated.get("radius")),
        _number("epsilon", stated.get("epsilon")),
        Method(method),
        activity,
    )


def _part(stated: object) -> tuple[str, ...]:
    times = tuple(stated) if isinstance(stated, list) else ()
    if len(times) not in {1, 2} or not all(
        isinstance(time, str) and len(time) <= _LONGEST_TIME for time in times
    ):
        raise InvalidValue("a part must be one or two times, got another: reload the page")
    return times


def _number(name: str, stated: object) -> float:
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        raise InvalidValue(f"{name} must be a number, got another: reload the page")
    # Compared as it is: a whole number of 400 digits is no float.
    if stated and not 1 / _LARGEST <= abs(stated) <= _LARGEST:
        raise InvalidValue(f"{name} must be a number of usual size, got another: state such a one")
    return float(stated)


def request_of(source: Opened, asked: PageRequest) -> Request:
    """The request for what was asked for, as `protect` makes it.

    Every part counts as chosen by place: who asks has the map before their eyes. Raises
    InvalidValue and Refused as `protect` does.
    """
    bare = Request((), asked.radius, asked.epsilon, method=asked.method)
    if asked.activity != AUTO:
        floor, middle = ACTIVITIES[asked.activity], MIDDLE[asked.activity]
        bare = replace(bare, floor=floor, middle=middle)
    chosen = _chosen(source, asked)
    request = requested(source.trace, chosen, bare, source.visits, source.public)
    return replace(
        request, stretches=tuple(replace(stretch, by_place=True) for stretch in request.stretches)
    )


def arguments(source: Opened, asked: PageRequest) -> list[str]:
    """The words of the command that makes the same release."""
    chosen = _chosen(source, asked)
    words = ["trailveil", "protect", str(source.source), *source.options]
    for time in chosen.at:
        words += ["--at", time]
    for both in chosen.between:
        words += ["--between", *both]
    if not chosen.ends:
        words.append("--no-ends")
    words += ["--radius", _in_full(asked.radius), "--epsilon", _in_full(asked.epsilon)]
    words += [] if asked.activity == AUTO else ["--activity", asked.activity]
    return [*words, "--mechanism", asked.method.value]


def _in_full(number: float) -> str:
    """So that it is read back as the same number."""
    return repr(number).removesuffix(".0")


def _chosen(source: Opened, asked: PageRequest) -> Chosen:
    """Both ends are what `protect` takes by itself; they need not be stated."""
    ends = {time_words(source.trace, end) for end in source.ends}
    if ends and not asked.parts:
        raise InvalidValue("something must be protected, got nothing: choose a part of the track")
    whole = ends <= asked.parts
    parts = sorted(asked.parts - ends if whole else asked.parts)
    return Chosen(
        tuple(part[0] for part in parts if len(part) == 1),
        tuple((part[0], part[1]) for part in parts if len(part) == 2),
        source.zone,
        ends=whole,
    )


def time_words(trace: Trace, part: Stretch) -> tuple[str, ...]:
    """The times of a part as `protect` takes them, to the nanosecond."""
    moments = dict.fromkeys((part.begin, part.end))
    return tuple(_since_start(when - int(trace.times[0])) for when in moments)


def _since_start(nanoseconds: int) -> str:
    whole, below_second = divmod(nanoseconds, NANOSECONDS)
    part = f".{below_second:09d}".rstrip("0") if below_second else ""
    return f"start+{whole}{part}s"


def drawn(source: Opened) -> dict[str, Any]:
    """The track and what may be chosen of it, as JSON: positions are degrees, times milliseconds.

    Of a long recording evenly chosen fixes are drawn.
    """
    trace = source.trace
    rows = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), DRAWN)).round().astype(int))
    begin = int(trace.times[0])
    return {
        "name": source.source.name,
        "activity": trace.activity,
        "output": source.output.name,
        "fixes": len(trace),
        "zone": "UTC" if source.zone is None else source.zone.key,
        "places": [visited.place.name for visited in source.visits],
        "cleaning": list(source.cleaning.sentences()),
        "points": [
            {
                "at": trace.positions[row].tolist(),
                "ms": int(trace.times[row]) // 1_000_000,
                "time": _since_start(int(trace.times[row]) - begin),
                "segment": int(trace.segments[row]),
            }
            for row in rows
        ],
        "parts": _offered(source),
    }


def _offered(source: Opened) -> list[dict[str, Any]]:
    """Both ends, which are chosen at first, and the stays that are found in between."""
    trace = source.trace
    ends = list(source.ends)
    stops = [Stretch("a stop", *stay, by_place=True) for stay in stays(trace)]
    between = [
        stop for stop in stops if not any(stop.begin <= e.end and e.begin <= stop.end for e in ends)
    ]
    offered = sorted([*ends, *between], key=lambda part: part.begin)
    return [
        {
            "label": part.label,
            "times": time_words(trace, part),
            "begin_ms": part.begin // 1_000_000,
            "end_ms": part.end // 1_000_000,
            "at": middle_of(trace, part),
            "chosen": part in ends,
        }
        for part in offered
    ]


def middle_of(trace: Trace, part: Stretch) -> list[float]:
    """About where a part is, latitude and longitude in degrees: the fix in the middle of it."""
    first, last = np.searchsorted(trace.times, [part.begin, part.end])
    row = min((int(first) + int(last)) // 2, len(trace) - 1)
    return [float(degrees) for degrees in trace.positions[row]]
