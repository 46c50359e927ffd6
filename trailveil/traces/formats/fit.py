"""FIT (Garmin and others): fixes of recorded activities in (`fit_writing`: out).

Read are `record` messages with position_lat and position_long, in units of 180/2^31 degree, and
timestamp, in seconds since 1989-12-31 UTC; each start of the timer begins a segment, each file of a
chain a track. Laps are not read: see docs/decisions.md. A record without a position is one of
something else (a heart rate indoors) and no fix. fitdecode takes the file apart; its decoding of
values is left out, which would take half of the time. Fields that are asked for are scaled here, by
the profile. A wrong checksum is counted, as software that writes it wrongly is about.
"""

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS, Fixes
from trailveil.traces.formats.moments import Moment, Trouble
from trailveil.traces.trace import NANOSECONDS, Recording

_RECORD, _EVENT = 20, 21  # numbers of messages
_SPORT_OF: Final = {12: 0, 18: 5}  # by the number of a message, here sport and session: its field
_LATITUDE, _LONGITUDE, _TIMESTAMP = 0, 1, 253  # numbers of fields of a record
_TIMER, _START = 0, 0  # values of event and event_type, which are fields 0 and 1 of an event
# Of the profile: the number of a field, its name, scale and offset; enhanced ones come first.
_FIELDS: Final = (
    *((78, "elevation", 5, 500), (2, "elevation", 5, 500)),
    *((73, "speed", 1000, 0), (6, "speed", 1000, 0)),
    *((3, "heart_rate", 1, 0), (4, "cadence", 1, 0), (7, "power", 1, 0), (13, "temperature", 1, 0)),
)
# Of the profile: what sports are called that are an activity.
_SPORTS: Final = {
    1: "running",
    2: "cycling",
    11: "walking",
    17: "hiking",
    21: "e_biking",
    22: "motorcycling",
    24: "driving",
}
_SEMICIRCLES = 2**31 / 180
_EPOCH = 631_065_600  # 1989-12-31T00:00:00Z, in seconds since 1970
_LEAST_TIME = 0x10000000  # what is less counts from when the device was switched on

# What the parser may stumble over in a damaged file: it checks some things by assertion.
_DAMAGE: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of all activities of a FIT file or chain of them; `where` names it in messages.

    field_names: fields to read besides. Of a file that is damaged or cut off, what stands
    before that is read, and the rest is counted as lost.

    Raises UnreadableInput where it is no FIT, or holds no recorded fix.
    """
    fixes = Fixes(where, field_names, most)
    try:
        with opened(data, where) as frames:
            for frame in frames:
                _take(frame, fixes, field_names)
    except _Damaged:
        if not len(fixes):
            raise
        fixes.count("lost_ends")
    return fixes.recording()


class _Damaged(UnreadableInput):
    """A file that cannot be read to its end."""


@contextmanager
def opened(data: bytes, where: str) -> Iterator[Iterator[Any]]:
    """The frames of a FIT file or chain of them, as fitdecode has them, one after the other.

    Raises UnreadableInput where it is no FIT, is damaged or cut off, also for what a damaged frame
    makes the code inside stumble over.
    """
    from fitdecode import CrcCheck, ErrorHandling, FitError, FitReader

    try:
        with FitReader(
            io.BytesIO(data),
            processor=None,
            check_crc=CrcCheck.READONLY,
            error_handling=ErrorHandling.IGNORE,
        ) as reader:
            yield iter(reader)
    except (FitError, *_DAMAGE):
        raise _Damaged(
            f"input must be a whole FIT file, got one that is damaged or cut off: {where}; export "
            "the recording again"
        ) from None


def _take(frame: Any, fixes: Fixes, field_names: Sequence[str]) -> None:
    from fitdecode import FIT_FRAME_CRC, FIT_FRAME_DATA, FIT_FRAME_HEADER

    if frame.frame_type == FIT_FRAME_HEADER:
        fixes.begin_track()
    elif frame.frame_type == FIT_FRAME_CRC:
        fixes.count("wrong_checksums", int(not frame.matched))
    elif frame.frame_type != FIT_FRAME_DATA:
        return
    elif frame.global_mesg_num == _RECORD:
        _take_record(frame, fixes, field_names)
    elif (sport := _SPORT_OF.get(frame.global_mesg_num)) is not None:
        fixes.activity(_SPORTS.get(_values(frame).get(sport, -1), ""))
    elif frame.global_mesg_num == _EVENT:
        values = _values(frame)
        if (values.get(0), values.get(1)) == (_TIMER, _START):
            fixes.begin_segment()


def _values(frame: Any) -> dict[int, Any]:
    """Raw values by the number of their field; what a developer added has no number here."""
    raw = {field.def_num: field.raw_value for field in frame.fields if not _is_added(field)}
    return {number: value for number, value in raw.items() if value is not None}


def _is_added(field: Any) -> bool:
    return field.field_def is not None and field.field_def.is_dev


def _take_record(frame: Any, fixes: Fixes, field_names: Sequence[str]) -> None:
    values = _values(frame)
    taken = [row for row in _FIELDS if row[1] in field_names]
    for name in values.keys() - {_LATITUDE, _LONGITUDE, _TIMESTAMP, *(row[0] for row in taken)}:
        fixes.field(str(name))
    latitude, longitude = values.get(_LATITUDE), values.get(_LONGITUDE)
    if latitude is None and longitude is None:
        fixes.count("without_position")
        return
    fixes.fix(_degrees(latitude), _degrees(longitude))
    if (stamp := values.get(_TIMESTAMP)) is not None:
        fixes.time(_moment(stamp))
    for index, field, scale, offset in taken:
        value = values.get(index)
        if isinstance(value, int):
            fixes.values.put(field, value / scale - offset)


def _degrees(semicircles: object) -> float:
    return semicircles / _SEMICIRCLES if isinstance(semicircles, int) else float("nan")


def _moment(stamp: object) -> Moment | Trouble:
    if not isinstance(stamp, int) or stamp < _LEAST_TIME:
        return Trouble.UNREADABLE
    return Moment((stamp + _EPOCH) * NANOSECONDS, naive=False)
