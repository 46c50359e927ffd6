"""What to protect: times as people write them, stays and ends, as stretches of a trace.

TIME is ISO 8601 with a zone, `start+5m` or `end-1h30m`, or HH:MM[:SS] with a zone stated apart.
Times are in nanoseconds since 1970 UTC here, exact; seconds since the first fix are what priors
see.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Refused
from trailveil.projection import MICRO
from trailveil.trace import NANOSECONDS, Trace

# Metres: fixes that stay this near the first (or last) one adjoin it as still.
STILL_WITHIN = 30.0
_RELATIVE = re.compile(r"(start|end)(?:([+-])((?:\d+(?:\.\d+)?[hms])+))?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_UNITS = {"h": 3600, "m": 60, "s": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a trace to protect: one time, or a stay from begin to end (nanoseconds, inclusive).

    label: what asked for it. by_place: whether its times were chosen by where the person was.
    """

    label: str
    begin: int
    end: int
    by_place: bool = False

    @property
    def is_stay(self) -> bool:
        """Whether it has a duration."""
        return self.end > self.begin

    def rows(self, trace: Trace) -> NDArray[np.bool_]:
        """The fixes inside, (n,)."""
        return (trace.times >= self.begin) & (trace.times <= self.end)

    def seconds(self, trace: Trace) -> tuple[float, float]:
        """Begin and end in seconds since the first fix."""
        first = int(trace.times[0])
        return (self.begin - first) / NANOSECONDS, (self.end - first) / NANOSECONDS


def moment(text: str, trace: Trace, zone: tzinfo | None) -> int:
    """A time as people write it, in nanoseconds since 1970 UTC.

    Raises InvalidValue where it cannot be read; Refused where it is not clear which time is meant
    (no zone, or a clock time that the recording passes more or less than once), with the
    candidates.
    """
    text = text.strip()
    first, last = int(trace.times[0]), int(trace.times[-1])
    if relative := _RELATIVE.fullmatch(text):
        edge, sign, amount = relative.groups()
        shift = _duration(amount) if amount else 0
        return (first if edge == "start" else last) + (-shift if sign == "-" else shift)
    if clock := _CLOCK.fullmatch(text):
        return _of_the_clock(text, tuple(int(part or 0) for part in clock.groups()), trace, zone)
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidValue(
            "a time must be like 2024-05-14T08:30:00Z, start+5m, end-10m or 08:30, got "
            f"{text[:40]!r}"
        ) from error
    if when.tzinfo is None:
        if zone is None:
            raise Refused(
                f"a time must state its zone, got {text!r}; add Z or +02:00, or --tz ZONE"
            )
        when = when.replace(tzinfo=zone)
    return _nanoseconds(when)


def at(text: str, trace: Trace, zone: tzinfo | None) -> Stretch:
    """One time within the trace. Raises Refused for one outside."""
    when = moment(text, trace, zone)
    _check_inside(text, when, trace)
    return Stretch("at a stated time", when, when)


def between(first: str, second: str, trace: Trace, zone: tzinfo | None) -> Stretch:
    """A stay within the trace. InvalidValue where it ends before it begins, Refused outside."""
    begin, end = moment(first, trace, zone), moment(second, trace, zone)
    if not begin < end:
        raise InvalidValue(f"--between must be two times in order, got {first!r} and {second!r}")
    for text, when in ((first, begin), (second, end)):
        _check_inside(text, when, trace)
    return Stretch("between stated times", begin, end)


def ends(trace: Trace, lattice: NDArray[np.int64]) -> list[Stretch]:
    """Both ends of the trace: first and last fix, widened over adjoining still fixes.

    lattice: positions (n, 2) in micrometres. Widening depends on where the person was: such
    stretches say so.
    """
    first = _still_run(lattice)
    last = len(trace) - 1 - _still_run(lattice[::-1])
    if first >= last:
        whole = Stretch(
            "the whole recording, which stands still", *_span(trace, 0, len(trace) - 1), True
        )
        return [whole]
    return [
        Stretch("the start", *_span(trace, 0, first), by_place=first > 0),
        Stretch("the end", *_span(trace, last, len(trace) - 1), by_place=last < len(trace) - 1),
    ]


def merged(stretches: list[Stretch]) -> list[Stretch]:
    """In order of time, those that touch or overlap made one: one person has one clock."""
    found: list[Stretch] = []
    for stretch in sorted(stretches, key=lambda one: (one.begin, one.end)):
        if found and stretch.begin <= found[-1].end:
            found.append(_joined(found.pop(), stretch))
        else:
            found.append(stretch)
    return found


def _joined(one: Stretch, other: Stretch) -> Stretch:
    label = one.label if one.label == other.label else f"{one.label}, {other.label}"
    return Stretch(label, one.begin, max(one.end, other.end), one.by_place or other.by_place)


def in_words(when: int, zone: tzinfo | None = UTC) -> str:
    """A time in a zone (the computer's own for None), to the second."""
    local = (_EPOCH + timedelta(seconds=when // NANOSECONDS)).astimezone(zone)
    return local.strftime("%Y-%m-%d %H:%M:%S %Z")


def _still_run(lattice: NDArray[np.int64]) -> int:
    """The index of the last fix of the run from the first that stays near it."""
    away = np.hypot(*((lattice - lattice[0]) / MICRO).T) > STILL_WITHIN
    return int(np.argmax(away)) - 1 if np.any(away) else len(away) - 1


def _span(trace: Trace, first: int, last: int) -> tuple[int, int]:
    return int(trace.times[first]), int(trace.times[last])


def _duration(text: str) -> int:
    parts = re.findall(r"(\d+(?:\.\d+)?)([hms])", text)
    return round(sum(float(number) * _UNITS[unit] for number, unit in parts) * NANOSECONDS)


def _of_the_clock(text: str, clock: tuple[int, ...], trace: Trace, zone: tzinfo | None) -> int:
    hour, minute, second = clock
    if hour > 23 or minute > 59 or second > 59:
        raise InvalidValue(f"a clock time must be from 00:00 to 23:59:59, got {text!r}")
    candidates = _passes((hour, minute, second), trace, zone or UTC)
    listed = ", ".join(in_words(when, zone or UTC) for when in candidates[:6]) or "none"
    if zone is None:
        raise Refused(
            f"a clock time must state its zone, got {text!r}; add --tz ZONE (in UTC it would be: "
            f"{listed})"
        )
    if len(candidates) != 1:
        raise Refused(
            f"a clock time must be passed once by the recording, got {text!r} {len(candidates)} "
            "times "
            f"({listed}); give the date too"
        )
    return candidates[0]


def _passes(clock: tuple[int, int, int], trace: Trace, zone: tzinfo) -> list[int]:
    """The moments within the trace at which clocks in the zone show a time."""
    first, last = int(trace.times[0]), int(trace.times[-1])
    day: date = (_EPOCH + timedelta(seconds=first // NANOSECONDS)).astimezone(zone).date()
    found = set()
    for offset in range((last - first) // (86_400 * NANOSECONDS) + 2):
        naive = datetime.combine(day + timedelta(days=offset), datetime.min.time()).replace(
            hour=clock[0], minute=clock[1], second=clock[2]
        )
        for fold in (0, 1):  # an hour that clocks pass twice in autumn
            when = _nanoseconds(naive.replace(tzinfo=zone, fold=fold))
            shown = (_EPOCH + timedelta(seconds=when // NANOSECONDS)).astimezone(zone)
            if first <= when <= last and shown.replace(tzinfo=None) == naive:
                found.add(when)
    return sorted(found)


def _nanoseconds(when: datetime) -> int:
    return (when.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) * 1000


def _check_inside(text: str, when: int, trace: Trace) -> None:
    first, last = int(trace.times[0]), int(trace.times[-1])
    if not first <= when <= last:
        raise Refused(
            f"a protected time must be within the recording ({in_words(first)} to "
            f"{in_words(last)}), "
            f"got {text!r}"
        )
