"""What is demanded of a protected part, and that what is said of it is the worst by definition."""

from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from trailveil.adversaries import DEFAULT, Named
from trailveil.adversary import Adversary, exposures
from trailveil.crops import Crop, crops
from trailveil.demands import Aims, Left, Target, adversaries_of, demanded, judged
from trailveil.errors import BeyondPrior
from trailveil.loss import marginal_losses
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import Prior
from trailveil.release import DEFAULT_KERNEL
from trailveil.secrets import Secret, basic, window_mean

PRIOR = Prior(DEFAULT_KERNEL, ride(331, 10.0).seconds)
BOUND = 1e-5
TARGET = Target(BOUND, DEFAULT)
LEVEL = 100_000.0


def crop(begin: float, end: float) -> Crop:
    (found,) = crops(DEFAULT_KERNEL, PRIOR.times, [(begin, end)], BOUND**-0.5)
    return found


def noise(times: np.ndarray) -> Mechanism:
    middle = np.exp(-(((times - 900) / 500) ** 2))
    return Mechanism(times, 500 * np.column_stack([middle, middle * (times - 900) / 600]), 30.0)


def by_definition(begin: float, end: float, one: Adversary, mechanism: Mechanism) -> float:
    """The largest loss of any place that is demanded, one secret at a time, on the recording."""
    inside = PRIOR.times[(PRIOR.times >= begin) & (PRIOR.times <= end)]
    if one.still or begin == end:
        places = [basic(begin)]
    else:
        places = [basic(float(time)) for time in {begin, end, *inside.tolist()}]
        places.append(window_mean(inside))
    return max(seen.loss for place in places for seen in exposures(PRIOR, place, mechanism, one))


@pytest.mark.parametrize(("begin", "end"), [(400.0, 400.0), (405.0, 405.0), (700.0, 900.0)])
@pytest.mark.parametrize("silent", [False, True])
def test_what_is_said_is_the_worst_by_definition(begin: float, end: float, silent: bool) -> None:
    here = crop(begin, end)
    mechanism = noise(PRIOR.times)
    if silent:
        near = (PRIOR.times >= begin - 60) & (PRIOR.times <= end + 60)
        mechanism = mechanism.withholding(near)
    found = judged(here, mechanism, 0, TARGET)
    passing, still = adversaries_of(here, 0, TARGET)
    assert [one.adversary for one in found] == [one.name for one in (*passing, *still)]
    assert len(still) == (5 if begin < end else 0)
    for left, one in zip(found, [*passing, *still], strict=True):
        expected = by_definition(begin, end, one, mechanism)
        # A level counts as flat: a little more is lost than against 100 km.
        assert left.loss == pytest.approx(expected + 1 / LEVEL**2, rel=1e-7)
        assert left.loss >= expected
        assert left.after <= left.before


def test_an_inner_fix_that_is_exposed_is_found_out() -> None:
    begin, end = 300.0, 1500.0
    times = PRIOR.times
    factor = np.full((times.size, 1), 900.0)
    at = int(np.searchsorted(times, 620.0))
    factor[at] = 0.0  # one fix of 121, between those that are sampled
    mechanism = Mechanism(times, factor, 0.0)
    found = judged(crop(begin, end), mechanism, 0, Target(BOUND, (Named.PLAIN,)))
    inside = times[(times >= begin) & (times <= end)]
    every = Secret("fixes", inside, np.eye(inside.size))
    worst = float(np.max(marginal_losses(PRIOR, every, mechanism)))
    assert found[0].loss == pytest.approx(worst, rel=1e-3)
    assert found[0].place == 620.0


def test_demands_are_of_the_place_its_mean_and_some_fixes() -> None:
    here = crop(700.0, 900.0)
    found = demanded(here, PRIOR, 0, TARGET, Aims())
    kinds: dict[str, set[str]] = {one.name: set() for _, one in found}
    for demand, one in found:
        kinds[one.name].add(demand.secret.kind)
        assert demand.bound == pytest.approx(BOUND - 1 / LEVEL**2)
    assert all(kind == {"basic", "mean"} for name, kind in kinds.items() if "still" not in name)
    assert all(kind == {"basic"} for name, kind in kinds.items() if "still" in name)
    lower = demanded(here, PRIOR, 0, TARGET, Aims((("plain", 2.0),), (805.0,)))
    assert {d.bound for d, one in lower if one.name == "plain"} == {BOUND / 2 - 1 / LEVEL**2}
    times = {float(d.secret.times[0]) for d, _ in lower}
    assert {700.0, 900.0, 805.0} <= times


def left(loss: float, before: float, after: float, place: float | None = None) -> Left:
    return Left("plain", loss, before, after, None, place, before, after, place)


def test_what_is_missed() -> None:
    assert TARGET.missed([left(5e-6, 1e5, 400), left(2e-5, 1e5, 223)]) == pytest.approx(2)
    metres = replace(TARGET, left=300.0)
    assert metres.deviation == 300
    assert metres.missed([left(1.0, 400, 150), left(1.0, 500, 300)]) == pytest.approx(4)
    weak = replace(left(1.0, 400, 350), known=310.0, least=200.0)  # where less is lost
    assert metres.missed([weak]) == pytest.approx(2.25)
    with pytest.raises(BeyondPrior, match="below the 290 that one knows") as caught:
        metres.missed([left(1.0, 290, 150)])
    assert caught.value.most == 290


def test_aims_are_lower_where_places_were_looked_at_and_more_places_where_not() -> None:
    here = crop(700.0, 900.0)
    first = Aims().after(here, TARGET, [left(2e-5, 1e5, 223, 805.0)])
    assert first == Aims((), (805.0,))
    assert first.after(here, TARGET, [left(2e-5, 1e5, 223, 805.0)]).tight == (("plain", 2.0),)
    assert Aims().after(here, TARGET, [left(2e-5, 1e5, 223, 700.0)]).tight == (("plain", 2.0),)
    assert Aims().after(here, TARGET, [left(9e-6, 1e5, 333, 805.0)]) == Aims()


def test_nothing_released_tells_nothing() -> None:
    silent = no_noise(PRIOR.times).withholding(np.ones(PRIOR.times.size, bool))
    found = judged(crop(400.0, 400.0), silent, 0, Target(BOUND, (Named.PLAIN,)))
    assert found[0].loss == pytest.approx(1 / LEVEL**2, rel=0.1)
