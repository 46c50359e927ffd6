"""Visits are what geodesics say, wherever on the globe; no message holds a place."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.places import ANYWHERE, GLOBE, Where, after, around, trace_of
from trailveil.errors import InvalidValue
from trailveil.traces.stops import ABSENCE, UNSEEN
from trailveil.traces.visits import FASTEST, WIDEST, Circle, circle, visits

Spans = list[tuple[float, float]]
Point = tuple[float, float]


def visits_found(
    seconds: Sequence[float], metres: Sequence[tuple[float, float]], where: Where, radius: float
) -> Spans:
    trace = trace_of(seconds, metres, where)
    return after(trace, visits(trace, Circle(*where, radius)))


@pytest.mark.parametrize("where", ANYWHERE, ids=str)
@pytest.mark.parametrize("radius", [20.0, 150.0, 5_000.0])
def test_inside_is_within_the_true_metres(where: Where, radius: float) -> None:
    """A micrometre decides, in every direction; each fix is hours from the next."""
    turns = np.radians(np.arange(0, 360, 15))
    lengths = radius + np.where(np.arange(turns.size) % 3 == 0, 1e-6, -1e-6)
    metres = np.stack([lengths * np.sin(turns), lengths * np.cos(turns)], axis=1)
    hours = np.arange(turns.size) * 7200.0
    trace = trace_of(hours, metres, where)
    # Fixes two hours apart that are both inside are one run: so each is looked at by itself.
    inside = [
        bool(visits(trace.only(np.arange(turns.size) == i), Circle(*where, radius)))
        for i in range(turns.size)
    ]
    assert inside == (lengths < radius).tolist()


@given(
    st.floats(-89, 89),
    st.floats(-180, 180),
    st.floats(0, 2 * np.pi),
    st.floats(1.0, 3_000.0),
)
def test_distances_are_those_on_a_sphere_within_the_flattening(
    latitude: float, longitude: float, turn: float, away: float
) -> None:
    """Haversines, which know nothing of PROJ: on the ellipsoid lengths differ by up to 0.7 %."""
    (target,) = around((latitude, longitude), [(away * np.sin(turn), away * np.cos(turn))])
    trace = trace_of([0.0], [(0.0, 0.0)], (latitude, longitude))
    origin, other = np.radians([[latitude, longitude], target])
    half = (other - origin) / 2
    share = np.sin(half[0]) ** 2 + np.cos(origin[0]) * np.cos(other[0]) * np.sin(half[1]) ** 2
    sphere = 2 * 6_371_008.8 * np.arcsin(np.sqrt(share))
    place = (float(target[0]), float(np.clip(target[1], -180, 180)))
    assert visits(trace, Circle(*place, 1.007 * sphere))
    assert not visits(trace, Circle(*place, sphere / 1.007))


@pytest.mark.parametrize("where", ANYWHERE, ids=str)
def test_runs_are_stays_and_single_fixes_are_times(where: Where) -> None:
    far, near = (400.0, 0.0), (0.0, 50.0)
    places = [far, near, near, near, far, far, near, far, far, near, near]
    seconds = [0.0, 60, 120, 180, 240, 940, 1000, 1060, 1940, 2000, 9000]
    assert visits_found(seconds, places, where, 100.0) == [(60, 180), (1000, 1000), (2000, 9000)]


def test_a_visit_lasts_through_the_gaps_beside_it() -> None:
    """Nobody knows when somebody came and went while nothing was recorded."""
    far, near = (400.0, 0.0), (0.0, 50.0)
    for places, seconds, expected in (
        ([far, near, near, far], [0.0, 7200, 7230, 9000], [(0.0, 9000.0)]),
        ([far, near, near, far], [0.0, 60, 90, 9000], [(60.0, 9000.0)]),
        ([far, near, near, far], [0.0, 7200, 7230, 7290], [(0.0, 7230.0)]),
        ([near, near], [0.0, 9000], [(0.0, 9000.0)]),
    ):
        assert visits_found(seconds, places, (48.0, 11.0), 100.0) == expected


def test_short_absences_end_no_visit() -> None:
    far, near = (400.0, 0.0), (0.0, 50.0)
    for back, expected in (
        (ABSENCE - 1, [(0.0, ABSENCE - 1)]),
        (ABSENCE, [(0.0, 0.0), (ABSENCE, ABSENCE)]),
    ):
        seconds, places = [0.0, 60.0, back - 60.0, back], [near, far, far, near]
        assert visits_found(seconds, places, (48.0, 11.0), 100.0) == expected


@pytest.mark.parametrize("where", ANYWHERE, ids=str)
@pytest.mark.parametrize(
    ("aside", "seconds", "passes"),
    [
        (0.0, 60.0, True),
        (99.0, 60.0, True),
        (-99.0, 60.0, True),
        (101.0, 60.0, False),
        (0.0, 3600.0, True),
        (0.0, 600.0 / FASTEST + 0.1, True),
        (0.0, 600.0 / FASTEST - 0.1, False),
    ],
)
def test_the_way_between_two_fixes(
    where: Where, aside: float, seconds: float, passes: bool
) -> None:
    ways = visits_found([0.0, seconds], [(-300.0, aside), (300.0, aside)], where, 100.0)
    assert ways == ([(0.0, seconds)] if passes else [])


def test_a_way_that_leads_past_or_ends_before_is_no_visit() -> None:
    for metres in ([(-300.0, 0.0), (-150.0, 0.0)], [(150.0, 0.0), (300.0, 0.0)]):
        assert visits_found([0.0, 60.0], metres, (48.0, 11.0), 100.0) == []
    assert visits_found(
        [0.0, 60.0, 70.0], [(-300.0, 0.0)] * 2 + [(300.0, 0.0)], (0.0, 180.0), 9.0
    ) == [(60.0, 70.0)]


@pytest.mark.parametrize("where", ANYWHERE, ids=str)
@pytest.mark.parametrize(
    ("point", "other"), [((-550.0, 0.0), (101.0, 0.0)), ((-200.0, 99.5), (15.0, 99.5))]
)
def test_a_way_at_the_greatest_speed_is_not_missed(
    where: Where, point: Point, other: Point
) -> None:
    seconds = round((other[0] - point[0]) / FASTEST + 0.01, 3)
    for metres in ([point, other], [other, point]):
        assert visits_found([0.0, seconds], metres, where, 100.0) == [(0.0, seconds)]


far = st.tuples(st.floats(-20_000, 20_000), st.floats(-20_000, 20_000))


@given(far, far, st.sampled_from(ANYWHERE))
def test_ways_are_those_of_dense_geodesics(
    start: tuple[float, float], other: tuple[float, float], where: Where
) -> None:
    """The nearest of 2,000 points of the geodesic decides, where it is not too near to say."""
    trace = trace_of([0.0, 7200.0], [start, other], where)
    ((latitude, longitude), (latitude_2, longitude_2)) = trace.positions
    way = np.array(GLOBE.npts(longitude, latitude, longitude_2, latitude_2, 2_000))
    count = len(way)
    away = GLOBE.inv(way[:, 0], way[:, 1], np.full(count, where[1]), np.full(count, where[0]))[2]
    nearest, step = float(np.min(away)), 60_000.0 / count
    outside = min(np.hypot(*start), np.hypot(*other))
    if nearest + step < outside:
        assert visits(trace, Circle(*where, nearest + step))
    if nearest > 2 * step:
        assert not visits(trace, Circle(*where, 0.998 * nearest - step))


@given(st.lists(st.tuples(st.integers(1, 400), st.booleans()), min_size=1, max_size=25))
def test_visits_are_those_of_the_definition(steps: list[tuple[int, bool]]) -> None:
    """Fixes on one side of the place, so that no way between them leads through."""
    seconds = np.cumsum([step for step, _ in steps]).astype(float)
    metres = [(50.0 if inside else 500.0, 0.0) for _, inside in steps]
    seconds -= seconds[0]
    expected: Spans = []
    for i, second in enumerate(seconds):
        if not steps[i][1]:
            continue
        beside = (seconds[max(i - 1, 0)], seconds[min(i + 1, len(steps) - 1)])
        begin = beside[0] if second - beside[0] > UNSEEN else second
        end = beside[1] if beside[1] - second > UNSEEN else second
        joins = expected and (steps[i - 1][1] or begin - expected[-1][1] < ABSENCE)
        expected.append((expected.pop()[0] if joins else begin, end))
    assert visits_found(seconds.tolist(), metres, (70.0, 180.0), 100.0) == expected


def test_where_nobody_was() -> None:
    trace = trace_of([0.0, 60.0], [(0.0, 0.0), (10.0, 0.0)])
    for place in (Circle(-48.0, -169.0, WIDEST), Circle(48.0, 11.1, 100.0), Circle(90, 0, 1)):
        assert visits(trace, place) == []
    assert visits(trace.only(np.zeros(2, dtype=bool)), Circle(48.0, 11.0, 100.0)) == []


@pytest.mark.parametrize("where", ANYWHERE, ids=str)
def test_the_way_that_people_write_it_makes_no_difference(where: Where) -> None:
    latitude, longitude = where
    text = f" {latitude:+.6f}, {longitude:.6f} ,150.5"
    circled = circle(text)
    assert (circled.latitude, circled.longitude, circled.metres) == pytest.approx((*where, 150.5))


BAD = [
    "",
    ",,",
    "48,11",
    "48.17,11.53,150,2",
    "48,17;11,53;150",
    "48.17 11.53 150",
    "48.17,11.53,150m",
    "48.17,11.53,nan",
    "nan,11.53,150",
    "inf,11.53,150",
    "48.17,1e1,150",
    "48.17,11.53,0",
    "48.17,11.53,-3",
    "48.17,11.53,100001",
    "95.17,11.53,150",
    "-95.17,171.53,150",
    "48.17,181.53,150",
    "4_8.17,11.53,150",
    "0x1,11.53,150",
    "\u0664\u0668,11.53,150",
    "48.17,11.53,150\n48.17,11.53,150",
    "9" * 5000 + ",11.53,150",
    "48°10'N,11°32'E,150",
    "none",
]


@pytest.mark.parametrize("text", BAD, ids=[str(i) for i in range(len(BAD))])
def test_what_is_no_place_is_refused_without_it(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        circle(text)
    message = str(caught.value)
    assert message.startswith("a place must")
    assert "\n" not in message
    assert len(message) < 200
    said = set(re.findall(r"\d+", message)) - {"46", "5", "33", "25", "150", "90", "180"}
    assert said <= {"100", "000", "0"}
    assert caught.value.__cause__ is None


def test_swapped_axes_are_suspected() -> None:
    with pytest.raises(InvalidValue, match="seem to be swapped"):
        circle("151.2,-33.86,100")
    with pytest.raises(InvalidValue, match="90, got another: check it"):
        circle("95,171,100")


def test_a_place_shows_nothing_of_itself() -> None:
    place = circle("48.17,11.53,150")
    for shown in (repr(place), str(place), f"{place}", repr([place])):
        assert "48" not in shown.split(" at 0x")[0]
        assert "11.53" not in shown
    swapped = place.swapped
    assert swapped is not None
    assert (swapped.latitude, swapped.longitude) == (11.53, 48.17)
    assert circle("48.17,111.53,150").swapped is None
