"""The guard around the XML parser: what it must let through. What it refuses is in test_gpx.py."""

from xml.sax import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import pytest

from trailveil.checks.scan.tokens import from_xml
from trailveil.errors import UnreadableInput
from trailveil.traces.formats import gpx, kml, tcx
from trailveil.traces.formats.collect import DEEPEST, parse
from trailveil.traces.formats.table import Reader


class Names(ContentHandler):
    """Collects the names of elements, and may fail at one."""

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.names: list[str] = []
        self._failure = failure

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        self.names.append(name)
        if self._failure:
            raise self._failure


@pytest.mark.parametrize("kind", [ValueError, LookupError, KeyError])
def test_a_mistake_in_a_handler_is_not_taken_for_a_bad_file(kind: type[Exception]) -> None:
    with pytest.raises(kind, match="mistake"):
        parse(b"<a/>", Names(kind("mistake")), "x")


@pytest.mark.parametrize("size", [1000, 1023, 1024, 1025, 5000])
def test_a_long_beginning_is_no_trouble(size: int) -> None:
    handler = Names()
    parse(b"<?xml version='1.0'?><!--" + b"-x" * size + b"--><a><b:c d='&lt;'/></a>", handler, "x")
    assert handler.names == ["a", "b:c"]


def test_a_document_is_seen_once() -> None:
    handler = Names()
    parse(b"<a/>", handler, "x")
    assert handler.names == ["a"]


@pytest.mark.parametrize(
    ("read", "root"), [(gpx.read, "gpx"), (kml.read, "kml"), (tcx.read, "TrainingCenterDatabase")]
)
def test_what_is_too_deep_is_refused_before_it_fills_the_memory(read: Reader, root: str) -> None:
    def message(depth: int) -> str:
        data = f"<{root}>{'<a>' * depth}{'</a>' * depth}</{root}>".encode()
        with pytest.raises(UnreadableInput) as caught:
            read(data, "x")
        if depth >= DEEPEST:
            with pytest.raises(UnreadableInput, match="in one another"):
                from_xml(data, "x", lambda *_: None)
        return str(caught.value)

    assert "must hold a recorded track" in message(DEEPEST - 1)
    assert "at most 1000 elements in one another, got more: x" in message(DEEPEST)
