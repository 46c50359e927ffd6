"""What an input may lead to: a result, or one printable line without any of its secrets."""

import re
from collections.abc import Callable
from pathlib import Path

from trailveil.errors import TrailveilError

ACCEPTED, REFUSED = "accepted", "refused"

_LONGEST = 600
# Of the samples: their positions in any notation, and every name in them.
_SECRET = re.compile(
    r"(?<![\d.,])(?:46[.,]1\d\d|7[.,]65\d|461\d{5}|765\d{4})|Secretville|Petronella|Wristwatch"
    r"|0123456789abcdef"
)
_COUNT = re.compile(r"(?:line|row|most|has|have|got) \d+")
_DIGITS = re.compile(r"[-+]?\d+[.,]\d{3,}|\d{5,}")
_CODE = re.compile(r'Traceback|File "|\.py\b|0x[0-9a-f]{6,}')


class Fault(Exception):
    """A promise that was not kept, in words that tell no input."""


def judged(call: Callable[[], object], data: bytes) -> str:
    """Whether a call goes through or is refused as it must be.

    Raises Fault for a message that must not be shown, and whatever else comes out of the call.
    """
    try:
        call()
    except TrailveilError as error:
        check_message(str(error), data)
        return REFUSED
    return ACCEPTED


def check_message(text: str, data: bytes) -> None:
    """Raise Fault unless a message is one printable line of no position, path or code."""
    if not text or len(text) > _LONGEST:
        raise Fault(f"a message of {len(text)} characters")
    if not text.isprintable():
        raise Fault("a message that is not printable, or more than one line")
    check_told(text, data)


def check_told(text: str, data: bytes) -> None:
    """Raise Fault where a text for people holds a part of an input, a path or a traceback."""
    if _CODE.search(text) or str(Path.cwd()) in text:
        raise Fault("a message with code, or a path that nobody named")
    if _SECRET.search(text):
        raise Fault("a message with a position or a name of the input")
    for found in _DIGITS.findall(_COUNT.sub("", text)):
        if found.encode() in data:
            raise Fault("a message with a number of the input")
