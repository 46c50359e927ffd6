"""What people, series and recordings are recognised by, however they are written.

A name of a person is the same in any case, width or spacing; one that could be taken for another is
refused. A recording is the same at other times: it may have been read with another zone, shifted or
renamed. Three things tell, all stored as keyed hashes:

- *content*: all steps on the lattice and the whole seconds between them. Whoever has the key can
  test a guess of all of it, at the price of `trailveil.gp.randomness.slow_digest`;
- *places*: all steps alone, at the same price, for copies whose times were taken away or made up;
- *windows* of successive time differences, which parts and copies with other decimals share. Only
  those count that a recording could not have by chance: by how often such differences come back in
  it, they hold 64 bits or more. Regular sampling has none.
"""

import hashlib
import unicodedata
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.randomness import derive, slow_digest

ME = "me"
"""Whose recordings they are where nobody says."""

CONTENT_BYTES, WINDOW_BYTES = 16, 6
"""How long the hashes of the content and of each window are."""

ENOUGH = 2
"""How many windows apart from one another two recordings must share to be one."""

_LONGEST = 100
# Fewer different places or values than this come back by themselves.
_LEAST_DIFFERENT = 10
# Differences in a window, and bits it must hold; windows of each kind at most.
_LENGTHS, _BITS, _MOST = (32, 192), 64.0, 8
# Lengths from which on differences may be found to be like no others of their recording.
_UNIQUE_FROM = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192)
_SECOND, _MILLISECOND = 10**9, 10**6
_ODD = 0x9E3779B97F4A7C15
# Scripts that are written together; letters that look like Latin ones, small or capital, and such
# as are shown as nothing.
_TOGETHER = {"HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "CJK", "BOPOMOFO", "HANGUL"}
_LIKE_LATIN = set(
    "\u0430\u0432\u0433\u0435\u043a\u043c\u043d\u043e\u043f\u0440\u0441\u0442\u0443\u0445\u044c"
    "\u0455\u0456\u0458\u0475\u04af\u04bb\u04cf\u0501\u051b\u051d"
    "\u03b1\u03b2\u03b3\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c3\u03c4\u03c5"
    "\u03c7\u03c9\u03f2\u03f3"
    "\u0566\u0570\u0575\u0578\u057d\u0581\u0582\u0585"
    "\u13a0\u13a1\u13a2\u13aa\u13ab\u13ac\u13b3\u13b7\u13bb\u13c0\u13c3\u13d2\u13d4\u13d5\u13d9"
    "\u13da\u13de\u13df\u13e2\u13e6"
)
_LETTERS = ("Lu", "Ll", "Lt", "Lo", "So")
_LIKE_LATIN_TOO = set("\u0251\u0261\u0269")
_INVISIBLE = set("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")


@lru_cache(maxsize=1024)
def subject_named(name: str) -> str:
    """The one way that the name of a person is written: `Me` and ` me` are me.

    Raises InvalidValue for one that is empty, too long, cannot be printed, or mixes letters of
    several scripts or consists of such that look like others.
    """
    whole = _folded(name)
    letters = [character for character in whole if unicodedata.category(character) in _LETTERS]
    scripts = {_script(letter) for letter in letters} - {""}
    hidden = any(
        character in _INVISIBLE or "\ufe00" <= character <= "\ufe0f" for character in whole
    )
    hidden |= not unicodedata.normalize("NFKC", name).strip().isprintable()
    if not whole or len(whole) > _LONGEST or hidden:
        raise InvalidValue(
            f"the name of a person must be of 1 to {_LONGEST} characters that can be printed, got "
            "another: write it in letters and digits"
        )
    if len(scripts) > 1 or "LETTER" in scripts or (letters and set(letters) <= _LIKE_LATIN):
        raise InvalidValue(
            "the name of a person must be in letters of one script that do not look like others, "
            "got one that could be taken for another name: write it in Latin letters"
        )
    return whole


def series_named(name: str) -> str:
    """The one way that the name of a column of readings is written, without case and unit."""
    whole = _folded(name)
    begin = max(whole.rfind("("), whole.rfind("["))
    bare = whole[:begin].strip() if whole.endswith((")", "]")) and begin > 0 else whole
    return bare or whole


def content_of(times: NDArray[np.int64], steps: NDArray[np.int64]) -> bytes:
    """A digest of a recording that takes long to compute, whenever the recording begins.

    times: (n,) nanoseconds. steps: (n,) or (n, 2) on the lattice. Not to be stored as it is.
    """
    seconds = np.diff(np.floor_divide(times, _SECOND)).astype("<i8").tobytes()
    return hashlib.sha256(_places(steps.astype("<i8").tobytes()) + seconds).digest()


@lru_cache(maxsize=1)  # of one recording both digests are asked for, one after the other
def _places(steps: bytes) -> bytes:
    """A digest of all steps, which takes long to compute."""
    return slow_digest([b"recording", steps])


def prints_of(
    key: bytes, content: bytes, times: NDArray[np.int64], steps: NDArray[np.int64]
) -> bytes:
    """What a ledger knows a recording by: the hash of its content (zeros for none), its windows.

    content: of `content_of`, of the same times and steps. A recording of hardly any different
    steps comes back by itself, and is known by its windows alone.
    """
    # A few of the first steps mostly are enough different ones.
    parts = (steps[: 4 * _LEAST_DIFFERENT], steps)
    if not any(len(np.unique(part, axis=0)) >= _LEAST_DIFFERENT for part in parts):
        return bytes(CONTENT_BYTES) + b"".join(windows_of(key, times))
    whole = derive(key, [b"content", content])[:CONTENT_BYTES]
    places = derive(key, [b"places", _places(steps.astype("<i8").tobytes())])
    # As many as are enough to be of one recording.
    return whole + places[: ENOUGH * WINDOW_BYTES] + b"".join(windows_of(key, times))


def content_in(prints: bytes) -> list[bytes]:
    """The hash of the content in prints, in a list; none where the content tells nothing."""
    content = prints[:CONTENT_BYTES]
    return [content] if content.strip(b"\0") else []


def windows_in(prints: bytes) -> list[bytes]:
    """The hashes of the windows in prints."""
    starts = range(CONTENT_BYTES, len(prints), WINDOW_BYTES)
    return [prints[i : i + WINDOW_BYTES] for i in starts]


def windows_of(key: bytes, times: NDArray[np.int64]) -> list[bytes]:
    """Keyed hashes of those windows of time differences that tell a recording from others."""
    windows = []
    for unit in (_SECOND, _MILLISECOND):
        steps = np.diff(np.floor_divide(times, unit))
        if unit == _SECOND or np.any(times % _SECOND):
            bits = _bits(steps)
            for length in _LENGTHS:
                label = [b"window", unit.to_bytes(8, "big")]
                windows += [
                    derive(key, [*label, steps[i : i + length].astype("<i8").tobytes()])
                    for i in _telling(steps, bits, length)
                ]
    return [window[:WINDOW_BYTES] for window in windows]


def _folded(name: str) -> str:
    whole = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(whole.split())


def _script(letter: str) -> str:
    """The script of a letter; LETTER for one that is there to look like another."""
    words = unicodedata.name(letter, "UNKNOWN").split()
    if words[1:4] == ["LETTER", "SMALL", "CAPITAL"] or letter in _LIKE_LATIN_TOO:
        return "LETTER"
    if unicodedata.category(letter) == "So":
        return "LETTER" if "LETTER" in words else ""
    return "CJK" if words[0] in _TOGETHER else words[0]


def _bits(steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """About how many bits each difference (n,) tells beyond those around it.

    log2(n) over the length from which on what begins there comes nowhere else in the recording: an
    estimate of the entropy of whatever makes such differences, periods and clocks that beat against
    the grid included (Kontoyiannis et al., "Nonparametric entropy estimation for stationary
    processes and random fields", 1998). Lengths are rounded up, so bits down.
    """
    bits = np.zeros(steps.size)
    for length in _UNIQUE_FROM:
        open_until = steps.size - length + 1
        if open_until < 1 or bits[:open_until].all():
            break
        names = _names(steps, length)
        order = np.argsort(names)
        differs = np.diff(names[order]) != 0
        unique = np.empty(names.size, dtype=np.bool_)
        unique[order] = np.append(True, differs) & np.append(differs, True)
        bits[:open_until][unique & (bits[:open_until] == 0)] = np.log2(steps.size) / length
    return bits


def _names(steps: NDArray[np.int64], length: int) -> NDArray[np.uint64]:
    """A number for each window of a length (n - length + 1,): the same for the same differences."""
    powers, inverse = _powers(steps.size)
    with np.errstate(over="ignore"):
        sums = np.cumsum(_mixed(steps.astype(np.uint64)) * powers)
        sums = np.concatenate([np.zeros(1, dtype=np.uint64), sums])
        whole = sums[length:] - sums[:-length]
        return _mixed(whole * inverse[: whole.size])


@lru_cache(maxsize=2)
def _powers(count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The powers of an odd number, from the first on, and their inverses, (n,) each."""
    with np.errstate(over="ignore"):
        both = (np.full(count, odd, dtype=np.uint64) for odd in (_ODD, pow(_ODD, -1, 2**64)))
        powers, inverse = (each.cumprod() for each in both)
    return powers, inverse


def _telling(steps: NDArray[np.int64], bits: NDArray[np.float64], length: int) -> list[int]:
    """Where windows begin that tell enough: the same ones in every copy, none over another."""
    if steps.size < length:
        return []
    sums = np.concatenate([[0.0], np.cumsum(bits)])
    enough = np.flatnonzero(sums[length:] - sums[:-length] >= _BITS)
    if enough.size == 0:
        return []
    rank = _names(steps, length)[enough]
    places: list[int] = []
    taken = np.zeros(steps.size, dtype=np.bool_)
    for place in enough[np.argsort(rank, kind="stable")].tolist():
        if not taken[place]:
            places.append(place)
            taken[max(0, place - length + 1) : place + length] = True
            if len(places) == _MOST:
                break
    return places


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Words (n,) whose bits are mixed well (the finaliser of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
