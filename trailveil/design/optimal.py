"""The best noise for any list of secrets against any set of adversaries: reduced, solved, proved.

Gamma = D K D^T. At an optimum the range of Gamma is spanned by columns W^-1 V, with V_i = (Sigma_j
+ Gamma)^-1 B_i W_i^1/2 of each requirement i (a secret against an adversary with prior j) and its
dual weight W_i; for one prior, by (W Sigma + theta I)^-1 B c with theta an eigenvalue of Gamma. So
the n x n problem is solved in the span of such columns for a first guess, better columns are read
off its answer, and again, until nothing is gained. Few requirements bind: the rest are added when
they are found violated.

What is returned does not rest on any of this: see trailveil.design.proof for the bound that no
mechanism is below, and trailveil.design.several, where losses are recomputed.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from scipy.linalg import eigh, svd

from trailveil.design.interior import Interior, minimise
from trailveil.design.problem import Goal, Problem, Start, inflated
from trailveil.design.proof import dual_weights, eased, lower_bound, pulled
from trailveil.design.spaces import Space, orthonormal, root
from trailveil.errors import NumericalError
from trailveil.gaussian import FloatArray

# Relative gaps of the interior-point steps: in rounds that only look for requirements, afterwards
# (for a lone adversary and for several of them).
_ROUGH, _FINE, _FINE_OF_SEVERAL = 1e-2, 1e-8, 1e-7
# The same for a lower bound: nearer the constraints, weights are known to fewer digits.
_BELOW = (1e-6, 1e-5, 1e-4)
# Rounds end at this gap between what is reached and the bound; where there are more columns than so
# many, and rounds take seconds, at others for a lone adversary and for several; or after so many.
_PROVED, _PROVED_WIDE, _PROVED_OF_SEVERAL, _QUICK, _ROUNDS = 1e-8, 1e-6, 8e-4, 24, 20
# ... or when a round leaves more than this share of the gap, and what is reached falls by less.
_GAINING, _STILL_FALLING = 0.5, 1e-9
# How much more noise the lower bound begins with, and its free noise, in units of the largest
# eigenvalue of Gamma.
_ABOVE, _FREE = 1.02, 0.3
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


class Depth(Enum):
    """How far a solution goes: to a hundredth, to what can be had, or with a proof of it."""

    ROUGH = "rough"
    FINE = "fine"
    PROVED = "proved"


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Gamma = F F^T, and what is proved of it.

    factor: F (n, r) of the released rows. spanned_by: Z (n, r) with F = Sigma Z, for one view, or
    None. reference: (n, r), columns that say nothing of how it was found, to turn F against.
    trace: trace(W Gamma). loss: what was minimised, for Goal.LOSS. least: a lower bound of what was
    minimised over all noise. steps: Newton steps in all. active: the requirements in the last
    problem, by number.
    """

    factor: FloatArray
    spanned_by: FloatArray | None
    reference: FloatArray
    trace: float
    loss: float | None
    least: float
    steps: int
    active: tuple[int, ...]

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
        return replace(better, least=max(self.least, other.least), steps=other.steps)


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """One answer: Gamma = D D^T of `final`, its eigenvalues, and the space it was found in."""

    active: tuple[int, ...]
    space: Space
    found: Interior
    final: Space
    spectrum: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class _Below:
    """A lower bound, the V (n, m) that prove it, and their weights."""

    least: float
    columns: FloatArray
    weights: list[FloatArray]
    steps: int


def solve(
    problem: Problem,
    binding: Collection[tuple[tuple[int, int], float | None]] = (),
    *,
    depth: Depth = Depth.PROVED,
) -> Solution:
    """The best noise there is for a problem.

    binding: requirements to begin with, by family and time of a known value. depth: how far to
    go. Raises NumericalError where it is not found.
    """
    active = problem.first(binding)
    if not active:
        nothing = np.empty((problem.cost.size, 0))
        return Solution(nothing, None, nothing, 0.0, None, 0.0, 0, ())
    space, start = problem.beginning(active)
    best, steps, gap = None, 0, _ROUGH
    fine = _FINE if problem.alone else _FINE_OF_SEVERAL
    for _ in range(_ROUNDS):
        found = minimise(problem.reduced(space, active), start.noise, start.z, start.gap, gap)
        steps += found.steps
        made = _round(problem, space, found, active)
        wanting = _wanting(problem, made, gap)
        wide = space.columns.shape[1] > _QUICK
        enough = _PROVED
        if wide:
            enough = _PROVED_WIDE if problem.alone else _PROVED_OF_SEVERAL
        if not wanting and depth is (Depth.ROUGH if gap == _ROUGH else Depth.FINE):
            return _solution(problem, made, _Below(0.0, made.final.columns, [], 0), steps)
        if wanting or gap == _ROUGH:
            gap = _ROUGH if wanting else fine
            space, start, active = _wider(problem, made, wanting, rough=gap == _ROUGH)
            continue
        below = _below(problem, made)
        steps += below.steps
        solution = _solution(problem, made, below, steps)
        gained = best is None or solution.gains_on(best, wide=wide)
        best = solution if best is None else best.with_better(solution)
        if best.gap <= enough or not gained:
            break
        space, start = _finer(problem, made, below)
    if best is None:
        raise NumericalError("the design must settle, got adversaries that keep being missed")
    return best


def _round(problem: Problem, space: Space, found: Interior, active: Sequence[int]) -> _Round:
    """Columns of Gamma without those that are the barrier's.

    There is an optimum of at most as many columns as the secrets have locations.
    """
    spectrum, basis = eigh(found.noise)
    kept = spectrum > _NEGLIGIBLE * spectrum[-1]
    kept[: -problem.most(active) or None] = False
    final = space.combined(basis[:, kept] * np.sqrt(spectrum[kept]))
    return _Round(tuple(active), space, found, final, spectrum[kept])


def _below(problem: Problem, made: _Round) -> _Below:
    """The bound that no noise is below."""
    space, found, active = made.space, made.found, made.active
    if problem.alone:
        weights = dual_weights(problem, found)
        one = pulled(problem, space, found.noise, weights, active, 0.0)
        least = lower_bound(problem, found, active, one, weights)
        if least > (1 - _PROVED_WIDE) * _reached(problem, made):
            return _Below(least, one.columns, weights, 0)
    delta = _FREE * float(made.spectrum[-1])
    easier = eased(problem, space, active, delta)
    noise, z = inflated(found.noise, _ABOVE), found.z
    if problem.goal is Goal.LOSS:
        noise, z = noise * (problem.trace / _ABOVE / float(np.trace(noise))), _ABOVE**3 * found.z
    best, steps = _Below(0.0, np.empty((problem.cost.size, 0)), [], 0), 0
    for gap in _BELOW:
        better = minimise(easier, noise, z, 4 * (_ABOVE - 1), gap)
        weights = dual_weights(problem, better)
        one = pulled(problem, space, better.noise, weights, active, delta)
        least = lower_bound(problem, better, active, one, weights)
        steps += better.steps
        if least > best.least or not best.weights:
            best = _Below(least, one.columns, weights, steps)
        if least > (1 - 10 * gap) * _reached(problem, made):
            break
    return replace(best, steps=steps)


def _reached(problem: Problem, made: _Round) -> float:
    """What was minimised: the noise of the columns that are kept, or the loss."""
    noise = problem.goal is Goal.NOISE
    return float(np.sum(made.spectrum)) if noise else float(made.found.z[0])


def _solution(problem: Problem, made: _Round, below: _Below, steps: int) -> Solution:
    final = made.final
    columns = np.hstack([one.columns for one in problem.directions(made.active)])
    reference = columns[:, : final.columns.shape[1]]
    return Solution(
        final.columns,
        final.spanned[0] if problem.alone else None,
        reference / np.linalg.norm(reference, axis=0),
        float(np.sum(made.spectrum)),
        None if problem.goal is Goal.NOISE else _reached(problem, made),
        below.least,
        steps,
        made.active,
    )


def _wanting(problem: Problem, made: _Round, gap: float) -> list[int]:
    """The requirements outside the problem that are missed, the worst few of each family."""
    ratios = problem.ratios(made.final, made.found.z)
    ratios[list(made.active)] = 0.0
    taken: dict[tuple[int, int], int] = {}
    found: list[int] = []
    for i in np.argsort(ratios)[::-1]:
        family = problem.requirements[i].family
        allowed = 1 + (gap if gap == _ROUGH else _MISSED)
        if ratios[i] > allowed and taken.get(family, 0) < _OF_ONE and len(found) < _ADDED:
            taken[family] = taken.get(family, 0) + 1
            found.append(int(i))
    return found


def _wider(
    problem: Problem, made: _Round, wanting: Sequence[int], *, rough: bool
) -> tuple[Space, Start, list[int]]:
    """The space with columns for requirements that were missed, and a start in it."""
    pieces = [made.final, made.space, *problem.directions(wanting if rough else made.active)]
    space = orthonormal(problem.views, problem.cost, pieces, alone=problem.alone, rough=rough)
    together = sorted({*made.active, *wanting})
    before = problem.by_requirement(made.found.z, made.active)
    return space, problem.start(space, made.final, before, together, wanting), together


def _finer(problem: Problem, made: _Round, below: _Below) -> tuple[Space, Start]:
    """A space in which the gap is smaller, and a start in it."""
    pieces = [made.final, made.space]
    pieces += _fixed_points(problem, made, below) if problem.alone else [_worth(problem, below)]
    space = orthonormal(problem.views, problem.cost, pieces, alone=problem.alone)
    before = problem.by_requirement(made.found.z, made.active)
    return space, problem.start(space, made.final, before, made.active, ())


def _fixed_points(problem: Problem, made: _Round, below: _Below) -> list[Space]:
    """(W Sigma + theta I)^-1 B c for each eigenvalue theta of Gamma, c from the dual weights."""
    found = []
    for k in np.flatnonzero(made.spectrum > _TELLING * made.spectrum[-1]):
        theta = float(made.spectrum[k])
        unit = made.final.columns[:, k] / np.sqrt(theta)
        total, used = None, 0
        for i, weight in zip(made.active, below.weights, strict=True):
            size = len(weight)
            share = root(weight) @ (below.columns[:, used : used + size].T @ unit)
            one = problem.direction(i, theta).combined(share[:, None])
            total = one if total is None else total.plus(one)
            used += size
        found += [] if total is None else [total]
    return found


def _worth(problem: Problem, below: _Below) -> Space:
    """The columns W^-1 V, without combinations that are hardly in any of them."""
    scaled = below.columns / np.sqrt(problem.cost)[:, None]
    left, sizes, _ = svd(scaled, full_matrices=False)
    kept = left[:, sizes > _WORTH * sizes[0]]
    return Space(kept / np.sqrt(problem.cost)[:, None], ())
