"""What one adversary learns of many places: against one place at a time, and extended precision."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, Matern32, White, split
from trailveil.privacy.adversaries import DEFAULT, every
from trailveil.privacy.adversary import PLAIN, Adversary, exposures, far_from, known_path, span_of
from trailveil.privacy.adversary import value_losses as values_of_one
from trailveil.privacy.extended_loss import extended_loss
from trailveil.privacy.marginals import MarginalExposure, seen, value_losses
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.precision import given_one_value
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation, observe
from trailveil.privacy.secrets import Secret
from trailveil.privacy.values_beside import Beside, beside_values

WALK = IntegratedOU(3.0, 60.0) + White(2.0)
MOVING = WALK + Constant(1e5)
STAY = (900.0, 1500.0)
INSIDE = (900.0, 1111.0, 1500.0)
AT = 1200.0
# Of a few locations, fixes and known values: extended precision is the oracle, and slow.
TIMES = np.sort(np.random.default_rng(5).uniform(0, 2400, 32))
# With full matrices the default level of 100 km would be a matter for extended precision.
FORMS = {"dense": (10**9, WALK + Constant(1e3)), "in O(n)": (0, MOVING)}


def smooth(times: FloatArray, seed: int, *, height: float = 500.0, columns: int = 3) -> FloatArray:
    """Bumps of some hundred metres around the middle (n, r)."""
    random = np.random.default_rng(seed)
    middle = (times[0] + times[-1]) / 2
    middles = random.uniform(middle - 400, middle + 400, columns)
    widths = random.uniform(100, 500, columns)
    return height * np.exp(-(((times[:, None] - middles) / widths) ** 2))


def noise(seed: int, withheld: bool) -> Mechanism:
    released = np.ones(TIMES.size, dtype=np.bool_)
    if withheld:
        released[np.random.default_rng(seed).choice(TIMES.size, 8, replace=False)] = False
    return Mechanism(TIMES, smooth(TIMES, seed), 9.0 * (seed % 2), released=released)


def adversaries(kernel: Kernel, window: tuple[float, float] | None) -> list[Adversary]:
    adversaries = every(DEFAULT, kernel, [] if window is None else [window])
    hidden = Adversary("plain", unseen=() if window is None else (window,))
    return [hidden & one if window else one for one in adversaries]


def places_in_the_stay(prior: Prior) -> list[Secret]:
    fixes = prior.times[(prior.times >= STAY[0]) & (prior.times <= STAY[1])]
    return [*(Secret.at(time) for time in INSIDE), Secret.mean(fixes)]


def in_form(form: str, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The kernel to judge with in a form, which is the only one from here on."""
    most, kernel = FORMS[form]
    monkeypatch.setattr("trailveil.privacy.prior.LARGEST_DENSE", most)
    return kernel


def flat(prior: Prior, adversary: Adversary) -> float:
    level = split(prior.kernel if adversary.kernel is None else adversary.kernel)[1]
    return 1.0 / level if level else 0.0


def check_each(
    prior: Prior, places: list[Secret], mechanism: Mechanism, adversary: Adversary
) -> None:
    """Every place by itself, as trailveil.privacy.adversary has it.

    Both are from above by at most 1e-8 of the precision with the release; known values in O(n)
    have a doubt of 1e-9 of their own, which shared covariances may raise to some 1e-7. Where one is
    known, the level tells of a place up to four times what it tells of itself.
    """
    found = seen(prior, places, mechanism, adversary)
    for i, place in enumerate(places):
        worst = max(exposures(prior, place, mechanism, adversary), key=lambda each: each.loss)
        near = 1e-6 * worst.after**-2
        more = (4.0 if adversary.point else 1.0) * flat(prior, adversary)
        assert found.losses[i] >= worst.loss + flat(prior, adversary) - near
        assert found.losses[i] <= worst.loss + more + near
        assert found.after[i] == pytest.approx(worst.after, rel=1e-6)
        assert found.before[i] == pytest.approx(worst.before, rel=1e-6)
        assert found.at[i] == worst.at


@pytest.mark.parametrize("withheld", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", range(10))
def test_places_of_a_stay(
    number: int, form: str, withheld: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = in_form(form, monkeypatch)
    prior = Prior(kernel, TIMES)
    one = adversaries(kernel, STAY)[number]
    check_each(prior, places_in_the_stay(prior), noise(number, withheld), one)


@pytest.mark.parametrize("adversary", [PLAIN, Adversary.knows_point()])
def test_no_level_however_large_lets_more_be_learnt(adversary: Adversary) -> None:
    # Two places a minute apart tell where the series began, were its level known at all.
    mechanism, place = noise(1, False), Secret.at(AT)
    stated = WALK + Constant(3e3)
    found = seen(Prior(stated, TIMES), [place], mechanism, adversary)
    for more in (1e4, 1e5):
        flatter = Prior(stated + Constant(more), TIMES)
        worst = max(each.loss for each in exposures(flatter, place, mechanism, adversary))
        assert worst <= found.losses[0] * (1 + 1e-9)


@pytest.mark.parametrize("withheld", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", range(5))
def test_a_time(number: int, form: str, withheld: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = in_form(form, monkeypatch)
    one = adversaries(kernel, None)[number]
    check_each(Prior(kernel, TIMES), [Secret.at(AT)], noise(number, withheld), one)


@pytest.mark.parametrize(
    "kernel",
    [
        WALK,
        Matern32(80.0, 300.0) + White(1.0) + Constant(1000.0),
        RBF(100.0, 300.0) + White(2.0) + Constant(1e3),
    ],
    ids=["without a level", "of its own kind", "not Markov"],
)
@pytest.mark.parametrize(
    "adversary", [PLAIN, Adversary.knows_point(), Adversary.knows_path()], ids=lambda x: x.name
)
def test_other_priors(kernel: Kernel, adversary: Adversary) -> None:
    hidden = Adversary("plain", unseen=(STAY,)) & adversary
    times = TIMES[::2]
    prior, mechanism = Prior(kernel, times), Mechanism(times, smooth(times, 1))
    check_each(prior, places_in_the_stay(prior), mechanism, hidden)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("number", range(10))
def test_never_optimistic(number: int, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against arithmetic of as many digits as it takes, for whatever the adversary may know."""
    kernel = in_form(form, monkeypatch)
    times = TIMES[::2]
    prior, one = Prior(kernel, times), adversaries(kernel, STAY)[number]
    mechanism = Mechanism(times, smooth(times, number), released=np.arange(times.size) % 5 > 0)
    place = Secret.at(INSIDE[1])
    found = seen(prior, [place], mechanism, one)
    judge, span = one.prior(prior), span_of(place, one)
    known = [known_path(judge, span, one)]
    if one.point is not None:
        assert found.at[0] is not None
        some = {found.at[0], *far_from(judge, span, one.point.away)[::3].tolist()}
        known += [SideInformation(np.array([time]), one.point.accuracy) for time in some]
    truth = [extended_loss(judge, place, mechanism, what)[0, 0] for what in known]
    assert found.losses[0] >= max(truth) + flat(prior, one) * (1 - 1e-6)
    assert found.losses[0] == pytest.approx(max(truth) + flat(prior, one), rel=1e-4)


@pytest.mark.parametrize("adversary", [PLAIN, Adversary.knows_point()], ids=lambda x: x.name)
def test_numerical_doubt_is_counted_against_us(adversary: Adversary) -> None:
    """Full matrices beside a level of 100 km: there is some doubt."""
    prior, place = Prior(MOVING, TIMES), Secret.at(AT)
    mechanism = Mechanism(TIMES, smooth(TIMES, 2, height=1.0))
    observation = observe(prior, mechanism)
    own = observation.posterior(place)
    left, doubt = own.covariance[0, 0], own.slack[0]
    if adversary.point is not None:
        beside = beside_values(observation, place, far_from(prior, (AT, AT), adversary.point.away))
        told = beside.shared[0] ** 2 / (beside.variances[1:] + adversary.point.accuracy**2)
        left -= told.max()
    assert doubt > 1e-11 * left  # far more than one operation rounds
    least = seen(prior, [place], mechanism, adversary).least[0]
    assert left - 1e-3 * left < least**2 <= left - doubt * (1 - 1e-3)


def test_of_a_known_value_first_order_errors_of_the_weights_are_made_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A case where they would lower the loss by 3e-6 of it, thousands of times the doubt."""
    random = np.random.default_rng(5)
    times, released = np.sort(random.uniform(0, 2400, 48)), np.ones(48, dtype=np.bool_)
    released[np.random.default_rng(6).choice(48, 12, replace=False)] = False
    prior, mechanism = Prior(MOVING, times), Mechanism(times, smooth(times, 6), released=released)
    one = (
        Adversary("plain", unseen=(STAY,))
        & Adversary.knows_point()
        & Adversary.sees_stillness([STAY])
    )
    place = Secret.at(STAY[0])
    in_form("in O(n)", monkeypatch)
    found = seen(prior, [place], mechanism, one)
    assert found.at[0] is not None
    known = SideInformation(np.array([found.at[0]]), 10.0)
    truth = extended_loss(one.prior(prior), place, mechanism, known)[0, 0]
    assert truth <= found.losses[0] <= truth * (1 + 1e-6)


def cut(times: FloatArray, rows: slice) -> tuple[FloatArray, float]:
    own = times[rows]
    return own - own[0], float(own[0])


def moved(adversary: Adversary, by: float) -> Adversary:
    still = tuple((a - by, b - by) for a, b in adversary.still)
    unseen = tuple((a - by, b - by) for a, b in adversary.unseen)
    return replace(adversary, still=still, unseen=unseen)


def of_the_whole_and_of_a_crop(
    seed: int, number: int, margin: int, step: float, *, edges: bool = True
) -> tuple[FloatArray, MarginalExposure, FloatArray]:
    """What is said of the whole recording, of a crop of it, and how precisely it is known."""
    random = np.random.default_rng(seed)
    inside, outside = 30, 40
    count = inside + 2 * margin + 2 * outside
    times = np.cumsum(random.uniform(0.5 * step, 1.5 * step, count))
    noisy = slice(outside + margin, outside + margin + inside)
    factor = np.zeros((count, 3))
    factor[noisy] = smooth(times[noisy], seed, height=400.0)
    begin, end = (float(times[outside + margin + inside * k // 3]) for k in (1, 2))
    hidden = Adversary("plain", unseen=((begin, end),))
    one = hidden & every(DEFAULT, MOVING, [(begin, end)])[number]
    moments = [begin] if one.still else [begin, (begin + end) / 2, end]
    whole = Prior(MOVING, times)
    rows = slice(outside, count - outside)
    own, start = cut(times, rows)
    places = [Secret.at(time) for time in moments]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trailveil.privacy.prior.LARGEST_DENSE", 0)
        said = [exposures(whole, place, Mechanism(times, factor), one) for place in places]
        found = seen(
            Prior(MOVING, own),
            [Secret.at(time - start) for time in moments],
            Mechanism(own, factor[rows]),
            moved(one, start),
            edges=(0.0, float(own[-1])) if edges else (),
        )
    worst = [max(each, key=lambda found: found.loss) for each in said]
    losses = np.array([each.loss for each in worst])
    return losses, found, np.array([each.after**-2 for each in worst])


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    number=st.integers(0, 9),
    margin=st.integers(15, 40),
    step=st.sampled_from([5.0, 20.0, 120.0]),
)
def test_a_crop_is_said_to_tell_at_least_as_much_as_the_whole(
    seed: int, number: int, margin: int, step: float
) -> None:
    losses, found, precision = of_the_whole_and_of_a_crop(seed, number, margin, step)
    assert np.all(found.losses >= losses - 1e-9 * precision)


@pytest.mark.parametrize("number", range(10))
def test_a_crop_with_long_margins_says_the_same(number: int) -> None:
    losses, found, precision = of_the_whole_and_of_a_crop(number, number, 60, 20.0)
    assert found.losses - 1e-10 == pytest.approx(losses, abs=float(1e-6 * precision.max()))


@pytest.mark.parametrize("number", [0, 5, 8])
@pytest.mark.parametrize("seed", range(4))
def test_a_crop_without_a_margin_relies_on_its_edges(seed: int, number: int) -> None:
    losses, found, _ = of_the_whole_and_of_a_crop(seed, number, 1, 5.0)
    assert np.all(found.losses >= losses)


def test_without_its_edges_a_short_crop_would_say_less() -> None:
    losses, found, _ = of_the_whole_and_of_a_crop(1, 0, 1, 5.0, edges=False)
    assert np.any(found.losses < 0.999 * losses)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("withheld", [False, True])
def test_losses_with_each_value_known(
    withheld: bool, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = in_form(form, monkeypatch)
    prior, mechanism = Prior(kernel, TIMES), noise(2, withheld)
    hidden = Adversary("plain", unseen=(STAY,)) & Adversary.knows_point()
    places = places_in_the_stay(prior)
    points, losses = value_losses(prior, places, mechanism, hidden)
    assert losses.shape == (len(places), points.size)
    assert np.array_equal(points, far_from(prior, STAY, 60.0))
    for i, place in enumerate(places):
        times, expected = values_of_one(prior, place, mechanism, hidden)
        assert np.array_equal(points, times)
        left = max(exposures(prior, place, mechanism, hidden), key=lambda one: one.loss).after
        assert losses[i] == pytest.approx(np.maximum(expected, 0), abs=1e-6 * left**-2)


def test_nobody_who_knows_no_value_has_losses_of_values() -> None:
    prior, places = Prior(MOVING, TIMES), [Secret.at(AT)]
    for one in (PLAIN, Adversary.knows_path(), Adversary.knows_point(away=1e5)):
        points, losses = value_losses(prior, places, noise(1, False), one)
        assert points.shape == (0,)
        assert losses.shape == (1, 0)
    alone = seen(prior, places, noise(1, False), PLAIN)
    nothing = seen(prior, places, noise(1, False), Adversary.knows_point(away=1e5))
    assert nothing.losses == pytest.approx(alone.losses, rel=1e-12)
    assert nothing.at == (None,)


def test_what_cannot_be_judged_together_is_refused() -> None:
    prior, mechanism = Prior(MOVING, TIMES), noise(1, False)
    together = "places that are judged together must be single and in one span"
    for places in ([Secret.at([900.0, 950.0])], [Secret.at(900.0), Secret.at(950.0)]):
        for judge in (seen, value_losses):
            with pytest.raises(InvalidValue, match=together):
                judge(prior, places, mechanism, PLAIN)
    # Times of one stay are together where the stay is seen, or secret as a whole.
    seen(prior, [Secret.at(900.0), Secret.at(950.0)], mechanism, Adversary.sees_stillness([STAY]))
    with pytest.raises(InvalidValue, match="must not know a value and the path here, got both"):
        seen(prior, [Secret.at(AT)], mechanism, Adversary.knows_point() & Adversary.knows_path())


def test_what_double_precision_cannot_say_is_said_one_by_one() -> None:
    times, level = TIMES[::2], 1e5
    prior = Prior(IntegratedOU(3.0, 60.0) + White(1e-9) + Constant(level), times)
    place = Secret.at(float(times[10]))
    found = seen(prior, [place], no_noise(times), PLAIN)
    truth = extended_loss(prior, place, no_noise(times), NOTHING_KNOWN)[0, 0]
    assert found.losses[0] == pytest.approx(truth, rel=1e-9)
    assert found.least == found.after == pytest.approx(truth**-0.5, rel=1e-9)
    assert found.known == found.before == pytest.approx(level, rel=0.01)
    # Of a crop there is no such way.
    with pytest.raises(NumericalError, match="the place must not be determined to within rounding"):
        seen(prior, [place], no_noise(times), PLAIN, edges=[float(times[0])])


@pytest.mark.parametrize(
    "adversary", [PLAIN, Adversary.knows_point(), Adversary.knows_path()], ids=lambda x: x.name
)
def test_one_by_one_is_the_same(adversary: Adversary, monkeypatch: pytest.MonkeyPatch) -> None:
    prior, hidden = (
        Prior(WALK + Constant(1e3), TIMES),
        Adversary("plain", unseen=(STAY,)) & adversary,
    )
    places, mechanism = places_in_the_stay(prior), noise(3, True)
    expected = seen(prior, places, mechanism, hidden)

    def fails(*_: object) -> None:
        raise NumericalError("too hard")

    monkeypatch.setattr("trailveil.privacy.marginals._seen", fails)
    found = seen(prior, places, mechanism, hidden)
    for name in ("losses", "before", "after", "known", "least"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=2e-5), name
    assert found.at == expected.at


@pytest.mark.parametrize("form", FORMS)
def test_the_least_that_is_left_whatever_is_known(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most is learnt where little is known; least is left where much is."""
    kernel = in_form(form, monkeypatch)
    prior, mechanism = Prior(kernel, TIMES), noise(2, False)
    found = seen(prior, [Secret.at(AT)], mechanism, Adversary.knows_point())
    points, losses = values_of_one(prior, Secret.at(AT), mechanism, Adversary.knows_point())
    before = given_one_value(prior, Secret.at(AT), points, 10.0)[:, 0, 0]
    alone = seen(prior, [Secret.at(AT)], mechanism, PLAIN)
    least = min(float(np.min((1 / before + losses) ** -0.5)), float(alone.after[0]))
    assert found.least[0] == pytest.approx(least, rel=1e-6)
    assert found.known[0] == pytest.approx(float(np.sqrt(before.min())), rel=1e-6)
    assert found.least[0] <= found.after[0]
    for exposure in exposures(prior, Secret.at(AT), mechanism, Adversary.knows_point()):
        assert exposure.least == pytest.approx(least, rel=1e-6)
        assert exposure.least <= exposure.after
    assert found.known[0] < 0.5 * alone.before[0]


def test_more_doubt_of_a_known_value_than_it_varies_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A divisor below zero would leave more of the place with the value known than without it."""
    prior, place = Prior(MOVING, TIMES), Secret.at(float(TIMES[20]))

    def doubted(_: object, __: object, points: FloatArray) -> Beside:
        ones = np.ones(points.size)
        variances = np.append([1e4], 100.0 * ones)
        return Beside(
            np.array([[1e4]]), 50.0 * ones[None], variances, np.append([0.0], 21.0 * ones)
        )

    monkeypatch.setattr("trailveil.privacy.marginals.beside_values", doubted)
    with pytest.raises(NumericalError, match="must not be determined to within rounding"):
        value_losses(prior, [place], noise(0, False), Adversary.knows_point())
