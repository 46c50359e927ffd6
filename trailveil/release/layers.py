"""How the noise of a version is drawn: from that of another version, and new noise.

A coarser version has all the noise of the finer one, and independent noise besides. A finer one of
a version that is published has a share of its noise, and independent noise besides (the Gaussian
bridge; docs/paper.md, "Versions"). Of each, the next one is drawn in the same way.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.randomness import normals
from trailveil.privacy.mechanism import Mechanism

if TYPE_CHECKING:  # a cut alone is planned without what designs noise
    from trailveil.designer.window import WindowNoise


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Layer:
    """The noise of one version.

    about: all that it depends on besides the recording. law: the whole noise, but for what is
    common to several releases. windows: seconds (begin, end) of the recording, of each protected
    part with what is uncertain around it; noises: around each. bound: 1 / m^2, what it promises.
    base: the version that it is drawn from. share: of the smooth noise of the base, 1 where this
    is the coarser one. fresh: (n, r) factor of the new noise; all of it where there is no base.
    """

    about: tuple[bytes, ...]
    law: Mechanism
    windows: tuple[tuple[float, float], ...]
    noises: "tuple[WindowNoise, ...]"
    bound: float
    fresh: FloatArray
    base: "Layer | None" = None
    share: float = 0.0

    @property
    def chain(self) -> "tuple[Layer, ...]":
        """Itself, and all that it is drawn from, in order."""
        return (self, *(() if self.base is None else self.base.chain))

    @property
    def further(self) -> FloatArray:
        """The variances (n,) of independent noise at each fix that the base has not."""
        variances = self.law.independent_variances
        if self.base is None:
            return variances
        return np.maximum(variances - self.base.law.independent_variances, 0.0)

    def drawn(self, seeds: tuple[bytes, ...], axis: str) -> tuple[FloatArray, FloatArray]:
        """Its smooth and its independent noise at each fix, (n,) metres of one coordinate each.

        seeds: of each of the chain.
        """
        smooth = self.fresh @ normals(seeds[0], f"{axis} factor", self.fresh.shape[1])
        further = self.further
        independent = np.sqrt(further) * normals(seeds[0], f"{axis} independent", further.size)
        if self.base is not None:
            below = self.base.drawn(seeds[1:], axis)
            smooth, independent = smooth + self.share * below[0], independent + below[1]
        return np.asarray(smooth), np.asarray(independent)
