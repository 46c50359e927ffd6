"""The O(n) form and full matrices, end to end: one answer, whichever is taken."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest

from tests.exposed import least_share
from tests.markov_cases import relative
from trailveil.designer import design
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, Matern12, Matern32, Matern52, White
from trailveil.privacy.adversary import PLAIN, Adversary, exposures, value_losses
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.loss import losses, marginal_losses
from trailveil.privacy.markov import MarkovSystem
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.points import Beside
from trailveil.privacy.prior import Prior, SideInformation, observe
from trailveil.privacy.secrets import Secret

# One row more than extended precision would take: full matrices in double precision answer.
COUNT, EQUAL = 321, 1e-8
# Relative, of a loss to who knows one more value: the two error bounds, which are not one.
LARGEST_DOUBT = 1e-5
T = TypeVar("T")
SMOOTH: dict[str, Kernel] = {
    "matern12": Matern12(60.0, 300.0),
    "matern32": Matern32(60.0, 300.0),
    "matern52": Matern52(60.0, 300.0),
    "integrated": IntegratedOU(3.0, 60.0),
}
KERNELS: dict[str, Kernel] = {
    name + more: kernel if noise is None else kernel + noise
    for name, kernel in SMOOTH.items()
    for more, noise in (
        ("", None),
        (" + white", White(2.0)),
        (" + level + white", Constant(1e5) + White(2.0)),
    )
}
EACH = pytest.mark.parametrize("name", KERNELS)
WITH_NOISE = pytest.mark.parametrize("name", [name for name in KERNELS if "white" in name])
# Gaps from 0.1 s to half a minute, evenly in their logarithm: most of an hour.
_GAPS = 10.0 ** np.random.default_rng(7).uniform(-1.0, 1.5, COUNT - 1)
TIMES = np.concatenate([[0.0], np.cumsum(_GAPS)])
MIDDLE = float(TIMES[150])
SECRETS: dict[str, Secret] = {
    "place": Secret.at(MIDDLE + 0.05),
    "recorded": Secret.at(MIDDLE, recorded=True),
    "compound": Secret.at([float(TIMES[140]), MIDDLE, float(TIMES[250])]),
    "stay": Secret.stay(float(TIMES[145]), float(TIMES[155])),
    "mean": Secret.mean(TIMES[145:156], recorded=True),
    "difference": Secret.difference(float(TIMES[140]), float(TIMES[160])),
}
STILL = Adversary.sees_stillness([(float(TIMES[145]), float(TIMES[155]))])
ADVERSARIES: dict[str, Adversary] = {
    "plain": PLAIN,
    "known point": Adversary.knows_point(),
    "known path": Adversary.knows_path(),
    "stopped clock": STILL,
    "stopped clock, known point": STILL & Adversary.knows_point(),
    "stopped clock, known path": STILL & Adversary.knows_path(),
    "point and path": Adversary.knows_point(60.0) & Adversary.knows_path(600.0),
    "another kernel": Adversary.believes(
        "faster", IntegratedOU(10.0, 60.0) + Constant(1e5) + White(2.0)
    ),
}


def noise() -> Mechanism:
    """A smooth bump of 500 m, a slow drift of 100 m and 50 m at each fix; 20 fixes withheld."""
    bump = 500.0 * np.exp(-(((TIMES - MIDDLE) / 300.0) ** 2))
    mechanism = Mechanism(
        TIMES, np.column_stack([bump, 100.0 * np.cos(TIMES / 900.0)]), floor=2500.0
    )
    return mechanism.withholding((np.arange(COUNT) >= 100) & (np.arange(COUNT) < 120))


def both(monkeypatch: pytest.MonkeyPatch, compute: Callable[[], T]) -> tuple[T, T]:
    """By the O(n) form, and by full matrices."""
    found = []
    for largest in (0, 10 * COUNT):
        monkeypatch.setattr("trailveil.privacy.prior.LARGEST_DENSE", largest)
        found.append(compute())
    return found[0], found[1]


def apart(exposure: Exposure, other: Exposure) -> float:
    """The largest relative difference of what two exposures state."""
    pairs = [
        (exposure.loss, other.loss),
        (exposure.prior, other.prior),
        (exposure.posterior, other.posterior),
    ]
    return max(abs(a / b - 1) for a, b in pairs)


def no_doubts(found: Beside, size: int) -> FloatArray:
    """None: each form adds its own numerical doubt, and the figures themselves are compared."""
    return np.zeros(found.variances.size - size)


@EACH
def test_the_two_are_two(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior(KERNELS[name], TIMES)
    systems = both(monkeypatch, lambda: observe(prior, noise()).system)
    assert [isinstance(system, MarkovSystem) for system in systems] == [True, False]


@EACH
def test_posteriors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior(KERNELS[name], TIMES)
    known = SideInformation(TIMES[[10, 110, 150, 150, 299]], 10.0)

    def posteriors() -> list[FloatArray]:
        return [
            observe(prior.for_secret(secret), noise(), known).posterior(secret).covariance
            for secret in SECRETS.values()
        ]

    for fast, full in zip(*both(monkeypatch, posteriors), strict=True):
        assert relative(fast, full) < EQUAL


@EACH
def test_losses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior(KERNELS[name], TIMES)
    secrets = list(SECRETS.values())
    pairs = both(monkeypatch, lambda: losses(prior, secrets, noise()))
    for secret, fast, full in zip(secrets, *pairs, strict=True):
        # Losses are upper bounds, and error bounds of a compound secret alone can be above 1e-8.
        hidden = fast.slack + full.slack if secret.size > 1 else 0.0
        assert relative(fast.matrix, full.matrix) < EQUAL + hidden
        assert secret.size > 1 or max(fast.slack, full.slack) < EQUAL


@EACH
def test_losses_of_many_values_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior(KERNELS[name], TIMES)
    every = Secret("every", TIMES[5::10], np.eye(TIMES[5::10].size), recorded=True)
    made = noise()
    fast, full = both(monkeypatch, lambda: marginal_losses(prior, every, made))
    assert np.all(np.abs(fast - full) <= EQUAL * full)


# Each adversary with a kernel of each measurement noise, of three families; two with each kernel.
PAIRS = [
    (name, who)
    for i, name in enumerate(KERNELS)
    for j, who in enumerate(ADVERSARIES)
    if (i + j) % 4 == 0
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "who"), PAIRS)
def test_exposures(name: str, who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prior, adversary, made = Prior(KERNELS[name], TIMES), ADVERSARIES[who], noise()
    for secret in (SECRETS["recorded"], SECRETS["stay"]):

        def exposed(secret: Secret = secret) -> tuple[list[Exposure], FloatArray]:
            found = exposures(prior, secret, made, adversary)
            each = value_losses(prior, secret, made, adversary)[1]
            return found, np.append(each, least_share(prior, secret, made, adversary, 1e-5))

        stated = both(monkeypatch, exposed)
        with monkeypatch.context() as bare:
            bare.setattr("trailveil.privacy.adversary._doubts", no_doubts)
            fast, full = both(bare, exposed)
        # A level of 100 km costs digits, up to what each form itself states.
        hidden = [
            max(map(apart, one[0], two[0])) for one, two in zip(stated, (fast, full), strict=True)
        ]
        equal = EQUAL + (sum(hidden) if adversary.point and "level" in name else 0.0)
        assert [one.at for one in fast[0]] == [one.at for one in full[0]]
        assert max(map(apart, fast[0], full[0])) < equal
        assert np.allclose(fast[1], full[1], rtol=equal, atol=0)


@EACH
def test_doubt_of_known_values_counts_against_us(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior, made = Prior(KERNELS[name], TIMES), noise()
    for secret in (SECRETS["place"], SECRETS["stay"]):

        def found(secret: Secret = secret) -> FloatArray:
            return value_losses(prior, secret, made, Adversary.knows_point())[1]

        stated = both(monkeypatch, found)
        with monkeypatch.context() as bare:
            bare.setattr("trailveil.privacy.adversary._doubts", no_doubts)
            figures = both(monkeypatch, found)
        for upper, figure in zip(stated, figures, strict=True):
            assert np.all(upper >= figure)
            assert np.all(upper <= figure * (1 + LARGEST_DOUBT))


@pytest.mark.parametrize("which", ["place", "recorded", "stay", "mean"])
@pytest.mark.parametrize("target", ["bounds", "budget"])
@WITH_NOISE
def test_designs_of_one_secret(
    name: str, target: str, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior, secret = Prior(KERNELS[name], TIMES), SECRETS[which]

    def designed() -> tuple[Mechanism, float, float]:
        if target == "bounds":
            made, certificate = design(prior, [secret], bounds=[1e-5])
        else:
            made, certificate = design(prior, [secret], budget=COUNT * 1e4)
        (outcome,) = certificate.outcomes
        assert certificate.lower_bound is not None
        return made, outcome.loss.largest, certificate.lower_bound

    fast, full = both(monkeypatch, designed)
    # The same sign too: draws must not depend on how a design was computed.
    assert relative(fast[0].factor, full[0].factor) < EQUAL
    assert fast[0].noise_trace == pytest.approx(full[0].noise_trace, rel=EQUAL)
    assert fast[1] == pytest.approx(full[1], rel=EQUAL)
    assert fast[2] == pytest.approx(full[2], rel=EQUAL)
