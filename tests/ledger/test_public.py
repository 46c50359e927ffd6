"""What is public already, in the ledger: no release, counted once, reckoned with by the next."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rides import ride, written
from trailveil.errors import InvalidValue, Refused
from trailveil.ledger import Ledger
from trailveil.ledger.commit import known_public, publish
from trailveil.ledger.planning import protect_versions
from trailveil.ledger.public import PUBLIC, Imported, add_public, count_public
from trailveil.page.opened import PageRequest, opened, request_of
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.public import Position
from trailveil.release.request import Method, Request
from trailveil.release.versions import Version
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS

TRACE = ride(180, 20.0)
CHOSEN = Chosen(("start+30m",), returns=False, ends=False)
CUT = Request((), radius=70.0, floor=3.0, middle=3.0)
SECOND = int(TRACE.times[0]) + round(32.5 * 60 * NANOSECONDS)


def photo(when: int = SECOND, accuracy: float = 0.0) -> Imported:
    return Imported(np.array([when]), np.array([[48.137, 11.575]]), accuracy)


def planned(ledger: Ledger, request: Request = CUT) -> Plan:
    public = known_public(ledger, TRACE)
    return protect(TRACE, requested(TRACE, CHOSEN, request, (), public))


def test_it_is_counted_once_and_is_no_release(ledger: Ledger, tmp_path: Path) -> None:
    assert add_public(ledger, photo())
    assert not add_public(ledger, photo())
    assert add_public(ledger, photo(accuracy=50.0))
    assert add_public(ledger, photo(), subject="anna")
    known = known_public(ledger, TRACE)
    assert known[0] == Position(SECOND, 0.0)
    assert known[1].deviation == pytest.approx(33.0, rel=0.01)
    with ledger.open() as book:
        assert count_public(book, "me") == 2
        assert all(row.series == PUBLIC for row in book.standing())
        # No position is in it, and no time but those that were stated.
        for row in book.standing():
            assert b"48.137" not in book.blob(row.number)
    total = publish(planned(ledger), ledger, tmp_path / "a.gpx").account
    assert total is not None
    assert total.releases == 1
    assert total.overlapping == 0
    assert ledger.verify() == 4


def test_the_next_cut_reckons_with_it_and_an_earlier_plan_is_refused(
    ledger: Ledger, tmp_path: Path
) -> None:
    blind = planned(ledger)
    noise = planned(ledger, replace(CUT, method=Method.NOISE))
    add_public(ledger, photo())
    for plan in (blind, noise):
        with pytest.raises(Refused, match="what is public already"):
            publish(plan, ledger, tmp_path / "a.gpx")
    with ledger.open() as book:
        assert count_public(book, "me") == len(book.standing())
    plan = planned(ledger)
    assert plan.mechanism.rows.size < blind.mechanism.rows.size
    receipt = publish(plan, ledger, tmp_path / "a.gpx")
    assert receipt.account is not None
    assert receipt.account.times <= 1.0
    # Of somebody else it tells nothing.
    publish(blind, ledger, tmp_path / "b.gpx", subject="anna")


def test_what_came_out_later_is_in_the_total_of_what_is_released_again(
    ledger: Ledger, tmp_path: Path
) -> None:
    """A cut that is out hides less from then on, and a longer one cannot take it back."""
    publish(planned(ledger), ledger, tmp_path / "a.gpx")
    add_public(ledger, photo())
    total = publish(planned(ledger), ledger, tmp_path / "b.gpx").account
    assert total is not None
    assert total.times > 1.0


def test_versions_reckon_with_it(ledger: Ledger, tmp_path: Path) -> None:
    add_public(ledger, photo())
    names = [Version("friends", replace(CUT, radius=40.0)), Version("public", CUT)]
    plans = protect_versions(ledger, TRACE, CHOSEN, names)
    for plan in plans:
        receipt = publish(plan, ledger, tmp_path / f"{plan.version}.gpx")
        assert not receipt.further
    assert set(plans[1].mechanism.rows) < set(plans[0].mechanism.rows)
    wide = [Version("all", replace(CUT, radius=200.0))]
    with pytest.raises(Refused, match="nothing more can be hidden of it"):
        protect_versions(ledger, TRACE, CHOSEN, wide)


def test_the_page_reckons_with_it(ledger: Ledger, tmp_path: Path) -> None:
    add_public(ledger, photo())
    source = written(tmp_path / "ride.gpx", TRACE)
    recording = opened(source, tmp_path / "out.gpx", ledger)
    asked = PageRequest(frozenset({("start+30m",)}), 30.0, 1.0, activity="drive")
    with pytest.raises(Refused, match="what is public already"):
        request_of(recording, asked)
    assert request_of(replace(recording, public=()), asked).public == ()


def test_wrong_imports_are_refused() -> None:
    with pytest.raises(InvalidValue, match="positions at times"):
        Imported(np.array([], dtype=np.int64), np.empty((0, 2)))
    with pytest.raises(InvalidValue, match="positions at times"):
        photo(accuracy=-1.0)
