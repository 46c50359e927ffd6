"""The scan without rules of its own: a key that comes twice, and formats without a layout."""

import random
from importlib import import_module

import numpy as np
import pytest

from tests.checks.test_scan import LEAKS, PLACES_TO_HIDE, TWICE, scanned
from tests.leaks import PLANTS, released
from tests.novel import END, HEAD, NOVEL, PACKED, packed
from tests.traces.formats.traces import TRACE, written
from trailveil.checks.scan import LeakKind, scan
from trailveil.checks.scan.allowed import LAYOUTS, TAKERS
from trailveil.errors import TrailveilError, UnreadableInput
from trailveil.traces.formats import table
from trailveil.traces.formats.table import FORMATS, Format
from trailveil.traces.selection import Chosen


@pytest.mark.parametrize("leak", ["a name", "a place"])
def test_what_is_hidden_behind_a_key_that_comes_twice_is_refused(leak: str) -> None:
    data = PLANTS[".geojson"][TWICE](released(".geojson"), LEAKS[leak][0])
    with pytest.raises(UnreadableInput, match="each key once") as caught:
        scanned(data, ".geojson")
    assert LEAKS[leak][0] not in str(caught.value)


@pytest.mark.parametrize(("suffix", "name"), PLACES_TO_HIDE)
def test_a_format_without_a_layout_is_compared_byte_by_byte(
    suffix: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("trailveil.checks.scan.contents"), "LAYOUTS", {})
    clean = released(suffix)
    assert scanned(clean, suffix).leaks == ()
    assert not scanned(PLANTS[suffix][name](clean, "zzyzx"), suffix).clean


@pytest.fixture
def novel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two formats more, of structures that only their rows name."""
    assert {NOVEL.structure, PACKED.structure}.isdisjoint(TAKERS)
    monkeypatch.setattr(table, "FORMATS", (NOVEL, PACKED, *FORMATS))


WHOLE = [row for row in (*FORMATS, NOVEL, PACKED) if row.write and row.name not in LAYOUTS]


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
def test_of_a_format_without_a_layout_any_other_byte_is_found(row: Format, novel: None) -> None:
    """But for one that makes another fix, of which the rest is as it is written."""
    suffix, rng = row.suffixes[0], random.Random(3)
    clean = released(suffix)
    assert scanned(clean, suffix).leaks == ()
    fixes = row.read(clean, "x")
    places = [rng.randrange(len(clean)) for _ in range(60)]
    flipped = [clean[:at] + bytes([clean[at] ^ 1 << at % 8]) + clean[at + 1 :] for at in places]
    inserted = [clean[:at] + b"\n" + clean[at:] for at in places]
    found = 0
    for data in (*flipped, *inserted, clean + b"\n", clean + b"\0", clean * 2):
        try:
            recording, result = row.read(data, "x"), scanned(data, suffix)
        except TrailveilError:
            continue
        same = np.array_equal(recording.positions, fixes.positions)
        same = same and np.array_equal(recording.times, fixes.times)
        assert not (same and result.clean)
        found += not result.clean
    assert found > 5 or row is PACKED  # of what is packed most is refused


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_what_is_planted_in_a_text_of_any_structure_is_told_as_what_it_is(
    leak: tuple[str, LeakKind], novel: None
) -> None:
    text, kind = leak
    for planted in (HEAD + b"# %b\n", HEAD + b"<note='%b'>\n", HEAD + b"x\0%b\xff\n"):
        data = released(".novel").replace(HEAD, planted % text.encode())
        result = scanned(data, ".novel")
        assert kind in {found.kind for found in result.leaks}
        assert text not in str(result.leaks)


def test_what_is_not_text_in_a_release_is_told_as_such(novel: None) -> None:
    """Of what is coded, nothing is known but that no release has it."""
    data = packed(released(".novel").replace(END, b"Secretville" + END))
    assert {leak.kind for leak in scanned(data, ".nvl").leaks} == {LeakKind.FIELD}


@pytest.mark.parametrize(("leak", "kind"), LEAKS.values(), ids=LEAKS)
def test_the_words_of_an_original_of_any_structure_are_known(
    leak: str, kind: LeakKind, novel: None
) -> None:
    lines = b"Secretville;512.34,https://example.org/petronella\n"
    original = written(TRACE, ".novel").replace(HEAD, HEAD + lines)
    planted = PLANTS[".gpx"]["field"](released(".gpx"), leak)
    result = scan(("a.novel", original), ("b.gpx", planted), Chosen())
    assert kind in {found.kind for found in result.leaks}


def test_who_made_a_parquet_file_is_looked_at() -> None:
    data = released(".parquet")
    writer = b"parquet-cpp-arrow version"
    assert data.count(writer) == 1
    planted = data.replace(writer, b"Petronella's own converter"[: len(writer)])
    result = scanned(planted, ".parquet")
    assert [(leak.kind, leak.where) for leak in result.leaks] == [(LeakKind.TEXT, "created by")]
