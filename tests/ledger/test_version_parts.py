"""Versions protect the same parts: a later one may not give away what an earlier one hides."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.ledger.test_versions import CHOSEN, TRACE, asked
from trailveil.errors import Refused
from trailveil.ledger import Ledger
from trailveil.ledger.commit import publish
from trailveil.ledger.planning import protect_versions
from trailveil.ledger.relatives import versions_in
from trailveil.release.plan import Plan
from trailveil.release.request import Method, Request
from trailveil.release.versions import Version
from trailveil.traces.selection import Chosen
from trailveil.traces.visits import Circle

LAT, LON = TRACE.positions[45].tolist()
STAY = replace(CHOSEN, at=(), between=(("start+7m", "start+9m"),))
PARTS = {
    "at": (CHOSEN, replace(CHOSEN, at=("start+14m",))),
    "between": (CHOSEN, STAY),
    "near": (CHOSEN, replace(CHOSEN, near=(Circle(LAT, LON, 30.0),))),
    "stops": (CHOSEN, replace(CHOSEN, stops=(50.0, 240.0))),
    "no-ends": (STAY, replace(STAY, ends=True)),
    "no-returns": (STAY, replace(STAY, returns=True)),
}


def version(
    ledger: Ledger, chosen: Chosen, name: str, request: Request, *, alone: bool = False
) -> Plan:
    return protect_versions(ledger, TRACE, chosen, [Version(name, request)], alone=alone)[0]


def in_order(option: str, turned: bool) -> tuple[Chosen, Chosen]:
    first, second = PARTS[option]
    return (second, first) if turned else (first, second)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("option", PARTS)
def test_a_cut_of_other_parts_is_no_version(
    option: str, turned: bool, ledger: Ledger, tmp_path: Path
) -> None:
    """Whichever is finer; and with --again, it counts as no version."""
    first, second = in_order(option, turned)
    publish(version(ledger, first, "d", asked(10.0, Method.CUT)), ledger, tmp_path / "d.gpx")
    for radius in (5.0, 12.0):
        request, name = asked(radius, Method.CUT), f"h{radius:.0f}"
        with pytest.raises(Refused, match="versions must protect the same parts, got others"):
            version(ledger, second, name, request)
        other = version(ledger, second, name, request, alone=True)
        publish(other, ledger, tmp_path / f"{name}.gpx", again=True)
        with ledger.open() as book:
            (row,) = (row for row in book.standing() if row.number > 1)
            assert versions_in(book.body(row.number)) == ((), ())
            book.withdraw(row.number)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("option", PARTS)
def test_noise_for_other_parts_is_no_version(
    option: str, turned: bool, ledger: Ledger, tmp_path: Path
) -> None:
    """Of the usual request: its designs are shipped."""
    first, second = in_order(option, turned)
    usual = Request((), method=Method.NOISE)
    publish(version(ledger, first, "d", usual), ledger, tmp_path / "d.gpx")
    with pytest.raises(Refused, match="versions must protect the same parts, got others"):
        version(ledger, second, "h", usual)


def test_another_pace_is_a_version_of_the_same_parts(ledger: Ledger, tmp_path: Path) -> None:
    """A faster pace needs a shorter cut: both hide the same."""
    publish(version(ledger, STAY, "d", asked(10.0, Method.CUT)), ledger, tmp_path / "d.gpx")
    faster = [Version("h", replace(asked(10.0, Method.CUT), floor=10.0, middle=8.0))]
    (plan,) = protect_versions(ledger, TRACE, STAY, faster)
    receipt = publish(plan, ledger, tmp_path / "h.gpx")
    assert receipt.account is not None
    assert receipt.account.finest == "h"
