"""JSON that is too large for one tree, piece by piece.

A piece is a value of the outermost object, an item of a list right in it, or an item of an
outermost list: recordings of many fixes have them there, one by one. The standard library takes
each piece apart, so only one of them is a tree at a time, and that is bounded.
"""

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from trailveil.errors import InvalidValue, UnreadableInput

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
            except InvalidValue:  # a key that stands twice does not once more is decoded
                raise
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
