"""NMEA 0183: fixes of RMC and GGA sentences in; nothing is written.

RMC has a position, a time and a date; GGA has no date, and takes it from the sentence with a date
(RMC or ZDA) beside it, if their clocks are within an hour: so midnight does no harm, and a log that
has a date once is dated from there, step by step. What is further has no time. RMC and GGA of one
moment that follow each other are one fix. A sentence that says itself that it is not valid, or has
a wrong checksum, is none; without a checksum it is taken if no sentence of the file has one. Years
have two digits: 80 to 99 are of 1900. For that, and since a log has no place for segments, the
format is not written.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from operator import xor
from typing import Final

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS, Fixes, number, too_many
from trailveil.traces.formats.moments import Moment
from trailveil.traces.trace import NANOSECONDS, Recording

_SENTENCE = re.compile(
    rb"\$([A-Z]{2}(?:RMC|GGA|ZDA),[\x20-\x23\x25-\x29\x2b-\x7e]{0,150})(?:\*(..))?"
)
_CLOCK = re.compile(r"([01]\d|2[0-3])([0-5]\d)([0-5]\d|60)(?:\.(\d{1,9}))?", re.ASCII)
_DATE = re.compile(r"(\d\d)(\d\d)(\d\d)", re.ASCII)
_ANGLE = re.compile(r"(\d{1,3})(\d\d)(?:\.(\d{1,12}))?", re.ASCII)
_DAY: Final = 86_400 * NANOSECONDS
_NEAR: Final = 3_600 * NANOSECONDS
_KNOT: Final = 1852 / 3600  # m/s
_EPOCH: Final = date(1970, 1, 1).toordinal()
_SIGNS: Final = {"N": 1, "S": -1, "E": 1, "W": -1}
_NO_FIX: Final = {"", "0"}  # qualities of GGA


@dataclass(slots=True)
class _Fix:
    """A moment of the receiver: nanoseconds of its clock and, where it is known, since 1970."""

    clock: int
    at: int | None = None
    place: tuple[float, float] | None = None
    values: dict[str, float] = field(default_factory=dict)


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a log, in file order; `where` names it in messages.

    field_names: fields to read besides; there are elevation, speed and course.

    Raises UnreadableInput where there is no sentence, or none with a position.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data.decode("utf-16", "replace").encode("ascii", "replace")
    fixes = Fixes(where, field_names, most)
    joined = _fixes(data, fixes, where)
    _date(joined)
    for fix in joined:
        if fix.place is None:
            continue
        fixes.fix(*fix.place)
        if fix.at is not None:
            fixes.time(Moment(fix.at, naive=False))
        for name, value in fix.values.items():
            if name in field_names:
                fixes.values.put(name, value)
            else:
                fixes.field(name)
    return fixes.recording()


def _fixes(data: bytes, fixes: Fixes, where: str) -> list[_Fix]:
    """What the sentences of a log say, moment by moment; what is none is counted."""
    joined: list[_Fix] = []
    count, summed = 0, re.search(rb"\$[A-Z]{5},[^$*\r\n]{0,150}\*[0-9A-Fa-f]{2}", data) is not None
    for match in _SENTENCE.finditer(data):
        count += 1
        if not _is_whole(match, summed=summed):
            fixes.count("wrong_checksums")
            continue
        name, *cells = match[1].decode("ascii").split(",")
        fix = {"RMC": _rmc, "GGA": _gga, "ZDA": _zda}[name[2:]]([*cells, *[""] * 12])
        if fix is None:
            fixes.count("without_position")
        elif joined and _are_one(joined[-1], fix):
            last = joined[-1]
            last.at = last.at if fix.at is None else fix.at
            last.place = last.place or fix.place
            last.values = {**fix.values, **last.values}
        else:
            if len(joined) >= fixes.most:
                raise too_many(where, fixes.most)
            joined.append(fix)
    if not count:
        raise UnreadableInput(
            f"input must be NMEA 0183 with RMC or GGA sentences, got none: {where}; export the "
            "recording as GPX"
        )
    return joined


def _are_one(last: _Fix, fix: _Fix) -> bool:
    """Whether two sentences are of one moment: their clocks agree, and their dates if both have."""
    return last.clock == fix.clock and (None in {last.at, fix.at} or last.at == fix.at)


def _is_whole(match: re.Match[bytes], *, summed: bool) -> bool:
    if match[2] is None:
        return not summed
    try:
        return int(match[2], 16) == reduce(xor, match[1])
    except ValueError:
        return False


def _date(fixes: list[_Fix]) -> None:
    """Give moments without a date that of their neighbours, forwards and then backwards."""
    for order in (fixes, fixes[::-1]):
        near: _Fix | None = None
        for fix in order:
            if fix.at is None and near is not None and near.at is not None:
                apart = (fix.clock - near.clock + _DAY // 2) % _DAY - _DAY // 2
                fix.at = near.at + apart if abs(apart) <= _NEAR else None
            near = fix


def _rmc(cells: list[str]) -> _Fix | None:
    """Time, A or V, latitude, N or S, longitude, E or W, knots, course, date, ..., mode."""
    clock, day = _clock(cells[0]), _day(cells[8])
    if clock is None or cells[1] != "A" or cells[11] == "N":
        return None
    values = {"speed": number(cells[6]) * _KNOT, "course": number(cells[7])}
    at = None if day is None else day * _DAY + clock
    return _Fix(clock, at, _place(cells[2:6]), _stated(values))


def _gga(cells: list[str]) -> _Fix | None:
    """Time, latitude, N or S, longitude, E or W, quality, satellites, dilution, height, M."""
    clock = _clock(cells[0])
    if clock is None or cells[5] in _NO_FIX:
        return None
    height = number(cells[8]) if cells[9] in {"M", ""} else math.nan
    return _Fix(clock, None, _place(cells[1:5]), _stated({"elevation": height}))


def _zda(cells: list[str]) -> _Fix | None:
    """Time, day, month, year: a date, and no position."""
    clock = _clock(cells[0])
    if not all(cell.isdecimal() for cell in cells[1:4]):
        return None
    try:
        day = date(int(cells[3]), int(cells[2]), int(cells[1])).toordinal() - _EPOCH
    except (ValueError, OverflowError):  # no such day; more digits than C holds
        return None
    return None if clock is None or abs(day) > 90_000 else _Fix(clock, day * _DAY + clock)


def _stated(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not math.isnan(value)}


def _clock(text: str) -> int | None:
    """Nanoseconds of the day of hhmmss.sss."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return None
    seconds = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])
    return seconds * NANOSECONDS + int((match[4] or "0").ljust(9, "0"))


def _day(text: str) -> int | None:
    """Days since 1970 of ddmmyy."""
    match = _DATE.fullmatch(text)
    try:
        day, month, year = (int(part) for part in match.groups()) if match else (0, 0, 0)
        return date(year + (1900 if year >= 80 else 2000), month, day).toordinal() - _EPOCH
    except ValueError:
        return None


def _place(cells: list[str]) -> tuple[float, float]:
    """Latitude and longitude in degrees, NaN where unreadable."""
    return _angle(cells[0], cells[1], "NS"), _angle(cells[2], cells[3], "EW")


def _angle(text: str, side: str, sides: str) -> float:
    """Degrees of dddmm.mmmm and a hemisphere."""
    match = _ANGLE.fullmatch(text)
    if match is None or side not in sides or not side:
        return math.nan
    scale = 10 ** len(match[3] or "")  # whole numbers, so that the quotient is the nearest double
    minutes = (int(match[1]) * 60 + int(match[2])) * scale + int(match[3] or 0)
    return float(_SIGNS[side] * minutes / (60 * scale))
