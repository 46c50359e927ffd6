"""What the ledger keeps of a release gives its noise back bit by bit, however it is stored."""

import io
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.ledger.test_accounting import HOME
from tests.rides import ride
from trailveil.errors import InvalidValue
from trailveil.ledger import open_ledger
from trailveil.ledger.counting import count, countable
from trailveil.ledger.recorded import (
    StoredRelease,
    bare,
    from_bytes,
    packed,
    restored,
    to_bytes,
    unpacked,
)
from trailveil.release.places import Visited
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Chosen

AT = (48.137, 11.575)


@lru_cache
def made_at(
    begin: float = 0.0, *, epsilon: float = 1.0, withhold: float | None = None, fixes: int = 40
) -> Plan:
    start = int(1_715_672_400 + begin)
    trace = ride(fixes, 800 / fixes, seed=3, begin=start, at=AT)
    request = Request((), epsilon=epsilon, withhold=withhold, method=Method.NOISE)
    return protect(trace, requested(trace, Chosen(("start+5m",), ends=False), request))


def as_archive(plan: Plan) -> bytes:
    """How an entry was stored when ledgers were of version 1, written again."""
    factor = plan.mechanism.factor[:, : plan.own_columns]
    rows = np.flatnonzero(np.any(factor != 0, axis=1))
    parts = [(finding.stretch.begin, finding.stretch.end) for finding in plan.findings]
    arrays: dict[str, Any] = {
        "times": plan.trace.times,
        "released": np.asarray(plan.mechanism.released),
        "rows": rows,
        "factor": factor[rows],
        "floor": np.array([plan.mechanism.floor]),
        "process": np.array([""]),
        "parts": np.array(parts, dtype=np.int64).reshape(-1, 2),
    }
    for visit in plan.visited:
        arrays[f"root {visit.draw.hex()}"] = visit.place.noise.root
        arrays[f"visits {visit.draw.hex()}"] = np.array(visit.intervals, dtype=np.int64)
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def assert_same(stored_release: StoredRelease, other: StoredRelease) -> None:
    assert stored_release.mechanism is not None
    assert other.mechanism is not None
    for name in ("times", "factor", "released", "floor"):
        first, second = (
            np.asarray(getattr(stored.mechanism, name)) for stored in (stored_release, other)
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
    plan = made_at(withhold=withhold)
    spans = ((int(plan.trace.times[0]), int(plan.trace.times[5])),)
    plan = replace(plan, visited=(Visited(HOME, spans, bytes(32)),))
    assert_same(unpacked(packed(plan)), unpacked(as_archive(plan)))


@pytest.mark.parametrize("withhold", [None, 45.0])
def test_independent_noise_comes_back(withhold: float | None) -> None:
    plan = made_at(withhold=withhold)
    stored = unpacked(packed(plan)).mechanism
    assert stored is not None
    assert np.any(plan.mechanism.independent_variances)
    assert np.array_equal(stored.independent_variances, plan.mechanism.independent_variances)


def test_the_noise_of_a_part_takes_some_kilobytes_however_many_fixes() -> None:
    long = ride(4_000, 2.0, seed=3, begin=1_715_672_400, at=AT)
    designed = protect(long, requested(long, Chosen(("start+5m",), ends=False), made_at().request))
    stored = packed(designed)
    assert len(stored) < 10 * len(long) + 16_000 < designed.mechanism.factor.nbytes / 10
    mechanism = unpacked(stored).mechanism
    assert mechanism is not None
    assert mechanism.factor.tobytes() == designed.mechanism.factor.tobytes()


@pytest.mark.parametrize("withhold", [None, 45.0])
def test_a_plan_is_restored_from_what_is_sent(withhold: float | None) -> None:
    whole_plan = made_at(withhold=withhold)
    plain, whole = bare(whole_plan), packed(whole_plan)
    assert plain.mechanism.factor.size == 0
    plan = restored(plain, whole)
    for name in ("times", "factor", "released"):
        first, second = (
            np.asarray(getattr(designed.mechanism, name)) for designed in (plan, whole_plan)
        )
        assert first.tobytes() == second.tobytes(), name
    assert np.array_equal(plan.trace.times, whole_plan.trace.times)
    assert not plan.trace.positions.any()
    assert plan.findings == whole_plan.findings


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 1e36])
def test_what_is_sent_is_counted_as_the_plan_is(tmp_path: Path, limit: float | None) -> None:
    """Releases that overlap, and ones beside them; without a limit, each total is of it alone."""
    ledgers = [open_ledger(tmp_path / name) for name in ("whole", "sent")]
    plans = [
        made_at(fixes=20),
        made_at(86_400.0, fixes=20),
        made_at(725.0, epsilon=0.5, fixes=20),
    ]
    for number, plan in enumerate(plans):
        whole = countable(plan, b"")
        rows = []
        for ledger, release, nearby in (
            (ledgers[0], whole, True),
            (ledgers[1], whole.sent, limit is not None),
        ):
            about = (release, bytes([number]) * 32)
            with ledger.open() as book:
                counted = count(book, *about, subject="me", again=True, limit=limit, nearby=nearby)
                assert counted.number == number + 1
                sums = book.totals("me", bytes(16))
                totals = {name: total.tolist() for name, (_, total) in sums.items()}
                times = unpacked(book.blob(counted.number)).times.tolist()
            account = counted.account
            assert account is not None
            total = None if limit is None else account.total
            amounts = (account.epsilon, account.one_place, account.overlapping, totals, total)
            rows.append((*amounts, times))
        assert rows[0] == rows[1]
    with ledgers[1].open() as book:
        assert (book.body(3)["total"] is None) == (limit is None)


def arrays() -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(3)
    ends = np.iinfo(np.int64)
    return {
        "times": 1_715_672_400_000_000_000 + 5 * np.arange(1000) * 10**9,
        "ends": np.array([ends.min, ends.max, 0, ends.min, -1, ends.max]),
        "small": np.array([255, 0, 7], dtype=np.uint8),
        "yes": random.random((4, 3)) < 0.5,
        "odd": np.array([-0.0, np.nan, np.inf, 5e-324, 1e308]),
        "factor": random.normal(size=(30, 7))[::2],
        "big": np.array([[1, 2], [3, 4]], dtype=">i4"),
        "none": np.empty((0, 2), dtype=np.int64),
        "one": np.array(3.5),
    }


def test_what_is_read_is_what_was_stored() -> None:
    stored = arrays()
    read, tail = from_bytes(to_bytes(stored) + b"more")
    assert tail == b"more"
    assert list(read) == list(stored)
    for name, array in stored.items():
        assert read[name].shape == array.shape
        assert read[name].dtype == array.dtype.newbyteorder("<")
        assert read[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


def test_even_times_take_next_to_nothing() -> None:
    assert len(to_bytes({"times": arrays()["times"]})) < 200


@pytest.mark.parametrize("damage", ["cut", "other", "empty", "squeezed"])
def test_other_bytes_are_refused(damage: str) -> None:
    data = to_bytes(arrays())
    other = {
        "cut": data[:-1],
        "other": b"PK" + data[2:],
        "empty": b"",
        "squeezed": data[:12] + b"\0" * 20 + data[32:],
    }
    with pytest.raises(InvalidValue, match="as they were stored"):
        from_bytes(other[damage])


def test_text_is_no_array_of_numbers() -> None:
    with pytest.raises(InvalidValue, match="must be of numbers"):
        to_bytes({"name": np.array(["a"])})
