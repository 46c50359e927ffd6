"""What a release tells with all before it: exact where it can be, and never too little."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rides import ride
from trailveil.errors import Refused
from trailveil.gp.clocks import stopped
from trailveil.gp.kernels import Kernel
from trailveil.ledger import Ledger, Mark
from trailveil.ledger.accounting import account
from trailveil.ledger.commit import Receipt, known_places, publish
from trailveil.ledger.counting import check_total
from trailveil.ledger.marks import marks_of
from trailveil.ledger.places import EVERYTHING, places_told, save_places
from trailveil.ledger.recorded import from_bytes, packed, to_bytes
from trailveil.privacy.adversaries import Named, at_speed
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.secrets import Secret
from trailveil.release.everywhere import plan_everywhere
from trailveil.release.places import Place, designed
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.projection import Frame
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace
from trailveil.traces.visits import Circle

AT, PLAIN = (48.137, 11.575), (Named.PLAIN,)
BEGIN, DAY = 1_715_672_400, 86_400
# Who goes so fast is away soon: cuts are short.
CUT = Request((), who=PLAIN, floor=10.0, middle=10.0)
NOISE = Request((), who=PLAIN, method=Method.NOISE)
HOME = designed(
    Place(*("home", Circle(*AT, 150.0), 300.0, 1.0, 5.0, 1, None, "default", PLAIN), b"h" * 16)
)


def day(number: float, count: int = 60) -> Trace:
    return ride(count, 20.0, still=(0, 9), seed=int(number), begin=int(BEGIN + number * DAY), at=AT)


def released(
    ledger: Ledger,
    trace: Trace,
    output: Path,
    *,
    at: str = "start+10m",
    again: bool = False,
    limit: float | None = None,
    subject: str = "me",
    epsilon: float = 1.0,
    asked: Request | None = None,
) -> Receipt[Trace]:
    places = known_places(ledger, trace, subject=subject)
    asked = asked or replace(CUT, epsilon=epsilon)
    request = requested(trace, Chosen((at,), returns=False, ends=False), asked, places)
    plan = protect(trace, request, places=places)
    return publish(plan, ledger, output, again=again, limit=limit, subject=subject)


def slow(plan: Plan) -> Kernel:
    """The prior of somebody of the slowest pace that is promised."""
    kernel = at_speed(plan.request.kernel, plan.request.slowest.speed)
    assert kernel is not None
    return kernel


def shifted(plan: Plan, seconds: float) -> Mechanism:
    return replace(plan.mechanism, times=plan.mechanism.times + seconds)


def test_parts_without_a_name_add_up_as_if_all_were_one_place(
    ledger: Ledger, tmp_path: Path
) -> None:
    totals = []
    for number in range(3):
        total = released(ledger, day(number), tmp_path / f"{number}.gpx").account
        assert total is not None
        # Cuts are of whole seconds: of 76 s to a third power, that is some 4 %.
        assert 0.95 < total.epsilon <= 1.0
        # The prior tells hardly anything of a ride from that of the day before.
        assert total.epsilon <= total.times < total.epsilon + 0.01
        totals.append(total.one_place / total.epsilon)
        assert total.known == total.times  # nobody knows that they are one
    assert totals == pytest.approx([1.0, 2.0, 3.0], rel=1e-9)
    other = released(ledger, day(0), tmp_path / "other.gpx", subject="you").account
    assert other is not None
    assert other.one_place == pytest.approx(other.epsilon, rel=1e-9)


def test_of_noise_a_part_counts_by_the_slowest_pace_that_is_promised() -> None:
    """It is what is proved: joint conditioning of the whole release tells less, still or not."""
    trace = day(0)
    plan = protect(
        trace, requested(trace, Chosen(("start+10m",), returns=False, ends=False), NOISE)
    )
    (mark,) = marks_of(plan)
    still = slow(plan).warp(stopped([(300.0, 900.0)]))
    moving, standing = (
        joint_loss(kernel, [Release(plan.mechanism)], Secret.at(600.0)).matrix[0, 0]
        for kernel in (slow(plan), still)
    )
    assert moving < standing < mark.information[0] == pytest.approx(plan.request.bound)
    assert standing > 0.8 * mark.information[0]


@pytest.mark.parametrize(("at", "both"), [((48.137, 12.5), 1.0), ((47.999, 11.575), 2.0)])
def test_parts_that_are_far_apart_are_not_one_place(
    ledger: Ledger, tmp_path: Path, at: tuple[float, float], both: float
) -> None:
    """In another whole degree; a place at the border of two is in both."""
    first = ride(60, 20.0, seed=1, begin=BEGIN, at=(48.0005, 11.575) if both == 2 else AT)
    other = ride(60, 20.0, seed=2, begin=BEGIN + 40 * DAY, at=at)
    released(ledger, first, tmp_path / "a.gpx")
    total = released(ledger, other, tmp_path / "b.gpx").account
    assert total is not None
    assert total.one_place == pytest.approx(both * total.epsilon, rel=1e-9)
    assert total.total == pytest.approx(both * total.epsilon, rel=2e-3)


@pytest.mark.parametrize("years", [-11, 11])
def test_what_is_years_away_adds_nothing(ledger: Ledger, tmp_path: Path, years: int) -> None:
    """Numbers of 600 million seconds hold no hundredths: it is reckoned as if two days away."""
    who = (Named.SPEEDS,)
    for number, when in enumerate((0, years * 365)):
        trace = ride(940, 5.0, seed=number, begin=BEGIN + when * DAY, at=AT)
        plan = protect(
            trace, requested(trace, Chosen(("start",), ends=False), Request((), who=who))
        )
        total = publish(plan, ledger, tmp_path / f"{number}.gpx").account
        assert total is not None
        assert total.times == pytest.approx(total.epsilon, abs=1e-5)


def test_past_a_limit_a_release_is_refused_and_what_fits_is_said(
    ledger: Ledger, tmp_path: Path
) -> None:
    released(ledger, day(0), tmp_path / "0.gpx", limit=1.5)
    with pytest.raises(Refused, match=r"1\.5, got 1\.93.* about --epsilon 0\.55 would") as _:
        released(ledger, day(1), tmp_path / "1.gpx", limit=1.5)
    assert not (tmp_path / "1.gpx").exists()
    assert ledger.verify() == 1
    released(ledger, day(1), tmp_path / "1.gpx", limit=1.5, epsilon=0.55)
    with pytest.raises(Refused, match="nothing more fits"):
        released(ledger, day(2), tmp_path / "2.gpx", limit=1.0)
    # The same again costs nothing, whatever the limit.
    (tmp_path / "0.gpx").unlink()
    assert released(ledger, day(0), tmp_path / "0.gpx", limit=0.1).account is not None


def test_a_place_with_a_name_is_one_secret_of_all_its_visits(
    ledger: Ledger, tmp_path: Path
) -> None:
    save_places(ledger, [HOME])
    accounts = [
        released(ledger, day(n), tmp_path / f"{n}.gpx", at="end", asked=NOISE).account
        for n in range(3)
    ]
    totals, scale = [], 2.5 * (300.0 * (1 + Frame.SCALE_ERROR)) ** 2
    for number, total in enumerate(accounts, start=1):
        assert total is not None
        (home,) = total.places
        # Noise for one way: what more of them tell grows no faster than their number.
        totals.append(home.total)
        assert home.total == pytest.approx(scale * HOME.noise.loss(number, HOME.request))
        assert (home.releases, home.moved, home.more) == (number, number, 0)
        assert home.at_most == pytest.approx(home.total + total.one_place * 9, rel=1e-9)
    assert 0.99 < totals[0] <= 1 < totals[1] < totals[2] < 3 * totals[0]
    with ledger.open() as book:
        (home,) = places_told(book, [HOME], "me")
        assert home.total == totals[2]
        # Where it is stated anew: of noise that was another, up to its ways its whole epsilon.
        other = designed(replace(HOME, epsilon=0.5))
        (home,) = places_told(book, [other], "me")
        assert home.total == pytest.approx(3.0)
        (draw,) = book.totals("me", HOME.ident)
        less = Mark(HOME.ident, draw, np.array([-2.6 * HOME.request.bound, -2.6]))
        book.add(replace(book.entry(1, b""), marks=(less,)))
        (home,) = places_told(book, [other], "me")
        assert home.total == pytest.approx(1.0)


def test_what_an_earlier_version_counted_of_a_place_still_counts(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Information on p and d = c + p, c of a known covariance: by conditioning on all of it."""
    rng = np.random.default_rng(5)
    root = np.tril(rng.normal(size=(3, 3))) * 50 + 200 * np.eye(3)
    design = np.hstack([rng.uniform(size=(40, 1)), rng.uniform(size=(40, 3))])
    information = np.array([design.T @ design / 900.0, design.T @ design / 400.0])
    columns = design[:, 1:] @ root  # d = c + p
    both = design.sum(axis=1)
    cover = columns @ columns.T + 400.0 * np.eye(40)
    exact = float(both @ np.linalg.solve(cover, both))
    plan, draw_name = (
        protect(day(0), requested(day(0), Chosen(("end",), returns=False), NOISE)),
        b"e" * 16,
    )
    publish(plan, ledger, tmp_path / "a.gpx")
    blob = to_bytes({**from_bytes(packed(plan))[0], f"root {draw_name.hex()}": root})
    with ledger.open() as book:
        entry = book.entry(1, b"")
        book.add(replace(entry, blob=blob, marks=(Mark(HOME.ident, draw_name, information),)))
        (home,) = places_told(book, [HOME], "me")
    scale = 2.5 * (300.0 * (1 + Frame.SCALE_ERROR)) ** 2
    assert home.total == pytest.approx(scale * exact, rel=1e-6)


def test_a_part_of_a_released_ride_with_nothing_of_its_own_costs_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Its noise is that of the place alone: it says what was said."""
    save_places(ledger, [HOME])
    trace = ride(30, 20.0, still=(0, 29), begin=BEGIN, at=AT)

    def only_home(trace: Trace, name: str) -> Receipt[Trace]:
        places = known_places(ledger, trace)
        request = requested(trace, Chosen(returns=False), NOISE, places)
        assert request.stretches == ()
        plan = protect(trace, request, places=places)
        return publish(plan, ledger, tmp_path / name, again=True)

    first = only_home(trace, "a.gpx").account
    second = only_home(trace.only(np.arange(30) % 2 == 0), "b.gpx").account
    assert first is not None
    assert second is not None
    assert second.overlapping == 1
    assert second.places[0].total == pytest.approx(first.places[0].total, rel=1e-9)


def test_who_stands_still_within_what_is_uncertain_is_counted_with_two_releases(
    ledger: Ledger, tmp_path: Path
) -> None:
    """Of a fix a minute, two noises: what is promised of each holds for any movement there."""
    trace = ride(12, 60.0, begin=BEGIN, at=AT)
    asked = requested(trace, Chosen(("start+6m",), returns=False, ends=False), NOISE)
    plans = [protect(trace, replace(asked, epsilon=epsilon)) for epsilon in (0.5, 1.0)]
    publish(plans[0], ledger, tmp_path / "a.gpx")
    total = publish(plans[1], ledger, tmp_path / "b.gpx", again=True).account
    assert total is not None
    releases, scale = [Release(plan.mechanism) for plan in plans], 2.5 * (100.1) ** 2
    moving, standing = (
        scale * joint_loss(kernel, releases, Secret.at(360.0)).matrix[0, 0]
        for kernel in (slow(plans[1]), slow(plans[1]).warp(stopped([(300.0, 420.0)])))
    )
    assert 1 < moving < standing * (1 - 1e-5)
    assert total.times == pytest.approx(standing, rel=1e-9)


def test_two_noises_of_few_columns_tell_all(ledger: Ledger, tmp_path: Path) -> None:
    trace = day(0, 24)
    asked = requested(trace, Chosen(("start+5m",), returns=False, ends=False), NOISE)
    publish(protect(trace, asked), ledger, tmp_path / "a.gpx")
    second = protect(trace, replace(asked, epsilon=0.5))
    total = publish(second, ledger, tmp_path / "b.gpx", again=True).account
    assert total is not None
    assert total.times > 1e9


def test_what_cannot_be_computed_counts_as_everything(ledger: Ledger, tmp_path: Path) -> None:
    """A changed place, released again at the same times: the draws are two, and the way is one."""
    save_places(ledger, [HOME])
    trace = day(0)
    released(ledger, trace, tmp_path / "a.gpx", asked=NOISE)
    save_places(ledger, [designed(replace(HOME, epsilon=0.9))])
    total = released(ledger, trace, tmp_path / "b.gpx", again=True, asked=NOISE).account
    assert total is not None
    assert total.total > 1e9
    assert total.one_place > EVERYTHING
    with pytest.raises(Refused, match="got all that can be told"):
        check_total(total, 1e6, 1.0)
    whole = total.total
    everything = replace(total, finest="v50", one_place=whole, fresh=whole, places=())
    with pytest.raises(Refused, match="nothing more fits"):  # no epsilon is small enough
        check_total(everything, 1e6, 1.0)


@pytest.mark.parametrize("hours", [0.18, 0.25, 1.5, 4.0, 24.0, 50.0, 200.0])
def test_what_another_ride_adds_to_a_time_is_never_more_than_is_counted(
    ledger: Ledger, tmp_path: Path, hours: float
) -> None:
    early, late = day(0, 30), day(hours / 24, 30)
    released(ledger, early, tmp_path / "a.gpx", at="end", asked=NOISE)
    plan = protect(late, requested(late, Chosen(("start",), returns=False, ends=False), NOISE))
    with ledger.open() as book:
        total, _ = account(book, plan, marks_of(plan), "me", [])
    shift = (late.times[0] - early.times[0]) / 1e9
    first = protect(early, requested(early, Chosen(("end",), returns=False, ends=False), NOISE))
    alone = Release(first.mechanism, "early"), Release(plan.mechanism, "late")
    both = [alone[0], replace(alone[1], mechanism=shifted(plan, shift))]
    end, scale = float(early.seconds[-1]), 2.5 * (100.0 * (1 + Frame.SCALE_ERROR)) ** 2
    added = max(
        joint_loss(kernel, both, Secret.at(when)).matrix[0, 0]
        - joint_loss(kernel, [release], Secret.at(moment)).matrix[0, 0]
        for kernel in (plan.request.kernel, slow(plan))
        for release, when, moment in ((alone[0], end, end), (alone[1], shift, 0.0))
    )
    largest = max(
        joint_loss(kernel, both, Secret.at(when)).matrix[0, 0]
        for kernel in (plan.request.kernel, slow(plan))
        for when in (end, shift)
    )
    # What the late one tells of the end of the early one is counted, too.
    assert total.epsilon == pytest.approx(1.0)
    assert scale * largest <= total.times * (1 + 1e-9)
    # Somebody who knows all movement for five minutes around learns more: see test_joint.
    more = 2.0 if hours < 1 else 1.2
    assert 1 < total.times <= total.epsilon + max(more * scale * added, 0.01)


@pytest.mark.parametrize(("seconds", "least", "most"), [(100, 1e9, 1e40), (700, 1.5, 2.6)])
def test_a_ride_before_is_as_if_released_as_it_is_where_its_noise_is_over(
    ledger: Ledger, tmp_path: Path, seconds: int, least: float, most: float
) -> None:
    """Within five minutes, in which nothing is assumed of the movement, that tells everything."""
    early = ride(20_000, 1.0, begin=BEGIN, at=AT)
    late = ride(30, 20.0, begin=BEGIN + 20_000 + seconds, at=AT)
    released(ledger, early, tmp_path / "a.gpx", at="start+1m", asked=NOISE)
    plan = protect(late, requested(late, Chosen(("start",), returns=False, ends=False), NOISE))
    with ledger.open() as book:
        total, _ = account(book, plan, marks_of(plan), "me", [])
    assert least < total.times < most


def test_of_a_long_recording_some_hours_around_are_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = ride(400, 120.0, still=(0, 399), begin=BEGIN, at=AT)  # thirteen hours
    # Both parts are at one place, and near: they are conditioned on together.
    home = ("start+6h", "start+7h")
    plan = protect(trace, requested(trace, Chosen(home, returns=False, ends=False), NOISE))
    (whole,) = marks_of(plan)
    monkeypatch.setattr("trailveil.ledger.marks._LONG", 100)
    (part,) = marks_of(plan)
    assert part.information[0] == pytest.approx(whole.information[0], rel=1e-4)


def test_both_ends_at_one_place_count_as_two_looks_at_it(ledger: Ledger) -> None:
    """Against the same with the clock stopped at both and the place tied, by dense algebra."""
    trace = ride(400, 20.0, still=(0, 399), begin=BEGIN, at=AT)  # there and nowhere else
    plan: Plan = protect(
        trace, requested(trace, Chosen(("start", "end"), returns=False, ends=False), NOISE)
    )
    (mark,) = marks_of(plan)
    single = protect(trace, requested(trace, Chosen(("start",), returns=False, ends=False), NOISE))
    (alone,) = marks_of(single)
    assert mark.information[0] > 1.2 * alone.information[0]


def test_with_every_place_protected_a_loop_counts_as_two_visits() -> None:
    request = Request((), who=PLAIN, method=Method.EVERYWHERE)
    loop = ride(40, 20.0, still=(0, 39), begin=BEGIN, at=AT)
    away = replace(loop, positions=loop.positions + np.linspace(0, 0.05, 40)[:, None])
    information = [
        marks_of(plan_everywhere(trace, request))[0].information[0] for trace in (loop, away)
    ]
    assert information == pytest.approx([2 * request.bound, request.bound])
