"""A design as a problem: views, requirements, costs; in a space of columns, a small convex one."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from scipy.linalg import eigh

from trailveil.designer.interior import Constraint, Linear, Reduced, feasible, hidden_part
from trailveil.designer.requirements import Requirement
from trailveil.designer.spaces import Space, orthonormal, root
from trailveil.designer.views import View, ViewedSecret, viewed_secret
from trailveil.errors import InvalidValue, TooCoarse
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import tight_bound

# How much larger than the last answer the noise is with which a round begins: the first that does.
_LARGER = (1.02, 1.1, 1.5, 3.0, 10.0, 1e2, 1e3, 1e4, 1e6, 1e8)
# Of the allowance of a compound secret, each location has its even share but for this.
_INSIDE = 1.02
# The white noise that would do is sought by this factor, up to so many times where it begins.
_GRID, _MOST = 4.0, 1e40
# Where columns are looked for first: these shares of the white noise that would do.
_SPREAD = (3.0, 0.2, 0.015, 0.001)


class Goal(Enum):
    """What is minimised: the noise that meets bounds, or the worst loss for a noise."""

    NOISE = "noise"
    LOSS = "loss"


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """A strictly feasible K (p, p) and z (q,), whose relative gap is `gap` or so."""

    noise: FloatArray
    z: FloatArray
    gap: float


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """views, requirements: see trailveil.designer.requirements. cost: W (n,) of the released rows.

    trace: the most that trace(W Gamma) may be, for Goal.LOSS. level: a theta such that the noise
    theta W^-1 on all rows meets every requirement, or spends the trace.
    """

    views: tuple[View, ...]
    requirements: tuple[Requirement, ...]
    cost: FloatArray
    goal: Goal
    trace: float
    level: float
    met: frozenset[int] = field(default=frozenset())

    @property
    def alone(self) -> bool:
        """Whether there is one inverse covariance in all of it: one prior, and no known values."""
        return len(self.views) == 1 and all(
            requirement.point is None for requirement in self.requirements
        )

    def viewed(self, number: int, theta: float = 0.0) -> ViewedSecret:
        """What requirement `number` leaves to know, with the noise theta W^-1 more."""
        requirement = self.requirements[number]
        return viewed_secret(
            self.views[requirement.view].at(theta),
            requirement.columns,
            requirement.point,
            requirement.accuracy,
        )

    def first(self, stated: Collection[tuple[tuple[int, int], float | None]] = ()) -> list[int]:
        """The requirements to begin with: the hardest of each view, and both ends.

        stated: families, and times of known values, of requirements that are known to bind.
        """
        open_ones = [i for i in range(len(self.requirements)) if i not in self.met]
        binding = {
            i for i in open_ones if (self.requirements[i].family, self.requirements[i].at) in stated
        }
        hardest: dict[int, tuple[float, int]] = {}
        for i in open_ones:
            ratio = self._ratio(i, self.viewed(i, self.level).covariance, None)
            view = self.requirements[i].view
            hardest[view] = max(hardest.get(view, (0.0, i)), (ratio, i))
        ends = {open_ones[0], open_ones[-1]} if open_ones else set()
        return sorted({*ends, *binding, *(i for _, i in hardest.values())})

    def most(self, active: Sequence[int]) -> int:
        """There is an optimum of at most so many columns."""
        return sum(self.requirements[i].columns.size for i in active)

    def direction(self, number: int, theta: float) -> Space:
        """W^-1 (Sigma + theta W^-1)^-1 B of a requirement, and what spans it if alone."""
        viewed = self.viewed(number, theta)
        spanned: tuple[FloatArray, ...] = ()
        if self.alone:
            # (Sigma + theta W^-1) V = B, so Sigma^-1 W^-1 V = (Sigma^-1 B - V) / theta.
            spanned = ((self.viewed(number).weights - viewed.weights) / theta,)
        return Space(viewed.weights / self.cost[:, None], spanned)

    def directions(self, chosen: Sequence[int]) -> list[Space]:
        """The directions of some requirements for a few theta."""
        thetas = [self.level * share for share in _SPREAD]
        return [self.direction(i, theta) for theta in thetas for i in chosen]

    def beginning(self, active: Sequence[int]) -> tuple[Space, Start]:
        """Columns for a few theta, and a start in them."""
        space = orthonormal(self.views, self.cost, self.directions(active), alone=self.alone)
        nothing = space.combined(np.empty((space.columns.shape[1], 0)))
        return space, self.start(space, nothing, {}, active, active)

    def reduced(self, space: Space, active: Sequence[int]) -> Reduced:
        """The problem of these requirements in this space."""
        informations: dict[tuple[int, int | None], tuple[int, FloatArray]] = {}
        constraints, by = [], self.shares(active)
        for i, (allowed, shares) in zip(active, by, strict=True):
            requirement, viewed = self.requirements[i], self.viewed(i)
            key = (requirement.view, requirement.point)
            if key not in informations:
                n = space.columns.T @ space.spanned[requirement.view]
                g = space.columns.T @ viewed.extra
                informations[key] = len(informations), (n + n.T) / 2 + g @ g.T
            pull = space.columns.T @ viewed.weights
            number = informations[key][0]
            precision = requirement.precision
            constraints.append(
                Constraint(number, pull, viewed.covariance, precision, allowed, shares)
            )
        linear, cost_of_trace, cost = self.linear(active)
        roots = tuple(root(n) for _, n in informations.values())
        return Reduced(
            roots, tuple(constraints), linear, cost_of_trace, cost, np.eye(len(roots[0]))
        )

    def shares(self, active: Sequence[int]) -> list[tuple[FloatArray, FloatArray]]:
        """a and A of each constraint."""
        pairs, count, used = [], self.numbers(active), 0
        for i in active:
            requirement = self.requirements[i]
            size = requirement.columns.size
            allowed, shares = np.zeros(size), np.zeros((size, count))
            if self.goal is Goal.LOSS:
                shares[:, 0] = requirement.target
            elif size == 1:
                allowed[0] = requirement.target
            else:
                shares[np.arange(size), used + np.arange(size)] = 1.0
                used += size
            pairs.append((allowed, shares))
        return pairs

    def numbers(self, active: Sequence[int]) -> int:
        """How many numbers z there are."""
        if self.goal is Goal.LOSS:
            return 1
        sizes = [self.requirements[i].columns.size for i in active]
        return sum(size for size in sizes if size > 1)

    def linear(self, active: Sequence[int]) -> tuple[Linear, float, FloatArray]:
        """The linear constraints, and the objective."""
        count = self.numbers(active)
        if self.goal is Goal.LOSS:
            linear = Linear(np.array([self.trace]), np.zeros((1, 1)), np.array([-1.0]))
            return linear, 0.0, np.ones(1)
        compound = [self.requirements[i] for i in active if self.requirements[i].columns.size > 1]
        by, used = np.zeros((len(compound), count)), 0
        for row, requirement in enumerate(compound):
            by[row, used : used + requirement.columns.size] = -1.0
            used += requirement.columns.size
        base = np.array([each.target for each in compound])
        return Linear(base, by, np.zeros(len(compound))), 1.0, np.zeros(count)

    def start(
        self,
        space: Space,
        final: Space,
        before: dict[int, FloatArray],
        active: Sequence[int],
        fresh: Sequence[int],
    ) -> Start:
        """A feasible K, a little larger than that of the last round, in every direction.

        before: z of each requirement in the last round. fresh: requirements that were not in it.
        theta V (V^T W V)^-1 V^T, V = W^-1 (Sigma + theta W^-1)^-1 B, leaves of a secret what the
        noise theta W^-1 leaves.
        """
        columns = [final.columns]
        for i in fresh:
            direction = self.direction(i, self.level).columns
            root = np.linalg.qr(np.sqrt(self.cost)[:, None] * direction)[0]
            columns.append(np.sqrt(self.level / self.cost)[:, None] * root)
        inside = space.columns.T @ (self.cost[:, None] * np.hstack(columns))
        reduced = self.reduced(space, active)
        if self.goal is Goal.LOSS:
            return self._spending(reduced, inside, active, fresh)
        parts = [before.get(i, self._even(i)) for i in active]
        z = np.concatenate([np.empty(0), *(part for part in parts if part.size > 1)])
        for larger in _LARGER:
            noise = inflated(inside @ inside.T, larger)
            if feasible(reduced, noise, z):
                return Start(noise, z, 1.0 if fresh else min(1.0, 4 * (larger - 1)))
        raise TooCoarse("the design must have a feasible start, got none; loosen a target")

    def _spending(
        self, reduced: Reduced, inside: FloatArray, active: Sequence[int], fresh: Sequence[int]
    ) -> Start:
        """Nearly all of the trace, and a loss above what it reaches."""
        noise = inflated(inside @ inside.T, _LARGER[0])
        noise = noise * min(1.0, self.trace / float(np.trace(noise)) / _LARGER[0])
        ratios = [
            self._ratio(i, _left(c, noise, reduced.roots[c.prior]), None)
            for i, c in zip(active, reduced.constraints, strict=True)
        ]
        gap = 1.0 if fresh else 4 * (_LARGER[0] - 1)
        return Start(noise, np.array([max(ratios) * _LARGER[0]]), gap)

    def _even(self, number: int) -> FloatArray:
        requirement = self.requirements[number]
        return np.full(
            requirement.columns.size, requirement.target / requirement.columns.size / _INSIDE
        )

    def by_requirement(self, z: FloatArray, active: Sequence[int]) -> dict[int, FloatArray]:
        """The numbers of z of each compound requirement."""
        parts, used = {}, 0
        if self.goal is Goal.NOISE:
            for i in active:
                size = self.requirements[i].columns.size
                if size > 1:
                    parts[i] = z[used : used + size]
                    used += size
        return parts

    def ratios(self, final: Space, z: FloatArray) -> FloatArray:
        """How much of each requirement's allowance is used under Gamma = D D^T: at most 1 is met.

        A compound one is first judged by its largest eigenvalue, which costs little: where that
        will do for each location alike, so does the tight bound.
        """
        common = float(z[0]) if self.goal is Goal.LOSS else None
        used = np.zeros(len(self.requirements))
        eye = np.eye(final.columns.shape[1])
        plain = [final.columns.T @ spanned for spanned in final.spanned]
        for i, requirement in enumerate(self.requirements):
            if i in self.met:
                continue
            viewed = self.viewed(i)
            g = final.columns.T @ viewed.extra
            pull = final.columns.T @ viewed.weights
            n = plain[requirement.view]
            hidden = hidden_part(eye, (n + n.T) / 2 + g @ g.T)
            used[i] = self._ratio(i, viewed.covariance + pull.T @ hidden @ pull, common)
        return used

    def _ratio(self, number: int, posterior: FloatArray, common: float | None) -> float:
        """The loss over what is allowed, for what is left of the secret (k, k).

        common: z of Goal.LOSS, or None to have the loss by the allowances alone.
        """
        requirement = self.requirements[number]
        if requirement.columns.size == 1:
            loss = 1.0 / float(posterior[0, 0]) - float(requirement.precision[0, 0])
            return loss / requirement.target / (common or 1.0)
        matrix = np.linalg.inv(posterior) - requirement.precision
        matrix = (matrix + matrix.T) / 2
        largest = max(float(eigh(matrix, eigvals_only=True)[-1]), 0.0)
        if self.goal is Goal.LOSS:
            return largest / requirement.target / (common or 1.0)
        if largest * requirement.columns.size <= requirement.target:
            return largest * requirement.columns.size / requirement.target
        return tight_bound([matrix], 1.0) / requirement.target


def inflated(noise: FloatArray, larger: float) -> FloatArray:
    """K (p, p), a little larger, and a little in every direction: as on the barrier's own path."""
    width = noise.shape[0]
    isotropic = (larger - 1) * float(np.trace(noise)) / width
    return np.asarray(larger * noise + isotropic * np.eye(width))


def _left(constraint: Constraint, noise: FloatArray, root: FloatArray) -> FloatArray:
    """Q(K) (k, k)."""
    hidden = hidden_part(noise, root @ root.T)
    return np.asarray(constraint.without + constraint.pull.T @ hidden @ constraint.pull)


def least_noise_problem(
    views: tuple[View, ...], requirements: tuple[Requirement, ...], cost: FloatArray
) -> Problem:
    """The least trace(W Gamma) that meets all requirements.

    Raises InvalidValue where no noise meets them.
    """
    draft = Problem(views, requirements, cost, Goal.NOISE, np.inf, 0.0)
    met = frozenset(
        i
        for i, requirement in enumerate(requirements)
        if _meets(draft, i, draft.viewed(i).covariance, requirement.bound)
    )
    level = _level(draft, [i for i in range(len(requirements)) if i not in met])
    return Problem(views, requirements, cost, Goal.NOISE, np.inf, level, met)


def least_loss_problem(
    views: tuple[View, ...], requirements: tuple[Requirement, ...], cost: FloatArray, trace: float
) -> Problem:
    """The least worst loss over the requirements' bounds for trace(W Gamma) <= trace."""
    return Problem(views, requirements, cost, Goal.LOSS, trace, trace)


def _meets(problem: Problem, number: int, posterior: FloatArray, bound: float) -> bool:
    """Whether this covariance (k, k) is left of a secret whose locations all may lose alike."""
    requirement = problem.requirements[number]
    allowed = bound / requirement.columns.size / _INSIDE
    if requirement.columns.size == 1:
        return float(posterior[0, 0]) * (float(requirement.precision[0, 0]) + allowed) >= 1
    floor = np.linalg.inv(requirement.precision + allowed * np.eye(requirement.columns.size))
    return float(eigh(posterior - floor, eigvals_only=True)[0]) >= 0


def _level(problem: Problem, sought: Sequence[int]) -> float:
    """A theta at which the noise theta W^-1 meets every requirement, the least of a grid."""
    if not sought:
        return 0.0
    scale = float(np.exp(np.mean(np.log(problem.cost))))
    level = scale * max(
        1.0 / float(np.trace(requirement.precision) + requirement.target)
        for requirement in (problem.requirements[i] for i in sought)
    )
    most = level * _MOST
    for view in range(len(problem.views)):
        numbers = [i for i in sought if problem.requirements[i].view == view]
        targets = [problem.requirements[i].target for i in numbers]
        while not all(
            _meets(problem, i, problem.viewed(i, level).covariance, target)
            for i, target in zip(numbers, targets, strict=True)
        ):
            level *= _GRID
            if level > most:
                raise InvalidValue(
                    "a bound must be one that some noise can meet, got one that none meets"
                )
    return level
