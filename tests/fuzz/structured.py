"""Mutations that know the structure of text formats: XML, JSON, tables and sentences."""

import copy
import json
import re
from collections.abc import Callable
from functools import reduce
from operator import xor
from random import Random
from typing import Any

from tests.fuzz.bytewise import INTERESTING, LARGEST

_SEARCHED = 20_000  # bytes in which something to change is looked for
_TAG = re.compile(rb"<[^<>]{1,300}>")
_TEXT = re.compile(rb">([^<>]{1,60})<")
_ATTRIBUTE = re.compile(rb'(?<!<\?xml )(?!encoding)([\w:]+)="([^"]{0,80})"')
_ELEMENT = re.compile(rb"<([\w:]{1,40})[^<>]{0,300}>.{0,400}?</\1>", re.DOTALL)
_ODD_TEXT = (
    *(b"&lol;", b"&#0;", b"&#x110000;", b"&amp;", b"&#57;", b"<![CDATA[46.5]]>", b"<!-- 1 -->"),
    *(b"<?xml version='1.0'?>", b"<?other x?>", b"]]>", b"<", b"&", b"\x01", b"<a:b/>"),
)
_DOCUMENT_TYPES = (
    b"<!DOCTYPE x>",
    b'<!DOCTYPE x [<!ENTITY lol "46.5">]>',
    b'<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/passwd">%p;]>',
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
    b'<?xml version="1.1" encoding="ebcdic-cp-us"?>',
    b'<?xml version="1.0" encoding="utf-7"?>',
    b'<?xml version="1.0" encoding="UTF-16"?>',
    b'<?xml version="1.0" encoding="idna"?>',
)


def _replaced(data: bytes, match: re.Match[bytes], new: bytes, group: int = 0) -> bytes:
    return data[: match.start(group)] + new + data[match.end(group) :]


def _chosen(rng: Random, pattern: re.Pattern[bytes], data: bytes) -> re.Match[bytes] | None:
    found = list(pattern.finditer(data, 0, _SEARCHED))
    return rng.choice(found) if found else None


def xml(rng: Random, data: bytes) -> bytes:
    """Tags dropped, repeated, nested, renamed; attributes and texts changed; entities."""
    pattern, change = rng.choice(_CHANGES)
    match = _chosen(rng, pattern, data)
    if match is None or rng.random() < 0.02:
        return rng.choice(_DOCUMENT_TYPES) + data
    return _replaced(data, match, change(rng, match))


def _renamed(rng: Random, match: re.Match[bytes]) -> bytes:
    name = match[1] + b"x" if rng.random() < 0.5 else b"x:" + match[1]
    return b"<" + name + match[0][1 + len(match[1]) : -1 - len(match[1])] + name + b">"


def _repeated(rng: Random, match: re.Match[bytes]) -> bytes:
    return match[0] * rng.choice((0, 0, 2, 3, 40))


def _nested(rng: Random, match: re.Match[bytes]) -> bytes:
    depth = rng.choice((1, 1, 2, 3, 30, 900, 998, 1001, 5000))
    name = match[1] if rng.random() < 0.7 else b"extensions"
    return b"<%b>" % name * depth + match[0] + b"</%b>" % name * depth


def _attribute(rng: Random, match: re.Match[bytes]) -> bytes:
    how = rng.random()
    if how < 0.2:
        return match[0] + b" " + match[0] if how < 0.1 else b""
    return match[1] + b'="' + rng.choice(INTERESTING).replace(b'"', b"&quot;") + b'"'


def _inner(rng: Random, match: re.Match[bytes]) -> bytes:
    odd = rng.choice(INTERESTING if rng.random() < 0.9 else _ODD_TEXT)
    return b">" + (odd if rng.random() < 0.7 else odd + match[1] + odd) + b"<"


_CHANGES: tuple[tuple[re.Pattern[bytes], Callable[[Random, re.Match[bytes]], bytes]], ...] = (
    (_TAG, lambda rng, match: match[0] * rng.choice((0, 0, 2, 900, 1100))),
    (_ELEMENT, _renamed),
    *(((_ELEMENT, _repeated),) * 3),
    (_ELEMENT, _nested),
    *(((_ATTRIBUTE, _attribute),) * 2),
    *(((_TEXT, _inner),) * 4),
)


_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1e308, -1e308, 10**400, -(10**30), 2**63, 2**64, 0.1, "", "x"),
    *([], {}, [[]], [None], {"a": {}}, [1, 2], [7.65, 46.1], "46.1", "NaN", float("nan")),
    *(float("inf"), "2024-05-01T07:30:00Z", "geo:46.1,7.6", "46.1\u00b0, 7.6\u00b0", "\ud800"),
    *("Point", "LineString", "Feature", "location", 1714548600, 1714548600000, [[[[7.6, 46.1]]]]),
)


def jsons(rng: Random, data: bytes) -> bytes:
    """Values replaced by others, members dropped, repeated and renamed, deep nesting."""
    try:
        root = json.loads(data)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            root = _changed(rng, root)
        text = json.dumps(root, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")
    except (ValueError, RecursionError):  # mutated before, into no JSON or too deep
        return data
    if rng.random() < 0.05:
        text = _deep(rng, text)
    if rng.random() < 0.1 and (match := _chosen(rng, re.compile(rb'"\w+": [^][{},]+,'), text)):
        text = _replaced(text, match, match.group() * 2)  # a key twice
    return text


def _deep(rng: Random, text: bytes) -> bytes:
    depth = rng.choice((50, rng.randrange(900, 1000), 5000, 50_000))
    begin, end = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    match = _chosen(rng, re.compile(rb"\d+\.\d+|null|\d+"), text)
    if match is None:
        return begin * depth + text + end * depth
    return _replaced(text, match, begin * depth + match.group() + end * depth)


def _changed(rng: Random, root: Any) -> Any:
    """The tree with one of its places changed, each place as likely."""
    places: list[tuple[Any, Any]] = []
    pending = [root] if isinstance(root, dict | list) else []
    while pending:
        node = pending.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node))
        places += [(node, key) for key in keys]
        pending += [node[key] for key in keys if isinstance(node[key], dict | list)]
    if not places:
        return copy.deepcopy(rng.choice(_ODD_VALUES))
    node, key = rng.choice(places)
    other, name = rng.choice(places)
    how = rng.randrange(6)
    if how <= 2:
        node[key] = copy.deepcopy(rng.choice(_ODD_VALUES))
    elif how == 3:
        del node[key]
    elif how == 4:
        node[key] = copy.deepcopy(other[name])
    elif isinstance(node, dict):
        node[rng.choice([str(name), f"{key}", key.upper(), ""])] = node.pop(key)
    else:
        node.insert(key, node[key])
    return root


_NAMES = (
    *("latitude", "longitude", "lat", "lon", "time", "date", "timestamp", "track", "segment"),
    *(
        "user_id",
        "uid",
        "id",
        "ts",
        "fix_timestamp",
        "elevation",
        "Altitude (ft)",
        "speed_km_h",
        "hr",
        "",
        "x",
        "utc time (ms)",
    ),
    *("latitudeE7", "N/S", "E/W", "temp [K]", "#", '"', "a" * 9000, "(" + " " * 3000, "\ufeff"),
)


def table(rng: Random, data: bytes) -> bytes:
    """Columns dropped, renamed, repeated and swapped; rows ragged; cells quoted and changed."""
    text = _text(data)
    delimiter = max(",;\t|", key=text[:300].count)
    rows = [line.split(delimiter) for line in text.split("\n")]
    row = rng.choice(rows)
    at, width = rng.randrange(len(row)), len(rows[0])
    column, other = rng.randrange(width), rng.randrange(width)
    how = rng.randrange(9)
    if how == 8:
        rng.choice((_told_apart, _strayed))(rng, rows)
    elif how == 0:
        rows = [row[:column] + row[column + 1 :] for row in rows]
    elif how == 1:
        rows[0][column] = rng.choice(_NAMES)
    elif how == 2:
        rows = [row + row[column : column + 1] for row in rows]
    elif how == 3:
        for one in (each for each in rows if len(each) == width):
            one[column], one[other] = one[other], one[column]
    elif how == 4:
        row[at:at] = rng.choice(([""] * 3, [row[at]], ["x"] * 50))
    elif how == 5:
        row[at] = rng.choice(('"', '"{}', '"{}"', "'{}'", '"{}""')).replace("{}", row[at])
    elif how == 6:
        row[at] = _text(rng.choice(INTERESTING))
    else:
        for one in rows[1:]:
            one[column : column + 1] = [_text(rng.choice(INTERESTING))]
    if rng.random() < 0.1:
        delimiter = rng.choice(",;\t| :")
    whole = "\n".join(delimiter.join(row) for row in rows)
    return whole.encode("utf-8", errors="surrogateescape")


def _told_apart(rng: Random, rows: list[list[str]]) -> None:
    """A further column of few values: of people, of modes, of trips, in runs or in turn."""
    rows[0].append(rng.choice(("uid", "id", "participant", "mode", "trip", "Zaphod", "ts")))
    count, run = rng.choice((1, 2, 3, 12)), rng.choice((1, 1, 5, 20))
    for index, one in enumerate(rows[1:]):
        one.append(f"{index // run % count}")


_YEAR = re.compile(r"\b(?:19|20)\d\d(?=-)")
_DEGREES = re.compile(r"(?<![\d.])(\d{1,2})(?=\.\d{3,})")


def _strayed(rng: Random, rows: list[list[str]]) -> None:
    """A few rows of another year, or thrown to another continent: first, last or between."""
    kind = rng.randrange(2)
    begin = rng.choice((1, len(rows) // 2, len(rows) - 2))
    for row in rows[begin : begin + rng.choice((1, 1, 3, 20))]:
        for at, cell in enumerate(row):
            if kind:
                row[at] = _YEAR.sub(rng.choice(("2014", "1999", "2038")), cell)
            else:
                row[at] = _DEGREES.sub(lambda match: f"{(int(match[1]) + 40) % 90}", cell)


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


_WORD = re.compile(rb"[\w.:+-]+")


def lines(rng: Random, data: bytes) -> bytes:
    """Lines dropped, repeated and swapped, and words changed, of a file of any structure."""
    rows = data.split(b"\n")
    at, other = rng.randrange(len(rows)), rng.randrange(len(rows))
    how = rng.randrange(6)
    if how == 0:
        del rows[at]
    elif how == 1:
        rows[at:at] = [rows[at]] * rng.choice((1, 2, 40))
    elif how == 2:
        rows[at], rows[other] = rows[other], rows[at]
    elif match := _chosen(rng, _WORD, rows[at]):
        odd = rng.choice((b"", match.group() * 2, *INTERESTING))
        rows[at] = _replaced(rows[at], match, odd)
    return b"\n".join(rows)


_SENTENCE = re.compile(rb"\$([^*\r\n]*)\*?(\w*)")


def sentences(rng: Random, data: bytes) -> bytes:
    """Cells of sentences changed, dropped and added, most often with the checksum made right."""
    match = _chosen(rng, _SENTENCE, data)
    if match is None:
        return data
    cells = match[1].split(b",")
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(cells))
        how = rng.randrange(5)
        if how <= 1:
            odd = rng.choice((*INTERESTING, b"V", b"S", b"W", b"310299", b"235959.999", b"9960.0"))
            cells[at] = odd.replace(b"*", b"").replace(b"$", b"")
        elif how == 2:
            cells[at] = b""
        elif how == 3 and len(cells) > 1:
            del cells[at]
        else:
            cells[at:at] = [cells[at]] * rng.choice((1, 12, 200))
    kinds = (b"GPRMC", b"GNGGA", b"GPZDA", b"GPXXX", b"$$$")
    cells[0] = rng.choice(kinds) if rng.random() < 0.1 else cells[0]
    body = b",".join(cells)
    right = b"%02X" % reduce(xor, body, 0)
    line = b"$" + body + rng.choice((b"*" + right, b"*" + right, b"*00", b"", b"*"))
    return _replaced(data, match, line)


Structured = Callable[[Random, bytes], bytes]
"""A mutation of one format."""


def bounded(change: Structured) -> Structured:
    """The same, of at most LARGEST bytes."""
    return lambda rng, data: change(rng, data)[:LARGEST]
