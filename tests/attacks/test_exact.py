"""What is exact in a recording undoes noise of low rank, and not beside independent noise.

Each recording is protected at one time, as `protect` does it. The noise without its independent
part is what was released once: there each kind of structure gives the place away. With that part,
nothing exact is found.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from tests.rides import ride
from tests.structured import by_distance, filled_in, held, rounded
from trailveil.adversaries import Named
from trailveil.attacks.contract import Knowledge, OnGrid, View
from trailveil.attacks.exact import lattice
from trailveil.attacks.suite import attacked
from trailveil.attacks.trial import Verdict
from trailveil.attacks.worlds import noises
from trailveil.errors import InvalidValue
from trailveil.gaussian import FloatArray
from trailveil.mechanism import Mechanism
from trailveil.projection import MICRO
from trailveil.release import Plan, Request, plan
from trailveil.secrets import basic
from trailveil.selection import Stretch
from trailveil.trace import Trace

DRAWS = 5
RECORDINGS: dict[str, Callable[[], Trace]] = {
    "5 decimals": lambda: rounded(ride(1200, 3.0, seed=3), 5),
    "4 decimals": lambda: rounded(ride(1200, 3.0, seed=3), 4),
    "repeated": lambda: held(ride(1200, 3.0, seed=3), 5),
    "filled in": lambda: filled_in(ride(1200, 3.0, seed=3), 20),
    "by distance": lambda: by_distance(seed=3, apart=15.0),
}
# Metres that most draws come to at most, where 441 are left by promise.
FOUND = {
    "5 decimals": 0.1,
    "4 decimals": 0.1,
    "repeated": 5.0,
    "filled in": 60.0,
    "by distance": 10.0,
}


@lru_cache
def planned(name: str) -> Plan:
    trace = RECORDINGS[name]()
    at = int(trace.times[len(trace) // 2])
    return plan(trace, Request((Stretch("stated", at, at),), who=(Named.PLAIN,)))


def errors(made: Plan, mechanism: Mechanism) -> FloatArray | None:
    """Metres (draws,) that the attack is off the recorded place; None where it finds nothing."""
    true, times = made.lattice / MICRO, made.trace.seconds
    middle = times.size // 2
    released = true + noises(mechanism, (DRAWS,), np.random.default_rng(5))
    known = Knowledge(
        (basic(times[middle]),),
        made.request.kernel,
        mechanism,
        grid=OnGrid(made.frame, made.grid.step),
    )
    (found,) = lattice(View(times, released), known)
    return None if found is None else found.errors(true[middle])


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_is_exact_undoes_noise_of_low_rank(name: str) -> None:
    made = planned(name)
    found = errors(made, replace(made.mechanism, independent=None))
    assert found is not None
    assert made.findings[0].deviation > 300
    assert np.median(found) <= FOUND[name]


@pytest.mark.parametrize("name", RECORDINGS)
def test_independent_noise_hides_it(name: str) -> None:
    made = planned(name)
    assert errors(made, made.mechanism) is None


def test_nothing_exact_is_found_in_an_ordinary_ride() -> None:
    trace = ride(600, 6.0, seed=2)
    at = int(trace.times[300])
    made = plan(trace, Request((Stretch("stated", at, at),), who=(Named.PLAIN,)))
    assert made.grid.step == 0
    assert errors(made, replace(made.mechanism, independent=None)) is None


def test_the_audit_says_that_the_promise_is_beaten_without_independent_noise() -> None:
    made = planned("4 decimals")
    (found,) = attacked(made, ["lattice"])
    assert found.verdict is Verdict.NOTHING
    bare = replace(made, mechanism=replace(made.mechanism, independent=None))
    (found,) = attacked(bare, ["lattice"])
    assert found.verdict is Verdict.BEATEN
    assert found.recorded is not None
    assert found.recorded.radius < 1.0


def test_the_attack_must_know_how_the_noise_varies() -> None:
    made = planned("4 decimals")
    view = View(made.trace.seconds, made.lattice[None] / MICRO)
    with pytest.raises(InvalidValue, match="must know how the noise varies"):
        lattice(view, Knowledge((basic(0.0),), made.request.kernel))
