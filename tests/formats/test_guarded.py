"""The guard around the XML parser: what it must let through. What it refuses is in test_gpx.py."""

from xml.sax import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import pytest

from trailveil.formats.guarded import parse


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
