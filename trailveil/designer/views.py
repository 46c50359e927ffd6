"""One adversary's view of the released rows: what they tell of some quantities, with more noise.

The rows have the covariance Sigma under the adversary's prior, all it knows of the path and the
noise that is there already included. The designer asks for (Sigma + theta W^-1)^-1 of columns: W
are the utility weights of the rows, theta W^-1 the noise that costs them all alike. Quantities are
the places to protect, and recorded values that an adversary may learn one of: what it knows then
is a correction of rank one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray, Joint, Regression, System, conditioned, regression
from trailveil.gp.kernels import latent, split
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior, SideInformation
from trailveil.privacy.secrets import Secret


@dataclass(frozen=True, slots=True, eq=False)
class Shifted:
    """A view with the noise theta W^-1 more on the released rows.

    weights: (Sigma + theta W^-1)^-1 B (n, m) of the quantities. covariance: what is left of them
    (m, m). solve: columns (n, q) -> (Sigma + theta W^-1)^-1 of them.
    """

    weights: FloatArray
    covariance: FloatArray
    solve: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class ViewedSecret:
    """What a view, with one more true value known or not, tells of one secret of k locations.

    weights: (n, k). covariance: Q (k, k). extra: g (n, 1) / sqrt(rho), by which the known value
    changes the inverse covariance: + g g^T / rho; (n, 0) for none.
    """

    weights: FloatArray
    covariance: FloatArray
    extra: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A prior, what is released and known, and the quantities (m) that are asked about.

    cost: W (n,) of the released rows. exact: whether the released rows determine the quantities,
    recorded values all, so that nothing needs solving at theta = 0.
    """

    prior: Prior
    existing: Mechanism
    known: SideInformation
    quantities: tuple[Secret, ...]
    cost: FloatArray
    systems: Callable[[float | FloatArray], System]
    cross: FloatArray
    variance: FloatArray
    loadings: FloatArray
    secret_loadings: FloatArray
    exact: bool
    shifted: dict[float, Shifted] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows are released."""
        return int(self.cost.size)

    def columns_of(self, index: int) -> NDArray[np.intp]:
        """The columns of quantity number `index` among all."""
        sizes = [quantity.size for quantity in self.quantities]
        return np.arange(sum(sizes[:index]), sum(sizes[: index + 1]))

    def at(self, theta: float) -> Shifted:
        """The view with the noise theta W^-1 more, remembered.

        Raises NumericalError where the rows have no independent noise of their own.
        """
        if theta not in self.shifted:
            self.shifted[theta] = self._at(theta)
        return self.shifted[theta]

    def _at(self, theta: float) -> Shifted:
        if theta == 0.0 and self.exact:
            weights = np.zeros((self.rows, self.variance.shape[0]))
            for index, quantity in enumerate(self.quantities):
                at = np.searchsorted(self.prior.times, quantity.times)
                weights[np.ix_(at, self.columns_of(index))] = quantity.weights.T
            return Shifted(weights, np.zeros_like(self.variance), self._exactly)
        joint = self._joint(theta)
        solve = regression(joint)
        covariance, weights = conditioned(joint, solve)
        return Shifted(weights[: self.rows], covariance, _padded(solve, joint, self.rows))

    def _exactly(self, columns: FloatArray) -> FloatArray:
        """Sigma^-1 columns, for which a prior without independent noise is refused."""
        joint = self._joint(0.0)
        return _padded(regression(joint), joint, self.rows)(columns)

    def _joint(self, theta: float) -> Joint:
        system = self.systems(theta / self.cost if theta else 0.0)
        return Joint(system, self.cross, self.variance, self.loadings, self.secret_loadings)


def _padded(solve: Regression, joint: Joint, rows: int) -> Callable[[FloatArray], FloatArray]:
    """Solves for columns of the released rows; known ones, the last, have none of them."""
    count, loadings = joint.cross.shape[0], joint.loadings.shape[1]

    def solver(columns: FloatArray) -> FloatArray:
        whole = columns
        if rows < count:
            whole = np.zeros((count, columns.shape[1]))
            whole[:rows] = columns
        return solve(whole, np.zeros((loadings, columns.shape[1])))[:rows]

    return solver


def viewed_secret(
    shifted: Shifted, columns: NDArray[np.intp], point: int | None, accuracy: float
) -> ViewedSecret:
    """What is told of the given columns, with the value of column `point` known to an accuracy.

    With g = Sigma^-1 c of that value, rho its posterior variance and accuracy^2 together, and q its
    posterior covariance with the secret: weights - g q^T / rho, Q - q q^T / rho.
    """
    weights, posterior = shifted.weights[:, columns], shifted.covariance[np.ix_(columns, columns)]
    if point is None:
        return ViewedSecret(weights, posterior, np.empty((weights.shape[0], 0)))
    q = shifted.covariance[columns, point]
    rho = float(shifted.covariance[point, point]) + accuracy**2
    g = shifted.weights[:, [point]]
    posterior = posterior - np.outer(q, q) / rho
    return ViewedSecret(weights - g * q / rho, posterior, g / np.sqrt(rho))


def view(
    prior: Prior,
    existing: Mechanism,
    known: SideInformation,
    quantities: tuple[Secret, ...],
    cost: FloatArray,
) -> View:
    """The view of a prior (of the adversary, its clock stopped) with what it knows of the path."""
    parts = [prior.secret_parts(quantity, existing, known) for quantity in quantities]
    between = [
        [_between(prior, quantity, other) for other in quantities] for quantity in quantities
    ]
    bare = not (existing.factor.shape[1] or existing.floor or existing.process is not None)
    recorded = all(quantity.recorded for quantity in quantities)
    exact = bare and recorded and known.times.size == 0 and bool(np.all(existing.released))
    return View(
        prior,
        existing,
        known,
        quantities,
        cost,
        prior.systems(existing, known),
        np.hstack([cross for cross, _, _ in parts]),
        np.block(between),
        prior.loadings(existing, known),
        np.vstack([loading for _, _, loading in parts]),
        exact,
    )


def _between(prior: Prior, secret: Secret, other: Secret) -> FloatArray:
    """The prior covariance of two quantities, the common level aside."""
    kernel = prior.kernel if secret.recorded and other.recorded else latent(prior.kernel)
    base = None if kernel is None else split(kernel)[0]
    if base is None:
        return np.zeros((secret.size, other.size))
    return np.asarray(secret.weights @ base(secret.times, other.times) @ other.weights.T)
