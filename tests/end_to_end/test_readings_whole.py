"""What is reported of readings holds beside all of a long recording, whatever the prior."""

import numpy as np
import pytest

from tests.readings import readings_request
from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Constant, Kernel, Matern12, Matern32, Matern52, White
from trailveil.release.readings_release import ReadingsPlan, plan_readings
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Stretch

COUNT, STEP, RADIUS = 1_000, 900, 3.0
BEGIN = 1_700_000_000


def readings() -> Readings:
    """Readings every quarter of an hour for ten days."""
    times = (BEGIN + STEP * np.arange(COUNT, dtype=np.int64)) * 10**9
    values = 20 + np.cumsum(np.random.default_rng(1).normal(0.0, 0.1, COUNT))
    return Readings(times, np.round(values, 1), "degC")


def planned(kernel: Kernel, first: int, last: int) -> ReadingsPlan:
    recorded = readings()
    part = Stretch("a part", int(recorded.times[first]), int(recorded.times[last]))
    return plan_readings(recorded, readings_request((part,), RADIUS, kernel))


def truly_lost(kernel: Kernel, readings_plan: ReadingsPlan, weights: FloatArray) -> float:
    """The loss of the true value of weights (n,) by dense algebra over the whole recording."""
    times = readings_plan.trace.seconds
    true = sum(
        (term(times, times) for term in kernel.terms() if not term.is_white()),
        np.zeros((times.size, times.size)),
    )
    white = sum(float(term.diagonal(times[:1])[0]) for term in kernel.terms() if term.is_white())
    rows = readings_plan.mechanism.rows
    noise = readings_plan.mechanism.factor[rows] @ readings_plan.mechanism.factor[rows].T
    seen = (
        true[np.ix_(rows, rows)]
        + noise
        + (white + readings_plan.mechanism.floor) * np.eye(rows.size)
    )
    cross, prior = true[rows] @ weights, float(weights @ true @ weights)
    left = prior - float(cross @ np.linalg.solve(seen, cross))
    return 1 / left - 1 / prior


LEVEL = Constant(1_000.0)
KERNELS = {
    "matern52": Matern52(90_000.0, 5.0) + White(0.05),
    "rbf": RBF(20_000.0, 5.0) + White(0.05),
    "matern12 and a level": Matern12(20_000.0, 5.0) + LEVEL + White(0.05),
    "matern32 and a level": Matern32(20_000.0, 5.0) + LEVEL + White(0.05),
    "a long matern32 and a level": Matern32(90_000.0, 4.857) + LEVEL + White(0.05),
}


@pytest.mark.slow
@pytest.mark.parametrize(("first", "last"), [(0, 20), (470, 470)])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_no_more_is_lost_than_reported(kernel: Kernel, first: int, last: int) -> None:
    try:
        made = planned(kernel, first, last)
    except Refused:
        assert kernel.terms()[1] == LEVEL  # the rest may tell so much that no noise helps
        return
    reported = made.guarantee.mu**2 / RADIUS**2
    for row in {first, (first + last) // 2, last}:
        assert truly_lost(kernel, made, np.eye(COUNT)[row]) <= reported * (1 + 1e-6)
    mean = np.zeros(COUNT)
    mean[first : last + 1] = 1 / (last - first + 1)
    assert truly_lost(kernel, made, mean) <= reported * (1 + 1e-6)
