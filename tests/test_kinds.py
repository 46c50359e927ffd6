"""Designs of kinds: what they say holds of every recording that has the kind, recomputed for it."""

import numpy as np
import pytest

from tests.kinds import BEGIN, STEP, planned, recording
from trailveil.adversaries import DEFAULT, Named, kernels_of
from trailveil.adversary import exposure
from trailveil.crops import crops
from trailveil.demands import adversaries_of, judged
from trailveil.designing import part_of
from trailveil.kernels import RBF, Constant, IntegratedOU, Matern52, White
from trailveil.kind_designs import designed_for, restored, stored
from trailveil.kinds import DesignFor, Kind, kind_of
from trailveil.recurring import information
from trailveil.release import DEFAULT_KERNEL, Plan, Request, plan
from trailveil.secrets import basic
from trailveil.selection import Stretch
from trailveil.trace import NANOSECONDS, Trace

# Relative: an actual crop, its places and its edges are others, each with its rounding.
_ROUNDING = 1e-6
_FULL = 6000.0


def of_kind(trace: Trace, part: Stretch, **more: object) -> Plan:
    """The release with the design of its kind, which it has."""
    made = planned(trace, part, design_for=DesignFor.KIND, **more)
    assert made.of_kind is not None
    return made


def check_what_is_said(made: Plan) -> None:
    """Judge the release by itself: nobody may learn more than is said, or be left with less."""
    (found,) = made.findings
    target, trace = made.request.target, made.trace
    (crop,) = crops(
        made.request.kernel, trace.seconds, [found.stretch.seconds(trace)], target.deviation
    )
    left = judged(crop, part_of(made.mechanism, crop), 0, target)
    assert [one.adversary for one in left] == [one.adversary for one in found.left]
    for said, truly in zip(found.left, left, strict=True):
        assert truly.loss <= said.loss * (1 + _ROUNDING), said.adversary
        assert truly.least >= said.least * (1 - _ROUNDING), said.adversary
        assert said.loss <= target.bound
    assert found.guarantee.epsilon <= made.request.epsilon


# Seconds recorded before and after a stay of 10 minutes; fixes that are missing.
_RECORDINGS = (
    (600.0, 1200.0, ()),
    (1200.0, _FULL, ()),
    (240.0, 900.0, ()),
    (300.0, 2000.0, (-30.0,)),
    (330.0, 390.0, (-330.0,)),
    (0.0, 3000.0, ()),
    (9000.0, 9000.0, (-3000.0, 2400.0, 2430.0)),
    (1000.0, 800.0, (-30.0, -60.0, 660.0, 690.0, -630.0)),
)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "without"), _RECORDINGS)
def test_what_a_kind_says_holds_of_its_recordings(
    before: float, after: float, without: tuple[float, ...]
) -> None:
    check_what_is_said(of_kind(*recording(before, 600, after, without=without)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "length", "after", "offset"),
    [(900.0, 605.0, 1000.0, 13.25), (1000.0, 0.0, 700.0, 7.0), (290.0, 20.0, 3000.0, 29.0)],
)
def test_a_part_may_begin_and_end_between_fixes(
    before: float, length: float, after: float, offset: float
) -> None:
    made = of_kind(*recording(before, length, after, offset=offset))
    check_what_is_said(made)
    assert made.of_kind is not None
    assert made.of_kind.scale == 1


@pytest.mark.slow
@pytest.mark.parametrize("gap", [(90.0, 120.0), tuple(range(0, 510, STEP)), (0.0, 600.0)])
def test_the_mean_of_a_stay_with_gaps_is_held(gap: tuple[float, ...]) -> None:
    made = of_kind(*recording(1000, 600, 900, without=gap))
    check_what_is_said(made)
    assert made.of_kind is not None
    assert made.of_kind.scale >= 1


@pytest.mark.slow
@pytest.mark.parametrize("gap", [range(-8970, 0, STEP), range(-8970, -240, STEP)])
@pytest.mark.parametrize("length", [0.0, 300.0])
def test_a_recording_that_goes_on_beyond_a_long_gap_is_no_short_one(
    gap: range, length: float
) -> None:
    who = (Named.PLAIN, Named.STILL, Named.POINT, Named.SPEEDS)
    made = of_kind(*recording(9120, length, 1200, without=gap), who=who)
    check_what_is_said(made)
    assert made.of_kind is not None
    assert not np.any(made.mechanism.factor[0])
    back = Trace(
        2 * BEGIN - made.trace.times[::-1], made.trace.positions, made.trace.segments, (0,)
    )
    part = Stretch("tested", BEGIN - round(length * NANOSECONDS), BEGIN)
    check_what_is_said(of_kind(back, part, who=who))


@pytest.mark.slow
def test_far_fixes_may_be_at_any_time() -> None:
    trace, part = recording(20_000, 600, 900)
    times = trace.times.copy()
    times[:100] += 7_123_456_789
    check_what_is_said(of_kind(Trace(times, trace.positions, trace.segments, (0,)), part))


@pytest.mark.parametrize("length", [0.0, 600.0])
@pytest.mark.parametrize("who", [(Named.PLAIN,), (Named.PLAIN, Named.STILL)])
def test_one_time_and_one_stay_for_few_adversaries(length: float, who: tuple[Named, ...]) -> None:
    made = of_kind(*recording(900, length, 2000), who=who)
    check_what_is_said(made)
    (found,) = made.findings
    assert {away for away, _ in found.after_learning} == {60.0, 300.0, 600.0, 1200.0}
    assert (found.seen_still is None) == (length == 0 or Named.STILL in who)
    assert (found.displacement_epsilon is None) == (length == 0)


def test_a_stationary_prior_has_kinds() -> None:
    kernel = Matern52(400.0, 300.0) + Constant(100_000.0) + White(3.0)
    check_what_is_said(of_kind(*recording(900, 300, 2000), kernel=kernel, who=(Named.PLAIN,)))


def test_the_loss_is_that_of_the_other_algorithm_too() -> None:
    made = of_kind(*recording(600, 0, 600), who=(Named.PLAIN, Named.POINT))
    (found,) = made.findings
    (crop,) = crops(
        made.request.kernel,
        made.trace.seconds,
        [found.stretch.seconds(made.trace)],
        made.request.target.deviation,
    )
    own, (begin, _) = part_of(made.mechanism, crop), crop.spans[0]
    for one, said in zip(adversaries_of(crop, 0, made.request.target)[0], found.left, strict=True):
        assert exposure(crop.prior, basic(begin), own, one).loss <= said.loss * (1 + _ROUNDING)


def test_noise_is_some_rows_of_the_columns_and_none_far_away() -> None:
    trace, part = recording(9000, 300, 900)
    made = of_kind(trace, part, who=(Named.PLAIN,))
    used = made.of_kind
    assert used is not None
    assert np.array_equal(made.mechanism.factor, used.scale * used.design.columns[used.rows])
    at = int(np.searchsorted(trace.times, BEGIN))
    assert used.rows[at] == used.design.first
    assert not np.any(made.mechanism.factor[0])
    # The noise is largest at the part, and the same before and after it but for the other side.
    assert int(np.argmax(made.mechanism.variances)) in range(at - 10, at + 20)


def test_a_place_is_told_at_most_as_much_as_is_counted() -> None:
    made = of_kind(*recording(700, 600, 3000, without=(-90.0, 1200.0)), who=(Named.PLAIN,))
    assert made.of_kind is not None
    (found,) = made.findings
    for kernel in kernels_of(made.request.who, made.request.kernel):
        told = information(
            kernel,
            made.trace.seconds,
            [found.stretch.seconds(made.trace)],
            np.ones((len(made.trace), 1)),
            made.mechanism.factor,
        )
        assert told[0, 0] <= made.of_kind.design.told
        assert told[0, 0] >= 0.9 * made.of_kind.design.told


def kind(trace: Trace, part: Stretch, wanted: DesignFor = DesignFor.KIND) -> Kind | None:
    target = Request((part,)).target
    return kind_of(trace.times, BEGIN, part.end, DEFAULT_KERNEL, target, wanted)


def test_recordings_that_differ_in_what_does_not_matter_have_one_kind() -> None:
    same = {
        kind(*recording(6000, 600, 800)),
        kind(*recording(9000, 600, 1100, without=(-900.0, 90.0, 1500.0))),
        kind(*recording(6010, 600, 1190)),
    }
    assert len(same) == 1
    assert None not in same
    others = {
        kind(*recording(1000, 600, 800)),  # little before
        kind(*recording(6000, 630, 800)),  # a longer stay
        kind(*recording(6000, 600, 800, step=15.0)),
        kind(*recording(6000, 600, 200)),  # nothing of the path after it
        kind(*recording(6000, 600, 800, offset=1.0)),
    }
    assert len(others | same) == 6
    assert None not in others


@pytest.mark.parametrize("step", [1.0, 5.0, 60.0])
def test_of_a_long_recording_a_kind_ends_where_nothing_more_matters(step: float) -> None:
    """What lies beyond its edges, of whatever recording, is granted to every adversary."""
    found = kind(*recording(12_000, 600, 12_000, step=step))
    assert found is not None
    crop = found.crop()
    assert len(crop.edges) == 2
    assert crop.fading == (True, True)
    trace, part = recording(100_000, 600, 100_000, step=step)
    (whole,) = crops(DEFAULT_KERNEL, trace.seconds, [part.seconds(trace)], found.target.deviation)
    assert np.array_equal(crop.prior.times, whole.prior.times)
    assert crop.spans == whole.spans
    assert crop.reach == pytest.approx(whole.reach)


@pytest.mark.parametrize(
    ("what", "more"),
    [
        (recording(1000, 600, 800, step=0.5), {}),  # of no clock
        (recording(1000, 600, 800, without=(-300.0,)), {}),  # of the path, the nearest is missing
        (recording(1000, 600, 800, without=(900.0,)), {}),
        (recording(9120, 600, 800, without=range(-8970, 0, STEP)), {}),
        (recording(1000, 600, 9120, without=range(630, 9090, STEP)), {}),
        (recording(1000, 600, 800), {"wanted": DesignFor.RECORDING}),
        (recording(1000, 600, 800), {"wanted": DesignFor.AUTO}),  # few fixes
        (recording(1000, 90_000, 800, step=1.0), {}),  # too many steps
    ],
)
def test_recordings_without_a_kind(what: tuple[Trace, Stretch], more: dict[str, DesignFor]) -> None:
    trace, part = what
    assert kind(trace, part, **more) is None


@pytest.mark.parametrize(
    "kernel", [RBF(300.0, 200.0) + White(2.0), IntegratedOU(3.0, 60.0) + White(2.0)]
)
def test_priors_that_are_not_the_same_everywhere_have_none(kernel: object) -> None:
    trace, part = recording(1000, 600, 800)
    target = Request((part,)).target
    about = (BEGIN, part.end, kernel, target, DesignFor.KIND)
    assert kind_of(trace.times, *about) is None  # type: ignore[arg-type]  # a kernel


def test_auto_takes_a_kind_that_takes_no_longer() -> None:
    auto = DesignFor.AUTO
    assert kind(*recording(2000, 600, 2400, step=5.0), wanted=auto) is not None
    assert kind(*recording(700, 600, 700, step=1.0), wanted=auto) is not None
    assert kind(*recording(1500, 600, 1500, step=1.0), wanted=auto) is None
    assert kind(*recording(600, 600, 700, step=5.0), wanted=auto) is None


@pytest.mark.parametrize(
    "more", [{"withhold": 60.0}, {"leave": 500.0}, {"design_for": DesignFor.RECORDING}]
)
def test_releases_of_another_sort_are_designed_for_themselves(more: dict[str, object]) -> None:
    trace, part = recording(900, 300, 900)
    about = {"design_for": DesignFor.KIND, "who": (Named.PLAIN,), **more}
    assert planned(trace, part, **about).of_kind is None


def test_two_parts_are_designed_together() -> None:
    trace, part = recording(900, 300, 3000)
    late = Stretch("late", BEGIN + 2000 * NANOSECONDS, BEGIN + 2000 * NANOSECONDS)
    both = Request((part, late), who=(Named.PLAIN,), design_for=DesignFor.KIND)
    assert plan(trace, both).of_kind is None


def test_a_design_is_stored_to_the_last_digit() -> None:
    trace, part = recording(700, 0, 700)
    target = Request((part,), who=(Named.PLAIN, Named.POINT)).target
    which = kind_of(trace.times, BEGIN, BEGIN, DEFAULT_KERNEL, target, DesignFor.KIND)
    assert which is not None
    made = designed_for(which)
    again = restored(stored(made))
    assert np.array_equal(again.columns, made.columns)
    assert (again.first, again.left, again.told) == (made.first, made.left, made.told)
    assert again.unasked == made.unasked
    assert not again.columns.flags.writeable
    assert np.array_equal(designed_for(which).columns, made.columns)


def test_the_default_is_what_kinds_are_for() -> None:
    assert Request(()).design_for is DesignFor.AUTO
    assert Request(()).who == DEFAULT
