"""All names, texts and numbers of a file, whatever they mean: nothing is left out as unknown.

This is apart from the readers on purpose: what they pass over is what a leak hides in. A token has
a place, a tuple of the names that lead to it, and a part: the name of an element, attribute, key or
column; a value; or a comment. Libraries take the formats apart as the readers have them do it, so
files from strangers are as bounded here.
"""

import contextlib
import io
import json
import re
from collections.abc import Iterator
from typing import Any, Final, Protocol
from xml.sax import ContentHandler
from xml.sax.handler import LexicalHandler
from xml.sax.xmlreader import AttributesImpl

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import check_depth, parse
from trailveil.traces.formats.columns import columns_of
from trailveil.traces.formats.delimited import encoding_of, header_of, rows_in
from trailveil.traces.formats.json_pieces import LARGEST, pieces

Place = tuple[str, ...]
"""The names that lead to a token; an attribute has an @, an item of a list is in brackets."""

NAME, VALUE, COMMENT = "name", "value", "comment"
"""The parts that a token can be."""

_RUN: Final = re.compile(r"[^\s\x00-\x1f\x7f\ufffd;|<>=\"'(){}\[\]]+")
_WITH_COMMA: Final = re.compile(r"[+-]?\d+,\d+", re.ASCII)
_DEEPEST = 50  # names of a place; what is deeper has the place of what is around it


class Emit(Protocol):
    """Takes a token; `count` where it stands so many times."""

    def __call__(self, place: Place, text: str, part: str, count: int = 1) -> None:
        """A token at its place."""


def from_xml(data: bytes, where: str, emit: Emit) -> None:
    """Elements, attributes, text, comments and processing instructions of XML."""
    handler = _Everything(emit, where)
    parse(data, handler, where, comments=_Comments(handler))


class _Everything(ContentHandler):
    """Emits all of a document while it passes by."""

    def __init__(self, emit: Emit, where: str) -> None:
        super().__init__()
        self._emit = emit
        self._where = where
        self._places: list[Place] = [()]
        self._text: list[str] = []

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        check_depth(len(self._places), self._where)
        self.flush()
        place = _below(self._places[-1], name)
        self._places.append(place)
        self._emit(place, name, NAME)
        for attribute in attrs.getNames():
            inner = _below(place, f"@{attribute}")
            self._emit(inner, attribute, NAME)
            self._emit(inner, attrs.getValue(attribute), VALUE)

    def endElement(self, name: str) -> None:  # noqa: N802 - of SAX
        self.flush()
        self._places.pop()

    def characters(self, content: str) -> None:
        self._text.append(content)

    def processingInstruction(self, target: str, data: str) -> None:  # noqa: N802 - of SAX
        self.comment(f"{target} {data}")

    def comment(self, content: str) -> None:
        """A comment, or what is like one."""
        self._emit(_below(self._places[-1], "a comment"), content, COMMENT)

    def flush(self) -> None:
        """The text since the last tag."""
        if self._text and (text := "".join(self._text).strip()):
            self._emit(self._places[-1], text, VALUE)
        self._text.clear()


class _Comments(LexicalHandler):
    def __init__(self, handler: _Everything) -> None:
        self._handler = handler

    def comment(self, content: str) -> None:
        self._handler.comment(content)

    def startCDATA(self) -> None:  # noqa: N802 - of SAX; its text arrives as any
        pass

    def endCDATA(self) -> None:  # noqa: N802 - of SAX
        pass


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON with each of its keys, though one comes twice."""


class _Number(str):
    """A number of JSON as it is written."""

    __slots__ = ()


_KINDS: Final[dict[str, Any]] = {
    "object_pairs_hook": _Pairs,
    **dict.fromkeys(("parse_float", "parse_int", "parse_constant"), _Number),
}


def from_json(data: bytes, where: str, emit: Emit, *, under: Place = ()) -> None:
    """Keys and values of JSON, of a key that comes twice both. Raises UnreadableInput for none."""
    try:
        if len(data) > LARGEST:
            _from_pieces(data, where, emit, under)
        else:
            _from_tree(under, json.loads(data, **_KINDS), emit)
    except (ValueError, RecursionError):
        raise UnreadableInput(
            f"input must be well-formed JSON, got something else: {where}; the file is damaged or "
            "cut off, export the recording again"
        ) from None


def _from_pieces(data: bytes, where: str, emit: Emit, under: Place) -> None:
    numbered = False
    for piece in pieces(data, json.JSONDecoder(**_KINDS), where):
        place = under if piece.key is None else _below(under, piece.key)
        if piece.key is not None and not piece.index:  # the first of a list, or no list
            emit(place, piece.key, NAME)
        if piece.index is not None:
            numbered = isinstance(piece.value, _Number) if piece.index == 0 else numbered
            place = _below(place, _item(piece.index, numbered=numbered))
        _from_tree(place, piece.value, emit)


def _from_tree(under: Place, root: Any, emit: Emit) -> None:
    pending: list[Iterator[tuple[Place, Any]]] = [iter([(under, root)])]
    while pending:
        place, node = next(pending[-1], (None, None))
        if place is None:
            pending.pop()
        elif isinstance(node, _Pairs):
            for key, _ in node:
                emit(_below(place, key), key, NAME)
            pending.append(_members(place, node))
        elif isinstance(node, list):
            pending.append(_items(place, node))
        else:
            emit(place, node if isinstance(node, str) else str(node), VALUE)


def from_json_lines(data: bytes, where: str, emit: Emit) -> None:
    """JSON, or lines of it, with text before each or not."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        for line in io.BytesIO(data):
            before, brace, tail = line.partition(b"{")
            if text := before.strip():
                emit(("header",), text.decode("latin-1"), VALUE)
            if brace:
                with contextlib.suppress(UnreadableInput):  # a line cut off, which is no message
                    from_json(brace + tail, where, emit)
    else:
        from_json(data, where, emit)


def _members(place: Place, pairs: _Pairs) -> Iterator[tuple[Place, Any]]:
    for key, inner in pairs:
        yield _below(place, key), inner


def _items(place: Place, items: list[Any]) -> Iterator[tuple[Place, Any]]:
    """The items of a list; of one that begins with a number (a position) by their number, to 3."""
    numbered = bool(items) and isinstance(items[0], _Number)
    for index, item in enumerate(items):
        yield _below(place, _item(index, numbered=numbered)), item


def _item(index: int, *, numbered: bool) -> str:
    return f"[{min(index, 3)}]" if numbered else "[]"


def from_table(data: bytes, where: str, emit: Emit) -> None:
    """Headers, cells and comments of a table of text; a place is the column's number and header."""
    encoding, header = header_of(data, columns_of)
    stream = io.TextIOWrapper(io.BytesIO(data), encoding, errors="replace", newline="")
    names: tuple[str, ...] = ()
    if header is not None:
        for _ in range(header.line):
            _comment(stream.readline(), emit)
        stream.readline()
        names = header.names
    places = [_column(index, name) for index, name in enumerate(names)]
    for place, name in zip(places, names, strict=True):
        emit(place, name, NAME)
    delimiter = "," if header is None else header.delimiter
    for cells in rows_in(stream, delimiter, where):
        if cells and cells[0].startswith("#"):
            _comment(delimiter.join(cells), emit)
            continue
        for index, cell in enumerate(cells):
            if text := cell.strip():
                place = places[index] if index < len(places) else _column(index, "")
                emit(place, text, VALUE)


def from_plt(data: bytes, where: str, emit: Emit) -> None:
    """The header of a file of GeoLife, and its cells."""
    for number, line in enumerate(data.decode("latin-1").splitlines()):
        cells = line.split(",")
        for index, cell in enumerate(cells):
            place = ("header",) if number < 6 else _column(index, "")
            emit(place, cell.strip(), VALUE)


def from_text(data: bytes, where: str, emit: Emit) -> None:
    """Runs of text of a file of any structure, with nothing known of what they mean.

    Numbers and texts that are coded are none; of a release, that they are there is seen all the
    same: it is compared byte by byte.
    """
    encoding = encoding_of(data)
    if encoding == "cp1252" and b"\0" in data:  # no text: there a letter of its own is any byte
        encoding = "utf-8"
    stream = io.TextIOWrapper(io.BytesIO(data), encoding, errors="replace")
    for line in stream:
        for run in _RUN.findall(line):
            for word in (run,) if _WITH_COMMA.fullmatch(run) else run.split(","):
                if word:
                    emit(("text",), word, VALUE)


def _comment(line: str, emit: Emit) -> None:
    if text := line.strip("#\ufeff \t\r\n"):
        emit(("a comment",), text, COMMENT)


def _column(index: int, name: str) -> Place:
    return (f"column {index + 1}", name)


def _below(place: Place, name: str) -> Place:
    return place if len(place) >= _DEEPEST else (*place, name)
