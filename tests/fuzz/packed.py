"""Mutations that know the structure of FIT and KMZ: checksums and lists of files fit afterwards."""

import io
import struct
import zipfile
from collections.abc import Sequence
from random import Random

from tests.fuzz.bytewise import mutated
from tests.fuzz.structured import xml
from tests.traces.formats.fit_files import (
    SINT32,
    UINT32,
    definition,
    framed,
    semicircles,
    timer_start,
)
from tests.traces.formats.traces import PLACES, SECONDS

_BASE_TYPES = (0, 1, 2, 0x83, 0x84, SINT32, UINT32, 7, 0x88, 0x89, 0x0A, 0x8E, 0x8F, 0xFF)
_NAMES = ("../x.kml", "/x.kml", "C:\\x.kml", "x.KML", "", "a" * 5000, "\u202e.kml")
_HEAD, _FOOT = 14, 2
_WAYS = (*(("document",) * 8), "bomb", "name", "several", "heads", "heads")


def fit(rng: Random, data: bytes) -> bytes:
    """Messages mutated, with sizes and checksums made right most often."""
    if rng.random() < 0.2:
        return _made(rng)
    start = data[0] if data else 0
    body = data[start : len(data) - _FOOT] if 12 <= start <= _HEAD else data
    how = rng.choice((0, 1, 2, 3, 3, 3, 4, 5))
    if how == 0:
        body = mutated(rng, body, ())
    elif how == 1:
        body = _definitions(rng) + body
    elif how == 2:
        at = rng.randrange(len(body) + 1)
        body = body[:at] + _definitions(rng) + rng.randbytes(rng.randrange(40)) + body[at:]
    elif how == 3:
        body = bytes(_edited(rng, bytearray(body)))
    elif how == 4:
        body += timer_start(int(SECONDS[0])) * rng.choice((1, 3, 500))
    else:
        return framed(body) * rng.choice((2, 3)) + rng.choice((b"", data[:9], b"\0" * 20))
    whole = framed(body)
    if rng.random() < 0.1:
        size = rng.choice((0, 1, len(body) - 1, len(body) + 1, 2**31, 2**32 - 1))
        whole = whole[:4] + struct.pack("<I", max(0, size)) + whole[8:]
    return whole


def _edited(rng: Random, body: bytearray) -> bytearray:
    for _ in range(rng.choice((1, 1, 2, 8))):
        if body:
            body[rng.randrange(len(body))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, 0x40, 0x60))
    return body


def _definitions(rng: Random) -> bytes:
    """Definitions of any field, size and base type, developer fields among them."""
    numbers = (0, 1, 2, 3, 4, 6, 7, 13, 73, 78, 253, 254, 255, 5)
    fields = [
        (rng.choice(numbers), rng.choice((0, 1, 2, 4, 4, 8, 3, 255)), rng.choice(_BASE_TYPES))
        for _ in range(rng.choice((0, 1, 3, 8, 255)))
    ]
    message = rng.choice((0, 18, 19, 20, 20, 20, 21, 23, 34, 49, 206, 207, 65535))
    made = bytearray(definition(rng.randrange(16), message, fields))
    if rng.random() < 0.3:  # with fields of a developer
        made[0] |= 0x20
        made += bytes((1, rng.randrange(3), rng.randrange(9), rng.randrange(3)))
    if rng.random() < 0.2:
        made[2] = rng.choice((1, 2, 255))  # big-endian, or neither
    return bytes(made)


def _made(rng: Random) -> bytes:
    """Records of their own definition: positions as numbers of another size, time compressed."""
    base = rng.choice(_BASE_TYPES)
    size = rng.choice((1, 2, 4, 4, 8))
    fields = [(253, 4, UINT32), (0, size, base), (1, size, base), (rng.choice((2, 3, 78)), 2, 0x84)]
    rows = b""
    for at, (a, b) in list(zip(SECONDS.tolist(), PLACES.tolist(), strict=True))[:12]:
        places = (
            rng.choice((semicircles(v), 0x7FFFFFFF, 0, -(2**31), 2**31 - 1)).to_bytes(
                8, "little", signed=True
            )[:size]
            for v in (a, b)
        )
        stamp = rng.choice((at - 631_065_600, 0, 2**32 - 1, 0x10000000))
        head = 0x80 | rng.randrange(32) if rng.random() < 0.1 else 0
        rows += struct.pack("<BI", head, stamp) + b"".join(places) + rng.randbytes(2)
    return framed(definition(0, 20, fields) + rows)


def kmz(rng: Random, data: bytes) -> bytes:
    """The document mutated and packed again, odd archives, and bombs."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            name = next(one for one in archive.namelist() if one.lower().endswith(".kml"))
            document = archive.read(name)
    except Exception:  # noqa: BLE001 - a seed that is no archive is none to take apart
        return data
    how = rng.choice(_WAYS)
    if how == "heads":
        return _changed_heads(rng, packed([(name, document)]))
    method, rest = zipfile.ZIP_DEFLATED, []
    if how == "document":
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        document = xml(rng, document) if rng.random() < 0.8 else mutated(rng, document, ())
    elif how == "bomb":
        bomb = rng.choice((b" ", b"<a>", b"\0")) * rng.choice((300_000, 2_000_000, 7_000_000))
        document = document[:-20] + bomb
    elif how == "name":
        rest = [(name, document)] * rng.randrange(2)
        name = rng.choice(
            ("../x.kml", "/x.kml", "C:\\x.kml", "x.KML", "", "a" * 5000, "\u202e.kml")
        )
    else:
        rest = [(f"{i}.png", b"x") for i in range(rng.choice((1, 20, 1001)))]
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    return packed([(name, document), *rest], method)


def packed(members: Sequence[tuple[str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of names and contents."""
    stream, seen = io.BytesIO(), set()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members:
            if name not in seen:  # of two that are alike zipfile would warn
                seen.add(name)
                entry = zipfile.ZipInfo(name)
                entry.compress_type = method
                archive.writestr(entry, content)
    return stream.getvalue()


def _changed_heads(rng: Random, data: bytes) -> bytes:
    """One or a few bytes of the headers of an archive changed."""
    changed = bytearray(data)
    for mark in (b"PK\1\2", b"PK\3\4", b"PK\5\6"):
        at = data.rfind(mark)
        for _ in range(rng.choice((0, 1, 1, 2))):
            changed[min(len(data) - 1, at + 4 + rng.randrange(42))] = rng.choice((0, 1, 9, 0xFF))
    return bytes(changed)
