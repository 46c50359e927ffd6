"""Mixtures of designs: each holds for its bound, by exact arithmetic, and is no less noise."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import cholesky

from tests.rides import ride
from trailveil.designer import table
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.table import noise_of
from trailveil.designer.window import proved
from trailveil.errors import Refused, Unavailable
from trailveil.gp.gaussian import FloatArray
from trailveil.ledger import user_ledger
from trailveil.ledger.commit import publish
from trailveil.release.mixture import BOUNDS, RADII, mixed, mixture_of
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.activities import ACTIVITIES
from trailveil.traces.selection import Chosen

WALK = Request((), floor=ACTIVITIES["walk"])


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    table.forget()
    yield
    table.forget()


def of(radius: float, sides: int = 1, seconds: float = 120.0) -> WindowNoise:
    request = replace(WALK, radius=radius)
    return mixture_of(seconds, sides, request.adversaries, request.noise_bound)


def lower(factor: FloatArray) -> FloatArray:
    """The triangular factor of the same covariance."""
    return np.asarray(cholesky(factor @ factor.T, lower=True))


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("radius", [85.0, 250.0, 3.0])
def test_a_mixture_is_proved_for_its_bound(radius: float, sides: int) -> None:
    """Of equal knots, of different ones (250 m), and of a single design (3 m)."""
    bound = replace(WALK, radius=radius).noise_bound
    noise = of(radius, sides)
    assert (noise.proof, noise.gap) == ({}, float("inf")), "it must not pass for a design"
    odd = None if noise.odd is None else lower(noise.odd)
    asked = (120.0, sides, WALK.adversaries, bound)
    assert proved(lower(noise.even), odd, noise.knots, asked) is not None


@pytest.mark.parametrize("sides", [1, 2])
def test_it_is_the_sum_of_its_parts_at_every_time(sides: int) -> None:
    """Curves of other knots are the same curves: the variance is the shares' mean."""
    some, more = (of(radius, sides) for radius in RADII[2:4])
    away, zero = np.linspace(0, 2.0e4, 500), np.zeros(500)

    def variance(noise: WindowNoise) -> FloatArray:
        return np.asarray(np.sum(noise.columns(away, zero) ** 2, axis=1))

    assert some.knots != more.knots
    whole = variance(mixed([some, more], [0.25, 0.75]))
    assert whole == pytest.approx(0.25 * variance(some) + 0.75 * variance(more), abs=1e-6)


@pytest.mark.parametrize(("radius", "most"), [(60.0, 1.1), (120.0, 1.12), (240.0, 1.15)])
def test_it_is_little_more_noise_than_the_least(radius: float, most: float) -> None:
    request, more = replace(WALK, radius=radius), of(radius)
    least = noise_of(120.0, 1, request.adversaries, request.noise_bound)
    away = np.arange(0.0, 3600.0, 10.0)
    moved = [
        np.sqrt(np.mean(np.sum(noise.columns(away, 0 * away) ** 2, axis=1)))
        for noise in (more, least)
    ]
    assert 1 < moved[0] / moved[1] < most


def test_what_was_designed_before_is_taken_as_it_is() -> None:
    assert of(100.0, seconds=3600.0).proof


def test_a_plan_of_it_is_never_released(tmp_path: Path) -> None:
    trace = ride(60, 20.0)
    request = requested(trace, Chosen(), replace(WALK, method=Method.NOISE, radius=43.0))
    plan = protect(trace, request, at_once=True)
    ledger, out = user_ledger(), tmp_path / "out.gpx"
    with pytest.raises(Refused, match="got a bound on it"):
        publish(plan, ledger, out)
    assert not out.exists()
    publish(protect(trace, request), ledger, out)
    assert out.exists()


def test_what_no_design_is_on_both_sides_of_is_not_shown() -> None:
    assert sorted(BOUNDS) == BOUNDS
    for request in (replace(WALK, radius=RADII[0] + 5), replace(WALK, floor=0.5, radius=99.0)):
        with pytest.raises(Unavailable, match="designs must ship"):
            mixture_of(120.0, 1, request.adversaries, request.noise_bound)
