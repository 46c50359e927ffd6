"""JSON from strangers: bounded in size and depth, each key once, one clear line for the rest.

The standard library's json takes the text apart, in C, and refuses what is too deep; its tree needs
up to thirty times the room of the text, so the size is bounded more tightly than that of others.
Where a key comes twice in one object, programs differ in which they take: it is refused.
"""

import json
import math
from typing import Any, Final

from trailveil.errors import UnreadableInput

LARGEST: Final = 64 * 2**20
"""Bytes of JSON that are read at most."""


class _Twice(Exception):
    """A key comes twice."""


def parsed(data: bytes, where: str) -> Any:
    """The tree of a JSON text in UTF-8, -16 or -32; `where` names the file in messages.

    Raises UnreadableInput for anything else, and for more than LARGEST bytes.
    """
    if len(data) > LARGEST:
        raise UnreadableInput(
            f"JSON must be at most {LARGEST // 2**20} MiB, got more: {where}; split it first"
        )
    try:
        return json.loads(data, object_pairs_hook=_once)
    except _Twice:
        raise UnreadableInput(
            f"JSON must have each key once in an object, got one twice: {where}; export the "
            "recording again"
        ) from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, numbers of thousands of digits
        raise UnreadableInput(
            f"input must be well-formed JSON, got something else: {where}; the file is damaged or "
            "cut off, export the recording again"
        ) from None


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list, none for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def inner(value: Any, *names: str) -> Any:
    """What stands under names, one in the other; None where there is no such thing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def plain_number(value: Any) -> float:
    """A number as it stands, NaN for text, truth values and what is beyond all measure."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and abs(value) < 1e9 else math.nan


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Twice
    return found
