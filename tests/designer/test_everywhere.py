"""Noise for every place at once: it meets what is asked for, hardly above what must be."""

import numpy as np
import pytest

from tests.conftest import Sweep
from trailveil.designer.designer import design
from trailveil.designer.everywhere import alone, every_value, noise_everywhere
from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, Matern12, Matern32, White
from trailveil.privacy.anytime import Assumed, PriorMovement, stationary_variances, worst
from trailveil.privacy.prior import Prior

PERSON = PriorMovement(3.0, 60.0, 4.0, 1e10)
EVERYBODY = Assumed((1.0, 3.0, 10.0), 3600.0)
KERNEL = IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)


def taken_apart(kernel: Kernel) -> tuple[list[Matern12 | Matern32], FloatArray]:
    """The processes of deviation one, and their variances."""
    terms = [term for term in kernel.terms() if isinstance(term, Matern12 | Matern32)]
    assert len(terms) == len(kernel.terms())
    return [type(term)(term.length_scale) for term in terms], np.array([t.std**2 for t in terms])


def test_every_loss_is_within_the_bound_and_one_is_near_it(sweep: Sweep) -> None:
    for bound in sweep([1e-3, 1e-5, 1e-6], short=2):
        everywhere = noise_everywhere(PERSON, EVERYBODY, bound)
        assert 0.9 * bound < everywhere.loss <= bound
        again = worst(PERSON, EVERYBODY, *taken_apart(everywhere.kernel))
        assert [case.exposure for case in again] == [case.exposure for case in everywhere.worst]


def test_what_it_costs() -> None:
    """Figures of docs/commands/protect.md, in metres per coordinate."""
    costs = {}
    for longest in (0.0, 3600.0, 28_800.0):
        everywhere = noise_everywhere(PERSON, Assumed((1.0, 3.0, 10.0), longest), 1e-5)
        costs[longest] = float(np.sqrt(everywhere.kernel.diagonal([0.0])[0]))
    assert costs[0.0] == pytest.approx(1430, rel=0.05)
    assert costs[0.0] < costs[3600.0] < costs[28_800.0] < 1.1 * costs[0.0]
    one_speed = noise_everywhere(PERSON, Assumed((3.0,)), 1e-5)
    # A single smooth process of the right time constant needs 920 m for this: DESIGN, section 2.
    assert np.sqrt(one_speed.kernel.diagonal([0.0])[0]) < 920.0


def test_no_other_noise_of_the_family_is_much_smaller() -> None:
    """1 / L is concave in the variances: a plane that touches it proves a least sum."""
    bound = 1e-5
    everywhere = noise_everywhere(PERSON, EVERYBODY, bound)
    units, variances = taken_apart(everywhere.kernel)
    rng = np.random.default_rng(3)
    for _ in range(20):
        other = variances * np.exp(rng.normal(0, 0.7, variances.size))
        other *= 0.97 * variances.sum() / other.sum()
        kinds = stationary_variances(PERSON, EVERYBODY, units, other[None], fine=False)
        assert max(float(kind.losses(1e10).max()) for kind in kinds) > bound


def test_the_same_noise_is_found_again() -> None:
    assert noise_everywhere(PERSON, EVERYBODY, 1e-5) == noise_everywhere(PERSON, EVERYBODY, 1e-5)


@pytest.mark.parametrize("bound", [1e-5, 1e-3])
def test_design_meets_a_bound_for_every_value_of_a_prior_of_movement(bound: float) -> None:
    prior = Prior(KERNEL, np.cumsum(np.random.default_rng(5).uniform(0.5, 20.0, 60)))
    mechanism, certificate = design(prior, None, bounds=[bound])
    assert max(outcome.loss.largest for outcome in certificate.outcomes) <= bound
    # No noise is below 1 / bound at any value.
    assert certificate.lower_bound == pytest.approx(60 / bound)
    assert certificate.gap is not None
    assert 0 <= certificate.gap < 0.02
    assert mechanism.noise_trace == pytest.approx(60 / bound, rel=0.02)


def test_design_spends_a_budget_on_a_prior_of_movement() -> None:
    prior = Prior(KERNEL, np.arange(50.0) * 5)
    mechanism, certificate = design(prior, None, budget=50 * 300.0**2)
    assert mechanism.noise_trace == pytest.approx(50 * 300.0**2, rel=1e-12)
    assert certificate.gap is not None
    assert 0 <= certificate.gap < 0.02


def test_a_prior_of_constant_variance_is_met_exactly() -> None:
    prior = Prior(Matern32(10.0, 2.0) + White(0.1), np.arange(9.0))
    mechanism = every_value(prior, 0.5, budget=True)
    np.testing.assert_allclose(mechanism.covariance(), prior.covariance * 0.5 / 4.01)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(Refused, match="integrated-ou with a level, got another: state secrets"):
        every_value(Prior(IntegratedOU(1.0, 5.0), np.arange(1.0, 4.0)), 1.0, budget=False)
    prior = Prior(IntegratedOU(1.0, 5.0) + RBF(2.0) + Constant(9.0), np.arange(3.0))
    with pytest.raises(Refused, match="integrated-ou with a level, got another: state secrets"):
        every_value(prior, 1.0, budget=False)
    with pytest.raises(InvalidValue, match="positive"):
        noise_everywhere(PERSON, alone(PERSON), -1.0)
    with pytest.raises(InvalidValue, match="speeds"):
        noise_everywhere(PERSON, Assumed(()), 1.0)
