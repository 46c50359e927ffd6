"""Each attack finds the place within a few metres in a release that is weak against it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.checks.attacks.weak import (
    DRAWS,
    HOME,
    INSIDE,
    SECRET,
    STAY,
    TIMES,
    knowledge,
    nothing_of,
    recorded,
    view,
    white,
)
from trailveil.checks.attacks.contract import Attack, Background, Evidence, TruePlaces
from trailveil.checks.attacks.estimators import (
    average,
    circle_of_holes,
    circle_of_stay,
    edges_of_hole,
    kalman_smoother,
    known_paths,
    noise_size,
)
from trailveil.checks.attacks.posterior import posterior_mean, repeated_releases
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, Matern32, White
from trailveil.privacy.adversary import Adversary
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.secrets import Secret


def errors(attack: Attack, evidence: Evidence, known: Background) -> FloatArray:
    (estimate,) = attack(evidence, known)
    assert estimate is not None
    return estimate.errors(HOME)


def noise(std: float, seed: int = 1) -> FloatArray:
    return std * np.random.default_rng(seed).standard_normal((DRAWS, TIMES.size, 2))


def test_averaging_undoes_independent_noise() -> None:
    """121 fixes with 50 m each: 4.5 m per coordinate; all of 40 draws below 5 of these."""
    distances = errors(average, view(noise(50.0), white(50.0)), knowledge(white(50.0)))
    assert distances.max() < 23
    assert np.sqrt(np.mean(distances**2) / 2) == pytest.approx(50 / np.sqrt(INSIDE.sum()), rel=0.4)


def test_a_smoother_undoes_independent_noise_whose_size_it_is_not_told() -> None:
    distances = errors(kalman_smoother, view(noise(30.0), white(30.0)), knowledge(None))
    assert np.median(distances) < 8
    assert distances.max() < 20


def test_a_smoother_smooths_as_much_as_the_noise_asks_for() -> None:
    """A walk past a secret place with 30 m of noise: 35 m off is the fix itself in the median."""
    passed, evidence = recorded(np.array([300.0]))[0], view(noise(30.0), white(30.0))
    (estimate,) = kalman_smoother(evidence, replace(knowledge(None), secrets=(Secret.at(300.0),)))
    assert estimate is not None
    assert np.median(estimate.errors(passed)) < 22
    raw = evidence.places[:, TIMES == 300.0][:, 0] - passed
    assert np.median(np.hypot(raw[:, 0], raw[:, 1])) > 28
    assert np.median(noise_size(evidence, 300.0, 300.0)) == pytest.approx(30.0, rel=0.1)


def test_a_posterior_undoes_noise_that_the_prior_can_tell_apart() -> None:
    known = replace(knowledge(white(50.0)), adversary=Adversary.sees_stillness([STAY]))
    assert np.median(errors(posterior_mean, view(noise(50.0), white(50.0)), known)) < 7


def test_another_prior_is_enough_against_weak_noise() -> None:
    other = Adversary.believes("another", Matern32(107.0, 200.0) + Constant(1e5) + White(2.0))
    known = replace(knowledge(white(30.0)), adversary=other)
    assert np.median(errors(posterior_mean, view(noise(30.0), white(30.0)), known)) < 8


def test_a_true_place_undoes_noise_that_all_fixes_share() -> None:
    """All is moved by one distance of hundreds of metres: who knows one fix knows them all."""
    shift = Mechanism(TIMES, np.full((TIMES.size, 1), 500.0))
    same = 500.0 * np.random.default_rng(2).standard_normal((DRAWS, 1, 2))
    evidence = view(np.broadcast_to(same, (DRAWS, TIMES.size, 2)), shift)
    away = np.array([100.0])
    places = np.broadcast_to(recorded(away), (DRAWS, 1, 2))
    known = replace(knowledge(shift), true=TruePlaces(away, places, 1.0))
    assert errors(posterior_mean, evidence, known).max() < 5
    assert np.median(errors(posterior_mean, evidence, knowledge(shift))) > 100


def test_a_circle_undoes_moving_every_fix_by_one_distance() -> None:
    """Donut masking: 200 m in any direction, and a little more."""
    random = np.random.default_rng(3)
    turns = random.uniform(0, 2 * np.pi, (DRAWS, TIMES.size))
    moved = 200.0 * np.stack([np.cos(turns), np.sin(turns)], axis=-1) + noise(3.0, 4)
    evidence = view(moved, white(1.0))
    assert errors(circle_of_stay, evidence, knowledge(None)).max() < 4
    assert np.median(errors(average, evidence, knowledge(None))) > 8


def test_the_edges_of_a_short_hole_tell_what_is_in_it() -> None:
    """A walk past a secret place, withheld for two minutes: it goes straight on."""
    passed = Secret.at(300.0)
    hidden = nothing_of(np.abs(TIMES - 300.0) < 60)
    known = replace(knowledge(hidden), secrets=(passed,))
    (estimate,) = edges_of_hole(view(noise(2.0), hidden), known)
    assert estimate is not None
    assert estimate.errors(recorded(np.array([300.0]))[0]).max() < 12


def test_the_last_edge_tells_where_somebody_was_about_to_arrive() -> None:
    """Withheld from 30 s before the end on, at a walk: 45 m to go, and the speed is known."""
    hidden = nothing_of(STAY[0] - 30 < TIMES)
    evidence = view(noise(1.0), hidden)
    (estimate,) = edges_of_hole(evidence, replace(knowledge(hidden), secrets=(Secret.at(STAY[0]),)))
    assert estimate is not None
    assert np.median(estimate.errors(HOME)) < 12
    last = evidence.places[:, -1] - HOME
    assert np.median(np.hypot(last[:, 0], last[:, 1])) > 40


def test_holes_of_one_radius_have_one_centre() -> None:
    """A zone of 200 m, entered and left in different directions, in two visits."""
    times = np.arange(0.0, 4001.0, 5.0)
    here = np.concatenate([_line(0.0, 2.0, 401), _line(1.9, 4.4, 400)]) + HOME
    hidden = np.hypot(*(here - HOME).T) < 200
    mechanism = Mechanism(times, np.empty((times.size, 0))).withholding(hidden)
    evidence = Evidence(times[~hidden], here[None, ~hidden])
    secrets = (Secret.at(1000.0), Secret.at(3000.0))
    estimates = circle_of_holes(evidence, Background(secrets, knowledge(None).kernel, mechanism))
    assert all(estimate is not None and estimate.errors(HOME)[0] < 10 for estimate in estimates)


def _line(from_way: float, to_way: float, count: int) -> FloatArray:
    """Through the middle from one direction (radians) to another, 600 m each."""
    far = np.linspace(600, -600, count)
    ways = np.where(far > 0, from_way, to_way)
    return np.asarray(np.abs(far)[:, None] * np.stack([np.cos(ways), np.sin(ways)], axis=1))


def test_repeated_releases_average_out() -> None:
    """All fixes are moved by 500 m; 400 releases leave 25 m: a median distance of 29 m."""
    common = Mechanism(TIMES, np.full((TIMES.size, 1), 500.0))
    shifts = 500.0 * np.random.default_rng(5).standard_normal((DRAWS, 400, 1, 2))
    evidence = view(np.broadcast_to(shifts[:, 0], (DRAWS, TIMES.size, 2)), common)
    others = np.broadcast_to(recorded() + shifts[:, 1:], (DRAWS, 399, TIMES.size, 2))
    known = replace(knowledge(common), others=others)
    assert np.median(errors(repeated_releases, evidence, known)) < 45
    alone = replace(known, others=None)
    assert np.median(errors(posterior_mean, evidence, alone)) > 200
    with pytest.raises(InvalidValue, match="further releases, got none"):
        repeated_releases(evidence, alone)


@pytest.mark.parametrize("hidden_from", [500.0, 560.0])
def test_an_earlier_ride_tells_where_this_one_ends(hidden_from: float) -> None:
    """The end is withheld; an earlier track of the same way goes on to the place, and ends."""
    hidden = nothing_of(hidden_from < TIMES)
    earlier = recorded(np.arange(0.0, 601.0, 6.0)) + np.array([0.0, 3.0])
    elsewhere = earlier + np.array([0.0, 900.0])
    known = replace(knowledge(hidden), tracks=(elsewhere, earlier))
    assert errors(known_paths, view(noise(2.0), hidden), known).max() < 6
    alone = replace(known, tracks=(elsewhere,))
    assert known_paths(view(noise(2.0), hidden), alone) == (None,)
    with pytest.raises(InvalidValue, match="earlier tracks, got none"):
        known_paths(view(noise(2.0), hidden), knowledge(hidden))


def test_an_earlier_ride_tells_what_is_between_two_edges() -> None:
    """A detour that no smoothness gives away: 400 m to the side, withheld as a whole."""
    times = np.arange(0.0, 1001.0, 5.0)
    here = np.stack([times, np.zeros(times.size)], axis=1)
    within = (times >= 300) & (times <= 700)
    here[within, 1] = 400 * np.sin(np.pi * (times[within] - 300) / 400)
    hidden = Mechanism(times, np.empty((times.size, 0))).withholding(within)
    evidence = Evidence(times[~within], here[None, ~within])
    known = Background((Secret.at(500.0),), knowledge(None).kernel, hidden, tracks=(here[::3],))
    (estimate,) = known_paths(evidence, known)
    (other,) = edges_of_hole(evidence, known)
    assert estimate is not None
    assert other is not None
    assert estimate.errors(np.array([500.0, 400.0]))[0] < 10
    assert other.errors(np.array([500.0, 400.0]))[0] > 300


def test_attacks_without_anything_to_go_by_say_so() -> None:
    hidden = nothing_of(INSIDE)
    evidence = view(noise(2.0), hidden)
    assert average(evidence, knowledge(hidden)) == (None,)
    assert circle_of_stay(evidence, knowledge(hidden)) == (None,)
    assert circle_of_holes(evidence, knowledge(hidden)) == (None,)
    assert edges_of_hole(view(noise(2.0), white(100.0)), knowledge(white(100.0))) == (None,)
    at_once = replace(knowledge(hidden), secrets=(Secret.at(900.0),))
    assert average(evidence, at_once) == (None,)  # the nearest fix is 300 s away
    everything = nothing_of(np.ones(TIMES.size, dtype=bool))
    for attack in (posterior_mean, kalman_smoother, average, circle_of_stay, edges_of_hole):
        assert attack(view(noise(2.0), everything), knowledge(everything)) == (None,)
    for attack in (posterior_mean, repeated_releases):
        with pytest.raises(InvalidValue):
            attack(evidence, knowledge(None))
    with pytest.raises(InvalidValue, match="release 361 fixes, got 240"):
        posterior_mean(view(noise(2.0), white(1.0)), knowledge(hidden))
    assert SECRET.size == 1
