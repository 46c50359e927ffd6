"""Files in, files out: which format a file has, and who reads and writes it.

docs/formats.md says which formats are read, and what of each. They are rows of one table,
`trailveil.traces.formats.table`. A reader returns a `Recording`, in which nothing has been
repaired; a writer gets a cleaned `Trace` and writes its times and positions and nothing else, but
for the fields (`trailveil.traces.fields`) that a reader was asked for by name.
"""

from collections.abc import Sequence
from os import PathLike
from typing import BinaryIO

from numpy.typing import ArrayLike

from trailveil.errors import check_kind
from trailveil.files.source import LARGEST, load, named
from trailveil.traces.fields import check_fields
from trailveil.traces.formats.collect import MOST_POINTS
from trailveil.traces.formats.table import check_untimed, format_of, writer_of
from trailveil.traces.projection import microdegrees
from trailveil.traces.trace import Recording, Trace

__all__ = ["MOST_POINTS", "read", "size_of", "write"]

_BYTES = 200  # that a fix may take in a file, with what is not read


def read(
    path: str | PathLike[str], field_names: Sequence[str] = (), *, most: int = MOST_POINTS
) -> Recording:
    """The recording in a file, of the format that its suffix and its content say.

    field_names: names of `trailveil.traces.fields` to read besides: no other is looked at or held.
    most: how many fixes there may be; of bytes there may be 200 times as many, and LARGEST.
    Positions are degrees (WGS84), times UTC where the file gives a zone. Raises UnreadableInput,
    in one line, for a file that is missing, empty, no regular file, too large, of a format that
    is not read, or not what it claims to be; Refused or InvalidValue for a field that is none. No
    message holds text of the file.
    """
    field_names = check_fields(field_names)
    data = load(path, size_of(most))
    where = named(path)
    return format_of(path, data).read(data, where, field_names, most)


def size_of(most: int) -> int:
    """How many bytes a file of so many fixes may have at most."""
    check_kind("most", most, int)
    return max(LARGEST, _BYTES * most)


def write(trace: Trace, stream: BinaryIO, suffix: str, *, grid: ArrayLike | None = None) -> None:
    """Write times, positions and fields of a trace, and nothing else, in the format of `suffix`.

    Fields are those that it was read with, rounded to their decimals; by default it has none.
    Positions are written in whole microdegrees: `grid`, (n, 2) of int64, latitude and longitude,
    where given, else those of the trace rounded by floor(x + 1/2). Equal traces give equal bytes.
    Raises UnwritableOutput for a suffix that cannot be written, or not without the times of a trace
    that has none to be written, InvalidValue for a grid that does not fit the trace.
    """
    put = writer_of(suffix)
    if not trace.timed:
        check_untimed(suffix)
    put(trace, microdegrees(trace.positions) if grid is None else grid, stream)
