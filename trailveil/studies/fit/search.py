"""Maximum likelihood: the parameters of a kernel from one series, or shared by many.

Nothing is added to a diagonal but the stated noise, and a likelihood that cannot be computed is
never taken for a bad one: that start is given up, and counted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray, cholesky_factor
from trailveil.gp.kernels import Kernel
from trailveil.studies.fit.likelihood import Family, FitSeries, Parameter, log_likelihood

AGREEMENT: Final = 0.01
"""Nats within which two starts found the same optimum, and which a finished search may lack."""

_SPREAD = 30.0  # starts lie within this factor of the first
_AT_BOUND = 1e-6  # in log parameter
_HESSIAN_STEP = 1e-4  # in log parameter, of central differences of the exact gradient


@dataclass(frozen=True, slots=True)
class Fit:
    """What a search found, and how far it can be trusted. Tuples go by family.parameters.

    values: in the units of the series. standard_errors: from the observed information, for the
    model as it stands; nan for a parameter that is known or at a bound, and for all where the
    information is not positive definite. log_likelihood: nats, over all series and coordinates.
    at_bounds: names of parameters that ended at a bound. remaining: nats that a Newton step would
    still gain; inf where that cannot be said. agreeing: starts that ended within AGREEMENT nats of
    the best, of all `starts`; rejected: starts whose likelihood could not be computed on the way.
    """

    family: Family
    values: tuple[float, ...]
    standard_errors: tuple[float, ...]
    log_likelihood: float
    at_bounds: tuple[str, ...]
    remaining: float
    starts: int
    agreeing: int
    rejected: int
    series: int
    points: int

    @property
    def converged(self) -> bool:
        """Whether the search has arrived: less than AGREEMENT nats are left to gain."""
        return self.remaining < AGREEMENT

    @property
    def kernel(self) -> Kernel:
        """The kernel that was found, measurement noise included, without a level."""
        return self.family.build(self.values)

    def __getitem__(self, name: str) -> float:
        """The value of a parameter by its name; KeyError for none."""
        return dict(zip((p.name for p in self.family.parameters), self.values, strict=True))[name]


def fit(
    series: FitSeries | Sequence[FitSeries],
    family: Family,
    *,
    level_std: float | None = None,
    starts: int = 5,
) -> Fit:
    """The parameters under which the series, independent of each other, are most likely.

    level_std: deviation of a level of its own in each series and coordinate; None: values have mean
    zero as they are. starts: the search begins at the family's own start, then at others spread
    evenly (the same every time) within a factor of 30 of it, within the bounds.

    Raises InvalidValue for no series, and NumericalError where every start had to be given up.
    """
    pool = (series,) if isinstance(series, FitSeries) else tuple(series)
    _check(pool, family, level_std, starts)
    free = np.array([not p.known for p in family.parameters])
    origin = np.log([p.start for p in family.parameters])

    def objective(log_free: FloatArray) -> tuple[float, FloatArray]:
        point = origin.copy()
        point[free] = log_free
        value, gradient = _total(pool, family, point, level_std)
        return -value, -gradient[free]

    optima, rejected = _search(objective, [p for p in family.parameters if not p.known], starts)
    best = min(optima, key=lambda pair: pair[0])
    point = origin.copy()
    point[free] = best[1]
    bounds = np.log([[p.low, p.high] for p in family.parameters])
    inner, errors, remaining = _judge(objective, best[1], bounds[free])
    full = np.full(len(point), np.nan)
    full[free] = errors
    outer = free.copy()
    outer[free] = ~inner
    values = np.exp(point)
    return Fit(
        family=family,
        values=tuple(values.tolist()),
        standard_errors=tuple((full * values).tolist()),
        log_likelihood=-best[0],
        at_bounds=tuple(p.name for p, o in zip(family.parameters, outer, strict=True) if o),
        remaining=remaining,
        starts=starts,
        agreeing=sum(value - best[0] <= AGREEMENT for value, _ in optima),
        rejected=rejected,
        series=len(pool),
        points=sum(len(s.times) for s in pool),
    )


def _total(
    pool: Sequence[FitSeries], family: Family, log_values: FloatArray, level_std: float | None
) -> tuple[float, FloatArray]:
    """The log likelihood of independent series, and its gradient."""
    values = np.exp(log_values).tolist()
    total, gradient = 0.0, np.zeros(len(log_values))
    for series in pool:
        value, slope = log_likelihood(series, family, values, level_std)
        total += value
        gradient += slope
    return total, gradient


Objective = Callable[[FloatArray], tuple[float, FloatArray]]


def _search(
    objective: Objective, free: Sequence[Parameter], starts: int
) -> tuple[list[tuple[float, FloatArray]], int]:
    """(-l, log parameters) where each start ended, and how many were given up."""
    if not free:
        return [(objective(np.empty(0))[0], np.empty(0))], 0
    bounds = [(float(np.log(p.low)), float(np.log(p.high))) for p in free]
    optima, rejected, trouble = [], 0, ""
    for start in _starts(free, starts):
        try:
            result = minimize(
                objective,
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"ftol": 1e-11, "gtol": 1e-6, "maxiter": 300},
            )
        except NumericalError as error:
            rejected, trouble = rejected + 1, str(error)
            continue
        optima.append((float(result.fun), np.asarray(result.x)))
    if not optima:
        raise NumericalError(
            f"the likelihood must be computable from at least one start, got none of {starts} "
            f"({trouble}): raise the lower bound of the noise, or check the values"
        )
    return optima, rejected


def _starts(free: Sequence[Parameter], count: int) -> Iterator[FloatArray]:
    """The family's own start, then points of an additive recurrence (Roberts 2018) around it."""
    origin = np.log([p.start for p in free])
    low = np.maximum(np.log([p.low for p in free]), origin - np.log(_SPREAD))
    high = np.minimum(np.log([p.high for p in free]), origin + np.log(_SPREAD))
    golden = 2.0
    for _ in range(60):  # the positive root of x^(k+1) = x + 1
        golden = (1 + golden) ** (1 / (len(free) + 1))
    steps = golden ** -np.arange(1.0, len(free) + 1)
    yield origin
    for index in range(1, count):
        yield low + (high - low) * ((0.5 + index * steps) % 1.0)


def _judge(
    objective: Objective, point: FloatArray, bounds: FloatArray
) -> tuple[Any, FloatArray, float]:
    """Which free parameters lie inside their bounds, errors of the logarithms, nats still to gain.

    By central differences of the exact gradient, over the parameters inside.
    """
    inside = (point > bounds[:, 0] + _AT_BOUND) & (point < bounds[:, 1] - _AT_BOUND)
    errors = np.full(len(point), np.nan)
    rows = np.flatnonzero(inside)
    if not rows.size:
        return inside, errors, 0.0
    information = np.empty((len(rows), len(rows)))
    try:
        gradient = objective(point)[1][rows]
        for column, row in enumerate(rows):
            step = np.zeros(len(point))
            step[row] = _HESSIAN_STEP
            change = objective(point + step)[1] - objective(point - step)[1]
            information[:, column] = change[rows] / (2 * _HESSIAN_STEP)
        factor = cholesky_factor((information + information.T) / 2)
    except NumericalError:  # no optimum inside, or none that can be told
        return inside, errors, np.inf
    inverse = np.asarray(cho_solve((factor, True), np.eye(len(rows))))
    errors[rows] = np.sqrt(np.diagonal(inverse))
    return inside, errors, float(gradient @ inverse @ gradient) / 2


def _check(pool: Sequence[FitSeries], family: Family, level_std: float | None, starts: int) -> None:
    if not pool:
        raise InvalidValue("a fit must have one series at least, got none")
    if starts < 1:
        raise InvalidValue(f"starts must be 1 or more, got {starts}")
    if level_std is not None and not 0 < level_std < np.inf:
        raise InvalidValue(f"level_std must be positive and finite, got {level_std:g}")
    if level_std is not None and all(len(series.times) == 1 for series in pool):
        raise InvalidValue("series with a level must have two points or more, got one in each")
