"""JSON in which a key comes twice is refused by the scan, and nothing of it is told."""

import pytest

from tests.checks.test_scan import LEAKS, TWICE, scanned
from tests.leaks import PLANTS, released
from trailveil.errors import UnreadableInput


@pytest.mark.parametrize("leak", ["a name", "a place"])
def test_what_is_hidden_behind_a_key_that_comes_twice_is_refused(leak: str) -> None:
    data = PLANTS[".geojson"][TWICE](released(".geojson"), LEAKS[leak][0])
    with pytest.raises(UnreadableInput, match="each key once") as caught:
        scanned(data, ".geojson")
    assert LEAKS[leak][0] not in str(caught.value)
