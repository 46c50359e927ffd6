"""What one adversary can tell of a secret, before a release and after it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from trailveil.gp.gaussian import FloatArray, largest_eigenvalue


@dataclass(frozen=True, slots=True)
class Exposure:
    """How well one adversary can locate a secret, at best: the worst case over what it may know.

    loss: posterior precision less prior precision, in the direction of the secret where it is
    largest, 1 / unit^2 of the series. prior, posterior: the smallest standard deviation in any
    direction, without and with the release, in that unit; infinite for no idea. at: the time of the
    one true value that the adversary knows, if any. least: the least posterior deviation with any
    such value: `posterior` or less. known, learnt: the prior precision P^-1 (k, k) and the loss
    matrix L (k, k) that these figures are of.
    """

    adversary: str
    loss: float
    prior: float
    posterior: float
    at: float | None
    least: float
    known: FloatArray = field(repr=False, compare=False)
    learnt: FloatArray = field(repr=False, compare=False)

    @classmethod
    def of_loss(
        cls,
        adversary: str,
        loss: float,
        prior: float = math.inf,
        posterior: float | None = None,
    ) -> "Exposure":
        """That of a place of one coordinate, of which at most `loss` is lost.

        posterior: where more is known of it than that loss says.
        """
        if posterior is None:
            precision = loss + prior**-2
            posterior = precision**-0.5 if precision > 0 else math.inf
        known, learnt = np.array([[prior**-2]]), np.array([[loss]])
        return cls(adversary, loss, prior, posterior, None, posterior, known, learnt)

    @classmethod
    def of_matrices(
        cls, adversary: str, known: FloatArray, learnt: FloatArray, at: float | None = None
    ) -> "Exposure":
        """That of a secret of k coordinates, by its prior precision and loss matrix (k, k)."""
        known, learnt = (known + known.T) / 2, (learnt + learnt.T) / 2
        prior = 1.0 / math.sqrt(largest_eigenvalue(known))
        posterior = 1.0 / math.sqrt(largest_eigenvalue(known + learnt))
        loss = max(0.0, largest_eigenvalue(learnt))
        return cls(adversary, loss, prior, posterior, at, posterior, known, learnt)


def worst_of(exposures: Iterable[Exposure]) -> Exposure:
    """One adversary's at several secrets: the largest loss, the least deviations."""
    each = list(exposures)
    most = max(each, key=lambda exposure: exposure.loss)
    prior = min(exposure.prior for exposure in each)
    posterior = min(exposure.posterior for exposure in each)
    return replace(most, prior=prior, posterior=posterior, least=posterior)
