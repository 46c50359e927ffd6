"""Times as files write them: ISO 8601 in its usual variants, exact to the nanosecond.

Read: 2024-05-01T08:09:10.123456789Z, with T or a space, a point or a comma, with or without
seconds, and a zone as Z, UTC, GMT, +02, +0200, +02:00 (or the typographic minus). A name in
brackets after the offset adds nothing and is skipped. Digits beyond nine are cut off. A leap
second counts as the first second of the next minute.
"""

import re
from datetime import date
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,30}))?)?"
    r" ?(?:(Z|UTC|GMT)|([+\-\u2212])(\d{1,2})(?::?(\d{2}))?(?:\[[^\]]{1,60}\])?)?",
    re.ASCII | re.IGNORECASE,
)
_EPOCH = date(1970, 1, 1).toordinal()
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
