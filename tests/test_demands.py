"""What is demanded of a protected part is met, recomputed one by one, in every kind of noise."""

from dataclasses import replace

import numpy as np
import pytest

from tests.rides import ride
from trailveil import demands as module
from trailveil.demands import Demands, demands, loss_of, only_withheld, optimal, uniform
from trailveil.errors import NumericalError, Refused
from trailveil.loss import loss_matrix, marginal_losses
from trailveil.mechanism import Mechanism, no_noise
from trailveil.prior import Prior
from trailveil.release import DEFAULT_KERNEL
from trailveil.secrets import Secret, basic, stay, window_mean

PRIOR = Prior(DEFAULT_KERNEL, ride(61, 20.0).seconds)
NOTHING = no_noise(PRIOR.times)
BOUND = 1e-5


def part(begin: float, end: float, *, still: bool = True, prior: Prior = PRIOR) -> Demands:
    inside = (prior.times >= begin) & (prior.times <= end)
    return demands(prior, inside, begin, end, sees_stillness=still)


def each(prior: Prior, mechanism: Mechanism, begin: float, end: float, still: bool) -> list[float]:
    """Every loss that is demanded of a part, from its definition."""
    times = prior.times[(prior.times >= begin) & (prior.times <= end)]
    single = [basic(begin), basic(end), *([stay(begin, end)] if still and begin < end else [])]
    if begin < end and times.size > 1:
        single.append(window_mean(times))
    found = [loss_matrix(prior, one, mechanism, flat=True).largest for one in single]
    if begin < end and times.size:
        fixes = Secret("fixes", times, np.eye(times.size))
        found += list(marginal_losses(prior, fixes, mechanism, flat=True))
    return found


PARTS = {
    "a time": (400.0, 400.0),
    "a time without a fix": (405.0, 405.0),
    "the first fix": (0.0, 0.0),
    "the last fix": (1200.0, 1200.0),
    "a stay": (300.0, 700.0),
    "a stay at the beginning": (0.0, 300.0),
    "a stay with one fix": (395.0, 405.0),
    "a stay without a fix": (402.0, 412.0),
    "all of it": (0.0, 1200.0),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("still", [True, False])
@pytest.mark.parametrize("withheld", [None, 0.0, 60.0])
def test_the_optimal_sum_meets_everything(name: str, still: bool, withheld: float | None) -> None:
    begin, end = PARTS[name]
    base = NOTHING
    if withheld is not None:
        near = (PRIOR.times >= begin - withheld) & (PRIOR.times <= end + withheld)
        base = NOTHING.withholding(near)
    if base.rows.size < 2:
        return
    wanted = part(begin, end, still=still)
    mechanism = optimal(PRIOR, base, [wanted], BOUND)
    found = each(PRIOR, mechanism, begin, end, still)
    assert max(found) <= BOUND * (1 + 1e-9)
    assert loss_of(PRIOR, mechanism, wanted, BOUND) == pytest.approx(max(found), rel=2e-4)
    assert loss_of(PRIOR, mechanism, wanted, BOUND) >= max(found) * (1 - 1e-12)
    if withheld is None:
        assert max(found) > 0.95 * BOUND  # and not by far too much


def test_several_parts_at_once() -> None:
    spans = [(0.0, 0.0), (200.0, 400.0), (380.0, 520.0), (1200.0, 1200.0)]
    mechanism = optimal(PRIOR, NOTHING, [part(*one) for one in spans], BOUND)
    for begin, end in spans:
        assert max(each(PRIOR, mechanism, begin, end, True)) <= BOUND * (1 + 1e-9)


def test_a_long_stay_against_who_does_not_see_it_is_covered_fix_by_fix() -> None:
    prior = Prior(DEFAULT_KERNEL, ride(241, 10.0).seconds)
    wanted = part(300.0, 2100.0, still=False, prior=prior)
    mechanism = optimal(prior, no_noise(prior.times), [wanted], BOUND)
    assert max(each(prior, mechanism, 300.0, 2100.0, False)) <= BOUND * (1 + 1e-9)
    assert mechanism.factor.shape[1] > 3


def test_uniform_noise_meets_the_target_and_hardly_more() -> None:
    wanted = [part(0.0, 0.0), part(300.0, 700.0)]
    mechanism = uniform(PRIOR, NOTHING, wanted, BOUND)
    assert mechanism.factor.shape[1] == 0
    worst = max(max(each(PRIOR, mechanism, *one, True)) for one in ((0.0, 0.0), (300.0, 700.0)))
    assert 0.999 * BOUND < worst <= BOUND * (1 + 1e-9)


def test_uniform_noise_has_an_end() -> None:
    with pytest.raises(Refused, match="with less than 300 km, got"):
        uniform(PRIOR, NOTHING, [part(0.0, 1200.0)], 1e-11)
    nearly_all = NOTHING.withholding(PRIOR.times > 30)
    enough = uniform(PRIOR, nearly_all, [part(1200.0, 1200.0)], 1e-3)
    assert enough.floor == pytest.approx(1e-4)  # nothing is missing: as good as none


def test_withholding_alone() -> None:
    near = (PRIOR.times >= 300) & (PRIOR.times <= 1100)
    base = NOTHING.withholding(near)
    assert only_withheld(PRIOR, base, [part(700.0, 700.0)], BOUND) is base
    with pytest.raises(Refused, match=r"got \d[\d.e+]* times its epsilon; withhold longer"):
        only_withheld(PRIOR, base, [part(320.0, 320.0)], BOUND)


def test_a_loss_far_below_the_bound_needs_no_noise() -> None:
    base = NOTHING.withholding(PRIOR.times < 1100)
    assert optimal(PRIOR, base, [part(0.0, 300.0)], BOUND) is base


def test_losses_at_once_that_come_out_too_small_are_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted = replace(part(300.0, 700.0), single=())
    # Less and less noise: the first fix is within the bound, the others are not.
    mechanism = Mechanism(PRIOR.times, (400 * np.exp(-PRIOR.times / 2000))[:, None])
    times = PRIOR.times[wanted.fixes]
    found = marginal_losses(PRIOR, Secret("x", times, np.eye(21)), mechanism, flat=True)
    assert found[0] == found.min() < 0.9 * found.max()
    monkeypatch.setattr(module, "fix_losses", lambda *_: np.full(21, 1e-12))
    loss = loss_of(PRIOR, mechanism, wanted, 1.01 * float(found[0]))
    assert loss == pytest.approx(found.max(), rel=1e-9)


def test_of_fixes_that_lose_alike_the_first_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding differs between computers; which fix gets noise first must not."""
    wanted = part(300.0, 700.0)
    for tilt in (1e-12, -1e-12):
        monkeypatch.setattr(
            module, "fix_losses", lambda *_, tilt=tilt: 1e-3 * (1 + tilt * np.arange(21))
        )
        _, at = module._worst_fix(PRIOR, NOTHING, wanted.fixes, 1e-12)
        assert at == 300.0


def test_scaling_that_does_not_help_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fix without noise of its own, a little above the bound: scaling nothing changes nothing."""
    base = NOTHING.withholding((PRIOR.times >= 240) & (PRIOR.times <= 760))
    wanted = replace(part(300.0, 700.0), single=())
    worst = loss_of(PRIOR, base, wanted, 1e-9)
    bound = worst / 1.01
    mechanism = optimal(PRIOR, base, [wanted], bound)
    assert mechanism.factor.shape[1] >= 1
    assert loss_of(PRIOR, mechanism, wanted, bound) <= bound


def test_what_never_settles_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "least_noise", lambda *_, existing, **__: existing)
    with pytest.raises(NumericalError, match="must settle"):
        optimal(PRIOR, NOTHING, [part(300.0, 700.0)], BOUND)
