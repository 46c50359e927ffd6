"""JSON from strangers: bounded in depth, each key once, one clear line for the rest.

The standard library's json takes the text apart, in C, and refuses what is too deep. Its tree needs
up to thirty times the room of the text: of a large text, lists in the outermost object are gone
through item by item, each time anew. Where a key comes twice in one object, programs differ in
which they take: it is refused.
"""

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trailveil.errors import UnreadableInput

# JSON that is too large for one tree, piece by piece.
#
# A piece is a value of the outermost object, an item of a list right in it, or an item of an
# outermost list: recordings of many fixes have them there, one by one. The standard library takes
# each piece apart, so only one of them is a tree at a time, and that is bounded.

LARGEST: Final = 64 * 2**20
"""Characters of a piece at most: its tree needs up to thirty times their room."""

_CHUNK = 2**22
_ENDS: Final = frozenset(",]}: \t\r\n")
_BLANK = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True, repr=False)
class Piece:
    """key: of the outermost object, None where that is no object. index: None outside a list."""

    key: str | None
    index: int | None
    value: Any


def pieces(data: bytes, decoder: json.JSONDecoder, where: str) -> Iterator[Piece]:
    """The pieces of a JSON text in UTF-8, in its order; an empty list is one, too.

    A key that comes twice comes twice here. What `decoder` raises goes through; raises ValueError
    for what is no JSON, UnreadableInput for a piece that is too large; `where` names the file.
    """
    text = _Text(data, decoder, where)
    if text.peek() == "{":
        text.at += 1
        while text.peek() != "}":
            yield from _member(text)
            if text.take(",}") == "}":
                break
            if text.peek() == "}":  # after a comma
                raise ValueError
        else:
            text.at += 1
    elif text.peek() == "[":
        yield from _items(text, None)
    else:
        yield Piece(None, None, text.value())
    if text.peek():
        raise ValueError


def _member(text: "_Text") -> Iterator[Piece]:
    key = text.value()
    if not isinstance(key, str):
        raise ValueError
    text.take(":")
    if text.peek() == "[":
        yield from _items(text, key)
    else:
        yield Piece(key, None, text.value())


def _items(text: "_Text", key: str | None) -> Iterator[Piece]:
    text.take("[")
    if text.peek() == "]":
        text.at += 1
        yield Piece(key, None, [])
        return
    index = 0
    while True:
        yield Piece(key, index, text.value())
        if text.take(",]") == "]":
            return
        index += 1


class _Text:
    """A text of which a part is decoded, and the place in it that is looked at."""

    def __init__(self, data: bytes, decoder: json.JSONDecoder, where: str) -> None:
        self._data: Final = memoryview(data)
        self._decoder: Final = decoder
        self._where: Final = where
        self._decode: Final = codecs.getincrementaldecoder("utf-8-sig")()
        self._next = 0
        self._text = ""
        self.at = 0

    def peek(self) -> str:
        """The next character that is not blank, "" at the end."""
        while True:
            blank = _BLANK.match(self._text, self.at)
            self.at = blank.end() if blank else self.at
            if self.at < len(self._text):
                return self._text[self.at]
            if not self._more():
                return ""

    def take(self, marks: str) -> str:
        """Pass one of these marks."""
        mark = self.peek()
        if not mark or mark not in marks:
            raise ValueError
        self.at += 1
        return mark

    def value(self) -> Any:
        """Pass a value. One without an end mark behind it may go on in what is not decoded yet."""
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self.at)
            except ValueError:
                value, end = None, None
            whole = self._next >= len(self._data)
            if end is not None and (whole or self._text[end : end + 1] in _ENDS):
                self.at = end
                return value
            if len(self._text) - self.at > LARGEST:
                raise UnreadableInput(
                    f"JSON must have no part of more than {LARGEST // 2**20} MiB, got a larger one "
                    f"or one that is damaged: {self._where}; write it in several segments, or as "
                    "CSV"
                )
            if not self._more():
                raise ValueError

    def _more(self) -> bool:
        """Decode more: as much again as is waited for, so that no value is begun too often."""
        if self._next >= len(self._data):
            return False
        unread = self._text[self.at :]
        part = self._data[self._next : self._next + max(_CHUNK, len(unread))]
        self._next += len(part)
        self._text = unread + self._decode.decode(part, self._next >= len(self._data))
        self.at = 0
        return True


_MARKS: Final = (b"\xff\xfe", b"\xfe\xff", b"\0")


class _Twice(Exception):
    """A key comes twice."""


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
                raise _Twice
            members[piece.key] = (
                piece.value if piece.index is None else Items(data, where, piece.key, 0, 0)
            )
        if piece.index is not None:
            held = members[piece.key]
            more = isinstance(piece.value, dict)
            members[piece.key] = replace(held, count=held.count + 1, objects=held.objects + more)
    return members.get(None, members)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Twice
    return members


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_once)
