"""On recordings that come about as the prior has it, attacks leave what was promised: no less.

For every adversary of the default set the best attack leaves just that. The mean square error of
`COUNT` independent estimates in two coordinates is a chi-square of 2 COUNT degrees: its root is
within 5 / (2 sqrt(COUNT)) of the truth, relatively, but for one case in 1.7 million.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.checks.attacks.designs import bumps, designed, deviations
from tests.rides import ride
from trailveil.checks.attacks import suite, worlds
from trailveil.checks.attacks.registry import ATTACKS
from trailveil.checks.attacks.suite import AttackOutcome, Effort, Verdict, attacked
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, IntegratedOU, Matern12, Matern32, Scaled, Sum, White, latent
from trailveil.privacy.adversaries import DEFAULT, Named
from trailveil.privacy.anytime import Assumed, movement_of, worst
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import STRANGER, Method, Request
from trailveil.traces.selection import Stretch

pytestmark = pytest.mark.slow

COUNT = 2500
WITHIN = 5 / (2 * COUNT**0.5)


@pytest.fixture(scope="module")
def plan() -> Plan:
    """An hour with a stay of ten minutes, judged for the whole default set."""
    trace = ride(121, 30.0, still=(50, 70))
    return designed(trace, 50, 70, bumps(trace.seconds, 1800.0))


def tried(plan: Plan, *names: str, count: int = COUNT, draws: int = 1) -> list[AttackOutcome]:
    effort = Effort(count, draws)
    return list(attacked(plan, names, effort=effort, generator=np.random.default_rng(7)))


def test_the_best_attack_leaves_what_was_promised_to_each_adversary(plan: Plan) -> None:
    outcomes, true = tried(plan, "posterior"), deviations(plan)
    # A stranger, on somebody who moved and who stood still; a place that is known; the path.
    assert [name for name, _ in true[:2]] == [STRANGER, STRANGER]
    assert len(outcomes) == len(true) == 4
    promised = {exposure.adversary: exposure.posterior for exposure in plan.findings[0].exposures}
    for outcome, (name, deviation) in zip(outcomes, true, strict=True):
        assert outcome.promised == CIRCLE_68 * promised[name]
        assert outcome.promised <= CIRCLE_68 * deviation
        assert outcome.simulated is not None
        assert outcome.simulated.low <= CIRCLE_68 * deviation <= outcome.simulated.high
        assert outcome.verdict is not Verdict.BEATEN


@pytest.mark.parametrize("index", range(4))
def test_the_root_mean_square_agrees(
    plan: Plan, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, to the interval that is derived at the head."""
    errors: list[FloatArray] = []
    deviation = deviations(plan)[index][1]
    simulated = suite._simulated

    def noting(*args: Any) -> FloatArray | None:
        error = simulated(*args)
        if error is not None:
            errors.append(error)
        return error

    row = ATTACKS["posterior"]
    first = replace(row, trials=lambda scene: row.tried(scene)[index : index + 1])
    monkeypatch.setitem(ATTACKS, "posterior", first)
    monkeypatch.setattr(suite, "_simulated", noting)
    tried(plan, "posterior")
    rms = float(np.sqrt(np.mean(np.square(errors[0])) / 2))
    assert abs(rms / deviation - 1) < WITHIN


def test_no_other_attack_leaves_less_than_was_promised(plan: Plan) -> None:
    names = ("misspecified", "kalman", "average", "circle", "edges")
    for outcome in tried(plan, *names, count=400):
        assert outcome.verdict in {Verdict.HOLDS, Verdict.CLOSER, Verdict.NOTHING}, outcome.attack
        if outcome.simulated is not None:
            assert outcome.promised is not None
            assert outcome.simulated.high > outcome.promised


def test_what_is_not_promised_is_told_and_does_not_fail(plan: Plan) -> None:
    by_attack = {
        outcome.attack: outcome for outcome in tried(plan, "true-places", "repeated", "holes")
    }
    assert {outcome.promised for outcome in by_attack.values()} == {None}
    assert by_attack["true-places"].verdict is Verdict.NOT_PROMISED
    assert by_attack["repeated"].verdict is Verdict.NOT_PROMISED
    assert by_attack["holes"].verdict is Verdict.NOTHING
    assert by_attack["true-places"].recorded is not None
    assert by_attack["repeated"].recorded is not None


@pytest.mark.parametrize(
    "broken",
    [
        lambda m: m.scaled(0.6),
        lambda m: replace(m, factor=m.factor[:, 1:]),  # one component is forgotten
        lambda m: Mechanism(m.times, np.zeros((m.times.size, 0)), 1.0, released=m.released),
    ],
    ids=["scaled", "a component less", "next to nothing"],
)
def test_a_broken_release_is_beaten(plan: Plan, broken: object) -> None:
    """The promise stays, and the noise is less than it was made for."""
    less = replace(plan, mechanism=broken(plan.mechanism))  # type: ignore[operator]  # a function
    outcomes = tried(less, "posterior", count=1000)
    assert Verdict.BEATEN in {outcome.verdict for outcome in outcomes}


def test_holes_of_parts_that_are_near_are_taken_together() -> None:
    """Two parts that are withheld have four edges: a circle, wherever it leads."""
    trace = ride(121, 30.0)
    parts = tuple(Stretch("x", int(trace.times[i]), int(trace.times[i])) for i in (40, 80))
    request = Request(parts, 1.0, withhold=120.0)
    plan = protect(trace, request)
    plan = replace(plan, request=replace(request, radius=200.0))  # parts that are near each other
    outcomes = list(attacked(plan, ["holes"], effort=Effort(100, 2)))
    assert [outcome.verdict for outcome in outcomes] == [Verdict.NOT_PROMISED] * 2
    assert all(outcome.recorded is not None for outcome in outcomes)


def test_who_stands_still_all_along_is_easier_than_the_prior_has_it() -> None:
    """A promise of how people move says little of who does not move: that is told, loudly."""
    trace = ride(121, 30.0, still=(0, 120))
    hidden = Mechanism(trace.seconds, np.empty((121, 0)))
    hidden = hidden.withholding(np.abs(trace.seconds - 1800.0) < 1500)
    plan = designed(trace, 60, 60, hidden, (Named.PLAIN,))
    effort = Effort(999, 10)
    attack_outcomes = attacked(
        plan, ["posterior"], effort=effort, generator=np.random.default_rng(3)
    )
    assert {outcome.verdict for outcome in attack_outcomes} == {Verdict.CLOSER}


@pytest.fixture(scope="module")
def everywhere(plan: Plan) -> Plan:
    """Noise for every place, stated: what it leaves is recomputed for any recording."""
    terms = (Matern32(120.0, 900.0), Matern32(1000.0, 300.0), Matern12(20.0, 5.0))
    noise = [type(term)(term.length_scale) for term in terms]
    variances = np.array([term.std**2 for term in terms])
    assumed = Assumed((1.0, 3.0), 3600.0, every=(10.0,))
    exposures = worst(movement_of(plan.request.kernel), assumed, noise, variances)
    times = plan.mechanism.times
    mechanism = Mechanism(times, np.empty((times.size, 0)), process=Sum(terms))
    request = replace(plan.request, method=Method.EVERYWHERE, stretches=())
    return replace(
        plan, request=request, mechanism=mechanism, findings=(), everywhere=tuple(exposures)
    )


def test_noise_for_every_place_leaves_what_it_promises_at_three(everywhere: Plan) -> None:
    outcomes = tried(everywhere, "posterior", "kalman", count=300)
    assert [each.part for each in outcomes] == [part for part in range(3) for _ in range(4)]
    assert {each.verdict for each in outcomes} <= {Verdict.HOLDS, Verdict.CLOSER}
    for outcome in outcomes:
        assert outcome.simulated is not None
        assert outcome.promised is not None
        assert outcome.simulated.high > outcome.promised
    point = next(each for each in outcomes if "one true place" in each.adversary)
    assert point.simulated is not None
    assert point.promised is not None
    assert point.simulated.low < 1.3 * point.promised  # it is the one that binds, and is near


def test_too_little_noise_for_every_place_is_beaten(everywhere: Plan) -> None:
    process = everywhere.mechanism.process
    assert isinstance(process, Sum)
    less = replace(everywhere.mechanism, process=Scaled(process, 0.01))
    broken = replace(everywhere, mechanism=less)
    outcomes = tried(broken, "posterior", count=200)
    assert Verdict.BEATEN in {outcome.verdict for outcome in outcomes}


def test_worlds_vary_as_their_prior() -> None:
    """Covariances of 4,000 draws: each entry within 6 of its standard errors."""
    count, times = 4000, np.array([0.0, 3.0, 10.0, 40.0])
    for kernel in (
        IntegratedOU(3.0, 60.0) + White(2.0),
        Matern32(20.0, 5.0) + White(1.0),
        RBF(10.0, 2.0) + White(0.5),
    ):
        prior = Prior(kernel, times)
        world = worlds.recordings(prior, Secret.at(6.0), count, np.random.default_rng(1))
        both = np.concatenate([world.recorded, world.secret[:, None]], axis=1)
        points = np.append(times, 6.0)
        expected = kernel(points, points)
        place = latent(kernel)
        assert place is not None
        expected[4, 4] = place.diagonal(points[4:])[0]
        variances = np.diagonal(expected)
        for axis in (0, 1):
            covariance = both[..., axis].T @ both[..., axis] / count
            error = np.sqrt((np.outer(variances, variances) + expected**2) / count)
            assert np.all(np.abs(covariance - expected) <= 6 * error)
        assert np.all(np.abs(np.mean(both[..., 0] * both[..., 1], 0)) <= 6 * variances / count**0.5)


def test_noise_varies_as_its_mechanism() -> None:
    times = np.array([0.0, 1.0, 2.5])
    factor = np.array([[1.0, 0.0], [2.0, 1.0], [0.5, -1.0]])
    released = np.array([True, False, True])
    mechanism = Mechanism(times, factor, 0.3, Matern12(2.0, 1.5), released)
    drawn = worlds.noises(mechanism, (5000,), np.random.default_rng(2))
    expected = mechanism.covariance()
    variances = np.diagonal(expected)
    error = np.sqrt((np.outer(variances, variances) + expected**2) / 5000)
    for axis in (0, 1):
        assert np.all(np.abs(drawn[..., axis].T @ drawn[..., axis] / 5000 - expected) <= 6 * error)


def test_attacks_that_are_none_are_refused(plan: Plan) -> None:
    with pytest.raises(InvalidValue, match=r"an attack must be posterior, .*, got 'guess'"):
        list(attacked(plan, ["guess"]))
    with pytest.raises(InvalidValue, match="earlier tracks, got none"):
        list(attacked(plan, ["known-paths"]))
    assert plan.request.who == DEFAULT
