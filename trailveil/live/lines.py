"""Lines of a live source: a fix in, and the same fix out, in the form that it came in.

A line is an RMC sentence of NMEA 0183, a location of OwnTracks (JSON), or a row of a table whose
columns a line of names stated before. Readers of whole files read each of them. What leaves has a
time and a place, and nothing else: no height, no battery, no name of a network. Of NMEA no other
sentence is read: RMC alone has a date, and GGA, GNS and GLL say again where it was. Nothing of a
line that is not read ever leaves.
"""

import codecs
import contextlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import xor
from typing import Any, Final

import numpy as np

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import once
from trailveil.traces.formats import delimited, nmea, owntracks
from trailveil.traces.formats.grid import degrees
from trailveil.traces.formats.moments import format_moments
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import NANOSECONDS, Recording

LONGEST: Final = 10_000
"""Bytes that a line may have."""

HEADER: Final = b"time,latitude,longitude\n"
_RMC = re.compile(rb"\$[A-OQ-Z][A-Z]RMC,")  # $P is a maker's
# One sentence and nothing beside it: two that ran into each other have cells of both.
_WHOLE = re.compile(rb"\$[A-Z]{5},[^$*!]*(\*[0-9A-Fa-f]{2})?")
_NO_FIX = (
    "a line must be a sound RMC sentence, a location of OwnTracks, or a row with a time, its zone, "
    "a latitude and a longitude, got something else: left out"
)


@dataclass(frozen=True, slots=True, repr=False)
class Fix:
    """A fix of a live source; printing it shows nothing.

    time: nanoseconds since 1970 UTC. latitude, longitude: degrees. form: of the line that it came
    in, csv, nmea or owntracks. cells: of an RMC sentence. moved: whether noise was added.
    """

    time: int
    latitude: float
    longitude: float
    form: str = "csv"
    cells: tuple[str, ...] = ()
    moved: bool = False

    def line(self) -> bytes:
        """The fix in its form; a place that was moved in whole microdegrees."""
        if self.form == "nmea":
            return self._sentence()
        places = [self.latitude, self.longitude]
        texts = [degrees(round(place * MICRO) if self.moved else place) for place in places]
        if self.form == "owntracks":
            seconds, part = divmod(self.time, NANOSECONDS)
            stamp = f"{seconds}.{part:09d}".rstrip("0").rstrip(".")
            head = f'{{"_type":"location","lat":{texts[0]},"lon":{texts[1]},"tst":{stamp}}}'
            return f"{head}\n".encode()
        return f"{format_moments(np.array([self.time]))[0]},{texts[0]},{texts[1]}\n".encode()

    def _sentence(self) -> bytes:
        """Time, A, latitude, N or S, longitude, E or W, two blanks, date, two blanks, mode."""
        place = list(self.cells[3:7])
        if self.moved:
            place = [*_minutes(self.latitude, "NS", 2), *_minutes(self.longitude, "EW", 3)]
        body = ",".join(["GPRMC", self.cells[1], "A", *place, "", "", self.cells[9], "", "", "A"])
        return f"${body}*{reduce(xor, body.encode()):02X}\r\n".encode()


class Lines:
    """Reads lines one by one. skipped: how many were no fix by their kind; fixes: how many were.

    It remembers the names of the columns of a table, and which device OwnTracks names.
    """

    def __init__(self, columns: str = "") -> None:
        """State the columns of a table that has no line of names, as one: time,lat,lon."""
        self.skipped = self.fixes = 0
        self._header = b""
        self._device: dict[str, Any] = {}
        if columns and not self._named(columns.encode(errors="replace") + b"\n"):
            raise InvalidValue(
                "columns must name time, latitude and longitude, got others: write them as the "
                "first line of a table, such as time,lat,lon"
            )

    def fix(self, line: bytes) -> Fix | None:
        """The fix in a line; None for a line that is none by its kind.

        Such are sentences besides RMC, messages besides locations, comments (#) and empty lines.
        Raises UnreadableInput for anything else; no message repeats a part of the line.
        """
        if len(line) > LONGEST:
            raise UnreadableInput(f"a line must have at most {LONGEST:,} bytes, got more")
        text = plain(line)
        if not text or text.startswith(b"#") or text == self._header.strip():
            return None
        fix = self._read(text)
        self.skipped += fix is None
        self.fixes += fix is not None
        return fix

    def _read(self, text: bytes) -> Fix | None:
        if text.startswith((b"$", b"!")):
            return self._nmea(text)
        if text.startswith(b"{"):
            return self._owntracks(text)
        if not self._header:
            raise UnreadableInput(
                "must be NMEA, JSON of OwnTracks, or follow a line that names time, latitude and "
                "longitude, got another: write that line first, or state --columns"
            )
        return _only(lambda: delimited.read(self._header + text + b"\n", "line"), "csv")

    def is_header(self, line: bytes) -> bool:
        """Whether a line is the first that names columns: those of all rows that follow.

        Later ones are not heeded: what looks like one may be a note in a row.
        """
        text = plain(line)
        if self._header or text.startswith((b"$", b"!", b"{", b"#")) or len(line) > LONGEST:
            return False
        return self._named(text + b"\n")

    def _named(self, line: bytes) -> bool:
        if not delimited.looks_like_table(line):
            return False
        self._header = line
        return True

    def _nmea(self, text: bytes) -> Fix | None:
        if not _RMC.match(text):
            return None
        if not _WHOLE.fullmatch(text):
            raise UnreadableInput(_NO_FIX)
        cells = tuple(text.split(b"*")[0].decode("ascii", "replace").split(","))
        if len(cells) > 2 and cells[2] == "V":  # the receiver says that it has no fix
            return None
        return _only(lambda: nmea.read(text, "line"), "nmea", cells)

    def _owntracks(self, text: bytes) -> Fix | None:
        message: dict[str, Any] = {}
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(text, object_pairs_hook=once)
            # gpsd says what it is in messages of a class, before its sentences.
            if message.get("_type", message.get("class", "location")) != "location":
                return None
        fix = _only(lambda: owntracks.read_lines(text, "line"), "owntracks")
        named = {name: message[name] for name in ("topic", "tid") if message.get(name) is not None}
        if any(self._device.get(name, value) != value for name, value in named.items()):
            raise UnreadableInput(
                "a stream must be of one device, got a message of another tid or topic: left out"
            )
        self._device |= named
        return fix


def plain(line: bytes) -> bytes:
    """A line without blanks around it, its end, and a mark of the order of bytes."""
    return line.removeprefix(codecs.BOM_UTF8).strip()


def _only(read: Callable[[], Recording], form: str, cells: tuple[str, ...] = ()) -> Fix:
    """The one fix of a line. Raises UnreadableInput where it has none that can be used."""
    try:
        recording = read()
    except UnreadableInput:
        raise UnreadableInput(_NO_FIX) from None
    if len(recording) != 1 or np.isnat(recording.times[0]) or recording.naive[0]:
        raise UnreadableInput(_NO_FIX)
    latitude, longitude = recording.positions[0].tolist()
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        raise UnreadableInput(_NO_FIX)
    return Fix(int(recording.times[0].astype(np.int64)), latitude, longitude, form, cells)


def _minutes(place: float, sides: str, digits: int) -> list[str]:
    """Degrees as NMEA writes them: ddmm.mmmm, and the hemisphere."""
    whole, part = divmod(round(abs(place) * 600_000), 600_000)
    minutes, fraction = divmod(part, 10_000)
    return [f"{whole:0{digits}d}{minutes:02d}.{fraction:04d}", sides[place < 0]]
