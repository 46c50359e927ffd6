"""OwnTracks: messages of type location in; nothing is written.

Read are an array of messages, one alone, the `data` of the recorder's answers, a message a line,
and the recorder's .rec files, whose lines have a time and a kind before the message. A message has
lat, lon and tst, in seconds since 1970; others (transitions, waypoints, cards) are counted. Those
of several topics are of several people or devices, and refused.
"""

import io
import json
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS, Fixes
from trailveil.traces.formats.json_text import Items, inner, objects, parsed, plain_number
from trailveil.traces.formats.moments import Moment, Trouble
from trailveil.traces.formats.tabular import several
from trailveil.traces.trace import NANOSECONDS, Recording

# A time, a kind padded with blanks, a message: tabs between, or blanks where a copy lost the tabs.
_BEFORE = re.compile(rb"\s*[\dTZ:.+-]{10,40}[\t ]+[^\t\n{]{0,40}[\t ]\s*(?=\{)")
_FIRST = re.compile(rb"\s*(\{[^\r\n]*\})[ \t\r]*\n\s*\S")
_LATEST: Final = 9 * 10**9  # seconds: the year 2255
_FIELDS: Final = (("alt", "elevation", 1.0), ("vel", "speed", 1 / 3.6), ("cog", "course", 1.0))


def fits(root: Any) -> bool:
    """Whether a tree has messages of OwnTracks."""
    return bool(_messages(root))


def take(
    root: Any, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a tree that fits, in file order; `where` names the file in messages.

    field_names: fields to read besides. Raises UnreadableInput for several topics, or no timed
    position.
    """
    reader = _Reader(where, field_names, most)
    for message in _messages(root):
        reader.message(message)
    return reader.fixes.recording()


def is_lines(data: bytes) -> bool:
    """Whether a text has a message a line, and not one document of JSON."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    if _BEFORE.match(data):
        return True
    first = _FIRST.match(data)
    try:
        return first is not None and "_type" in json.loads(first[1])
    except (ValueError, RecursionError):
        return False


def read_lines(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a text with a message a line; lines that are none are counted.

    Raises UnreadableInput as `take` does.
    """
    reader = _Reader(where, field_names, most)
    for line in io.BytesIO(data.removeprefix(b"\xef\xbb\xbf")):
        before = _BEFORE.match(line)
        text = (line[before.end() :] if before else line).strip()
        if not text:
            continue
        try:
            message = parsed(text, where)
        except UnreadableInput:
            message = None
        if isinstance(message, dict):
            reader.message(message)
        else:
            reader.fixes.count("other_records")
    return reader.fixes.recording()


def _messages(root: Any) -> list[dict[str, Any]] | Items:
    if isinstance(root, dict):
        root = [root] if "_type" in root else inner(root, "data")
    messages = objects(root)
    return messages if any("_type" in message for message in messages) else []


class _Reader:
    """Collects the fixes of messages."""

    def __init__(self, where: str, field_names: Sequence[str], most: int) -> None:
        self.fixes: Final = Fixes(where, field_names, most)
        self._where: Final = where
        self._field_names: Final = field_names
        self._topic: object = None

    def message(self, message: dict[str, Any]) -> None:
        """Take a message, or count it."""
        if message.get("_type") != "location":
            self.fixes.count("other_records")
            return
        topic = message.get("topic")
        if topic is not None and self._topic is not None and topic != self._topic:
            raise several(self._where)
        self._topic = self._topic if topic is None else topic
        if message.get("lat") is None and message.get("lon") is None:
            self.fixes.count("without_position")
            return
        self.fixes.fix(plain_number(message.get("lat")), plain_number(message.get("lon")))
        if (stamp := message.get("tst")) is not None:
            self.fixes.time(_moment(stamp))
        for name, field, scale in _FIELDS:
            if name not in message:
                continue
            if field in self._field_names:
                self.fixes.values.put(field, plain_number(message[name]) * scale)
            else:
                self.fixes.field(name)


def _moment(stamp: Any) -> Moment | Trouble:
    if isinstance(stamp, bool) or not isinstance(stamp, int | float) or not abs(stamp) < _LATEST:
        return Trouble.UNREADABLE
    return Moment(int(Decimal(stamp) * NANOSECONDS), naive=False)
