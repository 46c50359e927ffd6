"""Noise that several releases share, such as that of a place that all of them visit."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import Named
from trailveil.traces.selection import Stretch


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Common:
    """Noise that a release shares with others: of one draw, whatever the seed of the release.

    name: of the draw. columns: (n, r) metres. draw: (2, r), east and north. withheld: (n,), fixes
    that are not released because of it. around: where fields tell of what it hides. who: whom it is
    made against.
    """

    name: bytes
    columns: FloatArray
    draw: FloatArray
    withheld: NDArray[np.bool_]
    around: tuple[Stretch, ...]
    who: tuple[Named, ...]


def named_in_full(common: Iterable[Common]) -> list[bytes]:
    """Which draws a release shares, and around what: for its identity.

    Not the columns: another machine may round them otherwise, and it is the same release.
    """
    return [
        repr((one.name, [(part.begin, part.end) for part in one.around])).encode()
        + one.withheld.tobytes()
        for one in common
    ]
