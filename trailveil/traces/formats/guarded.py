"""XML from strangers: no document type, no entities, nothing fetched, one clear line for the rest.

Without a document type there are no entities to expand, so time and memory are bounded by the size
of the file, which `trailveil.files.source` bounds. The file is fed to the parser in one piece,
because older versions of expat need quadratic time for a long token that comes in many.
"""

from xml.sax import ContentHandler, SAXException, SAXParseException
from xml.sax.handler import LexicalHandler, property_lexical_handler

from defusedxml.common import DefusedXmlException
from defusedxml.sax import make_parser

from trailveil.errors import UnreadableInput

DEEPEST = 1000
"""Elements that may be in one another; recordings have some ten."""

_BLANK = b" \t\r\n"
_UTF8_MARK = b"\xef\xbb\xbf"
_BEGINNINGS = (b"<", b"\xff\xfe", b"\xfe\xff", b"\0<")  # of XML, or of UTF-16
_DECLARATION = 1024  # bytes that surely hold the XML declaration


def parse(
    data: bytes, handler: ContentHandler, where: str, *, comments: LexicalHandler | None = None
) -> None:
    """Feed a document to a handler. Names arrive with their prefixes, which need no declaration.

    comments: who is told of comments, which are passed over else. Blank lines before the XML
    declaration, which the standard forbids, are passed over. Raises UnreadableInput with `where` in
    it, and with no text of the document; what the handler raises goes through.
    """
    text = data.removeprefix(_UTF8_MARK).lstrip(_BLANK)
    if not text.startswith(_BEGINNINGS):
        raise UnreadableInput(
            f"input must be XML, got something else: {where}; export the recording again"
        )
    _check_encoding(text, where)
    try:
        _feed(text, handler, comments)
    except DefusedXmlException:
        raise UnreadableInput(
            f"input must be plain XML, got a document type or entities: {where}; such a file can "
            "be an attack, export the recording again"
        ) from None
    except SAXParseException as error:
        line = (error.getLineNumber() or 1) + data[: len(data) - len(text)].count(b"\n")
        raise UnreadableInput(
            f"input must be well-formed XML, got '{error.getMessage()}' in line {line}: {where}; "
            "the file is damaged or cut off, export the recording again"
        ) from None


def check_depth(depth: int, where: str) -> None:
    """Refuse an element in so many others: each that is open takes room, here and in the parser.

    For handlers to call as an element begins. Raises UnreadableInput.
    """
    if depth >= DEEPEST:
        raise UnreadableInput(
            f"XML must have at most {DEEPEST} elements in one another, got more: {where}; such a "
            "file can be an attack, export the recording again"
        )


def _check_encoding(text: bytes, where: str) -> None:
    """Refuse an encoding that the parser does not know, before errors of a handler can look so."""
    try:
        _feed(text[:_DECLARATION], ContentHandler())
    except (SAXException, DefusedXmlException):
        return  # cut off here, or wrong in a way that is told better when all of it is parsed
    except (LookupError, ValueError):
        raise UnreadableInput(
            f"input must be XML in UTF-8, UTF-16 or Latin-1, got another encoding: {where}; "
            "convert it first"
        ) from None


def _feed(text: bytes, handler: ContentHandler, comments: LexicalHandler | None = None) -> None:
    parser = make_parser()
    parser.forbid_dtd = True
    parser.setContentHandler(handler)
    if comments is not None:
        parser.setProperty(property_lexical_handler, comments)
    parser.feed(text)
    parser.close()
