"""A release that is counted already: the same again says what it said, and what came since."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.ledger.test_unions import CUT, day
from tests.ledger.test_visits_cut import HOME, RIDE, out, released
from trailveil.ledger import Ledger
from trailveil.ledger.accounting import Account
from trailveil.ledger.commit import publish
from trailveil.ledger.places import save_places
from trailveil.release.places import designed
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Chosen

METHODS = {"cut": RIDE, "noise": Request((), method=Method.NOISE, who=HOME.who)}


def numbers(account: Account | None) -> list[float]:
    """All that is told of an account."""
    assert account is not None
    places = [
        (place.releases, place.visits, place.alone, place.total, place.moved)
        for place in account.places
    ]
    alone = (account.epsilon, account.times, account.one_place, account.total, account.known)
    return [account.releases, account.overlapping, *alone, *np.ravel(places)]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_the_same_again_has_the_same_totals(
    method: str, named: bool, ledger: Ledger, tmp_path: Path
) -> None:
    if named:
        save_places(ledger, [designed(HOME) if method == "noise" else HOME])
    first = [
        released(ledger, out(number), tmp_path / f"{number}.gpx", METHODS[method])[1].account
        for number in range(3)
    ]
    again = [
        released(ledger, out(number), tmp_path / f"again {i}.gpx", METHODS[method])[1].account
        for i, number in enumerate((2, 2, 0))
    ]
    assert ledger.verify() == 3
    expected = pytest.approx(numbers(first[2]), rel=1e-9)
    assert numbers(again[0]) == expected
    assert numbers(again[1]) == expected
    # The first, again: all that was released since is counted with it.
    assert first[0] is not None
    assert first[2] is not None
    assert again[2] is not None
    assert again[2].releases == 3
    assert again[2].known >= first[2].known * (1 - 1e-9) > 0
    assert again[2].one_place == pytest.approx(first[2].one_place, rel=1e-9)
    assert [place.total for place in again[2].places] == pytest.approx(
        [place.total for place in first[2].places], rel=1e-9
    )


@pytest.mark.parametrize("earlier", ["whole", "part"])
@pytest.mark.parametrize("repeated", ["earlier", "later"])
def test_of_two_versions_either_again_tells_of_both(
    earlier: str, repeated: str, ledger: Ledger, tmp_path: Path
) -> None:
    """Of a part of the other, too: by itself it tells nothing new, and it counted for some."""
    trace = day(0, 24)
    asked = requested(trace, Chosen(("start+4m",), returns=False, ends=False), CUT)
    both = [protect(trace, replace(asked, epsilon=epsilon)) for epsilon in (8.0, 1.0)]
    both = both if earlier == "whole" else both[::-1]
    publish(both[0], ledger, tmp_path / "a.gpx")
    total = publish(both[1], ledger, tmp_path / "b.gpx", again=True).account
    same = both[repeated == "later"]
    again = publish(same, ledger, tmp_path / "c.gpx", again=True).account
    assert total is not None
    assert again is not None
    assert (again.releases, again.overlapping) == (2, 1)
    assert again.known >= total.known > 2
    assert again.one_place == pytest.approx(total.one_place, rel=1e-9)
