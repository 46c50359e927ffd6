"""Each metric against another way to compute it, or a case whose value is known."""

import numpy as np
import pytest
from scipy.spatial.distance import directed_hausdorff, jensenshannon

from tests.studies.comparing.cases import at_latitude, drawn, noisy, random, walk
from trailveil.checks import utility
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.comparing import cases, metrics, rivals
from trailveil.studies.comparing.cases import Case, Sighting


def pair(seed: int, first: int = 23, other: int = 31) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    return tuple(np.cumsum(generator.normal(0, 50, (n, 2)), axis=0) for n in (first, other))  # type: ignore[return-value]  # two


def recursive(first: FloatArray, other: FloatArray, *, sums: bool) -> float:
    """The recursion as it is written in the papers."""
    known: dict[tuple[int, int], float] = {}
    for i in range(len(first)):
        for j in range(len(other)):
            apart = float(np.hypot(*(first[i] - other[j])))
            before = [known[p] for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if p in known]
            if not before:
                known[i, j] = apart
            else:
                known[i, j] = min(before) + apart if sums else max(min(before), apart)
    return known[len(first) - 1, len(other) - 1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", [(23, 31), (31, 23), (1, 5), (7, 7)])
def test_distances_are_as_their_definitions(seed: int, sizes: tuple[int, int]) -> None:
    first, other = pair(seed, *sizes)
    both = max(directed_hausdorff(first, other)[0], directed_hausdorff(other, first)[0])
    leash = recursive(first, other, sums=False)
    summed = recursive(first, other, sums=True)
    expected = (both, leash, summed / max(sizes))
    assert cases.distances(first, other) == pytest.approx(expected)


@pytest.mark.parametrize("name", metrics.METRICS)
def test_a_release_that_is_the_recording_loses_nothing(name: str) -> None:
    (case,) = drawn(1)
    value = metrics.METRICS[name](case, Sighting.of(case, case.trace))
    assert value == pytest.approx(1.0 if name in ("coverage", "stops") else 0.0, abs=1e-9)


def moved_by(case: Case, east: float) -> Sighting:
    return Sighting.of(case, case.placed_at(case.metres + np.array([east, 0.0])))


def test_metres_are_metres_at_sixty_degrees_north() -> None:
    case = walk(latitude=60)
    for name in ("moved", "hausdorff", "frechet"):
        value = metrics.METRICS[name](case, moved_by(case, 5000.0))
        assert 0 < value <= 5000.1
    assert metrics.moved(case, moved_by(case, 5000.0)) == pytest.approx(5000.0, abs=0.1)


def test_length_and_speed_are_those_of_the_audit() -> None:
    (case,) = drawn(1)
    released = Sighting.of(case, noisy(80.0)(case, random("length")))
    before, after = utility.summary(case.trace), utility.summary(released.trace)
    expected = abs(after.length - before.length) / before.length
    assert metrics.length(case, released) == pytest.approx(expected, rel=1e-3)
    speeds = abs(after.median_speed - before.median_speed)
    assert metrics.speed(case, released) == pytest.approx(speeds, rel=1e-2)


def test_what_is_withheld_is_a_share_of_time() -> None:
    case = walk(361, step=10.0)
    away = (case.seconds <= 1000.0) | (case.seconds >= 2000.0)
    # A minute at either edge is no loss.
    expected = (1000.0 - 2 * 70.0) / 3600.0
    assert metrics.withheld(case, Sighting.of(case, case.only(away))) == pytest.approx(expected)


def test_stops_are_retrieved_or_not() -> None:
    way = np.column_stack([np.arange(100.0) * 100, np.zeros(100)])
    way[40:70] = way[40]
    case = at_latitude(46, way, step=30.0)
    assert metrics.stops(case, moved_by(case, 150.0)) == 1.0
    assert metrics.stops(case, moved_by(case, 250.0)) == 0.0
    smooth = Sighting.of(case, rivals.promesse(case, random("stops")))
    assert metrics.stops(case, smooth) == 0.0


def test_coverage_is_the_f_score_of_cells() -> None:
    case = at_latitude(46, np.column_stack([np.arange(50.0, 1050.0, 100.0), np.full(10, 50.0)]))
    half = Sighting.of(case, case.only(np.arange(10) < 5))
    assert metrics.coverage(case, half) == pytest.approx(2 * 5 / 15)


def test_range_queries_count_what_is_there() -> None:
    case = walk(300)
    none = metrics.queries(case, moved_by(case, 1e5))
    # All counts are lost: an error of one, or less where the count is less than the bound.
    assert 0.5 < none <= 1.0
    assert metrics.queries(case, moved_by(case, 100.0)) < none


def test_heat_maps_diverge_as_jensen_and_shannon_have_it() -> None:
    generator = np.random.default_rng(3)
    before, after = generator.random((2, 5, 40)) * (generator.random((2, 5, 40)) > 0.3)
    expected = [jensenshannon(p, q, base=2) ** 2 for p, q in zip(before, after, strict=True)]
    assert metrics.heat_map(before, after) == pytest.approx(expected)
    assert np.isnan(metrics.heat_map(before[0], np.zeros(40)))
