"""Made-up FIT files: definitions, messages and checksums as the protocol lays them down."""

import struct
from collections.abc import Sequence

EPOCH = 631_065_600  # 1989-12-31T00:00:00Z in seconds since 1970
SEMICIRCLES = 2**31 / 180
NO_POSITION = 0x7FFFFFFF
RECORD, EVENT = 20, 21
SINT32, UINT32, UINT8, ENUM = 0x85, 0x86, 0x02, 0x00
Field = tuple[int, int, int]
"""Number, size in bytes, base type."""

PLACE = [(253, 4, UINT32), (0, 4, SINT32), (1, 4, SINT32), (3, 1, UINT8)]
TIMER = [(253, 4, UINT32), (0, 1, ENUM), (1, 1, ENUM)]


def checksum(data: bytes) -> int:
    """CRC-16/ARC, bit by bit."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def definition(local: int, message: int, fields: Sequence[Field]) -> bytes:
    """Announce messages of a kind under a local number."""
    head = struct.pack("<BBBHB", 0x40 | local, 0, 0, message, len(fields))
    return head + b"".join(bytes(field) for field in fields)


def record(seconds: int, latitude: int, longitude: int, heart_rate: int = 90) -> bytes:
    """A record, in seconds since 1970 and semicircles, under the local number 0."""
    return struct.pack("<BIiiB", 0, seconds - EPOCH, latitude, longitude, heart_rate)


def timer_start(seconds: int) -> bytes:
    """The timer starts, under the local number 1."""
    return struct.pack("<BIBB", 1, seconds - EPOCH, 0, 0)


def framed(body: bytes) -> bytes:
    """A whole file around messages."""
    head = struct.pack("<BBHI4s", 14, 0x10, 2134, len(body), b".FIT")
    head += struct.pack("<H", checksum(head))
    return head + body + struct.pack("<H", checksum(head + body))


DEFINITIONS = definition(0, RECORD, PLACE) + definition(1, EVENT, TIMER)


def semicircles(degrees: float) -> int:
    """The nearest whole number of 180/2^31 degree."""
    return round(degrees * SEMICIRCLES)
