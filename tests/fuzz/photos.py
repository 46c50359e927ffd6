"""Mutations that know the structure of EXIF: segments, directories, kinds, counts and offsets."""

import struct
from random import Random

from tests.fuzz.bytewise import mutated
from tests.traces.formats.photos import photo

SEEDS: tuple[bytes, ...] = tuple(
    seed
    for order in "<>"
    for seed in (
        photo(order),
        photo(order, clock=False, taken="2024:05:14 14:00:30", offset="+02:00"),
        photo(order, clock=False, taken="2024:05:14 14:00:30"),
        photo(order, gps=False),
        photo(order, position=((0, 1),) * 6),
    )
)
"""Photos by cameras with and without satellites, in both orders of bytes."""

_SHORTS = (0, 1, 2, 3, 4, 5, 7, 10, 12, 512, 513, 0x7FFF, 0xFFFF, 0x8769, 0x8825, 0x9003)
_LONGS = (0, 1, 2, 3, 8, 59, 60, 90, 180, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
_BEGINS = b"\xff\xe1"


def exif(rng: Random, data: bytes) -> bytes:
    """A number in a directory, or a segment, is another."""
    at = data.find(_BEGINS)
    if at < 0 or rng.random() < 0.1:
        return mutated(rng, data, SEEDS)
    how = rng.choice(("number",) * 6 + ("segment", "size", "order", "cut"))
    if how == "segment":
        again = rng.choice(SEEDS)
        return data[:at] + again[again.find(_BEGINS) : -6] * rng.choice((1, 2, 50)) + data[at:]
    if how == "size":
        size = rng.choice((0, 1, 2, 7, 8, 0xFFFF))
        return data[: at + 2] + struct.pack(">H", size) + data[at + 4 :]
    if how == "order":
        mark = rng.choice((b"II*\0", b"MM\0*", b"MM*\0", b"II\0*", b"\0\0\0\0"))
        return data[: at + 10] + mark + data[at + 14 :]
    if how == "cut":
        return data[: rng.randrange(at, len(data))]
    place = at + 10 + 2 * rng.randrange(max(1, (len(data) - at - 16) // 2))
    order = "<" if data[at + 10 : at + 11] == b"I" else ">"
    if rng.random() < 0.5:
        new = struct.pack(f"{order}H", rng.choice(_SHORTS))
    else:
        new = struct.pack(f"{order}I", rng.choice((*_LONGS, rng.randrange(len(data)))))
    return data[:place] + new + data[place + len(new) :]
