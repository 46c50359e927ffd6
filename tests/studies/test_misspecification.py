"""Theorem 3.3 against densities: its divergences, its infimum and supremum, its inequality."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.densities import (
    Covariance,
    Law,
    divergence,
    held,
    joint,
    kernel_exponential,
    kernel_rbf,
    mp,
    shifted,
)
from tests.releases import TIMES, whole
from trailveil.designer.closed_form import least_noise
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, Matern12, StoppedClock, White
from trailveil.privacy.composition import Release
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.privacy.loss import loss_matrix
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.studies.misspecification import (
    Form,
    Misspecified,
    divergences,
    guarantee_under,
    misspecified,
)

SEEDS = st.integers(0, 2**32 - 1)
FORMS: tuple[Form, ...] = ("values", "release")
PAIRS: list[tuple[Kernel, Covariance, Kernel, Covariance]] = [
    (Matern12(3.0, 2.0), kernel_exponential(3.0, 2.0), Matern12(4.0), kernel_exponential(4.0)),
    (RBF(2.0, 1.5), kernel_rbf(2.0, 1.5), RBF(2.2, 1.4), kernel_rbf(2.2, 1.4)),
    (RBF(2.0, 1.5), kernel_rbf(2.0, 1.5), Matern12(3.0, 2.0), kernel_exponential(3.0, 2.0)),
]
# Each with the rows that are not functions of it and of the others.
SECRETS: list[tuple[Secret, list[int]]] = [
    (Secret.at(1.0, recorded=True), [0, 2, 3]),
    (Secret.at(1.7), [0, 1, 2, 3]),
    (Secret.at([0.0, 2.5], recorded=True), [1, 3]),
    (Secret.difference(1.0, 4.0), [0, 1, 2, 3]),
]


def mechanism(seed: int) -> Mechanism:
    rng = np.random.default_rng(seed)
    return Mechanism(TIMES, rng.normal(size=(TIMES.size, 2)), float(rng.uniform(0.2, 1.0)))


def both(kernel: Kernel, other: Kernel, times: FloatArray = TIMES) -> tuple[Prior, Prior]:
    """What is believed, and the truth."""
    return Prior(kernel, times), Prior(other, times)


def released(noise: Mechanism, rows: list[int], form: Form) -> Release:
    """What is compared: the other fixes as they are, or all that is released."""
    chosen = np.isin(np.arange(TIMES.size), rows)
    return Release(no_noise(TIMES).withholding(~chosen) if form == "values" else noise)


def law_of(true: Covariance, compared: Release, secret: Secret) -> Law:
    return joint(whole(true, 0.3, [compared], secret))


def given_secret(law: Law, value: Any) -> Law:
    values = np.atleast_1d(value).tolist()
    size = law.precision.rows
    return held(law, list(range(size - len(values), size)), values)


def corners(count: int, radius: float) -> list[FloatArray]:
    signs = np.stack(np.meshgrid(*[[-1.0, 1.0]] * count), axis=-1).reshape(-1, count)
    return [radius * sign for sign in signs]


@pytest.mark.parametrize("form", FORMS)
@given(SEEDS, st.integers(0, 2), st.integers(0, 3), st.floats(1.05, 12.0), st.floats(0.0, 4.0))
@settings(max_examples=25)
def test_divergences_are_the_largest_over_confined_secrets(
    form: Form, seed: int, which: int, kind: int, order: float, confinement: float
) -> None:
    """Means zero, so the secret is confined around zero: the largest is at a corner."""
    kernel, true, other, other_true = PAIRS[which]
    secret, rows = SECRETS[kind]
    noise = mechanism(seed)
    distance = divergences(
        *both(kernel + White(0.3), other + White(0.3)),
        secret,
        noise,
        order,
        confinement=confinement,
        form=form,
    )
    compared = released(noise, rows, form)
    p, r = law_of(true, compared, secret), law_of(other_true, compared, secret)
    largest = [0.0, 0.0]
    for corner in corners(secret.size, confinement):
        law, two = given_secret(p, corner), given_secret(r, corner)
        largest[0] = max(largest[0], float(divergence(law, two, order)))
        largest[1] = max(largest[1], float(divergence(two, law, order)))
    assert distance.believed_first == pytest.approx(largest[0], rel=1e-6, abs=1e-9)
    assert distance.truth_first == pytest.approx(largest[1], rel=1e-6, abs=1e-9)
    assert distance.larger == max(distance.believed_first, distance.truth_first)


@given(SEEDS, st.integers(0, 2), st.integers(0, 3), st.floats(1.05, 6.0))
@settings(max_examples=25)
def test_no_mean_of_the_class_does_better(seed: int, which: int, kind: int, order: float) -> None:
    """The infimum: whatever the mean, some confined secret is as far apart as when centred."""
    kernel, true, other, other_true = PAIRS[which]
    secret, rows = SECRETS[kind]
    distance = divergences(
        *both(kernel + White(0.3), other + White(0.3)),
        secret,
        mechanism(1),
        order,
        confinement=1.5,
    )
    compared = released(mechanism(1), rows, "values")
    p, r = law_of(true, compared, secret), law_of(other_true, compared, secret)
    by = mp.matrix((0.3 * np.random.default_rng(seed).normal(size=len(rows))).tolist())
    largest = [0.0, 0.0]
    for corner in corners(secret.size, 1.5):
        law, two = shifted(given_secret(p, corner), by), given_secret(r, corner)
        largest[0] = max(largest[0], float(divergence(law, two, order)))
        largest[1] = max(largest[1], float(divergence(two, law, order)))
    assert distance.believed_first <= largest[0] * (1 + 1e-6) + 1e-9
    assert distance.truth_first <= largest[1] * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("form", FORMS)
@given(SEEDS, st.integers(0, 2), st.integers(0, 3), st.floats(1.2, 6.0))
@settings(max_examples=25)
def test_the_theorem_holds(form: Form, seed: int, which: int, kind: int, order: float) -> None:
    """The divergence of releases under the truth, by densities, is at most eps', and as told."""
    kernel, true, other, other_true = PAIRS[which]
    secret, _ = SECRETS[kind]
    noise, rng = mechanism(seed), np.random.default_rng(seed)
    radius, confinement = 0.8, 2.0
    bound = misspecified(
        *both(kernel + White(0.3), other + White(0.3)),
        secret,
        noise,
        radius,
        order,
        confinement=confinement,
        form=form,
    )
    a = rng.uniform(radius - confinement, confinement - radius, secret.size)
    b = a + radius * rng.choice([-1.0, 1.0], secret.size)
    law = law_of(other_true, Release(noise), secret)
    exact = float(divergence(given_secret(law, a), given_secret(law, b), order))
    assert exact <= bound.true.epsilon * (1 + 1e-6)
    assert bound.true.epsilon <= bound.epsilon_one_way * (1 + 1e-9)
    assert bound.epsilon_one_way <= bound.epsilon
    if secret.size == 1:
        assert exact == pytest.approx(bound.true.epsilon, rel=1e-6)
    # The chain of the proof, for this pair and the centred member of the class.
    p = law_of(true, Release(noise), secret)
    given_a, two = given_secret(p, a), given_secret(p, b)
    steps = (
        (order - 0.5) / (order - 1) * divergence(given_secret(law, a), given_a, 2 * order)
        + (2 * order - 1.5) / (2 * order - 2) * divergence(given_a, two, 4 * order - 2)
        + divergence(two, given_secret(law, b), 4 * order - 3)
    )
    assert exact <= float(steps) * (1 + 1e-9)
    assert float(steps) <= bound.epsilon_one_way * (1 + 1e-6)


@given(
    st.permutations([kernel_exponential(3.0, std) for std in (2.0, 2.1, 2.2)]),
    st.integers(0, 3),
    st.floats(1.1, 2.5),
    st.floats(1.2, 3.0),
)
@settings(max_examples=25)
def test_the_triangle_inequality_of_divergences(
    kernels: list[Covariance], kind: int, order: float, p: float
) -> None:
    """D_l(a || c) by way of a law b, for any split 1/p + 1/q = 1 (theorem 3.3 takes p = q = 2)."""
    secret, rows = SECRETS[kind]
    compared = released(mechanism(1), rows, "values")

    def both_sides(truths: list[Covariance], places: tuple[float, ...]) -> tuple[float, float]:
        a, b, c = (
            given_secret(law_of(true, compared, secret), np.full(secret.size, place))
            for true, place in zip(truths, places, strict=True)
        )
        q, through = p / (p - 1), order - 1 / p
        steps = through / (order - 1) * divergence(a, b, p * order) + divergence(b, c, q * through)
        return float(divergence(a, c, order)), float(steps)

    whole_way, steps = both_sides(kernels, (0.0, 0.4, -0.3))
    assert 0 < whole_way <= steps * (1 + 1e-9)
    # One covariance, and means so far along one line: then it is an equality.
    further = (p - 1) * order / (order - 1)
    whole_way, steps = both_sides(kernels[:1] * 3, (0.0, 0.4, 0.4 * (1 + further)))
    assert whole_way == pytest.approx(steps, rel=1e-9)


def test_the_bound_is_the_papers_formula() -> None:
    kernel, _, other, _ = PAIRS[0]
    priors = both(kernel + White(0.3), other + White(0.3))
    secret, noise = Secret.at(1.0, recorded=True), mechanism(3)
    bound = misspecified(*priors, secret, noise, 0.5, 3.0, confinement=2.0)
    parts = [divergences(*priors, secret, noise, order, confinement=2.0) for order in (6.0, 9.0)]
    promised = 10.0 / 2 * 0.25 * loss_matrix(priors[0], secret, noise).largest
    expected = 2.5 / 2.0 * parts[0].larger + parts[1].larger + 4.5 / 4.0 * promised
    assert bound.epsilon == pytest.approx(expected)
    one_way = 2.5 / 2.0 * parts[0].truth_first + parts[1].believed_first + 4.5 / 4.0 * promised
    assert bound.epsilon_one_way == pytest.approx(one_way)


def test_the_exact_figure_is_the_loss_under_the_truth_for_any_noise() -> None:
    """Noise of one direction, made for one prior, judged by another: by densities."""
    kernel, _, other, other_true = PAIRS[0]
    secret, prior = Secret.at(1.7), Prior(kernel + White(0.3), TIMES)
    noise = least_noise(prior, secret, loss_bound_for(1.0, 2.0))
    assert noise.factor.shape[1] == 1
    truth = Prior(other + White(0.3), TIMES)
    guarantee = guarantee_under(truth, secret, noise, 2.0)
    law = law_of(other_true, Release(noise), secret)
    exact = float(divergence(given_secret(law, [1.3]), given_secret(law, [-0.7]), 5.0))
    assert guarantee.epsilon == pytest.approx(exact, rel=1e-6)
    assert guarantee_under(prior, secret, noise, 2.0).epsilon == pytest.approx(1.0, rel=1e-6)
    assert guarantee.epsilon > 1.2


@pytest.mark.parametrize(
    "secret", [secret for secret, _ in SECRETS], ids=lambda secret: secret.kind
)
def test_without_misspecification_nothing_is_apart(secret: Secret) -> None:
    """What is left is what the triangle inequality costs."""
    prior = Prior(Matern12(3.0, 2.0) + White(0.3), TIMES)
    for confinement in (2.0, float("inf")):
        bound = misspecified(prior, prior, secret, mechanism(1), 0.5, 3.0, confinement=confinement)
        assert bound.first.larger == pytest.approx(0.0, abs=1e-9)
        assert bound.epsilon == pytest.approx(4.5 / 4.0 * bound.believed.epsilon_at(10.0))
        assert bound.true == bound.believed


@given(SEEDS, st.integers(0, 2), st.integers(0, 3))
@settings(max_examples=15)
def test_the_release_is_never_further_apart_than_the_values(
    seed: int, which: int, kind: int
) -> None:
    kernel, _, other, _ = PAIRS[which]
    priors = both(kernel + White(0.3), other + White(0.3))
    values, release = (
        divergences(*priors, SECRETS[kind][0], mechanism(seed), 3.0, confinement=1.0, form=form)
        for form in FORMS
    )
    assert release.believed_first <= values.believed_first + 1e-9
    assert release.truth_first <= values.truth_first + 1e-9


def test_dimensions_add_their_shapes_and_share_one_displacement() -> None:
    kernel, _, other, _ = PAIRS[0]
    priors = both(kernel + White(0.3), other + White(0.3))
    secret, _ = SECRETS[0]
    zero, single, three = (
        divergences(
            *priors, secret, mechanism(1), 3.0, confinement=confinement, dimensions=dimensions
        ).truth_first
        for confinement, dimensions in ((0.0, 1), (2.0, 1), (2.0, 3))
    )
    assert three == pytest.approx(3 * zero + (single - zero))


# --- where it is finite --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousandth_off_in_length_scale_is_infinitely_off() -> None:
    """RBF, n = 50: the smallest directions of the two priors differ by orders; by 200 digits."""
    times, secret = np.arange(50.0), Secret.at(24.0, recorded=True)
    noise = Mechanism(times, np.zeros((50, 0)), 0.02)
    priors = both(RBF(6.0), RBF(6.0 * 1.001), times)
    bound = misspecified(*priors, secret, noise, 1.0, confinement=1.0)
    assert bound.first.believed_first == bound.second.believed_first == float("inf")
    assert np.isfinite(bound.first.truth_first)
    assert bound.epsilon == bound.epsilon_one_way == float("inf")
    assert bound.true.epsilon == pytest.approx(bound.believed.epsilon, rel=1e-3)
    released_form = misspecified(*priors, secret, noise, 1.0, confinement=1.0, form="release")
    promised = 8.5 / 8 * bound.believed.epsilon_at(18.0)
    assert released_form.epsilon == pytest.approx(promised, rel=1e-4)
    digits, mp.dps = mp.dps, 200
    try:
        rows = np.arange(50) != 24
        laws = []
        for length in (6.0, 6.0 * 1.001):
            points = [*times[rows], times[24]]
            covariance = mp.matrix(50)
            for i, s in enumerate(points):
                for j, u in enumerate(points):
                    covariance[i, j] = kernel_rbf(length)(mp.mpf(s), mp.mpf(u))
            laws.append(held(joint(covariance), [49], [mp.mpf(1)]))
        forward, back = (divergence(laws[i], laws[1 - i], 10.0) for i in (0, 1))
    finally:
        mp.dps = digits
    assert forward == mp.inf
    assert bound.first.truth_first == pytest.approx(float(back), rel=1e-9)


def test_unconfined_secrets_need_equal_regressions() -> None:
    """A prior of another variance alone has them; then D is in closed form."""
    kernel, secret = Matern12(3.0, 2.0), Secret.at(1.0, recorded=True)
    prior = Prior(kernel, TIMES)
    for ratio, order in ((1.3, 3.0), (0.8, 3.0), (0.5, 3.0)):
        distance = divergences(prior, Prior(ratio * kernel, TIMES), secret, mechanism(1), order)
        spread = order * ratio + 1 - order
        expected = float("inf")
        if spread > 0:
            expected = 3 * (np.log(spread) - order * np.log(ratio)) / (2 * (1 - order))
        assert distance.believed_first == pytest.approx(expected, rel=1e-12)
    other = divergences(prior, Prior(Matern12(3.001, 2.0), TIMES), secret, mechanism(1), 3.0)
    assert other.larger == float("inf")


def test_a_prior_with_measurement_noise_is_infinitely_far_from_one_without() -> None:
    kernel, place = Matern12(3.0, 2.0), Secret.at(1.0)
    priors = both(kernel, kernel + White(0.1))
    assert divergences(*priors, place, mechanism(1), 3.0, confinement=1.0).larger == float("inf")
    distance = divergences(*priors, place, mechanism(1), 3.0, confinement=1.0, form="release")
    assert 0 < distance.larger < float("inf")


def test_a_stay_is_judged_on_the_stopped_clock_of_both() -> None:
    times, window = np.arange(0.0, 300.0, 10.0), (100.0, 200.0)
    slow, fast = (IntegratedOU(std, 60.0) + White(2.0) for std in (3.0, 3.3))
    priors, noise = both(slow, fast, times), Mechanism(times, np.zeros((30, 0)), 100.0)
    clock = StoppedClock((window,))
    stopped = both(slow.warp(clock), fast.warp(clock), times)
    distance, place, moving = (
        divergences(*judges, secret, noise, 3.0, confinement=100.0, form="release")
        for judges, secret in (
            (priors, Secret.stay(*window)),
            (stopped, Secret.at(window[0])),
            (priors, Secret.at(window[0])),
        )
    )
    assert distance == place
    assert 0 < distance.larger < moving.larger < float("inf")


def walker() -> Misspecified:
    """3.1 m/s for 3: the truth hardly notices; the theorem says nothing, its proof something."""
    times = np.arange(0.0, 500.0, 5.0)
    common = Constant(1e5) + White(2.0)
    priors = both(IntegratedOU(3.0, 60.0) + common, IntegratedOU(3.1, 60.0) + common, times)
    secret = Secret.at(250.0)
    noise = least_noise(priors[0], secret, loss_bound_for(1.0, 200.0))
    return misspecified(*priors, secret, noise, 200.0, confinement=1000.0, dimensions=2)


def smooth(length: float) -> Misspecified:
    """A thousandth off in the length scale of an RBF: what decides is how smooth the prior is."""
    times, secret = np.arange(50.0), Secret.at(24.0, recorded=True)
    noise = Mechanism(times, np.zeros((50, 0)), 0.02)
    priors = both(RBF(length), RBF(1.001 * length), times)
    return misspecified(*priors, secret, noise, 0.1, confinement=1.0)


@pytest.mark.slow
def test_the_table_of_the_document() -> None:
    page = (Path(__file__).parents[2] / "docs" / "paper.md").read_text(encoding="utf-8")
    table = page.split("| P, R |")[1].split("\n\n")[0].splitlines()[2:]
    for line, case in zip(table, (smooth(2.0), smooth(6.0), walker()), strict=True):
        figures = [float(cell) for cell in line.split("|")[2:6]]
        exact = [case.believed.epsilon, case.true.epsilon, case.epsilon_one_way, case.epsilon]
        assert figures == pytest.approx(exact, abs=6e-4)


def test_what_is_asked_of_the_impossible_is_refused() -> None:
    prior, noise, secret = Prior(RBF(1.0), TIMES), mechanism(1), Secret.at(1.0, recorded=True)
    with pytest.raises(InvalidValue, match="order must be"):
        divergences(prior, prior, secret, noise, 1.0)
    with pytest.raises(InvalidValue, match="confinement must be"):
        divergences(prior, prior, secret, noise, 2.0, confinement=-1.0)
    with pytest.raises(InvalidValue, match="same times"):
        divergences(prior, Prior(RBF(1.0), TIMES + 1), secret, noise, 2.0)
    with pytest.raises(InvalidValue, match="at least one dimension"):
        divergences(prior, prior, secret, noise, 2.0, dimensions=0)
    many = np.arange(400.0)
    priors = both(RBF(5.0), RBF(6.0), many)
    with pytest.raises(NumericalError, match="measurement noise"):
        divergences(*priors, secret, Mechanism(many, np.zeros((400, 0)), 1.0), 2.0, confinement=1.0)
