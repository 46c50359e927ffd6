"""Noise of versions: proved as every design is, and nested to the last digit."""

import numpy as np
import pytest

from trailveil.designer.nesting import added, mixed, narrowed, widened
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.table import asked_of, noise_of
from trailveil.errors import Refused
from trailveil.privacy.checker import check
from trailveil.privacy.nesting import nests
from trailveil.release.request import Method, Request

SECONDS = 720.0


def asked(radius: float, sides: int, floor: float = 3.0) -> tuple:  # type: ignore[type-arg]  # as `noise_of` takes it
    request = Request((), radius=radius, method=Method.NOISE, floor=floor)
    return asked_of(SECONDS, sides, request.adversaries, request.noise_bound)


def is_nested(finer: WindowNoise, coarser: WindowNoise) -> bool:
    pairs = [(finer.even, coarser.even, False)]
    if finer.odd is not None and coarser.odd is not None:
        pairs.append((finer.odd, coarser.odd, True))
    knots = finer.knots.seconds, coarser.knots.seconds
    return all(
        nests((knots[0], a.tolist()), (knots[1], b.tolist()), odd=odd) for a, b, odd in pairs
    )


@pytest.mark.parametrize(
    ("sides", "radii", "floor"),
    [(2, (100.0, 150.0), 3.0), (1, (50.0, 200.0), 3.0), (2, (50.0, 200.0), 0.5)],
    ids=["two sides", "one side", "noise that ends elsewhere"],
)
def test_widened_noise_covers_the_finer_and_is_proved(
    sides: int, radii: tuple[float, float], floor: float
) -> None:
    """Designs are no versions of each other; a little more noise makes the coarser one so."""
    less, more = (noise_of(*asked(radius, sides, floor)) for radius in radii)
    if less.knots == more.knots:
        assert not is_nested(less, more)
    whole = widened(less, more, asked(radii[1], sides, floor))
    assert is_nested(less, whole)
    assert check(whole.proof) == []
    assert whole.proof["bound"] == pytest.approx(more.proof["bound"], rel=1e-11)
    assert whole.gap < 0.012
    # What is added is the difference of both, as it is drawn.
    fresh = added(whole, less)
    away = np.linspace(0, whole.knots.end, 50)
    sides_of = (away, np.zeros(50)) if sides == 2 else (np.zeros(50), away)
    gamma = [noise.columns(*sides_of) for noise in (whole, less, fresh)]
    whole_gram, less_gram, fresh_gram = (columns @ columns.T for columns in gamma)
    assert np.allclose(whole_gram, less_gram + fresh_gram, rtol=0, atol=1e-6 * whole_gram.max())


def test_narrowed_noise_is_a_share_of_what_is_published() -> None:
    published, design = (noise_of(*asked(radius, 2)) for radius in (300.0, 100.0))
    (noise,), share = narrowed([published], [design], [asked(100.0, 2)])
    assert 0 < share < 1
    assert np.array_equal(noise.even, published.even * share**0.5)
    assert check(noise.proof) == []
    # The next smaller share of deviations does not hold what is promised.
    smaller = 1 - 2 / (256 * share**0.5)
    proof = {**noise.proof, "even": (noise.even * smaller).tolist()}
    assert noise.odd is not None
    assert check({**proof, "odd": (noise.odd * smaller).tolist()}) != []


def test_mixed_noise_is_between_both_and_the_least_share() -> None:
    """Proved to nest on either side to the last digit, and to hold; a smaller share does not."""
    finer, design, coarser = (noise_of(*asked(radius, 2)) for radius in (50.0, 100.0, 200.0))
    coarser = widened(finer, coarser, asked(200.0, 2))
    (noise,), share = mixed([finer], [coarser], [design], [asked(100.0, 2)])
    # The theorem of mixtures: this share is enough, and here a fifth of it is.
    bounds = [asked(radius, 2)[3] for radius in (50.0, 100.0, 200.0)]
    enough = (bounds[0] - bounds[1]) / (bounds[0] - bounds[2])
    assert 0 < share <= enough
    assert is_nested(finer, noise)
    assert is_nested(noise, coarser)
    assert not is_nested(noise, finer)
    assert check(noise.proof) == []
    less = 1 - 1 / (256 * share)
    proof = {**noise.proof, "even": (noise.even * less).tolist()}
    assert noise.odd is not None
    assert check({**proof, "odd": (noise.odd * less).tolist()}) != []
    fresh = added(coarser, finer)  # what is added to the finer one is that share of the difference
    assert np.allclose(
        noise.even @ noise.even.T - share * fresh.even @ fresh.even.T,
        (coarser.even @ coarser.even.T - fresh.even @ fresh.even.T),
        rtol=0,
        atol=1e-9 * np.max(coarser.even) ** 2,
    )
    with pytest.raises(Refused, match="must have less noise than the one that is published"):
        mixed([finer], [coarser], [design], [asked(250.0, 2)])


def test_a_finer_version_that_assumes_something_else_is_refused() -> None:
    """The noise that is published has no knot where it would need one."""
    published, design = (noise_of(*asked(radius, 2)) for radius in (100.0, 50.0))
    steady = Request((), radius=50.0, method=Method.NOISE, floor=3.0, steady=600)
    wanted = asked_of(SECONDS, 2, steady.adversaries, steady.noise_bound)
    with pytest.raises(Refused, match="must assume what the one that is published does"):
        narrowed([published], [design], [wanted])


def test_a_finer_version_that_needs_all_the_noise_is_refused() -> None:
    published, design = (noise_of(*asked(radius, 2)) for radius in (100.0, 150.0))
    with pytest.raises(Refused, match="must have less noise than the one that is published"):
        narrowed([published], [design], [asked(150.0, 2)])
