"""Several cuts of one recording: what they tell is what is in any of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.rides import ride
from trailveil.errors import Refused
from trailveil.ledger import Ledger
from trailveil.ledger.commit import publish
from trailveil.ledger.counting import check_total
from trailveil.privacy.adversaries import Named
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.secrets import Secret
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Request
from trailveil.traces.projection import Frame
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

AT, BEGIN, DAY = (48.137, 11.575), 1_715_672_400, 86_400
# Who goes so fast is away soon: cuts are short.
CUT = Request((), who=(Named.PLAIN,), floor=10.0, middle=10.0)


def day(number: int, count: int = 60) -> Trace:
    return ride(count, 20.0, still=(0, 9), seed=number, begin=BEGIN + number * DAY, at=AT)


def versions(trace: Trace) -> tuple[Plan, Plan]:
    """Without its ends, and without its middle as well: a part of the first."""
    request = replace(CUT, radius=30.0)
    ends = requested(trace, Chosen(returns=False), request)
    more = requested(trace, Chosen(("start+30m",), returns=False), request)
    return protect(trace, ends), protect(trace, more)


def test_the_same_recording_again_is_counted_by_the_joint_law(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Of two cuts, what their union tells: here all that the shorter one releases."""
    trace = day(0, 24)
    asked = requested(trace, Chosen(("start+4m",), returns=False, ends=False), CUT)
    first, second = protect(trace, asked), protect(trace, replace(asked, epsilon=8.0))
    publish(first, ledger, tmp_path / "a.gpx")
    total = publish(second, ledger, tmp_path / "b.gpx", again=True).account
    assert total is not None
    assert total.overlapping == 1
    assert set(first.mechanism.rows) < set(second.mechanism.rows)
    loss = joint_loss(CUT.kernel, [Release(second.mechanism)], Secret.at(240.0)).matrix[0, 0]
    scale = 2.5 * (100.0 * (1 + Frame.SCALE_ERROR)) ** 2
    assert total.times == second.findings[0].guarantee.epsilon > scale * loss > 2
    with pytest.raises(Refused, match="nothing more of this recording fits"):
        check_total(total, 1.2, 1.0)


def test_a_longer_cut_of_what_an_earlier_file_shows_hides_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    """All that it releases is in the earlier file: it tells nothing new, and its part is told."""
    trace = day(0, 180)
    first, second = versions(trace)
    assert set(second.mechanism.rows) < set(first.mechanism.rows)
    alone = publish(first, ledger, tmp_path / "a.gpx").account
    again = publish(second, ledger, tmp_path / "b.gpx", again=True).account
    assert alone is not None
    assert again is not None
    assert alone.known < 1.01
    assert again.times > 1e9
    assert again.one_place == alone.one_place  # nothing of it is new
    with pytest.raises(Refused, match="nothing more of this recording fits"):
        check_total(again, 1e6, 1.0)
    # What is out stays out, whatever is released afterwards.
    another = day(9)
    ends = requested(another, Chosen(returns=False), CUT)
    later = publish(protect(another, ends), ledger, tmp_path / "c.gpx").account
    assert later is not None
    assert later.known == again.known > 1e9 > later.times
    with ledger.open() as book:
        assert [book.body(number)["known"] for number in (1, 2, 3)] == [
            alone.known,
            again.known,
            later.known,
        ]


def test_a_version_that_nobody_has_is_replaced_and_counts_no_more(
    ledger: Ledger, tmp_path: Path
) -> None:
    trace = day(0, 180)
    first, second = versions(trace)
    publish(first, ledger, tmp_path / "a.gpx")
    another = day(3)
    asked = requested(another, Chosen(returns=False), CUT)
    publish(protect(another, asked), ledger, tmp_path / "b.gpx")
    whole = publish(second, ledger, tmp_path / "c.gpx", instead=True).account
    assert whole is not None
    assert (whole.overlapping, whole.releases) == (0, 2)
    assert whole.known < 1.01
    assert ledger.verify() == 2
    # The same again is no other version; what it replaces is gone already.
    again = publish(second, ledger, tmp_path / "d.gpx", instead=True).account
    assert again is not None
    assert (again.overlapping, again.releases, again.known) == (0, 2, whole.known)
    assert ledger.verify() == 2
    # Of one that shares its time and is another recording, nobody said that.
    other = day(0, 170)
    asked = requested(other, Chosen(returns=False), CUT)
    moved = replace(other, positions=other.positions + 0.01)
    with pytest.raises(Refused, match="must be released once"):
        publish(protect(moved, asked), ledger, tmp_path / "e.gpx", instead=True)
    assert ledger.verify() == 2


def test_a_longer_cut_of_a_slower_pace_counts_what_the_earlier_one_tells_at_that_pace(
    ledger: Ledger, tmp_path: Path
) -> None:
    """All that it releases is out, and yet it says that the earlier one told more."""
    trace = day(0)
    chosen = Chosen(("start+10m",), returns=False, ends=False)
    fast, slow = (
        protect(trace, requested(trace, chosen, replace(CUT, floor=pace, middle=pace)))
        for pace in (10.0, 3.0)
    )
    assert set(slow.mechanism.rows) < set(fast.mechanism.rows)
    publish(fast, ledger, tmp_path / "a.gpx")
    again = publish(slow, ledger, tmp_path / "b.gpx", again=True).account
    assert again is not None
    assert again.one_place == pytest.approx(again.times, rel=1e-9)
    assert again.times > 5
    # The circle of all versions is no wider than what is left at that pace.
    left = slow.request.paces.middle
    silence = min(abs(trace.seconds[fast.mechanism.rows] - 600.0)) - slow.request.uncertain
    assert again.stated.deviation <= (left.bridged(silence) / 2) ** 0.5 * 1.02
