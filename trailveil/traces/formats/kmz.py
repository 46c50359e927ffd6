"""KMZ: a zip archive with a KML document of a recording; nothing else in it is looked at.

The standard library opens it once the end of the archive says that it is small enough to be listed.
Nothing is extracted to a file, and the document is read no further than a file may be large.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from numpy.typing import ArrayLike

from trailveil.errors import UnreadableInput
from trailveil.files import source
from trailveil.traces.formats import kml
from trailveil.traces.formats.collect import MOST_POINTS
from trailveil.traces.trace import Recording, Trace

MOST_MEMBERS: Final = 1000
"""Files that an archive may have."""

_RATIO: Final = 200  # bytes that one byte may become; recorded KML has some 20
_SMALL: Final = 2**20  # bytes that may have any ratio
_LIST: Final = 2**20  # bytes of the list of files
_END = b"PK\5\6"
_LARGE_END = b"PK\6\7"  # of an archive beyond 4 GiB or 65,535 files
_END_SIZE, _COMMENT, _LARGE_SIZE = 22, 65_535, 20
_METHODS: Final = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1
_DOCUMENT = "doc.kml"
_DAMAGE: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(LookupError, NotImplementedError, OverflowError, RuntimeError, ValueError),
)


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of the KML document in an archive; `where` names the file in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where it is no such archive, is damaged, encrypted or made to fill the
    memory, has no KML document with a recording or several, such as one that links to another, or
    the document cannot be read as `kml.read` has it.
    """
    with opened(data, where) as archive:
        names = [
            member_file
            for member_file in archive.infolist()
            if member_file.filename.lower().endswith(".kml")
        ]
        if len(names) == 1:
            return kml.read(member(archive, names[0], where), where, field_names, most)
        recordings = []
        for name in names:
            with suppress(UnreadableInput):
                recordings.append(kml.read(member(archive, name, where), where, field_names, most))
    if len(recordings) != 1:
        raise UnreadableInput(
            f"KMZ must hold one .kml file with a recording, got {len(recordings)} in {len(names)}: "
            f"{where}; unpack it and name one"
        )
    return recordings[0]


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as zipped KML.

    The archive has one file, which is always called the same, and dated as zip's first day: a date
    would tell when it was made. Raises InvalidValue for a grid that does not fit.
    """
    document, archive = io.BytesIO(), io.BytesIO()
    kml.write(trace, grid, document)
    entry = zipfile.ZipInfo(_DOCUMENT)
    entry.create_system = 3  # the same on each system
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(entry, document.getvalue())
    stream.write(archive.getvalue())


def opened(data: bytes, where: str) -> zipfile.ZipFile:
    """An archive whose list of files is short and names nothing outside it.

    Raises UnreadableInput for anything else.
    """
    _check_end(data, where)
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _DAMAGE:
        raise _damaged(where) from None
    names = [member_file.filename for member_file in archive.infolist()]
    if len(names) > MOST_MEMBERS:
        raise _too_many(where)
    if any(_leads_outside(name) for name in names):
        raise UnreadableInput(
            f"names in a KMZ must stay inside it, got one that leads outside: {where}; such a file "
            "can be an attack, export the recording again"
        )
    return archive


def member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str) -> bytes:
    """The content of a file in an archive, bounded as a file by itself is.

    Raises UnreadableInput where it is larger, packed too well to be a recording, encrypted, packed
    in a way that is not read, or damaged.
    """
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in _METHODS:
        raise UnreadableInput(
            f"a KMZ must be stored or deflated and not encrypted, got another: {where}; pack it "
            "again"
        )
    most = min(source.LARGEST, max(_SMALL, _RATIO * entry.compress_size))
    try:
        with archive.open(entry) as file:
            content = file.read(most + 1)
    except _DAMAGE:
        raise _damaged(where) from None
    if len(content) > most:
        raise UnreadableInput(
            f"a file in a KMZ must be at most {source.in_words(source.LARGEST)}, and {_RATIO} "
            f"times its packed size, got more: {where}; such a file can be an attack, unpack it "
            "first"
        )
    return content


def _check_end(data: bytes, where: str) -> None:
    """Look at the end of an archive, which says how long its list is, before it is listed."""
    at = len(data) - _END_SIZE
    if at < 0 or data[at : at + 4] != _END or data[-2:] != b"\0\0":  # as zipfile looks for it
        at = data.rfind(_END, max(0, at - _COMMENT))
    if at < 0 or len(data) - at < _END_SIZE:
        raise _damaged(where)
    count, size = struct.unpack_from("<HL", data, at + 10)
    large = data[max(0, at - _LARGE_SIZE) : at].startswith(_LARGE_END)
    if large or count > MOST_MEMBERS or size > _LIST:
        raise _too_many(where)


def _leads_outside(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in name or "\0" in name


def _too_many(where: str) -> UnreadableInput:
    return UnreadableInput(
        f"a KMZ must hold at most {MOST_MEMBERS} files, got more: {where}; unpack it and name its "
        ".kml file"
    )


def _damaged(where: str) -> UnreadableInput:
    return UnreadableInput(
        f"input must be a whole KMZ, got one that is damaged or cut off: {where}; export the "
        "recording again"
    )
