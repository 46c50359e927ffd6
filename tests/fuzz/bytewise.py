"""Mutations that know nothing of formats: bytes, numbers and lines."""

import codecs
import re
from collections.abc import Callable, Sequence
from random import Random

LARGEST = 128 * 1024
"""Bytes that a mutated input has at most."""

INTERESTING: tuple[bytes, ...] = (
    *(b"", b"0", b"-0", b"1", b"-1", b"90", b"-90.0000001", b"180", b"-180", b"360", b"91"),
    *(b"nan", b"NaN", b"inf", b"-inf", b"Infinity", b"1e999", b"-1e308", b"1e-400", b"9" * 400),
    *(b"2147483647", b"-2147483648", b"4294967296", b"9223372036854775807"),
    *(b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616"),
    *(b"0x10", b"1_000", b"1,5", b"+", b"-", b".", b"1e", "\u0661\u0662".encode(), b"\xb2"),
    *(b"1e18", b"1714548600000", b"1714548600000000000", b"99999999999999", b"-62135596800"),
    *(b"0000-00-00T00:00:00Z", b"2024-02-30T25:61:61Z", b"99999-01-01T00:00:00Z"),
    *(b"1677-09-21T00:12:43Z", b"2262-04-11T23:47:17Z", b"2024-05-01T24:00:00Z"),
    *(b"2024-05-01T07:30:60Z", b"2024-05-01T07:30:00+99:99", b"2024-05-01T07:30:00.1234567890Z"),
    *(b"2024-05-01", b"07:30", b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:59-14:00"),
    *(b"true", b"null", b"None", b"\0", b"\r", b"\n", b"\t", b"\xff", "\ufeff".encode()),
    *("\u202e".encode(), "\ud800".encode(errors="surrogatepass"), "\u2028".encode(), b"'", b'"'),
)
"""Text that readers of numbers and times have stumbled over."""

_NUMBER = re.compile(rb"[-+]?\d+(?:\.\d+)?")
_RUNS = (b" ", b"9", b"(", b"[", b"{", b"<", b"a", b"\t", b'"', b",", b"-", b"\0", b".", b":")

Step = Callable[[Random, bytes, Sequence[bytes]], bytes]
"""A mutation, told other seeds besides."""


def mutated(rng: Random, data: bytes, others: Sequence[bytes], most: int = 4) -> bytes:
    """One to `most` mutations, most often one or two."""
    for _ in range(min(most, 1 + int(rng.expovariate(0.8)))):
        data = rng.choice(STEPS)(rng, data, others)[:LARGEST]
    return data


def _span(rng: Random, data: bytes, most: int = 200) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.randrange(1, most))


def _flip(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _time in range(min(len(data), rng.choice((1, 1, 2, 5, 20)))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _put(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(INTERESTING) + data[at + rng.choice((0, 0, 1, 4)) :]


def _random(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(rng, data, 20)
    return data[:begin] + rng.randbytes(end - begin) + data[end:]


def _number(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """One number becomes another, or every number that reads the same."""
    found = list(_NUMBER.finditer(data))
    if not found:
        return _put(rng, data, _)
    one, new = rng.choice(found), rng.choice(INTERESTING)
    if rng.random() < 0.1:
        return data.replace(one.group(), new)
    return data[: one.start()] + new + data[one.end() :]


def _delete(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(rng, data, rng.choice((3, 50, 2000)))
    return data[:begin] + data[end:]


def _repeat(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    begin, end = _span(rng, data)
    times = rng.choice((2, 2, 3, 50)) if rng.random() < 0.95 else LARGEST // max(1, end - begin)
    return data[:begin] + data[begin:end] * times + data[end:]


def _swap(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    (a, b), (c, d) = sorted((_span(rng, data), _span(rng, data)))
    return data if b > c else data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _cut(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] if rng.random() < 0.8 else data[at:]


def _splice(rng: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = rng.choice(others) if others else data
    at = rng.randrange(len(data) + 1)
    begin, end = _span(rng, other, 2000)
    return data[:at] + (other[begin:] if rng.random() < 0.5 else other[begin:end] + data[at:])


def _lines(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    how = rng.randrange(4)
    if how == 0:
        rng.shuffle(lines)
    elif how == 1:
        del lines[at]
    elif how == 2:
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 100))
    else:
        lines.reverse()
    return b"\n".join(lines)


def _ends(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    end = rng.choice((b"\r", b"\r\n", b"\n\n", b"\0", b"", b"\x0b", b"\xc2\x85", b"\xe2\x80\xa8"))
    return data.replace(b"\n", end)


def _encoded(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Another encoding, with and without its mark."""
    mark = rng.choice((codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"", b"\0\0"))
    kind = rng.choice(("utf-8", "utf-16-le", "utf-16-be", "utf-32", "utf-7", "cp1252"))
    text = data.decode("utf-8", errors="replace")
    return mark + text.encode(kind, errors="replace")


def _zeros(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + b"\0" * rng.choice((1, 1, 7, 4096)) + data[at:]


def _run(rng: Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """A long run of one character, which a careless pattern needs quadratic time for."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_RUNS) * rng.choice((100, 3000, 20_000)) + data[at:]


STEPS: tuple[Step, ...] = (
    *(_flip, _flip, _put, _put, _random, _number, _number, _number, _delete, _delete, _repeat),
    *(_swap, _cut, _splice, _splice, _lines, _ends, _encoded, _zeros, _run),
)
"""Every mutation of this kind, the plain ones twice."""
