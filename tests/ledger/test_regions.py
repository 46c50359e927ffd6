"""What hidden parts without a name would tell of a place with one, by whole degrees alone."""

from pathlib import Path

import pytest

from tests.ledger.test_visits_cut import AT, HOME, loop, out, released
from tests.rides import ride
from trailveil.ledger import Ledger
from trailveil.ledger.commit import publish
from trailveil.ledger.places import places_told, save_places
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.traces.selection import Chosen


@pytest.mark.parametrize(("at", "near"), [(AT, True), ((48.137, 12.5), False)])
def test_parts_before_the_name_may_be_there_where_their_degree_is(
    at: tuple[float, float], near: bool, ledger: Ledger, tmp_path: Path
) -> None:
    """Of a release without any such part, too: both ends of the loop are home."""
    before = ride(60, 20.0, seed=1, begin=1_700_000_000, at=at)
    request = requested(before, Chosen(returns=False), Request((), floor=10.0, middle=10.0))
    first = publish(protect(before, request), ledger, tmp_path / "a.gpx").account
    save_places(ledger, [HOME])
    _, second = released(ledger, loop(), tmp_path / "b.gpx")
    assert first is not None
    assert second.account is not None
    (home,) = second.account.places
    more = first.one_place if near else 0.0
    assert more >= 0
    assert home.at_most == pytest.approx(home.total + more, rel=1e-9)
    assert second.account.total >= home.at_most
    with ledger.open() as book:
        (shown,) = places_told(book, [HOME], "me")
    assert shown.at_most == pytest.approx(home.at_most, rel=1e-9)
    # One more has an end of its own, which may be there as well.
    third = released(ledger, out(9), tmp_path / "c.gpx")[1].account
    assert third is not None
    (home,) = third.places
    assert home.at_most > home.total + more
