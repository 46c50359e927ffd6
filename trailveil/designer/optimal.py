"""The best noise for any list of secrets against one prior: reduced, solved, proved.

Gamma = D K D^T. At an optimum the range of Gamma is spanned by columns W^-1 V, with V_i = (Sigma_j
+ Gamma)^-1 B_i W_i^1/2 of each requirement i (a secret against an adversary with prior j) and its
dual weight W_i; for one prior, by (W Sigma + theta I)^-1 B c with theta an eigenvalue of Gamma. So
the n x n problem is solved in the span of such columns for a first guess, better columns are read
off its answer, and again, until nothing is gained. Few requirements bind: the rest are added when
they are found violated. Against several adversaries: trailveil.designer.robust.

What is returned does not rest on any of this: see trailveil.designer.proof for the bound that no
mechanism is below, and trailveil.designer.several, where losses are recomputed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, svd

from trailveil.designer.interior import Interior, minimise
from trailveil.designer.problem import Goal, Problem, Start, inflated
from trailveil.designer.proof import dual_weights, eased, lower_bound, pulled
from trailveil.designer.spaces import Space, orthonormal, root
from trailveil.errors import NumericalError
from trailveil.gp.gaussian import FloatArray

# Relative gaps of the interior-point steps: in rounds that only look for requirements, afterwards.
_ROUGH, _FINE = 1e-2, 1e-8
# The same for a lower bound: nearer the constraints, weights are known to fewer digits.
_BELOW = (1e-6, 1e-5, 1e-4)
# Rounds end at this gap between what is reached and the bound; where there are more columns than so
# many, and rounds take seconds, at the second one; or after so many.
_PROVED, _PROVED_WIDE, _QUICK, _ROUNDS = 1e-8, 1e-6, 24, 20
# ... or when a round leaves more than this share of the gap, and what is reached falls by less.
_GAINING, _STILL_FALLING = 0.5, 1e-9
# How much more noise the lower bound begins with, and its free noise, in units of the largest
# eigenvalue of Gamma.
_ABOVE, _FREE = 1.02, 0.3
# Bounds below this share of what is reached say nothing: the free noise alone can be enough.
_USELESS = 1e-6
# Eigenvalues of Gamma below this share of the largest are the barrier's own, and are left out ...
_NEGLIGIBLE = 1e-8
# ... and those above this one say where new columns are to be looked for.
_TELLING = 1e-5
# Columns below this share of the largest are not worth a direction of their own.
_WORTH = 1e-5
# A requirement is missed where more is lost than allowed by this, relative, in the last rounds.
_MISSED = 1e-6
# Requirements that are taken into the problem at a time, in all and of one family.
_ADDED, _OF_ONE = 12, 4


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Gamma = F F^T, and what is proved of it.

    factor: F (n, r) of the released rows. spanned_by: Z (n, r) with F = Sigma Z, for one view, or
    None. reference: (n, r), columns that say nothing of how it was found, to turn F against.
    trace: trace(W Gamma). loss: what was minimised, for Goal.LOSS. least: a lower bound of what was
    minimised over all noise.
    """

    factor: FloatArray
    spanned_by: FloatArray | None
    reference: FloatArray
    trace: float
    loss: float | None
    least: float

    @property
    def reached(self) -> float:
        """What was minimised."""
        return self.trace if self.loss is None else self.loss

    @property
    def gap(self) -> float:
        """How far what is reached can be above the least, relative to it; infinite for no proof."""
        if self.least > 0:
            return max(self.reached / self.least - 1.0, 0.0)
        return 0.0 if self.reached == 0 else float("inf")

    def gains_on(self, other: "Solution", *, wide: bool) -> bool:
        """Whether another round is worth it: the gap halves, or what is reached still falls."""
        falls = not wide and self.reached < other.reached * (1 - _STILL_FALLING)
        return falls or self.gap < _GAINING * other.gap

    def with_better(self, other: "Solution") -> "Solution":
        """What is reached by the better of two answers, with the better of their bounds."""
        better = other if other.reached <= self.reached else self
        return replace(better, least=max(self.least, other.least))


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One answer: Gamma = D D^T of `final`, its eigenvalues, and the space it was found in.

    active: the requirements that were in the problem, by number.
    """

    active: tuple[int, ...]
    space: Space
    interior: Interior
    final: Space
    spectrum: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """A lower bound, the V (n, m) that prove it, and their weights."""

    least: float
    columns: FloatArray
    weights: list[FloatArray]


def solve(
    problem: Problem,
) -> Solution:
    """The best noise there is for a problem of one prior and nothing known besides.

    Raises NumericalError where it is not found.
    """
    active = problem.first()
    if not active:
        return nothing(problem)
    space, start = problem.beginning(active)
    best, gap = None, _ROUGH
    for _ in range(_ROUNDS):
        interior = minimise(problem.reduced(space, active), start.noise, start.z, start.gap, gap)
        answer = rounded(problem, space, interior, active)
        missed = wanting(problem, answer, _ROUGH if gap == _ROUGH else _MISSED)
        wide = space.columns.shape[1] > _QUICK
        enough = _PROVED_WIDE if wide else _PROVED
        if missed or gap == _ROUGH:
            gap = _ROUGH if missed else _FINE
            space, start, active = _wider(problem, answer, missed, rough=gap == _ROUGH)
            continue
        below = bound_below(problem, answer)
        solution = solution_of(problem, answer, below)
        gained = best is None or solution.gains_on(best, wide=wide)
        best = solution if best is None else best.with_better(solution)
        if best.gap <= enough or not gained:
            break
        space, start = _finer(problem, answer, below)
    if best is None:
        raise NumericalError("the design must settle, got adversaries that keep being missed")
    return best


NO_BOUND = Below(0.0, np.empty((0, 0)), [])


def nothing(problem: Problem) -> Solution:
    """No noise, where none is needed."""
    none = np.empty((problem.cost.size, 0))
    return Solution(none, None, none, 0.0, None, 0.0)


def rounded(problem: Problem, space: Space, interior: Interior, active: Sequence[int]) -> Round:
    """Columns of Gamma without those that are the barrier's.

    There is an optimum of at most as many columns as the secrets have locations.
    """
    spectrum, basis = eigh(interior.noise)
    above = spectrum > _NEGLIGIBLE * spectrum[-1]
    above[: -problem.most(active) or None] = False
    final = space.combined(basis[:, above] * np.sqrt(spectrum[above]))
    return Round(tuple(active), space, interior, final, spectrum[above])


def bound_below(problem: Problem, answer: Round, gaps: Sequence[float] = _BELOW) -> Below:
    """The bound that no noise is below; gaps: of the steps, until one will do."""
    space, interior, active = answer.space, answer.interior, answer.active
    if problem.alone:
        weights = dual_weights(problem, interior)
        dual = pulled(problem, space, interior.noise, weights, active, 0.0)
        least = lower_bound(problem, interior, active, dual, weights)
        if least > (1 - _PROVED_WIDE) * reached(problem, answer):
            return Below(least, dual.columns, weights)
    delta = _FREE * float(answer.spectrum[-1])
    easier = eased(problem, space, active, delta)
    noise, z = inflated(interior.noise, _ABOVE), interior.z
    if problem.goal is Goal.LOSS:
        noise, z = noise * (problem.trace / _ABOVE / float(np.trace(noise))), _ABOVE**3 * interior.z
    best = NO_BOUND
    useless = _USELESS * reached(problem, answer)
    for gap in gaps:
        better = minimise(easier, noise, z, 4 * (_ABOVE - 1), gap, useless)
        weights = dual_weights(problem, better)
        dual = pulled(problem, space, better.noise, weights, active, delta)
        least = lower_bound(problem, better, active, dual, weights)
        if least > best.least or not best.weights:
            best = Below(least, dual.columns, weights)
        if least > (1 - 10 * gap) * reached(problem, answer):
            break
    return best


def reached(problem: Problem, answer: Round) -> float:
    """What was minimised: the noise of the columns that are kept, or the loss."""
    noise = problem.goal is Goal.NOISE
    return float(np.sum(answer.spectrum)) if noise else float(answer.interior.z[0])


def solution_of(problem: Problem, answer: Round, below: Below) -> Solution:
    """An answer and its bound as what is handed on."""
    final = answer.final
    columns = np.hstack([direction.columns for direction in problem.directions(answer.active)])
    reference = columns[:, : final.columns.shape[1]]
    return Solution(
        final.columns,
        final.spanned[0] if problem.alone else None,
        reference / np.linalg.norm(reference, axis=0),
        float(np.sum(answer.spectrum)),
        None if problem.goal is Goal.NOISE else reached(problem, answer),
        below.least,
    )


def wanting(problem: Problem, answer: Round, allowed: float) -> list[int]:
    """The requirements outside the problem that are missed, the worst few of each family.

    allowed: by how much, relative, they may be.
    """
    ratios = problem.ratios(answer.final, answer.interior.z)
    ratios[list(answer.active)] = 0.0
    taken: dict[tuple[int, int], int] = {}
    missed: list[int] = []
    for i in np.argsort(ratios)[::-1]:
        family = problem.requirements[i].family
        if ratios[i] > 1 + allowed and taken.get(family, 0) < _OF_ONE and len(missed) < _ADDED:
            taken[family] = taken.get(family, 0) + 1
            missed.append(int(i))
    return missed


def _wider(
    problem: Problem, answer: Round, wanting: Sequence[int], *, rough: bool
) -> tuple[Space, Start, list[int]]:
    """The space with columns for requirements that were missed, and a start in it."""
    pieces = [answer.final, answer.space, *problem.directions(wanting if rough else answer.active)]
    space = orthonormal(problem.views, problem.cost, pieces, alone=problem.alone)
    together = sorted({*answer.active, *wanting})
    before = problem.by_requirement(answer.interior.z, answer.active)
    return space, problem.start(space, answer.final, before, together, wanting), together


def _finer(problem: Problem, answer: Round, below: Below) -> tuple[Space, Start]:
    """A space in which the gap is smaller, and a start in it."""
    pieces = [answer.final, answer.space]
    pieces += (
        _fixed_points(problem, answer, below) if problem.alone else [worth(problem, below.columns)]
    )
    space = orthonormal(problem.views, problem.cost, pieces, alone=problem.alone)
    before = problem.by_requirement(answer.interior.z, answer.active)
    return space, problem.start(space, answer.final, before, answer.active, ())


def _fixed_points(problem: Problem, answer: Round, below: Below) -> list[Space]:
    """(W Sigma + theta I)^-1 B c for each eigenvalue theta of Gamma, c from the dual weights."""
    spaces = []
    for k in np.flatnonzero(answer.spectrum > _TELLING * answer.spectrum[-1]):
        theta = float(answer.spectrum[k])
        unit = answer.final.columns[:, k] / np.sqrt(theta)
        total, used = None, 0
        for i, weight in zip(answer.active, below.weights, strict=True):
            size = len(weight)
            share = root(weight) @ (below.columns[:, used : used + size].T @ unit)
            space = problem.direction(i, theta).combined(share[:, None])
            total = space if total is None else total.plus(space)
            used += size
        spaces += [] if total is None else [total]
    return spaces


def worth(problem: Problem, columns: FloatArray, most: int | None = None) -> Space:
    """W^-1 V (n, m), without combinations that are hardly in any column; `most` of them at most."""
    scaled = columns / np.sqrt(problem.cost)[:, None]
    u, sizes, _ = svd(scaled, full_matrices=False)
    basis = u[:, sizes > _WORTH * sizes[0]][:, :most]
    return Space(basis / np.sqrt(problem.cost)[:, None], ())
