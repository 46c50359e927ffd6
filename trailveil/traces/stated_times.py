"""Times as people write them, as moments of a recording, and moments as people read them.

TIME is ISO 8601 with a zone, `start+5m` or `end-1h30m`, or HH:MM[:SS] with a zone stated apart.
A zone that is not stated is that of the place: borders are simplified to a few hundred metres
(tzfpy), so it counts only where all of a recording has it. No host is asked.
"""

import contextlib
import re
from datetime import UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from trailveil.errors import InvalidValue, Refused
from trailveil.traces.trace import NANOSECONDS, TimeSeries, Trace

_RELATIVE = re.compile(r"(start|end)(?:([+-])((?:\d{1,9}(?:\.\d{1,9})?[hms])+))?", re.ASCII)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([hms])")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?", re.ASCII)
_UNITS = {"h": 3600, "m": 60, "s": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400 * NANOSECONDS
_MOST_LISTED = 6


def moment(text: str, trace: TimeSeries, zone: tzinfo | None) -> int:
    """A time as people write it, in nanoseconds since 1970 UTC.

    Raises InvalidValue where it cannot be read; Refused where it is not clear which time is meant
    (no zone, or a local time that was passed more or less than once), with the candidates.
    """
    text = text.strip()
    if relative := _RELATIVE.fullmatch(text):
        edge, sign, amount = relative.groups()
        shift = _duration(amount) if amount else 0
        return int(trace.times[0 if edge == "start" else -1]) + (-shift if sign == "-" else shift)
    if clock := _CLOCK.fullmatch(text):
        return _of_the_clock(text, clock, trace, zone)
    try:
        when = datetime.fromisoformat(text)
        return in_nanoseconds(when) if when.tzinfo else _local(text, when, zone)
    except (ValueError, OverflowError) as error:
        form = "a time must be like 2024-05-14T08:30:00Z, start+5m, end-10m or 08:30, got "
        raise InvalidValue(f"{form}{text[:40]!r}", public=f"{form}another") from error


def is_relative(text: str) -> bool:
    """Whether a time counts from an end of the recording: in every zone it is the same."""
    return _RELATIVE.fullmatch(text.strip()) is not None


def time_of(text: str, zone: tzinfo | None) -> int:
    """A time of no recording, ISO 8601, in nanoseconds since 1970 UTC. zone: where it has none.

    Raises InvalidValue where it cannot be read, or has no zone.
    """
    with contextlib.suppress(ValueError, OverflowError):
        when = datetime.fromisoformat(text.strip())
        if when.tzinfo is not None or zone is not None:
            return in_nanoseconds(when) if when.tzinfo else _local(text, when, zone)
    form = "a time must be like 2024-05-14T08:30:00Z, or without Z and with --tz, got "
    raise InvalidValue(f"{form}{text[:40]!r}", public=f"{form}another")


def check_inside(text: str, when: int, trace: TimeSeries, zone: tzinfo | None) -> None:
    """Refuse a time outside of a recording, whose hours are told in the zone, or the computer's."""
    if not int(trace.times[0]) <= when <= int(trace.times[-1]):
        raise Refused(
            f"a protected time must be within the recording ({_hours(trace, zone)}), got "
            f"{text[:40]!r}",
            public="a protected time must be within the recording, got one outside of it",
        )


def _hours(trace: TimeSeries, zone: tzinfo | None) -> str:
    """When a recording begins and ends."""
    first, last = (in_words(int(trace.times[row]), zone) for row in (0, -1))
    return f"{first} to {last}"


def in_words(when: int, zone: tzinfo | None = UTC) -> str:
    """A time in a zone (the computer's own for None), to the second."""
    return _shown(when, zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def _duration(text: str) -> int:
    parts = _AMOUNT.findall(text)
    return round(sum(Fraction(number) * _UNITS[unit] for number, unit in parts) * NANOSECONDS)


def _of_the_clock(text: str, clock: re.Match[str], trace: TimeSeries, zone: tzinfo | None) -> int:
    hour, minute, second = (int(part or 0) for part in clock.groups())
    if hour > 23 or minute > 59 or second > 59:
        clock_times = "a clock time must be from 00:00 to 23:59:59, got "
        raise InvalidValue(f"{clock_times}{text!r}", public=f"{clock_times}another")
    if zone is None:
        raise Refused(
            f"a clock time must state its zone, got {text!r}; add --tz ZONE (the recording is from "
            f"{_hours(trace, UTC)})",
            public="a clock time must state its zone, got one without; add --tz ZONE",
        )
    candidates = _passes(timedelta(hours=hour, minutes=minute, seconds=second), trace, zone)
    if len(candidates) != 1:
        passed = f"times ({_listed(candidates, zone)}); state date and offset as well"
        if not candidates:
            passed = "times; state a time within"
        raise Refused(
            f"a clock time must be passed once by the recording ({_hours(trace, zone)}), got "
            f"{text!r} {len(candidates)} {passed}",
            public="a clock time must be passed once by the recording, got one that it passes "
            f"{len(candidates)} times; state date and offset as well",
        )
    return candidates[0]


def _passes(clock: timedelta, trace: TimeSeries, zone: tzinfo) -> list[int]:
    """The moments within the trace at which clocks in the zone show a time."""
    first, last = int(trace.times[0]), int(trace.times[-1])
    midnight = datetime.combine(_shown(first, zone).date(), datetime.min.time())
    days = range((last - first) // _DAY + 2)
    moments = [when for day in days for when in _moments(midnight + timedelta(day) + clock, zone)]
    return [when for when in moments if first <= when <= last]


def _moments(shown: datetime, zone: tzinfo) -> list[int]:
    """When clocks in a zone show a local time: once, or never or twice where they are changed."""
    instants = {in_nanoseconds(shown.replace(tzinfo=zone, fold=fold)) for fold in (0, 1)}
    return sorted(when for when in instants if _shown(when, zone).replace(tzinfo=None) == shown)


def _local(text: str, shown: datetime, zone: tzinfo | None) -> int:
    """A local time as a moment. Raises Refused where no zone is stated, or clocks were changed."""
    if zone is None:
        raise Refused(
            f"a time must state its zone, got {text!r}; add Z or an offset such as +02:00, or "
            "--tz ZONE",
            public="a time must state its zone, got one without; add Z or an offset such as "
            "+02:00, or --tz ZONE",
        )
    moments = _moments(shown, zone)
    if len(moments) != 1:
        raise Refused(
            f"a local time must be shown once by clocks, got {text!r} {len(moments)} times "
            f"({_listed(moments, zone)}), since they were changed; state an offset as well",
            public="a local time must be shown once by clocks, got one that they showed "
            f"{len(moments)} times, since they were changed; state an offset as well",
        )
    return moments[0]


def _listed(moments: list[int], zone: tzinfo) -> str:
    shown = [_shown(when, zone).isoformat() for when in moments]
    more = ", ..." if len(shown) > _MOST_LISTED else ""
    return ", ".join(shown[:_MOST_LISTED]) + more or "none"


def _shown(when: int, zone: tzinfo | None) -> datetime:
    return (_EPOCH + timedelta(microseconds=when // 1000)).astimezone(zone)


def in_nanoseconds(when: datetime) -> int:
    """Nanoseconds since 1970 UTC. Raises OverflowError where 64 bits cannot hold them."""
    nanoseconds = (when.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1) * 1000
    if not -(2**63) <= nanoseconds < 2**63:
        raise OverflowError
    return nanoseconds


# Fixes that are looked up: each takes microseconds, but a recording may have millions.
_LOOKED_UP = 50


def zone_of(trace: Trace) -> ZoneInfo | None:
    """The zone that all of a trace is in; None where there are several, or none is known."""
    from tzfpy import get_tz

    rows = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), _LOOKED_UP)).astype(int))
    extremes = (*trace.positions.argmin(axis=0), *trace.positions.argmax(axis=0))
    places = trace.positions[[*rows, *extremes]]
    names = {get_tz(float(longitude), float(latitude)) for latitude, longitude in places}
    if len(names) != 1:
        return None
    name = names.pop()
    if not name or name.startswith("Etc/"):  # at sea nobody says what clocks show
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None  # the zones of this machine are older than those of the library
