"""JSON piece by piece is what the whole of it is: the standard library's tree is the oracle."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.formats.samples import SAMPLES
from trailveil.checks.scan import tokens
from trailveil.errors import UnreadableInput
from trailveil.traces.formats import json_pieces, json_text
from trailveil.traces.formats.json_pieces import pieces
from trailveil.traces.formats.json_text import Items, objects, parsed
from trailveil.traces.formats.table import FORMATS

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
SMALL = st.integers(1, 9)
JSON_SAMPLES = [name for name, data in SAMPLES.items() if data.lstrip()[:1] in (b"{", b"[")]


@pytest.fixture
def by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text is large, and is decoded by a few characters."""
    for module in (json_text, tokens):
        monkeypatch.setattr(module, "LARGEST", 0)
    monkeypatch.setattr(json_pieces, "_CHUNK", 7)


def put_together(data: bytes) -> Any:
    """A tree of its pieces."""
    whole: dict[str | None, Any] = {}
    for piece in pieces(data, json.JSONDecoder(), "x"):
        if piece.index is None:
            whole[piece.key] = piece.value
        else:
            held = whole.setdefault(piece.key, [])
            assert len(held) == piece.index
            held.append(piece.value)
    return whole.get(None, whole)


@given(TREES, SMALL, st.sampled_from([None, 1]), st.booleans())
def test_pieces_make_the_tree(tree: Any, chunk: int, indent: int | None, ascii_only: bool) -> None:
    data = json.dumps(tree, indent=indent, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "_CHUNK", chunk)
        assert put_together(data) == json.loads(data)
        assert put_together(b"\xef\xbb\xbf" + data + b" \n") == json.loads(data)


@given(TREES, SMALL, st.randoms(use_true_random=False))
def test_what_is_no_json_has_no_pieces(tree: Any, chunk: int, random: Any) -> None:
    text = list(json.dumps(tree, ensure_ascii=False))
    at = random.randrange(len(text) + 1)
    text[at : at + random.randrange(2)] = random.choice(["", *',]}"[:1x.e-'])
    data = "".join(text).encode()
    try:
        expected = json.loads(data)
    except ValueError:
        expected = ValueError
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "_CHUNK", chunk)
        try:
            whole = put_together(data)
        except ValueError:
            whole = ValueError
    assert whole == expected


@pytest.mark.parametrize("data", [b'{"a":1,}', b"[1,]", b"{,}", b"[,]", b"[1 2]", b"{1:2}", b"[]1"])
def test_commas_too_many_are_no_json(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - it has no message
        put_together(data)


@pytest.mark.usefixtures("by_pieces")
@pytest.mark.parametrize("name", JSON_SAMPLES)
def test_a_large_recording_is_read_as_a_small_one(name: str) -> None:
    row = next(known_format for known_format in FORMATS if known_format.name == name)
    recording = row.read(SAMPLES[name], "x", ("elevation",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "LARGEST", 2**20)
        expected = row.read(SAMPLES[name], "x", ("elevation",))
    np.testing.assert_array_equal(recording.times, expected.times)
    np.testing.assert_array_equal(recording.positions, expected.positions)
    np.testing.assert_array_equal(recording.segments, expected.segments)
    assert recording.seen == expected.seen
    assert [field for field, _ in recording.fields] == [field for field, _ in expected.fields]


@pytest.mark.parametrize("name", JSON_SAMPLES)
def test_the_scan_sees_all_of_a_large_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen() -> Iterator[tuple[Any, ...]]:
        tokens_read: list[tuple[Any, ...]] = []
        tokens.from_json_lines(SAMPLES[name], "x", lambda *token: tokens_read.append(token))
        return iter(sorted(tokens_read))

    whole = list(seen())
    monkeypatch.setattr(tokens, "LARGEST", 0)
    monkeypatch.setattr(json_pieces, "_CHUNK", 7)
    assert list(seen()) == whole


@pytest.mark.usefixtures("by_pieces")
def test_lists_at_the_top_are_gone_through_item_by_item() -> None:
    root = parsed(b'{"a": [1, {"b": [2]}, {}], "c": {"d": [3]}, "e": []}', "x")
    assert isinstance(root["a"], Items)
    assert (len(root["a"]), len(objects(root["a"]))) == (3, 2)
    assert list(root["a"]) == [1, {"b": [2]}, {}]
    assert list(objects(root["a"])) == [{"b": [2]}, {}]
    assert (root["c"], root["e"]) == ({"d": [3]}, [])
    assert list(parsed(b"[1, [2]]", "x")) == [1, [2]]


@pytest.mark.usefixtures("by_pieces")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a": 1, "a": 2}', "each key once"),
        (b'{"a": [1], "a": [2]}', "each key once"),
        (b'{"a": [{"b": 1, "b": 2}]}', "each key once"),
        (b'{"a": [1', "well-formed JSON"),
        (b'{"a": "\xff"}', "well-formed JSON"),
        ('{"a": 1}'.encode("utf-16"), "must be UTF-8"),
        ('{"a": 1}'.encode("utf-16-le"), "must be UTF-8"),
        (b"[" * 100_000, "well-formed JSON"),
    ],
)
def test_what_is_refused_small_is_refused_large(data: bytes, expected: str) -> None:
    with pytest.raises(UnreadableInput, match=expected) as caught:
        parsed(data, "x")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("by_pieces")
def test_a_part_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "LARGEST", 1000)
    many = b",".join([b'"' + b"x" * 900 + b'"'] * 9)
    assert len(parsed(b'{"a": [' + many + b"]}", "x")["a"]) == 9
    with pytest.raises(UnreadableInput, match="no part of more than"):
        parsed(b'{"a": ["' + b"x" * 9000 + b'"]}', "x")
