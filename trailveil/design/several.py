"""Any secrets, any adversaries: the optimum of trailveil.design.optimal as a mechanism.

The solver's answer is only where the search begins: what is returned was scaled until the losses
that are recomputed from it meet every bound, and the dual bound says how far from the least it can
be.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trailveil.adversary import PLAIN, Adversary, exposures, value_losses
from trailveil.design.columns import needs_digits, spanned, turn
from trailveil.design.optimal import Depth, Solution, solve
from trailveil.design.problem import Problem, least_loss_problem, least_noise_problem
from trailveil.design.requirements import ALL, Demand, Requirement, posed
from trailveil.design.stepping import until_met
from trailveil.design.views import View
from trailveil.errors import InvalidValue
from trailveil.gaussian import FloatArray
from trailveil.guarantee import tight_bound
from trailveil.loss import losses
from trailveil.mechanism import Mechanism
from trailveil.prior import Prior

# While known values are only looked for, they are missed where more is lost with them than allowed
# by this, relative; so many are counted in at a time for one secret and adversary, and so often.
_ROUGHLY, _OF_ONE, _ROUNDS = 1e-2, 4, 12
# So much less than allowed is aimed at where only some of the values are looked at: far cheaper
# than to make all noise larger in the end.
_MARGIN = 2e-5


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What a design is for.

    demands: secrets with what mu^2 / radius^2 may be, or, for a budget, with their shares of the
    common loss. adversaries: all of them, each against each secret. weights: W (n,) > 0, the cost
    of a unit of noise variance at each row. existing: noise and withheld rows that are there.
    """

    prior: Prior
    demands: tuple[Demand, ...]
    adversaries: tuple[Adversary, ...]
    weights: FloatArray
    existing: Mechanism

    @property
    def cost(self) -> FloatArray:
        """The weights of the released rows."""
        return self.weights[self.existing.rows]

    def spent(self, mechanism: Mechanism) -> float:
        """trace(W Gamma) of a mechanism."""
        return float(self.weights @ mechanism.variances)

    def matrices(self, mechanism: Mechanism) -> list[tuple[Demand, FloatArray]]:
        """Every loss matrix of every demand, recomputed from the mechanism, errors against us."""
        plain = [one for one in self.adversaries if one == PLAIN]
        found = []
        if plain:
            secrets = [demand.secret for demand in self.demands]
            made = losses(self.prior, secrets, mechanism)
            pairs = zip(self.demands, made, strict=True)
            found += [(demand, loss.matrix) for demand, loss in pairs]
        for adversary in self.adversaries:
            if adversary == PLAIN:
                continue
            for demand in self.demands:
                seen = exposures(self.prior, demand.secret, mechanism, adversary)
                found += [(demand, one.learnt) for one in seen]
        return found

    def missed(self, mechanism: Mechanism, common: float) -> list[tuple[int, int, float]]:
        """Known values with which more is lost than the bound times `common`.

        As demand, adversary, time: the worst of each run of such times.
        """
        found = []
        for j, adversary in enumerate(self.adversaries):
            for i, demand in enumerate(self.demands):
                if adversary.point is None:
                    continue
                times, losses = value_losses(self.prior, demand.secret, mechanism, adversary)
                ratios = np.pad(losses / (demand.bound * common), 1)
                top = (ratios[1:-1] >= ratios[:-2]) & (ratios[1:-1] >= ratios[2:])
                worst = np.flatnonzero(top & (ratios[1:-1] > 1))
                best = worst[np.argsort(ratios[1:-1][worst])[::-1][:_OF_ONE]]
                found += [(i, j, float(times[k])) for k in best]
        return found


def least_noise(wanted: Wanted) -> tuple[Mechanism, float]:
    """The least noise at which mu^2 / radius^2 of each secret is at most its bound.

    And a lower bound of trace(W Gamma). Raises as trailveil.design.optimal.solve does.
    """
    there = wanted.spent(wanted.existing)
    found, make = _solved(
        wanted, lambda views, needs: least_noise_problem(views, needs, wanted.cost)
    )
    if found.reached == 0.0:
        return wanted.existing, there

    def excess(made: Mechanism) -> float:
        pairs = wanted.matrices(made)
        return max(tight_bound([matrix], 1.0) / demand.bound for demand, matrix in pairs) - 1.0

    return until_met(make, excess, found.reached), there + found.least


def least_loss(wanted: Wanted, budget: float) -> tuple[Mechanism, float | None]:
    """The least worst loss, over its share, for trace(W Gamma) = budget, and a lower bound of it.

    The loss of a compound secret is its largest eigenvalue.
    """
    there = wanted.spent(wanted.existing)
    rest = budget - there
    if rest <= 0:
        raise InvalidValue(
            f"the noise budget must be above the floor's own {there:.6g}, got {budget:.6g}"
        )
    found, make = _solved(
        wanted, lambda views, needs: least_loss_problem(views, needs, wanted.cost, rest)
    )
    return make(rest), found.least if found.least > 0 else None


def _solved(
    wanted: Wanted, pose: Callable[[tuple[View, ...], tuple[Requirement, ...]], Problem]
) -> tuple[Solution, Callable[[float], Mechanism]]:
    """The best noise against all that adversaries may know, and trace -> that much of its kind.

    Of the values that an adversary may know one of, a few stand for all; those that are missed by
    the answer are counted in, and it is sought again.
    """
    beside: list[tuple[int, int, float]] = []
    binding: set[tuple[tuple[int, int], float | None]] = set()
    values = any(adversary.point is not None for adversary in wanted.adversaries)
    depths = [Depth.ROUGH, Depth.FINE, Depth.PROVED] if values else [Depth.PROVED]
    partly = values and wanted.existing.rows.size > ALL
    rounds = 0
    while True:
        views, needs = posed(
            wanted.prior,
            wanted.demands,
            wanted.adversaries,
            wanted.existing,
            wanted.cost,
            beside=beside,
            margin=_MARGIN if partly else 0.0,
        )
        depth = depths[0] if rounds < _ROUNDS else Depth.PROVED
        found = solve(pose(views, needs), binding, depth=depth)
        make, rounds = _maker(wanted, found), rounds + 1
        if found.trace == 0.0 or not values or rounds > _ROUNDS:
            return found, make
        binding = {(needs[i].family, needs[i].at) for i in found.active}
        common = 1.0 if found.loss is None else found.loss
        allowed = common * (1 + (_ROUGHLY if depth is Depth.ROUGH else 0.0))
        fresh = [one for one in wanted.missed(make(found.trace), allowed) if one not in beside]
        if not fresh and depth is Depth.PROVED:
            return found, make
        if not fresh:
            depths.pop(0)
        beside += fresh
        binding |= {((i, j), time) for i, j, time in fresh}


def _maker(wanted: Wanted, found: Solution) -> Callable[[float], Mechanism]:
    """trace -> the mechanism with the found noise at that trace, beside what exists, canonical."""
    prior, existing = wanted.prior, wanted.existing
    trace = found.trace
    factor, combination = _turned(found)
    largest = float(np.max(np.sum(factor**2, axis=1)))
    digits = existing.floor == 0.0 and needs_digits(prior, largest)

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


def _turned(found: Solution) -> tuple[FloatArray, FloatArray | None]:
    """The factor (n, r) turned against its reference, and what spans it."""
    turned = turn(found.factor, found.reference)
    spanned_by = None if found.spanned_by is None else found.spanned_by @ turned
    return found.factor @ turned, spanned_by
