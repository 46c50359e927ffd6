"""Fixes as they come out of a file, one by one, until they are a recording.

Tracks and segments get a number when their first fix comes; what has none is counted. Further
fields (heart rate, elevation, ...) that were not asked for are counted and forgotten, and so are
their names, which are text of the file.
"""

import re
from array import array
from collections.abc import Sequence
from typing import Final
from xml.sax import ContentHandler, SAXException, SAXParseException
from xml.sax.handler import LexicalHandler, property_lexical_handler

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.sax import make_parser
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.traces.activities import activity_of, slowest
from trailveil.traces.fields import FIELDS, NAME, TYPE, FieldValues, plain_name, plausible
from trailveil.traces.formats.moments import NO_TIME, Moment, Trouble
from trailveil.traces.trace import Recording, Seen

_NONE = float("nan")


class Values:
    """Collects numbers by the name of their field; without a name it holds nothing."""

    def __init__(self, field_names: Sequence[str] = ()) -> None:
        self._held = {name: array("d") for name in field_names if name in FIELDS}
        self._names: dict[int, str] | None = {} if NAME in field_names else None

    def begin(self) -> None:
        """The next fix: as yet it states nothing."""
        for values in self._held.values():
            values.append(_NONE)

    def put(self, name: str, value: float) -> None:
        """What the latest fix states; of two numbers the first counts."""
        values = self._held[name]
        if values[-1] != values[-1]:
            values[-1] = value

    def extend(self, fields: Sequence[tuple[str, NDArray[np.float64]]], count: int) -> None:
        """The values (count,) of further fixes at once, NaN where they state none."""
        stated = dict(fields)
        for name, values in self._held.items():
            more = np.asarray(stated.get(name, np.full(count, _NONE)), dtype=np.float64)
            values.frombytes(more.tobytes())

    def finished(self) -> FieldValues:
        """The fields that some fix states, NaN for what cannot be."""
        fields = ((name, plausible(name, values)) for name, values in self._held.items())
        return tuple((name, values) for name, values in fields if not np.isnan(values).all())

    def call(self, track: int, name: str) -> None:
        """What a track is called, by its number, where that was asked for; of two the first."""
        if self._names is not None and (line := plain_name(name)):
            self._names.setdefault(track, line)

    def names(self, tracks: int) -> tuple[str, ...]:
        """What so many tracks are called, "" for none; empty where none has a name."""
        names = self._names or {}
        return tuple(names.get(number, "") for number in range(tracks)) if names else ()


MOST_POINTS: Final = 10_000_000
"""Records of a position that are read where nothing else is said: ten years of one in 30 s."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_MOST_FIELDS = 1000  # a file that makes up a name for each fix must not fill the memory


def number(text: str | None) -> float:
    """A decimal number as it stands, NaN for any other text: no underscore, no word, no comma."""
    return float(text) if text and _NUMBER.fullmatch(text := text.strip()) else float("nan")


class Fixes:
    """Collects fixes in file order; `where` names the file in messages.

    values: takes the fields in `field_names` of the latest fix. most: how many fixes there may be.
    """

    def __init__(
        self, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
    ) -> None:
        self.values: Final = Values(field_names)
        self.most: Final = most
        self._typed: Final = TYPE in field_names
        self._where: Final = where
        self._times = array("q")
        self._naive = bytearray()
        self._positions = array("d")
        self._segments = array("q")
        self._tracks: list[int] = []
        self._new_track = self._new_segment = True
        self._name = ""
        self._stated: list[set[str]] = [set()]
        self._moving: list[set[str]] = []
        self._counts = dict.fromkeys(Seen.__dataclass_fields__, 0)
        self._fields: set[str] = set()

    def __len__(self) -> int:
        """How many fixes there are so far."""
        return len(self._times)

    def begin_track(self) -> None:
        """What follows belongs to another track, and so to another segment."""
        self._new_track = self._new_segment = True
        self._name = ""
        self._stated.append(set())

    def name(self, text: str) -> None:
        """What the track is called that has begun; of two the first counts."""
        if self._new_track:
            self._name = self._name or text
        else:
            self.values.call(self._tracks[-1], text)

    def activity(self, name: str) -> None:
        """What the track that has begun is, in the words of the file."""
        self._stated[-1].add(activity_of(name))

    def begin_segment(self) -> None:
        """What follows belongs to another segment."""
        self._new_segment = True

    def end_segment(self) -> None:
        """A segment that has begun ends here; it is counted where it had no fix."""
        if self._new_segment:
            self.count("empty_segments")

    def fix(self, latitude: float, longitude: float) -> None:
        """A fix, in degrees, NaN where unreadable, as yet without a time.

        Raises UnreadableInput for more fixes than are read.
        """
        if len(self._times) >= self.most:
            raise too_many(self._where, self.most)
        if self._new_segment:  # only now is it known that the segment, and the track, have a fix
            last = self._tracks[-1] if self._tracks else -1
            self._tracks.append(last + self._new_track)
            if self._new_track:
                self.values.call(self._tracks[-1], self._name)
                self._moving.append(self._stated[-1])
            self._new_track = self._new_segment = False
        self._positions.extend((latitude, longitude))
        self._times.append(NO_TIME)
        self._naive.append(False)
        self._segments.append(len(self._tracks) - 1)
        self.values.begin()

    def extend(self, positions: NDArray[np.float64], times: NDArray[np.int64]) -> None:
        """Further fixes of one segment, all sound: degrees (n, 2), and nanoseconds (n,) in UTC.

        They state no field. Raises UnreadableInput for more fixes than are read.
        """
        if len(self._times) + len(times) > self.most:
            raise too_many(self._where, self.most)
        self.fix(*positions[0].tolist())
        self._times[-1] = int(times[0])
        self._times.frombytes(times[1:].tobytes())
        self._positions.frombytes(positions[1:].tobytes())
        more = len(times) - 1
        self._naive.extend(bytes(more))
        self._segments.extend([len(self._tracks) - 1] * more)
        self.values.extend((), more)

    def time(self, moment: Moment | Trouble) -> None:
        """The time of the latest fix; of two the first counts."""
        if isinstance(moment, Trouble):
            self.trouble(moment)
        elif self._times[-1] == NO_TIME:
            self._times[-1], self._naive[-1] = moment

    def trouble(self, trouble: Trouble) -> None:
        """Count a time that is none."""
        unreadable = trouble is Trouble.UNREADABLE
        self.count("unreadable_times" if unreadable else "impossible_years")

    def count(self, what: str, times: int = 1) -> None:
        """Count something that is not taken, by its name in `trailveil.traces.trace.Seen`."""
        self._counts[what] += times

    def field(self, name: str) -> None:
        """A further field of fixes, which is not taken: each name counts once."""
        if len(self._fields) < _MOST_FIELDS:
            self._fields.add(name)

    def recording(self) -> Recording:
        """What was collected. Raises UnreadableInput where that is nothing."""
        if not self._times:
            raise UnreadableInput(nothing(self._counts, self._where))
        types = tuple(slowest(stated) for stated in self._moving)
        return Recording(
            np.array(self._times, dtype=np.int64).view("datetime64[ns]"),
            np.frombuffer(self._naive, dtype=np.bool_),
            np.array(self._positions).reshape(-1, 2),
            np.array(self._segments, dtype=np.intp),
            tuple(self._tracks),
            Seen(**self._counts | {"other_fields": len(self._fields)}),
            self.values.finished(),
            self.values.names(self._tracks[-1] + 1),
            slowest(types),
            types if self._typed and any(types) else (),
        )


def too_many(where: str, most: int) -> UnreadableInput:
    """The refusal of more fixes than are read."""
    return UnreadableInput(
        f"input must hold at most {most} fixes, got more: {where}; split it, or "
        "state more with --max-points (protect, audit)"
    )


def nothing(counts: dict[str, int], where: str) -> str:
    """The message for a file without a fix: what there was instead."""
    counted = ", ".join(
        f"{what.replace('_', ' ')}: {count}" for what, count in counts.items() if count
    )
    return (
        f"input must hold a recorded track, got {counted or 'none'}: {where}; export the "
        "recorded activity, not a plan or a list of places"
    )


# XML from strangers: no document type, no entities, nothing fetched, one clear line for the rest.
#
# Without a document type there are no entities to expand, so time and memory are bounded by the
# size of the file, which `trailveil.files.source` bounds. The file is fed to the parser in one
# piece, because older versions of expat need quadratic time for a long token that comes in many.

DEEPEST = 1000
"""Elements that may be in one another; recordings have some ten."""

_BLANK = b" \t\r\n"
_UTF8_MARK = b"\xef\xbb\xbf"
_BEGINNINGS = (b"<", b"\xff\xfe", b"\xfe\xff", b"\0<")  # of XML, or of UTF-16
_DECLARATION = 1024  # bytes that surely hold the XML declaration


def parse(
    data: bytes, handler: ContentHandler, where: str, *, comments: LexicalHandler | None = None
) -> None:
    """Feed a document to a handler. Names arrive with their prefixes, which need no declaration.

    comments: who is told of comments, which are passed over else. Blank lines before the XML
    declaration, which the standard forbids, are passed over. Raises UnreadableInput with `where` in
    it, and with no text of the document; what the handler raises goes through.
    """
    text = data.removeprefix(_UTF8_MARK).lstrip(_BLANK)
    if not text.startswith(_BEGINNINGS):
        raise UnreadableInput(
            f"input must be XML, got something else: {where}; export the recording again"
        )
    _check_encoding(text, where)
    try:
        _feed(text, handler, comments)
    except DefusedXmlException:
        raise UnreadableInput(
            f"input must be plain XML, got a document type or entities: {where}; such a file can "
            "be an attack, export the recording again"
        ) from None
    except SAXParseException as error:
        line = (error.getLineNumber() or 1) + data[: len(data) - len(text)].count(b"\n")
        raise UnreadableInput(
            f"input must be well-formed XML, got '{error.getMessage()}' in line {line}: {where}; "
            "the file is damaged or cut off, export the recording again"
        ) from None


def check_depth(depth: int, where: str) -> None:
    """Refuse an element in so many others: each that is open takes room, here and in the parser.

    For handlers to call as an element begins. Raises UnreadableInput.
    """
    if depth >= DEEPEST:
        raise UnreadableInput(
            f"XML must have at most {DEEPEST} elements in one another, got more: {where}; such a "
            "file can be an attack, export the recording again"
        )


def _check_encoding(text: bytes, where: str) -> None:
    """Refuse an encoding that the parser does not know, before errors of a handler can look so."""
    try:
        _feed(text[:_DECLARATION], ContentHandler())
    except (SAXException, DefusedXmlException):
        return  # cut off here, or wrong in a way that is told better when all of it is parsed
    except (LookupError, ValueError):
        raise UnreadableInput(
            f"input must be XML in UTF-8, UTF-16 or Latin-1, got another encoding: {where}; "
            "convert it first"
        ) from None


def _feed(text: bytes, handler: ContentHandler, comments: LexicalHandler | None = None) -> None:
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(handler)
    if comments is not None:
        parser.setProperty(property_lexical_handler, comments)
    parser.feed(text)
    parser.close()
