"""The best noise against several adversaries: sought in one space of splines, and proved.

What one adversary's optimum is spanned by is found by trailveil.designer.optimal; with many of them
that takes too many columns. Here the space is laid out beforehand (trailveil.designer.spaces), and
all rounds take place in it: with the requirements that bind, the rest added when they are missed.
Where the bound of trailveil.designer.proof shows that more is to be had, the columns of the dual
are added and it begins again from where it was.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from trailveil.designer.interior import minimise
from trailveil.designer.optimal import (
    Below,
    Round,
    Solution,
    bound_below,
    reached,
    rounded,
    solution_of,
    wanting,
    worth,
)
from trailveil.designer.problem import Problem
from trailveil.designer.proof import dual_weights, pulled
from trailveil.designer.spaces import Space, orthonormal
from trailveil.errors import NumericalError
from trailveil.gp.gaussian import FloatArray

Binding = Collection[tuple[tuple[int, int], float | None]]

# A requirement that has this share of all dual weights, or less, does not bind.
_IDLE = 1e-7
_ROUNDS = 40
# Gaps to the lower bound that end it: where there are at most so many columns, and where rounds
# take seconds.
_NEAR, _QUICK, _PROVED = 2e-5, 45, 8e-4
# A requirement of which so much is used may soon bind.
_NEARLY = 0.97
# So many columns are added to a space at a time.
_MORE = 12
# The gap of the steps for a bound, where another one gave hardly any.
_BELOW, _HARDLY = 1e-4, 0.9


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How near to the best an answer is to be.

    gap: of the steps, relative. missed: a requirement is missed where more is lost than allowed by
    this, relative. widened: how often columns are added to come nearer. below: the
    gap of the steps for a bound; None for no bound.
    """

    gap: float
    missed: float
    widened: int
    below: float | None = 2e-5

    def enough(self, width: int) -> float:
        """The gap to the lower bound that is good enough in a space of so many columns."""
        return _NEAR if width <= _QUICK else _PROVED


ROUGHLY = Tolerances(1e-2, 1e-2, 0)
QUICKLY, THOROUGHLY = Tolerances(2e-4, 5e-3, 0, 1e-4), Tolerances(1e-5, 2e-5, 2)


def binding(problem: Problem, answer: Round) -> set[tuple[tuple[int, int], float | None]]:
    """The requirements that matter to an answer, by family and time of a known value."""
    chosen = [problem.requirements[i] for i in _binding(answer)]
    return {(requirement.family, requirement.at) for requirement in chosen}


def _binding(answer: Round) -> list[int]:
    """Those by number."""
    weights = [float(np.trace(weight)) for weight in answer.interior.weights]
    least = _IDLE * sum(weights)
    return [i for i, weight in zip(answer.active, weights, strict=True) if weight > least]


def begin(problem: Problem, columns: FloatArray) -> Space:
    """The space of some columns (n, p), for every view of a problem."""
    return orthonormal(problem.views, problem.cost, [Space(columns, ())], alone=False)


def settle(
    problem: Problem,
    space: Space,
    binding: Binding,
    effort: Tolerances,
    before: Round | None = None,
) -> Round | None:
    """The best noise in a space that meets every requirement; None where none is needed.

    binding: requirements to begin with. effort: how near to the best. before: an answer to begin
    from.
    Raises NumericalError where it is not found.
    """
    active = problem.first(binding)
    if not active:
        return None
    numbers: dict[int, FloatArray] = {}
    everywhere = space.combined(np.sqrt(problem.level) * np.eye(space.columns.shape[1]))
    final = everywhere if before is None else before.final
    for _ in range(_ROUNDS):
        start = problem.start(space, final, numbers, active, [])
        first = 1.0 if final is everywhere else start.gap
        interior = minimise(problem.reduced(space, active), start.noise, start.z, first, effort.gap)
        answer = rounded(problem, space, interior, active)
        missed = wanting(problem, answer, effort.missed)
        if not missed:
            return answer
        numbers = problem.by_requirement(interior.z, active)
        active = sorted({*_binding(answer), *missed})
        final = answer.final
    raise NumericalError("the design must settle, got adversaries that keep being missed")


def nearly(problem: Problem, answer: Round) -> set[tuple[tuple[int, int], float | None]]:
    """The requirements of which nearly all that is allowed is used, by family and time."""
    ratios = problem.ratios(answer.final, answer.interior.z)
    chosen = [problem.requirements[int(i)] for i in np.flatnonzero(ratios > _NEARLY)]
    return {(requirement.family, requirement.at) for requirement in chosen}


def proved(problem: Problem, answer: Round, effort: Tolerances) -> tuple[Solution, Below]:
    """The answer with a lower bound of all others, and what proves it."""
    below = bound_below(problem, answer, (effort.below or _BELOW,))
    hardly = below.least < _HARDLY * reached(problem, answer)
    if hardly and (effort.below or _BELOW) < _BELOW:
        below = bound_below(problem, answer, (_BELOW,))
    return solution_of(problem, answer, below), below


def wider(problem: Problem, answer: Round, below: Below) -> Space:
    """The space with the columns that the bound, and the answer itself, would rather have."""
    weights = dual_weights(problem, answer.interior)
    primal = pulled(problem, answer.space, answer.interior.noise, weights, answer.active, 0.0)
    both = np.hstack([below.columns, primal.columns])
    pieces = [answer.final, answer.space, worth(problem, both, _MORE)]
    return orthonormal(problem.views, problem.cost, pieces, alone=False)
