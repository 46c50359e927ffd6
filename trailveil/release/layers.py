"""How the noise of a version is drawn: from that of other versions, and new noise.

A coarser version has all the noise of the finer one, and independent noise besides. A finer one of
a version that is published has a share of its noise, and independent noise besides; one between two
has a share of what the coarser one has more than the finer, and independent noise besides (Gaussian
bridges; docs/paper.md, "Versions"). Of each, the next one is drawn in the same way.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.gp.randomness import normals
from trailveil.privacy.mechanism import Mechanism

if TYPE_CHECKING:  # a cut alone is planned without what designs noise
    from trailveil.designer.random_curves import WindowNoise


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Layer:
    """The noise of one version.

    about: all that it depends on besides the recording. law: the whole noise, but for what is
    common to several releases. windows: seconds (begin, end) of the recording, of each protected
    part with what is uncertain around it; noises: around each. bound: 1 / m^2, what it promises.
    finer, coarser: the versions that it is drawn from, either or both. share: of the smooth noise
    of the coarser one; what is lacking to 1 is of the finer one. Independent noise is that of the
    coarser one, if there is one. fresh: (n, r) factor of the new noise; all of it for a first one.
    """

    about: tuple[bytes, ...]
    law: Mechanism
    windows: tuple[tuple[float, float], ...]
    noises: "tuple[WindowNoise, ...]"
    bound: float
    fresh: FloatArray
    finer: "Layer | None" = None
    coarser: "Layer | None" = None
    share: float = 0.0

    @property
    def bases(self) -> "tuple[Layer, ...]":
        """The versions that it is drawn from, the finer first."""
        return tuple(layer for layer in (self.finer, self.coarser) if layer is not None)

    @property
    def chain(self) -> "tuple[Layer, ...]":
        """Itself, its bases, and all that these are drawn from: each once."""
        layers = [self]
        for layer in layers:
            drawn = {each.about for each in layers}
            layers += [base for base in layer.bases if base.about not in drawn]
        return tuple(layers)

    @property
    def further(self) -> FloatArray:
        """The variances (n,) of independent noise at each fix that its bases have not."""
        variances = self.law.independent_variances
        if not self.bases:
            return variances
        return np.maximum(variances - self.bases[-1].law.independent_variances, 0.0)

    def drawn(self, seeds: tuple[bytes, ...], axis: str) -> tuple[FloatArray, FloatArray]:
        """Its smooth and its independent noise at each fix, (n,) metres of one coordinate each.

        seeds: of each of the chain.
        """
        by_about = {layer.about: seed for layer, seed in zip(self.chain, seeds, strict=True)}
        return self._drawn(by_about, axis)

    def _drawn(
        self, seeds: dict[tuple[bytes, ...], bytes], axis: str
    ) -> tuple[FloatArray, FloatArray]:
        seed, further = seeds[self.about], self.further
        smooth = self.fresh @ normals(seed, f"{axis} factor", self.fresh.shape[1])
        independent = np.sqrt(further) * normals(seed, f"{axis} independent", further.size)
        shared = np.zeros_like(independent)
        for base, share in ((self.finer, 1 - self.share), (self.coarser, self.share)):
            if base is not None:
                whole, shared = base._drawn(seeds, axis)
                smooth = smooth + share * whole
        return np.asarray(smooth), np.asarray(independent + shared)
