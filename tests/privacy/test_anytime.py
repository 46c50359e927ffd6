"""Losses at any time bound those of every series, and are near to those of dense ones."""

from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    StoppedClock,
    White,
)
from trailveil.privacy import stationary
from trailveil.privacy.adversary import PLAIN, Adversary, exposure
from trailveil.privacy.anytime import (
    PATH_SLACK,
    SETTLED_SLACK,
    Assumed,
    PriorMovement,
    Worst,
    movement_of,
    stationary_variances,
    stay_grid,
    worst,
)
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Stretch

LEVEL, WHITE = 1e5, 2.0
PERSON = PriorMovement(3.0, 60.0, WHITE**2, LEVEL**2)
NOISE = (Matern32(120.0), Matern32(1920.0), Matern12(60.0), Matern12(480.0))
VARIANCES = np.array([400.0, 300.0, 150.0, 250.0]) ** 2
# Room for the finite level and for rounding.
ROOM = 1 + 1e-6


def kernel(speed: float = 3.0) -> Kernel:
    return IntegratedOU(speed, 60.0) + Constant(LEVEL) + White(WHITE)


def noise(variances: FloatArray = VARIANCES) -> Kernel:
    terms = [one * float(v) for one, v in zip(NOISE, variances, strict=True)]
    return terms[0] + terms[1] + terms[2] + terms[3]


def released(times: FloatArray, process: Kernel | None = None) -> Mechanism:
    return Mechanism(times, np.empty((times.size, 0)), process=process or noise())


def irregular(seed: int, count: int, longest: float) -> FloatArray:
    """Times from half a second to minutes apart, and two gaps."""
    rng = np.random.default_rng(seed)
    steps = np.exp(rng.uniform(np.log(0.5), np.log(longest), count))
    steps[[count // 3, 2 * count // 3]] *= 10
    return np.cumsum(steps)


def of(kind: str, worsts: list[Worst]) -> Worst:
    return next(one for one in worsts if one.kind == kind)


def variance_of(
    seen: FloatArray,
    known: FloatArray,
    at: float,
    window: tuple[float, float] | None = None,
    speed: float = 3.0,
) -> float:
    """Var(place at a time | Z at `seen`, true places at `known` to 10 m), written out."""
    moving: Kernel = IntegratedOU(speed, 60.0)
    moving = (moving.warp(StoppedClock((window,))) if window else moving) + Constant(LEVEL)
    times = np.concatenate([seen, known])
    own = np.concatenate([np.full(seen.size, WHITE**2), np.full(known.size, 100.0)])
    whole = moving(times, times) + np.diag(own)
    whole[: seen.size, : seen.size] += noise()(seen, seen)
    cross = moving(times, [at])[:, 0]
    return float(moving([at], [at])[0, 0] - cross @ np.linalg.solve(whole, cross))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("speed", [1.0, 3.0, 10.0])
def test_no_series_tells_more_of_a_place_than_the_bound(seed: int, speed: float) -> None:
    times = irregular(seed, 30, 60.0)
    assumed = Assumed((speed,), 600.0)
    found = worst(PERSON, assumed, NOISE, VARIANCES)
    judge, mechanism = Prior(kernel(speed), times), released(times)
    start = float(times[11])
    windows = [None, (start, start + 60.0), (start, start + 600.0)]
    for window in windows:
        base = PLAIN if window is None else Adversary.sees_stillness([window])
        place = Secret.at(start) if window is None else Secret.stay(*window)
        plain = exposure(judge, place, mechanism, base)
        # Who knows no place has the level for a prior; the bound is against none.
        assert plain.posterior**-2 <= of("plain", found).exposure.loss * ROOM
        path = exposure(judge, place, mechanism, base & Adversary.knows_path())
        assert path.loss <= of("path", found).exposure.loss * ROOM
        point = exposure(judge, place, mechanism, base & Adversary.knows_point())
        # A recorded place is known less well than a true one, by the noise of its recording.
        nearest = point.prior**2
        assert (
            point.loss <= of("point", found).exposure.loss * ROOM + 1 / (nearest - 4) - 1 / nearest
        )


def around(length: float) -> FloatArray:
    """Times dense about a stay that begins at 20,000 s, and far to both sides."""
    ahead = np.concatenate([np.arange(1, 200, 1.0), np.arange(200, 1000, 10.0)])
    ahead = np.concatenate([ahead, np.arange(1000.0, 20_000.0, 60.0)])
    stay_ = np.arange(0.0, length + 1.0)
    return np.concatenate([20_000 - ahead[::-1], 20_000 + stay_, 20_000 + length + ahead])


@pytest.mark.parametrize(
    ("length", "speed"), [(0.0, 1.0), (0.0, 10.0), (30.0, 3.0), (480.0, 1.0), (480.0, 10.0)]
)
def test_a_dense_series_tells_nearly_as_much_as_the_bound_says(length: float, speed: float) -> None:
    times, at, nothing = around(length), 20_000.0, np.empty(0)
    window = (at, at + length) if length else None
    assumed = Assumed((speed,), length)
    plain, point, path = stationary_variances(PERSON, assumed, NOISE, VARIANCES[None], fine=False)
    k = -1 if window else 0
    truth = variance_of(times, nothing, at, window, speed)
    assert plain.posterior[0, 0, k, 0] == pytest.approx(truth, rel=0.03)
    assert plain.posterior[0, 0, k, 0] <= truth * ROOM
    for j, away in enumerate(point.known[:2]):
        known = np.array([at - away])
        truth = variance_of(times, known, at, window, speed)
        assert point.posterior[0, 0, k, j] == pytest.approx(truth, rel=0.03)
        assert point.posterior[0, 0, k, j] <= truth * ROOM
        alone = variance_of(nothing, known, at, window, speed)
        assert point.prior[0, j] == pytest.approx(alone, rel=1e-4)
    # Known to 10 m every second: white noise of 100 m^2 s.
    known = 300 + np.arange(0.0, 400.0)
    known = np.concatenate([at - known[::-1], at + length + known])
    j = list(assumed.every).index(1.0)
    truth = variance_of(times, known, at, window, speed)
    assert path.posterior[0, 0, k, j] == pytest.approx(truth, rel=0.03)
    alone = variance_of(nothing, known, at, window, speed)
    assert path.prior[0, j] == pytest.approx(alone, rel=0.01)


def test_figures_of_the_design_document() -> None:
    # Default prior, r = 200 m, eps = 1 at order 5; who knows a point a minute away to 10 m.
    bound = 1e-5
    for scale, deviation in ((120.0, 920.0), (60.0, 1120.0), (480.0, 1850.0)):
        rough = (Matern32(scale), Matern12(60.0))
        for room, meets in ((1.02, True), (0.96, False)):
            found = worst(
                PERSON, Assumed((3.0,)), rough, np.array([(room * deviation) ** 2, 30.0**2])
            )
            assert (of("point", found).exposure.loss <= bound) == meets
            assert of("point", found).known == 60.0
    pair, variances = (Matern32(120.0), Matern12(60.0)), np.array([[920.0**2, 1.0]])
    for seconds, metres in ((900.0, 343.0), (3600.0, 242.0), (28800.0, 88.0)):
        plain = stationary_variances(
            PERSON, Assumed((3.0,), seconds, know=False), pair, variances, fine=False
        )[0]
        assert np.sqrt(plain.posterior[0, 0, -1, 0]) == pytest.approx(metres, rel=0.08)


def test_what_the_worst_is_taken_over_hides_nothing_between_its_points() -> None:
    assumed = Assumed((1.0, 3.0, 10.0), 3600.0)
    found = worst(PERSON, assumed, NOISE, VARIANCES)
    rng = np.random.default_rng(4)
    for length in np.exp(rng.uniform(0, np.log(3600.0), 10)):
        away = 60.0 + float(rng.exponential(200.0))
        path = (float(np.exp(rng.uniform(np.log(0.01), np.log(300.0)))),)
        between = Assumed(assumed.speeds, float(length), point_away=away, every=path)
        for one in stationary_variances(PERSON, between, NOISE, VARIANCES[None], fine=False):
            assert np.max(one.losses(PERSON.level)) <= of(one.kind, found).exposure.loss * ROOM


def test_more_noise_never_tells_more_and_longer_stays_never_less() -> None:
    assumed = Assumed((3.0,), 7200.0)
    more = VARIANCES * np.array([[1.0], [1.5]])
    for one in stationary_variances(PERSON, assumed, NOISE, more, fine=True):
        losses = one.losses(PERSON.level)[:, 0]
        assert np.all(losses[1] < losses[0])
        assert losses[0, -1].max() == pytest.approx(losses[0].max(), rel=0.05)


def test_grids_end_where_they_should() -> None:
    assert stay_grid(0.0, fine=True).tolist() == [0.0]
    grid = stay_grid(28_800.0, fine=True)
    assert grid[0] == 0.0
    assert grid[1] <= 1.0
    assert grid[-1] == 28_800.0


@pytest.mark.parametrize(
    "prior",
    [
        Matern32(60.0, 5.0) + Constant(1e5),
        IntegratedOU(3.0, 60.0) + White(2.0),
        IntegratedOU(3.0, 60.0) + IntegratedOU(1.0, 10.0) + Constant(1e5),
        RBF(1.0),
    ],
)
def test_priors_of_another_kind_are_refused(prior: Kernel) -> None:
    with pytest.raises(Refused, match="integrated-ou with a level"):
        movement_of(prior)


@pytest.mark.parametrize("term", [Matern52(60.0, 500.0), RBF(60.0, 500.0)])
def test_a_prior_without_a_proof_is_refused_for_noise_and_not_for_a_cut(term: Kernel) -> None:
    """A cut leaves what the pace leaves, whatever the prior is."""
    trace = ride(60, 20.0)
    begin = int(trace.times[0])
    asked = Request((Stretch("x", begin, begin),), radius=20.0, floor=3.0)
    other = replace(asked, kernel=term + Constant(1e5) + White(2.0))
    with pytest.raises(Refused, match=r"must be one integrated-ou with a level.*--mechanism cut"):
        protect(trace, replace(other, method=Method.NOISE))
    assert protect(trace, other).findings == protect(trace, asked).findings


def test_smooth_noise_alone_is_refused() -> None:
    with pytest.raises(InvalidValue, match="rough term"):
        stationary_variances(
            PERSON, Assumed((3.0,)), [Matern32(120.0)], np.array([[1.0]]), fine=False
        )


def test_the_losses_of_many_noises_are_those_of_each() -> None:
    assumed = Assumed((1.0, 3.0), 600.0)
    many = VARIANCES * np.array([[1.0], [2.0], [0.3]])
    together = stationary_variances(PERSON, assumed, NOISE, many, fine=False)
    for i in range(3):
        single = stationary_variances(PERSON, assumed, NOISE, many[[i]], fine=False)
        for one, alone in zip(together, single, strict=True):
            slack = PATH_SLACK if one.kind == "path" else SETTLED_SLACK
            np.testing.assert_allclose(one.posterior[i], alone.posterior[0], rtol=slack)


@pytest.mark.parametrize("size", [1.0, 10.0])
def test_rounding_is_within_what_is_added_for_it(
    size: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assumed, variances = Assumed((1.0, 3.0, 10.0), 28_800.0), size**2 * VARIANCES[None]
    found = stationary_variances(PERSON, assumed, NOISE, variances, fine=True)
    for step in (1 / 11, 1 / 100):  # other doublings, other rounding
        monkeypatch.setattr(stationary, "_FIRST_STEP", step)
        for one, other in zip(
            found, stationary_variances(PERSON, assumed, NOISE, variances, fine=True), strict=True
        ):
            slack = PATH_SLACK if one.kind == "path" else SETTLED_SLACK
            np.testing.assert_allclose(one.posterior, other.posterior, rtol=slack)
