"""JSON from strangers: bounded in depth, each key once, one clear line for the rest.

The standard library's json takes the text apart, in C, and refuses what is too deep. Its tree needs
up to thirty times the room of the text: of a large text, lists in the outermost object are gone
through item by item (`trailveil.traces.formats.json_pieces`), each time anew. Where a key comes
twice in one object, programs differ in which they take: it is refused.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import once
from trailveil.traces.formats.json_pieces import LARGEST, pieces

_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\0")


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a list in a large text, which are decoded each time they are gone through.

    key: of the list in the outermost object; None where the list itself is outermost. count: how
    many are gone through: all, or the objects among them.
    """

    data: bytes = field(repr=False)
    where: str
    key: str | None
    count: int
    objects: int
    only_objects: bool = False

    def __len__(self) -> int:
        return self.objects if self.only_objects else self.count

    def __iter__(self) -> Iterator[Any]:
        for piece in pieces(self.data, _DECODER, self.where):
            taken = piece.key == self.key and piece.index is not None
            if taken and (not self.only_objects or isinstance(piece.value, dict)):
                yield piece.value


def parsed(data: bytes, where: str) -> Any:
    """The tree of a JSON text in UTF-8, -16 or -32; `where` names the file in messages.

    Of a text of more than LARGEST bytes, which must be UTF-8, lists at its top are `Items`. Raises
    UnreadableInput for anything else, and for a part that is too large.
    """
    try:
        if len(data) > LARGEST:
            return _large(data, where)
        return json.loads(data, object_pairs_hook=once)
    except InvalidValue:
        raise UnreadableInput(
            f"JSON must have each key once in an object, got one twice: {where}; export the "
            "recording again"
        ) from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, numbers of thousands of digits
        raise UnreadableInput(
            f"input must be well-formed JSON, got something else: {where}; the file is damaged or "
            "cut off, export the recording again"
        ) from None


def is_list(value: Any) -> bool:
    """Whether a value is a list, as a tree has it or item by item."""
    return isinstance(value, list | Items)


def objects(value: Any) -> list[dict[str, Any]] | Items:
    """The objects in a list, none for anything else."""
    if isinstance(value, Items):
        return replace(value, only_objects=True)
    return (
        [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []
    )


def inner(value: Any, *names: str) -> Any:
    """What stands under names, one in the other; None where there is no such thing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def plain_number(value: Any) -> float:
    """A number as it stands, NaN for text, truth values and what is beyond all measure."""
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if usable and abs(value) < 1e9 else math.nan


def _large(data: bytes, where: str) -> Any:
    """The object or list around all of a large text, once it was gone through."""
    if data.startswith(_MARKS) or data[1:2] == b"\0":
        raise UnreadableInput(
            f"JSON of more than {LARGEST // 2**20} MiB must be UTF-8, got another encoding: "
            f"{where}; convert it first"
        )
    members: dict[str | None, Any] = {}
    for piece in pieces(data, _DECODER, where):
        if piece.index is None or piece.index == 0:
            if piece.key in members:
                raise InvalidValue("a key comes twice")
            members[piece.key] = (
                piece.value if piece.index is None else Items(data, where, piece.key, 0, 0)
            )
        if piece.index is not None:
            held = members[piece.key]
            more = isinstance(piece.value, dict)
            members[piece.key] = replace(held, count=held.count + 1, objects=held.objects + more)
    return members.get(None, members)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=once)
