"""What the ledger keeps of a release gives its noise back bit by bit, however it is stored."""

import io
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ledger.test_accounting import HOME
from tests.rides import ride
from trailveil.ledger import Ledger, open_ledger
from trailveil.ledger.accounting import told_by
from trailveil.ledger.counting import count, countable, sent
from trailveil.ledger.places import Visited
from trailveil.ledger.protecting import requested
from trailveil.ledger.recorded import StoredRelease, bare, packed, restored, unpacked
from trailveil.release.plan import Plan, plan
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Chosen

AT = (48.137, 11.575)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "state")


@lru_cache
def made_at(begin: float = 0.0, *, epsilon: float = 1.0, withhold: float | None = None) -> Plan:
    trace = ride(40, 20.0, seed=3, begin=int(1_715_672_400 + begin), at=AT)
    request = Request((), epsilon=epsilon, withhold=withhold, method=Method.NOISE)
    return plan(trace, requested(trace, Chosen(("start+5m",), ends=False), request))


def as_archive(plan: Plan, there: Sequence[Visited] = ()) -> bytes:
    """How an entry was stored when ledgers were of version 1, written again."""
    own = plan.mechanism.factor[:, : plan.own_columns]
    rows = np.flatnonzero(np.any(own != 0, axis=1))
    parts = [(finding.stretch.begin, finding.stretch.end) for finding in plan.findings]
    arrays: dict[str, Any] = {
        "times": plan.trace.times,
        "released": np.asarray(plan.mechanism.released),
        "rows": rows,
        "factor": own[rows],
        "floor": np.array([plan.mechanism.floor]),
        "process": np.array([""]),
        "parts": np.array(parts, dtype=np.int64).reshape(-1, 2),
    }
    for one in there:
        arrays[f"root {one.draw.hex()}"] = one.place.noise.root
        arrays[f"visits {one.draw.hex()}"] = np.array(one.intervals, dtype=np.int64)
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def assert_same(stored_release: StoredRelease, other: StoredRelease) -> None:
    assert stored_release.mechanism is not None
    assert other.mechanism is not None
    for name in ("times", "factor", "released", "floor"):
        first, second = (
            np.asarray(getattr(kept.mechanism, name)) for kept in (stored_release, other)
        )
        assert first.tobytes() == second.tobytes(), name
    assert stored_release.times.tobytes() == other.times.tobytes()
    assert stored_release.parts == other.parts
    assert stored_release.visits == other.visits
    assert stored_release.roots.keys() == other.roots.keys()
    assert all(
        np.array_equal(stored_release.roots[name], other.roots[name])
        for name in stored_release.roots
    )


@pytest.mark.parametrize("withhold", [None, 45.0])
def test_an_entry_of_an_earlier_version_says_the_same(withhold: float | None) -> None:
    made = made_at(withhold=withhold)
    trace = made.trace
    spans = ((int(trace.times[0]), int(trace.times[5])),)
    there = [Visited(HOME, spans, bytes(32))]
    found = packed(made, there)
    assert_same(unpacked(found), unpacked(as_archive(made, there)))


@pytest.mark.parametrize("withhold", [None, 45.0])
def test_independent_noise_comes_back(withhold: float | None) -> None:
    made = made_at(withhold=withhold)
    found = unpacked(packed(made, [])).mechanism
    assert found is not None
    assert np.any(made.mechanism.independent_variances)
    assert np.array_equal(found.independent_variances, made.mechanism.independent_variances)


def test_the_noise_of_a_part_takes_some_kilobytes_however_many_fixes() -> None:
    long = ride(4_000, 2.0, seed=3, begin=1_715_672_400, at=AT)
    designed = plan(long, requested(long, Chosen(("start+5m",), ends=False), made_at().request))
    found = packed(designed, ())
    assert len(found) < 10 * len(long) + 16_000 < designed.mechanism.factor.nbytes / 10
    kept = unpacked(found).mechanism
    assert kept is not None
    assert kept.factor.tobytes() == designed.mechanism.factor.tobytes()


@pytest.mark.parametrize("withhold", [None, 45.0])
def test_a_plan_is_restored_from_what_is_sent(withhold: float | None) -> None:
    made = made_at(withhold=withhold)
    plain, whole = bare(made), packed(made, ())
    assert plain.mechanism.factor.size == 0
    plan = restored(plain, whole)
    for name in ("times", "factor", "released"):
        first, second = (np.asarray(getattr(one.mechanism, name)) for one in (plan, made))
        assert first.tobytes() == second.tobytes(), name
    assert np.array_equal(plan.trace.times, made.trace.times)
    assert not plan.trace.positions.any()
    assert plan.findings == made.findings


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 1e36])
def test_what_is_sent_is_counted_as_the_plan_is(tmp_path: Path, limit: float | None) -> None:
    """Releases that overlap, and ones beside them; without a limit, each total is of it alone."""
    ledgers = [open_ledger(tmp_path / name) for name in ("whole", "sent")]
    plans = [made_at(), made_at(86_400.0), made_at(765.0, epsilon=0.5)]
    for number, made in enumerate(plans):
        marks = told_by(made, ())
        ways = (
            countable(made, (), marks, "me", limit),
            sent(made, (), marks).countable("me", limit),
        )
        found = []
        for ledger, told in zip(ledgers, ways, strict=True):
            with ledger.open() as book:
                published, row = count(book, told, bytes([number]) * 32, again=True)
                assert row == number + 1
                told_of = book.totals("me", bytes(16))
                totals = {name: one[1].tolist() for name, one in told_of.items()}
                kept = unpacked(book.blob(row))
            assert published.account is not None
            own = published.account
            total = None if limit is None else own.total
            about = (own.epsilon, own.one_place, own.overlapping, totals, total)
            found.append((*about, kept.times.tolist()))
        assert found[0] == found[1]
    with ledgers[1].open() as book:
        assert (book.body(3)["total"] is None) == (limit is None)
