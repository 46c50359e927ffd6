"""Any secrets, any adversaries: the optimum of trailveil.designer.optimal as a mechanism.

The solver's answer is only where the search begins: what is returned was scaled until the losses
that are recomputed from it meet every bound, and the dual bound says how far from the least it can
be.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.designer import robust
from trailveil.designer.closed_form import check_told
from trailveil.designer.columns import needs_digits, spanned, turn
from trailveil.designer.optimal import NO_BOUND, Solution, nothing, solution_of, solve
from trailveil.designer.problem import Problem, least_loss_problem, least_noise_problem
from trailveil.designer.requirements import Demand, Requirement, posed
from trailveil.designer.robust import ROUGHLY, THOROUGHLY, Tolerances
from trailveil.designer.spaces import FINEST, lag_of, splines
from trailveil.designer.stepping import until_met
from trailveil.designer.views import View
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import split
from trailveil.privacy.adversary import PLAIN, Adversary, exposures, span_of, value_losses
from trailveil.privacy.guarantee import tight_bound
from trailveil.privacy.loss import losses
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior

# So many missed values are counted in at a time for one secret and adversary; this often at most.
_OF_ONE, _ROUNDS = 4, 40
# Up to so many rows every row has a column of its own: no spline is better than that.
_FEW_ROWS = 40

Pose = Callable[[tuple[View, ...], tuple[Requirement, ...]], Problem]


@dataclass(frozen=True, slots=True, eq=False)
class SeveralRequest:
    """What a design is for.

    demands: secrets with what mu^2 / radius^2 may be, or, for a budget, with their shares of the
    common loss. adversaries: all of them, each against each secret. weights: W (n,) > 0, the cost
    of a unit of noise variance at each row. existing: noise and withheld rows that are there.
    effort, sought_in (a few columns, and more, at the released rows): against several adversaries.
    finer: noise may carry more digits than double precision has, where those matter.
    """

    prior: Prior
    demands: tuple[Demand, ...]
    adversaries: tuple[Adversary, ...]
    weights: FloatArray
    existing: Mechanism

    effort: Tolerances = THOROUGHLY
    sought_in: tuple[FloatArray, FloatArray] | None = None
    finer: bool = True

    def columns(self, *, coarse: bool) -> FloatArray:
        """Where the noise is sought (released rows, p): splines that suit every secret."""
        times = self.prior.times[self.existing.rows]
        if self.sought_in is not None:
            return self.sought_in[0 if coarse else 1]
        if times.size <= _FEW_ROWS:
            return np.eye(times.size)
        spans = {
            span_of(demand.secret, adversary)
            for demand in self.demands
            for adversary in self.adversaries
        }
        knows = [
            known
            for adversary in self.adversaries
            for known in (adversary.point, adversary.path)
            if known
        ]
        away = {known.away for known in knows}
        lag = max(self.lag, float(np.median(np.diff(times))) / FINEST)
        reach = float(times[0]), float(times[-1])
        return splines(reach, sorted(spans), lag, sorted(away), coarse=coarse).at(times)

    @property
    def lag(self) -> float:
        """Seconds within which the series moves by what is to be left of the first secret."""
        base, _ = split(self.prior.kernel)
        times = self.prior.times
        deviation = 1.0 / math.sqrt(max(demand.bound for demand in self.demands))
        return lag_of(base, float(times[times.size // 2]), deviation, float(times[-1] - times[0]))

    def posed(
        self, values: Sequence[tuple[int, int, float]], margin: float
    ) -> tuple[tuple[View, ...], tuple[Requirement, ...]]:
        """All views and requirements; see trailveil.designer.requirements."""
        return posed(
            self.prior,
            self.demands,
            self.adversaries,
            self.existing,
            self.cost,
            values=values,
            margin=margin,
        )

    @property
    def cost(self) -> FloatArray:
        """The weights of the released rows."""
        return self.weights[self.existing.rows]

    def spent(self, mechanism: Mechanism) -> float:
        """trace(W Gamma) of a mechanism."""
        return float(self.weights @ mechanism.variances)

    def matrices(self, mechanism: Mechanism) -> list[tuple[Demand, FloatArray]]:
        """Every loss matrix of every demand, recomputed from the mechanism, errors against us."""
        plain = [adversary for adversary in self.adversaries if adversary == PLAIN]
        by_demand = []
        if plain:
            secrets = [demand.secret for demand in self.demands]
            plain_losses = losses(self.prior, secrets, mechanism)
            pairs = zip(self.demands, plain_losses, strict=True)
            by_demand += [(demand, loss.matrix) for demand, loss in pairs]
        for adversary in self.adversaries:
            if adversary in plain:
                continue
            for demand in self.demands:
                exposed = exposures(self.prior, demand.secret, mechanism, adversary)
                by_demand += [(demand, exposure.learnt) for exposure in exposed]
        return by_demand

    def missed(self, mechanism: Mechanism, common: float) -> list[tuple[int, int, float]]:
        """Known values with which more is lost than the bound times `common`.

        As demand, adversary, time: the worst of each run of such times.
        """
        values = []
        for j, adversary in enumerate(self.adversaries):
            if adversary.point is None:
                continue
            for i, demand in enumerate(self.demands):
                times, lost = value_losses(self.prior, demand.secret, mechanism, adversary)
                ratios = np.pad(lost / (demand.bound * common), 1)
                top = (ratios[1:-1] >= ratios[:-2]) & (ratios[1:-1] >= ratios[2:])
                worst = np.flatnonzero(top & (ratios[1:-1] > 1))
                best = worst[np.argsort(ratios[1:-1][worst])[::-1][:_OF_ONE]]
                values += [(i, j, float(times[k])) for k in best]
        return values


def least_noise(request: SeveralRequest) -> tuple[Mechanism, float]:
    """The least noise at which mu^2 / radius^2 of each secret is at most its bound.

    And a lower bound of trace(W Gamma). Raises as trailveil.designer.optimal.solve does.
    """
    spent = request.spent(request.existing)
    solution, make = sought(request)
    if solution.reached == 0.0:
        return request.existing, spent

    def excess(mechanism: Mechanism) -> float:
        pairs = request.matrices(mechanism)
        return max(tight_bound([matrix], 1.0) / demand.bound for demand, matrix in pairs) - 1.0

    return until_met(make, excess, solution.reached), spent + solution.least


def least_loss(request: SeveralRequest, budget: float) -> tuple[Mechanism, float | None]:
    """The least worst loss, over its share, for trace(W Gamma) = budget, and a lower bound of it.

    The loss of a compound secret is its largest eigenvalue.
    """
    for demand in request.demands:
        check_told(request.prior, demand.secret, request.existing)
    spent = request.spent(request.existing)
    available = budget - spent
    if available <= 0:
        raise InvalidValue(
            "the noise budget of all points together must be above the floor's own "
            f"{spent:.6g}, got {budget:.6g}"
        )
    solution, make = _solved(
        request, lambda views, needs: least_loss_problem(views, needs, request.cost, available)
    )
    return make(available), solution.least if solution.least > 0 else None


def sought(request: SeveralRequest) -> tuple[Solution, Callable[[float], Mechanism]]:
    """The least noise for a design as it was found, and trace -> that much of it.

    Its losses are not recomputed, and may be a little too large. Raises as least_noise does.
    """
    return _solved(request, lambda views, needs: least_noise_problem(views, needs, request.cost))


def _solved(request: SeveralRequest, pose: Pose) -> tuple[Solution, Callable[[float], Mechanism]]:
    """The best noise against all that adversaries may know, and trace -> that much of its kind."""
    views, needs = request.posed((), 0.0)
    problem = pose(views, needs)
    if problem.alone and request.sought_in is None:
        solution = solve(problem)
        return solution, _maker(request, solution)
    return _robust(request, pose, problem)


def _robust(
    request: SeveralRequest, pose: Pose, problem: Problem
) -> tuple[Solution, Callable[[float], Mechanism]]:
    """The same against several adversaries.

    Of the values that an adversary may know one of, a few stand for all; those that are missed by
    the answer are counted in, and it is sought again.
    """
    space = robust.begin(problem, request.columns(coarse=True))
    extra_values: list[tuple[int, int, float]] = []
    binding: set[tuple[tuple[int, int], float | None]] = set()
    settled, effort, widened = None, ROUGHLY, 0
    for _ in range(_ROUNDS):
        try:
            settled = robust.settle(problem, space, binding, effort, settled)
        except NumericalError:
            if effort != ROUGHLY:
                raise
            # Too coarse for any noise to meet it all: go on with more columns at once.
            effort, space = request.effort, robust.begin(problem, request.columns(coarse=False))
            continue
        if settled is None:
            none = nothing(problem)
            return none, _maker(request, none)
        binding |= robust.binding(problem, settled)
        here = solution_of(problem, settled, NO_BOUND)
        common = 1.0 if here.loss is None else here.loss
        allowed = common * (1 + (effort.missed if effort == ROUGHLY else 0.0))
        missed = request.missed(_maker(request, here)(here.trace), allowed)
        fresh = [value for value in missed if value not in extra_values]
        if fresh:
            extra_values += fresh
            binding |= {((i, j), time) for i, j, time in fresh}
            problem = pose(*request.posed(extra_values, request.effort.missed))
            continue
        if request.effort == effort and effort.below is None:
            return here, _maker(request, here)
        if effort == ROUGHLY:
            binding |= robust.nearly(problem, settled)
            effort, space = request.effort, robust.begin(problem, request.columns(coarse=False))
            continue
        answer, below = robust.proved(problem, settled, effort)
        if answer.gap <= effort.enough(space.columns.shape[1]) or widened == effort.widened:
            return answer, _maker(request, answer)
        space, widened = robust.wider(problem, settled, below), widened + 1
    raise NumericalError("the design must settle, got known values that keep being missed")


def _maker(request: SeveralRequest, solution: Solution) -> Callable[[float], Mechanism]:
    """trace -> the mechanism with the found noise at that trace, beside what exists, canonical."""
    prior, existing = request.prior, request.existing
    trace = solution.trace
    factor, combination = _turned(solution)
    largest = float(np.max(np.sum(factor**2, axis=1)))
    digits = request.finer and existing.floor == 0.0 and needs_digits(prior, largest)

    def make(wanted_trace: float) -> Mechanism:
        scale = np.sqrt(wanted_trace / trace)
        if digits and combination is not None:
            return spanned(prior, scale * combination, existing.factor)
        columns = np.zeros((prior.times.size, factor.shape[1]))
        columns[existing.rows] = scale * factor
        return Mechanism(
            prior.times,
            np.hstack([existing.factor, columns]),
            existing.floor,
            existing.process,
            existing.released,
        )

    return make


def _turned(solution: Solution) -> tuple[FloatArray, FloatArray | None]:
    """The factor (n, r) turned against its reference, and what spans it."""
    turned = turn(solution.factor, solution.reference)
    spanned_by = None if solution.spanned_by is None else solution.spanned_by @ turned
    return solution.factor @ turned, spanned_by
