"""The scan without rules of its own: a key that comes twice, and formats without a layout."""

import pytest

from tests.checks.test_scan import LEAKS, PLACES_TO_HIDE, TWICE, scanned
from tests.leaks import PLANTS, released
from trailveil.checks.scan import LeakKind, allowed
from trailveil.errors import UnreadableInput


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
    monkeypatch.setattr(allowed, "LAYOUTS", {})
    clean = released(suffix)
    assert scanned(clean, suffix).leaks == ()
    assert not scanned(PLANTS[suffix][name](clean, "zzyzx"), suffix).clean


def test_who_made_a_parquet_file_is_looked_at() -> None:
    data = released(".parquet")
    writer = b"parquet-cpp-arrow version"
    assert data.count(writer) == 1
    planted = data.replace(writer, b"Petronella's own converter"[: len(writer)])
    result = scanned(planted, ".parquet")
    assert [(leak.kind, leak.where) for leak in result.leaks] == [(LeakKind.TEXT, "created by")]
