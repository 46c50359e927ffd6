"""Versions in the ledger: counted as what the finest tells, drawn later from what it keeps."""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Sweep
from tests.ledger.test_places import HOME, day
from tests.rides import ride
from trailveil.errors import Refused, UnwritableOutput
from trailveil.ledger import Ledger, open_ledger
from trailveil.ledger.accounting import Account
from trailveil.ledger.commit import Receipt, check_released, commit, known_places, publish
from trailveil.ledger.places import save_places
from trailveil.ledger.planning import protect_versions
from trailveil.ledger.relatives import finest_alone, finest_of
from trailveil.release.design_cache import DesignCache
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.release.versions import Version
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS, Trace

TRACE = ride(60, 20.0, still=(20, 35))
CHOSEN = Chosen(("start+9m",), returns=False, ends=False)


def asked(radius: float, method: Method = Method.NOISE) -> Request:
    return Request((), radius=radius, method=method, floor=3.6, middle=2.5)


def planned(ledger: Ledger, *radii: float, **how: Any) -> list[Plan]:
    method = how.pop("method", Method.NOISE)
    versions = [Version(f"v{radius:.0f}", asked(radius, method)) for radius in radii]
    return protect_versions(ledger, how.pop("trace", TRACE), CHOSEN, versions, **how)


def published(
    ledger: Ledger,
    folder: Path,
    groups: Sequence[Sequence[float]],
    limit: float | None = None,
    **how: Any,
) -> dict[str, Receipt[Trace]]:
    """The receipts of versions that are published in some runs, by name."""
    receipts = {}
    for radii in groups:
        for plan in planned(ledger, *radii, **how):
            receipts[plan.version] = publish(
                plan, ledger, folder / f"{plan.version}.gpx", key=plan.key, limit=limit
            )
    return receipts


def account(receipt: Receipt[Trace]) -> Account:
    assert receipt.account is not None
    assert not receipt.further
    return receipt.account


def test_the_finest_is_counted_and_a_coarser_one_tells_nothing_more(
    ledger: Ledger, tmp_path: Path
) -> None:
    receipts = published(ledger, tmp_path, [(300.0, 50.0, 100.0)])
    assert list(receipts) == ["v50", "v100", "v300"]
    accounts = [account(receipt) for receipt in receipts.values()]
    assert [each.epsilon for each in accounts] == pytest.approx([1.0] * 3)
    # Somebody who has all: what v50 tells, at its radius.
    assert [each.times for each in accounts] == pytest.approx([1.0] * 3, rel=3e-3)
    assert [each.one_place for each in accounts] == pytest.approx([1.0] * 3, rel=3e-3)
    assert {each.stated for each in accounts} == {accounts[0].stated}
    assert [each.finest for each in accounts] == ["", "v50", "v50"]
    with ledger.open() as book:
        marks = [book.entry(number, b"").marks for number in (1, 2, 3)]
        assert [float(np.max(mark[0].information)) > 0 for mark in marks] == [True, False, False]
        # What is known of later releases is at the radius of the finest.
        assert [book.body(number)["known"] for number in (1, 2, 3)] == pytest.approx([1.0] * 3)


def test_a_finer_version_later_is_counted_for_what_it_tells_besides(
    ledger: Ledger, tmp_path: Path
) -> None:
    receipts = published(ledger, tmp_path, [(300.0,), (50.0,), (1000.0,)])
    accounts = [account(receipt) for receipt in receipts.values()]
    assert [each.times for each in accounts] == pytest.approx([1.0] * 3, rel=3e-3)
    assert [each.stated.radius for each in accounts] == [300.0, 50.0, 50.0]
    # All together are one place's worth of the finest: at its own radius epsilon 1.
    assert accounts[1].one_place == pytest.approx(1.0, rel=1e-3)
    assert [each.finest for each in accounts] == ["", "v50", "v50"]
    with ledger.open() as book:
        assert finest_of(book, (1, 2, 3)) == 2
        sums = [float(total[0]) for _, total in book.totals("me", bytes(16)).values()]
        radius, _, deviation = book.body(2)["stated"]
        assert radius == 50.0
        assert sums == [] or max(sums) <= 1.003 / deviation**2


def test_later_is_the_same_file_as_at_once(ledger: Ledger, tmp_path: Path) -> None:
    """What the ledger keeps is enough to draw a coarser version that goes with an earlier one."""
    key = secrets.token_bytes(32)
    receipts = published(ledger, tmp_path, [(50.0,), (300.0,)], key=key)
    at_once = [
        plan for plan in planned(ledger, 50.0, 300.0, key=key, alone=True) if plan.version == "v300"
    ]
    assert planned(ledger, 300.0, key=key)[0].identity == at_once[0].identity
    (tmp_path / "again").mkdir()
    same = published(ledger, tmp_path / "again", [(300.0, 50.0)], key=key)
    for name, receipt in receipts.items():
        assert (account(same[name]).finest, account(same[name]).releases) == ("v50", 2)
        assert np.array_equal(same[name].drawn.positions, receipt.drawn.positions)
    with pytest.raises(Refused, match="another recording or another key"):
        planned(ledger, 100.0, key=secrets.token_bytes(32))


def test_cuts_of_several_radii_nest_in_both_orders(ledger: Ledger, tmp_path: Path) -> None:
    receipts = published(ledger, tmp_path, [(30.0,), (15.0, 60.0)], method=Method.CUT)
    released = {name: {*receipt.drawn.times.tolist()} for name, receipt in receipts.items()}
    assert released["v60"] < released["v30"] < released["v15"]
    accounts = {name: account(receipt) for name, receipt in receipts.items()}
    assert accounts["v15"].times == pytest.approx(accounts["v15"].epsilon)
    assert accounts["v60"].times == pytest.approx(accounts["v15"].epsilon)
    assert {each.finest for each in accounts.values()} == {"", "v15"}
    # Without being versions, a second cut is refused as ever.
    request = requested(TRACE, CHOSEN, asked(10.0, Method.CUT))
    with pytest.raises(Refused, match="must be released once"):
        check_released(ledger, protect(TRACE, request), again=False)


def test_noise_after_a_cut_is_counted_as_nothing_more(ledger: Ledger, tmp_path: Path) -> None:
    published(ledger, tmp_path, [(15.0,)], method=Method.CUT)
    receipts = published(ledger, tmp_path, [(60.0,)], method=Method.BOTH)
    assert account(receipts["v60"]).finest == "v15"
    with pytest.raises(Refused, match="noise at fixes that an earlier cut withholds"):
        planned(ledger, 300.0)


def test_replace_withdraws_versions_together(ledger: Ledger, tmp_path: Path) -> None:
    """A coarser version that stays is counted anew, in full, where the finer one is gone."""
    published(ledger, tmp_path, [(50.0, 300.0)])
    (plan,) = [x for x in planned(ledger, 50.0, 300.0) if x.version == "v300"]
    receipt = publish(plan, ledger, tmp_path / "b.gpx", instead=True)
    assert account(receipt).finest == ""
    assert account(receipt).times == pytest.approx(1.0)
    with ledger.open() as book:
        assert len(book.standing()) == 1
        number = book.standing()[0].number
        assert float(np.max(book.entry(number, b"").marks[0].information)) > 0


def test_what_was_taken_back_is_known_no_more(ledger: Ledger, tmp_path: Path) -> None:
    """Though a release came between, of which the ledger said that all was known by then."""
    other = ride(80, 23.0, still=(20, 35))
    other = replace(other, times=other.times + np.int64(9 * 86_400 * NANOSECONDS))
    wide = replace(asked(10.0, Method.CUT), epsilon=50.0)
    narrow = replace(wide, epsilon=1.0)
    first, second, again = (
        protect(trace, requested(trace, CHOSEN, request))
        for trace, request in ((TRACE, wide), (other, narrow), (TRACE, narrow))
    )
    receipts = [
        publish(plan, ledger, tmp_path / f"{i}.gpx", instead=i == 2)
        for i, plan in enumerate((first, second, again))
    ]
    assert account(receipts[0]).known > 10
    assert account(receipts[1]).known == account(receipts[0]).known
    assert account(receipts[2]).known < 2


def test_a_run_that_fails_lets_go_of_what_it_relied_on(ledger: Ledger, tmp_path: Path) -> None:
    """The finer version stays as long as a coarser one that counts on it, and no longer."""
    finest, coarsest = planned(ledger, 50.0, 300.0)
    failed = UnwritableOutput("no room")

    def fails() -> None:
        with commit(finest, ledger), commit(coarsest, ledger):
            raise failed

    with pytest.raises(UnwritableOutput):
        fails()
    with ledger.open() as book:
        assert book.standing() == []

    def fails_after() -> None:
        with commit(finest, ledger):
            publish(coarsest, ledger, tmp_path / "public.gpx")
            raise failed

    with pytest.raises(UnwritableOutput):
        fails_after()
    with ledger.open() as book:
        assert len(book.standing()) == 2
    assert ledger.verify() == 2


def totals(account: Account) -> list[float]:
    """All that is said of the versions together."""
    return [account.times, account.one_place, account.total, account.known, *account.stated]


@pytest.mark.parametrize("method", [Method.CUT, Method.NOISE])
@pytest.mark.parametrize("radii", [(50.0, 100.0), (30.0, 60.0, 90.0)], ids=str)
def test_totals_are_the_same_whichever_version_came_first(
    radii: tuple[float, ...], method: Method, tmp_path: Path, sweep: Sweep
) -> None:
    """After the last, and of each again: those of the finest, which no limit lets pass.

    Cuts are the same to the last digit. Noise of another order is another noise: each holds what
    the finest promises, and the parts of noise are found to 1/256.
    """
    whole: list[list[float]] = []
    for number, order in enumerate(sweep(list(permutations(radii)), short=3)):
        ledger, folder = open_ledger(tmp_path / f"state{number}"), tmp_path / str(number)
        folder.mkdir()
        how = {"method": method, "cache": DesignCache.of(tmp_path, bytes(32))}
        last = published(ledger, folder, [(radius,) for radius in order], limit=1.01, **how)
        again = published(ledger, tmp_path, [(radius,) for radius in order], limit=1.01, **how)
        accounts = [account(receipt) for receipt in (list(last.values())[-1], *again.values())]
        for name, receipt in last.items():  # drawn again from what the ledger keeps
            assert np.array_equal(again[name].drawn.positions, receipt.drawn.positions)
        for each in accounts:
            assert totals(each) == pytest.approx(totals(accounts[0]), rel=1e-12)
            assert each.finest == f"v{radii[0]:.0f}"
            assert each.times <= 1.0
        whole.append(totals(accounts[0]))
        for path in tmp_path.glob("*.gpx"):
            path.unlink()
    for some in whole[1:]:
        assert some == pytest.approx(whole[0], rel=1e-12 if method is Method.CUT else 2e-2)


@pytest.mark.parametrize("first", [0, 1])
def test_what_is_known_does_not_depend_on_the_order(
    first: int, ledger: Ledger, tmp_path: Path
) -> None:
    """A coarser version of a larger epsilon, at its larger radius, adds nothing to it either."""
    versions = [
        Version("friends", asked(20.0, Method.CUT)),
        Version("public", replace(asked(60.0, Method.CUT), epsilon=3.0)),
    ]
    receipts: list[Receipt[Trace]] = []
    for i in (first, 1 - first, first):
        (plan,) = protect_versions(ledger, TRACE, CHOSEN, [versions[i]])
        receipts.append(publish(plan, ledger, tmp_path / f"{len(receipts)}.gpx"))
    later = ride(80, 23.0, still=(20, 35))
    later = replace(later, times=later.times + np.int64(9 * 86_400 * NANOSECONDS))
    plan = protect(later, requested(later, CHOSEN, asked(30.0, Method.CUT)))
    receipts.append(publish(plan, ledger, tmp_path / "later.gpx"))
    assert account(receipts[0]).epsilon > (2 if first else 0)
    for receipt in receipts[1:]:
        assert 0.9 < account(receipt).known <= 1.0


def test_no_version_passes_a_limit(ledger: Ledger, tmp_path: Path) -> None:
    """Not the coarser one either, where a finer one that is out tells more than that."""
    finest, coarsest = planned(ledger, 50.0, 300.0)
    publish(finest, ledger, tmp_path / "a.gpx")
    with pytest.raises(Refused, match=r"must be at most 0\.5, got 1 .* v50, which is out"):
        publish(coarsest, ledger, tmp_path / "b.gpx", limit=0.5)
    publish(coarsest, ledger, tmp_path / "b.gpx", limit=1.01)
    (finer,) = planned(ledger, 25.0)
    with pytest.raises(Refused, match="epsilon in total must be at most"):
        publish(finer, ledger, tmp_path / "x.gpx", limit=0.5)


def test_what_is_near_in_time_is_counted_with_the_finest_alone(
    ledger: Ledger, tmp_path: Path
) -> None:
    published(ledger, tmp_path, [(300.0,), (50.0, 1000.0)])
    with ledger.open() as book:
        assert [row.number for row in finest_alone(book, book.standing())] == [2]


def test_a_place_with_a_name_has_its_noise_in_each_version(ledger: Ledger, tmp_path: Path) -> None:
    """The noise of the place is one draw, in all versions; it is counted once."""
    save_places(ledger, [HOME])
    trace = day(1)
    where = {"trace": trace, "places": known_places(ledger, trace)}
    plans = planned(ledger, 50.0, 300.0, **where)
    accounts = [account(publish(p, ledger, tmp_path / f"{p.version}.gpx")) for p in plans]
    assert [len(plan.common) for plan in plans] == [1, 1]
    assert np.array_equal(plans[0].common[0].draw, plans[1].common[0].draw)
    assert accounts[0].places[0].total == accounts[1].places[0].total
    with pytest.raises(Refused, match="noise that cannot be drawn again"):
        planned(ledger, 1000.0, **where)


def test_releases_of_other_programs_are_no_versions(ledger: Ledger, tmp_path: Path) -> None:
    """Two that are both out, and neither a version of the other: no third goes with them."""
    for method in (Method.NOISE, Method.CUT):
        plan = protect(TRACE, requested(TRACE, CHOSEN, asked(60.0, method)))
        publish(plan, ledger, tmp_path / f"{method}.gpx", again=True)
    with pytest.raises(Refused, match="must be of one chain"):
        planned(ledger, 300.0)
