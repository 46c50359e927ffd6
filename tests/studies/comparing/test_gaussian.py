"""Our mechanisms and the paper's leave what they promise; the paper's against their programs."""

import numpy as np
import pytest

from tests.studies.comparing.cases import drawn, errors, random
from trailveil.designer import paper
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import CIRCLE_68, loss_bound_for
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior, observe
from trailveil.privacy.secrets import Secret
from trailveil.release.request import DEFAULT_KERNEL
from trailveil.studies.comparing import audited, gaussian
from trailveil.studies.comparing.cases import Case, Disclosure, Sighting

# A place and one 100 m away, at epsilon 1 and order 5: metres per coordinate that must be left.
LEFT = loss_bound_for(1.0, 100.0, 5.0) ** -0.5


def noise_of(released: Disclosure) -> Mechanism:
    assert released.noise is not None
    return released.noise


@pytest.mark.parametrize("name", ["cut", "noise", "both", "everywhere"])
def test_ours_leave_the_circle_that_they_promise(name: str) -> None:
    """60 recordings of the default prior, two secrets each. A circle is known to a quarter."""
    found = errors(drawn(60), getattr(gaussian, name), audited.still)
    circle = np.quantile(found, 0.68, axis=0)
    assert np.all(circle > 0.75 * CIRCLE_68 * LEFT)


def test_a_cut_releases_what_was_recorded_and_nothing_near() -> None:
    (case,) = drawn(1)
    released = Sighting.of(case, gaussian.cut(case, random("cut")))
    assert set(released.trace.times) < set(case.trace.times)
    assert np.isin(released.metres, case.metres).all()
    begin, end = case.spans[0]
    assert np.all((released.seconds < begin - 60) | (released.seconds > end + 60))


@pytest.mark.parametrize("factor", [1.0, gaussian.PUBLISHED])
def test_sdp_a_is_the_papers_program_as_large_as_it_takes(factor: float) -> None:
    (case,) = drawn(1, step=60.0)
    noise = noise_of(gaussian.sdp_a(case, random("sdp"), factor=factor))
    prior = Prior(DEFAULT_KERNEL, case.seconds)
    rows = [np.flatnonzero(mask) for mask in case.inside]
    middles = np.array([each[each.size // 2] for each in rows])
    program = paper.sdp_a(prior, middles, noise.noise_trace, factor=factor)
    assert noise.covariance() == pytest.approx(program.covariance(), rel=1e-6, abs=1e-3)
    assert least_left(case, noise, middles) == pytest.approx(LEFT, rel=2e-3)


def test_sdp_a_at_the_budget_itself_is_another_noise_than_as_published() -> None:
    (case,) = drawn(1, step=60.0)
    both = [noise_of(gaussian.sdp_a(case, random("sdp"), factor=x)) for x in (1.0, 1000.0)]
    ratios = [noise.variances / noise.noise_trace for noise in both]
    assert np.abs(ratios[0] - ratios[1]).max() > 1e-3


@pytest.mark.parametrize("name", ["multiple_secrets", "uniform"])
def test_each_fix_is_left_what_was_asked_for(name: str) -> None:
    (case,) = drawn(1, step=60.0)
    noise = noise_of(getattr(gaussian, name)(case, random(name)))
    indices = np.concatenate([np.flatnonzero(mask) for mask in case.inside])
    assert least_left(case, noise, indices) == pytest.approx(LEFT, rel=2e-3)


def least_left(case: Case, noise: Mechanism, indices: FloatArray) -> float:
    """Metres per coordinate that are left of the worst of some recorded values."""
    observation = observe(Prior(DEFAULT_KERNEL, case.seconds), noise)
    secrets = [Secret.at(float(t), recorded=True) for t in case.seconds[indices]]
    return float(min(observation.posterior(s).covariance[0, 0] for s in secrets) ** 0.5)


def test_concentrated_noise_has_the_budget_of_uniform_noise_on_the_secrets() -> None:
    (case,) = drawn(1, step=60.0)
    uniform = noise_of(gaussian.uniform(case, random("u")))
    there = noise_of(gaussian.concentrated(case, random("c")))
    inside = np.any(case.inside, axis=0)
    assert there.noise_trace == pytest.approx(uniform.noise_trace)
    assert np.all((there.variances > 0) == inside)


@pytest.mark.parametrize("name", ["sdp_a", "multiple_secrets", "uniform", "noise", "everywhere"])
def test_what_is_drawn_has_the_covariance_that_is_told(name: str) -> None:
    """1,000 draws of the noise of one fix: a variance is known to 4.5 %, five times that."""
    (case,) = drawn(1, step=60.0)
    mechanism = getattr(gaussian, name)
    row = int(np.flatnonzero(case.inside[0])[3])
    offsets = []
    for number in range(500):
        released = mechanism(case, random(f"{name} {number}"))
        offsets.append(Sighting.of(case, released).metres[row] - case.metres[row])
    variance = noise_of(mechanism(case, random(name))).variances[row]
    assert np.mean(np.square(offsets)) == pytest.approx(variance, rel=0.23)
