"""Times as files write them: ISO 8601 in its usual variants, exact to the nanosecond.

Read: 2024-05-01T08:09:10.123456789Z, with T or a space, a point or a comma, with or without
seconds, and a zone as Z, UTC, GMT, +02, +0200, +02:00 (or the typographic minus). A name in
brackets after the offset adds nothing and is skipped. Digits beyond nine are cut off. A leap
second counts as the first second of the next minute.
"""

import re
from array import array
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.traces.trace import NANOSECONDS

_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,30}))?)?"
    r" ?(?:(Z|UTC|GMT)|([+\-\u2212])(\d{1,2})(?::?(\d{2}))?(?:\[[^\]]{1,60}\])?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = date(1970, 1, 1).toordinal()
NO_TIME: Final = int(np.datetime64("NaT", "ns").astype(np.int64))
"""How a fix without a time is held among integers: as NumPy does."""
_LIMIT = 2**63 - 2 * 86_400 * 10**9  # two days less, so that a zone can be added later


class Trouble(Enum):
    """Why a text is no usable time."""

    UNREADABLE = "no time"
    IMPOSSIBLE = "a year that 64-bit nanoseconds cannot hold"


class Moment(NamedTuple):
    """Nanoseconds since 1970-01-01, in UTC or, where `naive`, on a clock of an unknown zone."""

    nanoseconds: int
    naive: bool


def parse_moment(text: str) -> Moment | Trouble:
    """The moment that a text names, exactly, or the trouble with it."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        return Trouble.UNREADABLE
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    fraction, utc, sign, zone_hour, zone_minute = match.groups()[6:]
    clock = (hour * 60 + minute) * 60 + second
    offset = (int(zone_hour or 0) * 60 + int(zone_minute or 0)) * 60
    if minute > 59 or second > 60 or clock > 86_400 or offset >= 86_400:
        return Trouble.UNREADABLE
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return Trouble.UNREADABLE
    seconds = days * 86_400 + clock + (offset if sign not in (None, "+") else -offset)
    nanoseconds = seconds * 10**9 + int((fraction or "0").ljust(9, "0")[:9])
    if abs(nanoseconds) > _LIMIT:
        return Trouble.IMPOSSIBLE
    return Moment(nanoseconds, naive=utc is None and sign is None)


def format_moments(times: NDArray[np.int64]) -> list[str]:
    """ISO 8601 in UTC with Z, of nanoseconds (n,), with only as many decimals as needed."""
    texts = np.datetime_as_string(times.astype("datetime64[ns]"), unit="ns")
    return [str(text).rstrip("0").rstrip(".") + "Z" for text in texts]


# A column of times, however it states them, to nanoseconds.
#
# Text is ISO 8601, or a date as 2024/05/14, 14.05.2024, 20240514 or 14/05/2024 with a clock time,
# which may be one of 12 hours. 05/06/2024 is read by the order of day and month that all rows of
# the column allow, and refused where both do. Numbers count from 1970: seconds, milli-, micro- or
# nanoseconds, by the column's name, else by their size, which the first number settles. Small
# numbers have no size that tells, and a trace taken for a thousand times longer than it was would
# look safer than it is: so they need a name.

_NUMBER = re.compile(r"[+-]?\d{1,30}(?:\.\d{0,30})?(?:[eE][+-]?\d{1,2})?", re.ASCII)
_ORDERED = re.compile(r"(\d{4})([-/.]?)(\d{1,2})\2(\d{1,2})(?:[T ]+(.*))?", re.ASCII)
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?:[T ,]+(.*))?", re.ASCII)
_SLASHES = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})(?:[T ,]+(.*))?", re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):?(\d{2}):?(\d{2})?([.,]\d+)? ?([ap])?\.?m?\.?(.*)", re.I | re.ASCII)
_HALF_DAYS: Final = {"a": 0, "p": 12}
_LONGEST = 100
_SMALL = 10**8  # seconds: 1973, before any receiver


class Stamps:
    """Collects a column of times, row by row.

    per_second: what a second is in numbers, None where their size tells. utc: whether times without
    a zone are UTC, by the name of their column.
    """

    def __init__(self, *, per_second: int | None, utc: bool) -> None:
        self.per_second = per_second
        self._utc = utc
        self._times = array("q")
        self._naive = bytearray()
        self._rows, self._day_first, self._month_first = array("q"), array("q"), array("q")
        self._small = False
        self.counts = {"unreadable_times": 0, "impossible_years": 0}

    def text(self, text: str, date: str = "") -> None:
        """A time as text, with its date where that stands apart; nothing where it is empty."""
        text, date = text.strip(), date.strip()
        stamp: Moment | Trouble | None = None
        if text and len(text) + len(date) <= _LONGEST:
            stamp = parse_moment(text)
            if stamp is Trouble.UNREADABLE:
                stamp = self._other(text, date)
        elif text:
            stamp = Trouble.UNREADABLE
        self._append(stamp)

    def numbers(self, values: Iterable[float]) -> None:
        """Times as numbers; whole ones are exact, NaN is none."""
        for value in values:
            usable = abs(value) < 1e30  # False for NaN
            self._append(self._number(Decimal(value)) if usable else None)

    def whole(self, values: NDArray[np.integer[Any]]) -> None:
        """Times as whole numbers (n,), as `numbers` has them."""
        first = 0
        while self.per_second is None and first < len(values):  # until the size of one tells
            self.numbers(values[first : first + 1].tolist())
            first += 1
        if first == len(values) or self.per_second is None:
            return
        numbers, factor = values[first:], NANOSECONDS // self.per_second
        within = (numbers <= _LIMIT // factor) & (numbers >= -(_LIMIT // factor))
        self.counts["impossible_years"] += int((~within).sum())
        times = np.full(len(numbers), NO_TIME, dtype=np.int64)
        times[within] = numbers[within].astype(np.int64) * factor
        self._extend(times, naive=False)

    def _extend(self, times: NDArray[np.int64], *, naive: bool) -> None:
        self._times.frombytes(times.tobytes())
        self._naive.extend(bytes([naive]) * len(times))

    def moments(self, times: NDArray[np.datetime64], *, naive: bool) -> None:
        """Times as they are held in memory, (n,) in any unit, NaT where there is none."""
        held = times.copy()
        bounds = [np.datetime64(sign * _LIMIT, "ns").astype(held.dtype) for sign in (-1, 1)]
        beyond = (held < bounds[0]) | (held > bounds[1])
        held[beyond] = np.datetime64("NaT")
        self.counts["impossible_years"] += int(beyond.sum())
        self._extend(held.astype("datetime64[ns]").astype(np.int64), naive=naive and not self._utc)

    def finished(self, where: str) -> tuple[NDArray[np.datetime64], NDArray[np.bool_]]:
        """All times, NaT where there is none, and which have no zone.

        Raises UnreadableInput for small numbers, and for dates whose day may be their month.
        """
        if self._small:
            raise UnreadableInput(
                "times must be ISO 8601 or count from 1970, got numbers too small to tell their "
                f"unit: {where}; say it in the column's name, such as time_s or time_ms"
            )
        times = np.array(self._times, dtype=np.int64)
        naive = np.frombuffer(bytes(self._naive), dtype=np.bool_)
        if self._rows:
            times[np.array(self._rows)] = self._ordered(where)
        self.counts["unreadable_times"] += int((times[np.array(self._rows, int)] == NO_TIME).sum())
        return times.view("datetime64[ns]"), naive & (times != NO_TIME)

    def _append(self, stamp: Moment | Trouble | None) -> None:
        if isinstance(stamp, Moment):
            self._times.append(stamp.nanoseconds)
            self._naive.append(stamp.naive and not self._utc)
            return
        self._times.append(NO_TIME)
        self._naive.append(False)
        if stamp is Trouble.UNREADABLE:
            self.counts["unreadable_times"] += 1
        elif stamp is Trouble.IMPOSSIBLE:
            self.counts["impossible_years"] += 1

    def _other(self, text: str, date: str) -> Moment | Trouble | None:
        """A time that is not simply ISO 8601."""
        if not date and _NUMBER.fullmatch(text):
            return self._number(Decimal(text))
        whole = f"{date} {text}".strip()
        if match := _ORDERED.fullmatch(whole):
            year, _, month, day, clock = match.groups()
            return _joined(year, month, day, clock)
        if match := _DAY_FIRST.fullmatch(whole):
            day, month, year, clock = match.groups()
            return _joined(year, month, day, clock)
        if match := _SLASHES.fullmatch(whole):
            return self._either(*match.groups())
        return Trouble.UNREADABLE

    def _either(self, first: str, second: str, year: str, clock: str | None) -> Moment | None:
        """Hold both readings of a date with slashes until all rows are known."""
        readings = _joined(year, second, first, clock), _joined(year, first, second, clock)
        self._rows.append(len(self._times))
        for held, stamp in zip((self._day_first, self._month_first), readings, strict=True):
            held.append(stamp.nanoseconds if isinstance(stamp, Moment) else NO_TIME)
        return next((reading for reading in readings if isinstance(reading, Moment)), None)

    def _ordered(self, where: str) -> NDArray[np.int64]:
        day_first = np.array(self._day_first, dtype=np.int64)
        month_first = np.array(self._month_first, dtype=np.int64)
        lost = (day_first == NO_TIME).sum(), (month_first == NO_TIME).sum()
        if lost[0] == lost[1] and (day_first != month_first).any():
            raise UnreadableInput(
                "dates must say which number is the month, got some such as 05/06/2024 that do "
                f"not: {where}; write them as 2024-06-05"
            )
        return day_first if lost[0] <= lost[1] else month_first

    def _number(self, value: Decimal) -> Moment | Trouble:
        if self.per_second is None:
            if abs(value) < _SMALL:
                self._small = self._small or value != 0
                return Trouble.UNREADABLE
            self.per_second = _guessed(value)
        nanoseconds = int(value * NANOSECONDS / self.per_second)
        if abs(nanoseconds) > _LIMIT:
            return Trouble.IMPOSSIBLE
        return Moment(nanoseconds, naive=False)


def _guessed(value: Decimal) -> int:
    """What a second is, for a time between 1973 and 5138."""
    return next((unit for unit in (1, 10**3, 10**6) if abs(value) < 1000 * _SMALL * unit), 10**9)


def _joined(year: str, month: str, day: str, clock: str | None) -> Moment | Trouble:
    match = _CLOCK.fullmatch((clock or "").strip())
    if match is None:
        return Trouble.UNREADABLE
    hour, minute, second, fraction, half, zone = match.groups()
    if half:
        if not 1 <= int(hour) <= 12:
            return Trouble.UNREADABLE
        hour = str(int(hour) % 12 + _HALF_DAYS[half.lower()])
    return parse_moment(
        f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{fraction or ''}{zone}"
    )
