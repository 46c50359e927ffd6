"""Reads a page as strictly as can be: what is in it, and that nothing of it leads outside."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

from trailveil.checks.scan.allowed import Layout
from trailveil.checks.scan.contents import _Judge
from trailveil.checks.scan.known import Coordinates, Tokens
from trailveil.checks.scan.matching import LeakKind
from trailveil.checks.scan.tokens import Emit, from_xml
from trailveil.traces.trace import Trace

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
OPEN_ENDED = {"meta"}
OF_PAGES = frozenset(
    (
        *("html", "head", "meta", "title", "style", "body", "a", "main", "h1", "h2", "h3", "div"),
        *("p", "section", "figure", "figcaption", "table", "caption", "thead", "tbody", "tr"),
        *("th", "td", "data", "ul", "li", "footer"),
    )
)
OF_PICTURES = frozenset(
    ("svg", "title", "desc", "g", "path", "use", "defs", "clippath", "rect", "text")
)


@dataclass
class Seen:
    """What a page holds."""

    headings: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    refers: list[str] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    charts: list[dict[str, str]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)
    metas: list[dict[str, str]] = field(default_factory=list)
    title: str = ""
    styles: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.content, self.open = Seen(), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inside = "svg" in self.open
        assert tag in (OF_PICTURES if inside else OF_PAGES | {"svg"}), tag
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        report = {name: value or "" for name, value in attrs}
        content = self.content
        for name, value in report.items():
            assert not name.startswith("on"), name
            assert name not in {"src", "srcset", "xlink:href", "data", "action", "poster"}, name
            assert "//" not in value, value
            assert not value.strip().lower().startswith("javascript"), value
            if name == "href":
                content.refers.append(value)
            content.refers += re.findall(r"url\(([^)]*)\)", value)
        content.ids += [report["id"]] if "id" in report else []
        if tag == "svg":
            content.charts.append(report)
        if tag == "data":
            content.values.append(float(report["value"]))
        if tag == "meta":
            content.metas.append(report)
        if tag in {"h1", "h2", "h3"}:
            content.headings.append(tag)
        if tag not in OPEN_ENDED:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in OPEN_ENDED:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.content.styles += data
        elif self.open[-1:] == ["text"]:
            self.content.drawn.append(data)
        elif data.strip():
            self.content.words.append(data.strip())
        if self.open == ["html", "head", "title"]:
            self.content.title += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a page has no comments, got {data!r}")


def read_page(data: bytes) -> Seen:
    """What is in a page; an AssertionError where it is not as all pages are to be."""
    text = data.decode("utf-8")
    first, _, document = text.partition("\n")
    assert first == "<!DOCTYPE html>"
    ET.fromstring(document)
    reader = _Reader()
    reader.feed(text)
    reader.close()
    content = reader.content
    assert reader.open == []
    assert len(content.ids) == len(set(content.ids))
    assert all(refer[0] == "#" and refer[1:] in content.ids for refer in content.refers), (
        content.refers
    )
    assert not re.search(r"url\(|@import|//|\\", content.styles)
    policies = [meta["content"] for meta in content.metas if "http-equiv" in meta]
    assert policies == [POLICY]
    assert 'lang="en"' in document.splitlines()[0]
    assert content.headings[0] == "h1"
    assert content.headings.count("h1") == 1
    levels = [int(heading[1]) for heading in content.headings]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for chart in content.charts:
        assert chart["role"] == "img"
        named = chart["aria-labelledby"].split()
        assert len(named) == 2
        assert set(named) <= set(content.ids)
    return content


def leaves(value: Any) -> Iterator[Any]:
    """Every value in an object of JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for child in value:
            yield from leaves(child)
    else:
        yield value


def scanned(tokens: Callable[[Emit], None], trace: Trace, original: bytes) -> list[str]:
    """What the leak scanner finds of true places, and of an original (GPX), in a report."""
    known = Tokens()
    from_xml(original, "ride.gpx", known)
    every = Coordinates(trace.positions)
    judge = _Judge(Layout({}), frozenset(), known, every, every)
    tokens(judge)
    return [
        shown
        for finding in judge.findings()
        if finding.kind in {LeakKind.PLACE, LeakKind.COORDINATE}
        for shown in finding.leaked
    ]
