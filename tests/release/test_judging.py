"""What is said of a protected part is the worst of its places, recomputed by its definition."""

from dataclasses import replace

import numpy as np
import pytest

from tests.exposed import exposed
from tests.rides import ride
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, Kernel, Matern32, White
from trailveil.privacy.exposure import Exposure, worst_of
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.points import value_variances
from trailveil.privacy.prior import LARGEST_DENSE, Prior, observe
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import Crop, crops
from trailveil.release.designing import _Aims, _demands
from trailveil.release.judging import Judged, judged, judged_again
from trailveil.release.request import DEFAULT_KERNEL

TIMES = ride(61, 20.0).seconds
PRIOR = Prior(DEFAULT_KERNEL, TIMES)
FLAT = 1e-10
BOUND = 1e-5
SPANS = {
    "a time": (400.0, 400.0),
    "a time without a fix": (405.0, 405.0),
    "the first fix": (0.0, 0.0),
    "the last fix": (1200.0, 1200.0),
    "a stay": (300.0, 500.0),
    "a stay between fixes": (295.0, 511.0),
    "a stay with one fix": (395.0, 405.0),
    "a stay without a fix": (402.0, 412.0),
}


def crop_of(*spans: tuple[float, float], times: FloatArray = TIMES) -> Crop:
    (found,) = crops(DEFAULT_KERNEL, times, spans, BOUND**-0.5)
    return found


def noise(seed: int, times: FloatArray = TIMES) -> Mechanism:
    """Smooth columns of some hundred metres around the stay, and a tenth of the fixes withheld."""
    random = np.random.default_rng(seed)
    middles, widths = random.uniform(200, 600, 3), random.uniform(100, 400, 3)
    factor = 400 * np.exp(-(((times[:, None] - middles) / widths) ** 2))
    return Mechanism(times, factor, released=random.uniform(size=times.size) > 0.1)


def largest(exposures: Judged) -> float:
    return worst_of(exposures.values()).loss


def place_of(exposures: Judged) -> float | None:
    """Where most is lost."""
    return max(exposures, key=lambda place: exposures[place].loss)


@pytest.mark.parametrize("name", SPANS)
def test_what_is_left_is_the_worst_of_all_places(name: str) -> None:
    """With full matrices that share nothing with the package: see tests.exposed.

    Numerical errors are bounded by 1e-8 of the precision.
    """
    span, mechanism = SPANS[name], noise(len(name))
    places = judged(crop_of(span), mechanism, 0, BOUND)
    exposure = worst_of(places.values())
    loss, least = exposed(PRIOR, mechanism, span)
    assert loss + FLAT - 1e-9 * least**-2 <= exposure.loss <= loss + FLAT + 2e-5 * least**-2
    assert exposure.posterior == pytest.approx(least, rel=1e-5)
    assert all(place is None or span[0] <= place <= span[1] for place in places)


@pytest.mark.parametrize("bare", [17, 25, 31, 40])
def test_every_fix_of_a_stay_counts(bare: int) -> None:
    """One inner fix without noise, of many, is found out: also one that is not of the sample."""
    times, span = np.arange(61.0) * 20.0, (300.0, 1000.0)
    factor = np.full((61, 1), 400.0)
    assert largest(judged(crop_of(span, times=times), Mechanism(times, factor), 0, BOUND)) < BOUND
    factor[bare] = 0.0
    loss = largest(judged(crop_of(span, times=times), Mechanism(times, factor), 0, BOUND))
    assert loss > 1000 * BOUND
    worst, _ = exposed(Prior(DEFAULT_KERNEL, times), Mechanism(times, factor), span)
    assert loss == pytest.approx(worst, rel=1e-5)


@pytest.mark.parametrize("count", [230, LARGEST_DENSE + 100])
def test_of_more_fixes_than_are_looked_at_the_worst_is_searched_for(count: int) -> None:
    """By full matrices, and by those of a Markov series; the fix is neither of 12 nor of 150."""
    times = np.arange(float(count)) * 10.0
    factor = np.full((count, 1), 400.0)
    factor[101] = 0.0
    crop = crop_of((300.0, 1900.0), times=times)
    assert place_of(judged(crop, Mechanism(times, factor), 0, BOUND)) == times[101]
    quick = judged(crop, Mechanism(times, factor), 0, BOUND, quickly=True)
    assert place_of(quick) == times[101]
    aims = _Aims().after(crop, BOUND, quick)
    assert aims == _Aims(places=(float(times[101]),))


def test_the_mean_of_a_stay_counts() -> None:
    """Noise that differs from fix to fix averages out."""
    span, mechanism = (300.0, 500.0), Mechanism(TIMES, np.empty((61, 0)), 500.0**2)
    exposures = judged(crop_of(span), mechanism, 0, BOUND)
    assert place_of(exposures) is None
    assert min(exposures, key=lambda place: exposures[place].posterior) is None
    assert largest(exposures) == pytest.approx(exposed(PRIOR, mechanism, span)[0] + FLAT, rel=1e-6)


def test_times_are_those_of_the_recording() -> None:
    times, span = np.arange(2_000.0) * 20.0, (20_000.0, 20_400.0)
    crop = crop_of(span, times=times)
    assert crop.start > 1000
    near = np.exp(-(((crop.prior.times - crop.spans[0][0]) / 900) ** 2))
    exposures = judged(crop, Mechanism(crop.prior.times, 2000 * near[:, None]), 0, BOUND)
    assert None in exposures
    assert all(place is None or span[0] <= place <= span[1] for place in exposures)


@pytest.mark.parametrize("name", ["a time", "a stay"])
def test_a_second_look_says_the_same_of_where_most_was_lost(name: str) -> None:
    crop, mechanism = crop_of(SPANS[name]), noise(1)
    first = judged(crop, mechanism, 0, BOUND)
    again = judged_again(crop, mechanism, 0, first)
    assert largest(again) == pytest.approx(largest(first), rel=1e-9)
    assert largest(judged_again(crop, mechanism.scaled(4.0), 0, first)) < largest(first)


def test_demands_are_the_places_that_noise_is_sought_for() -> None:
    crop = crop_of((300.0, 700.0))
    demands = _demands(crop, crop.prior, 0, BOUND, _Aims(places=(333.0,)))
    kinds = [demand.secret.kind for demand in demands]
    assert kinds.count("mean") == 1
    basic = {float(d.secret.times[0]) for d in demands if d.secret.kind == "basic"}
    assert {300.0, 333.0, 500.0, 700.0} <= basic
    # A little less than the bound: the level of the prior counts as flat.
    assert all(demand.bound == pytest.approx(BOUND - FLAT) for demand in demands)
    (only,) = _demands(crop_of((400.0, 400.0)), PRIOR, 0, BOUND, _Aims())
    assert only.secret.times == np.array([400.0])


def test_aims_are_lower_where_a_design_has_missed() -> None:
    crop, less = crop_of((300.0, 700.0)), Exposure.of_loss("plain", 0.7e-5)
    met, missed = (Exposure.of_loss("plain", loss) for loss in (0.9e-5, 1.2e-5))
    assert _Aims().after(crop, BOUND, {500.0: met, None: less}) == _Aims()
    aims = _Aims().after(crop, BOUND, {400.0: less, 500.0: missed, None: met})
    assert aims == _Aims(1.0, (500.0,))
    # The same again, an edge, and a mean: lower by what was missed.
    for worst in (500.0, 300.0, None):
        lower = aims.after(crop, BOUND, {400.0: less, worst: missed})
        assert lower.places == (500.0,)
        assert lower.tight == pytest.approx(1.2)
        demands = _demands(crop, crop.prior, 0, BOUND, lower)
        assert all(demand.bound == pytest.approx(BOUND / 1.2 - FLAT) for demand in demands)


def test_without_noise_a_part_is_told() -> None:
    (exposure,) = judged(crop_of((400.0, 400.0)), no_noise(TIMES), 0, BOUND).values()
    assert exposure.posterior < 2.0
    assert exposure.loss == pytest.approx(exposure.posterior**-2, rel=1e-4)


def test_nothing_released_tells_nothing() -> None:
    silent = no_noise(TIMES).withholding(np.ones(61, dtype=np.bool_))
    assert largest(judged(crop_of((400.0, 400.0)), silent, 0, BOUND)) == pytest.approx(
        FLAT, rel=0.1
    )


@pytest.mark.parametrize("count", [60, LARGEST_DENSE + 60])
@pytest.mark.parametrize(
    "kernel",
    [
        DEFAULT_KERNEL,
        Matern32(80.0, 300.0) + White(1.0),
        RBF(100.0, 300.0) + White(2.0) + Constant(1e5),
    ],
)
def test_many_variances_at_once_are_those_of_each(kernel: Kernel, count: int) -> None:
    times = np.arange(float(count)) * 7.0
    observation = observe(Prior(kernel, times), noise(2, times))
    some = times[10:50:9]
    found = value_variances(observation, some)
    each = [float(observation.posterior(Secret.at(float(t))).covariance[0, 0]) for t in some]
    assert found == pytest.approx(each, rel=1e-5)


def test_what_lies_beyond_a_crop_is_granted() -> None:
    """Rows are cut off where they still tell something; all that is beyond is released as it is."""
    times, place, rows = np.arange(100.0) * 10.0, 495.0, slice(40, 60)
    start, inner = float(times[40]), times[rows] - times[40]
    spans, edges = ((place - start, place - start),), (0.0, float(inner[-1]))
    about = (Prior(DEFAULT_KERNEL, inner), (0,), spans, edges, edges, (True, True), 1.0)
    crop = Crop(40, 60, start, *about)
    factor = np.zeros((100, 1))
    factor[rows, 0] = 400.0 * np.exp(-(((times[rows] - place) / 40.0) ** 2))
    whole, _ = exposed(Prior(DEFAULT_KERNEL, times), Mechanism(times, factor), (place, place))
    mechanism = Mechanism(inner, factor[rows])
    assert largest(judged(crop, mechanism, 0, BOUND)) >= whole
    assert largest(judged(replace(crop, edges=()), mechanism, 0, BOUND)) < 0.9999 * whole
