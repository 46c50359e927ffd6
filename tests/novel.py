"""A format of a structure that nothing but its row knows: what a contributor would write."""

import io
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS, Fixes, number
from trailveil.traces.formats.grid import rows_of, whole_degrees
from trailveil.traces.formats.moments import parse_moment
from trailveil.traces.formats.table import Format
from trailveil.traces.trace import Recording, Trace

HEAD, END = b"novel log\n", b"=end\n"


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """Lines of `latitude/longitude@time`; what has another form is passed over."""
    if not (data.startswith(HEAD) and data.endswith(END)):
        raise UnreadableInput(f"input must be a whole log, got something else: {where}")
    fixes = Fixes(where, field_names, most)
    fixes.begin_track()
    for line in data.decode("utf-8", errors="replace").splitlines():
        place, at, moment = line.partition("@")
        if at:
            latitude, _, longitude = place.partition("/")
            fixes.fix(number(latitude), number(longitude))
            fixes.time(parse_moment(moment))
    return fixes.recording()


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """The same lines; it has no place for segments."""
    rows = rows_of(trace, grid)
    stamps = rows.times.astype("datetime64[ns]").astype("datetime64[s]")
    lines = [
        f"{latitude:.6f}/{longitude:.6f}@{stamp}Z\n"
        for (latitude, longitude), stamp in zip(whole_degrees(rows.points), stamps, strict=True)
    ]
    stream.write(HEAD + "".join(lines).encode() + END)


def packed(data: bytes) -> bytes:
    """The same with bytes that are no text around it: a length, and each byte turned over."""
    turned = (255 - np.frombuffer(data, np.uint8)).tobytes()
    return b"\0NVL" + len(data).to_bytes(4, "little") + turned


def read_packed(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """What is packed."""
    return read(packed(data[8:])[8:], where, field_names, most)


def write_packed(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """The same, packed."""
    inner = io.BytesIO()
    write(trace, grid, inner)
    stream.write(packed(inner.getvalue()))


NOVEL = Format("Novel", (".novel",), "novel", lambda head: head.startswith(HEAD), read, write)
PACKED = Format(
    "Packed", (".nvl",), "packed", lambda head: b"nvl" in head[:4], read_packed, write_packed
)
