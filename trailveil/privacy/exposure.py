"""What a release leaves of one protected place to one adversary."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrackExposure:
    """How well one adversary can locate a protected place, at best.

    loss: 1 / m^2, posterior precision less prior precision. prior: metres per coordinate (standard
    deviation) that the adversary knows the place to without the release, infinite for no idea.
    """

    adversary: str
    loss: float
    prior: float = math.inf

    @property
    def posterior(self) -> float:
        """Metres per coordinate that are left, at least; infinite where nothing is known."""
        precision = self.loss + self.prior**-2
        return precision**-0.5 if precision > 0 else math.inf
