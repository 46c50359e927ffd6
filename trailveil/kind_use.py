"""What a recording has of the design of its kind: some of its rows, rarely made a little larger."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.demands import Left, Target
from trailveil.kernels import Kernel
from trailveil.kind_designs import OfKind, means_of
from trailveil.kind_store import Kept, design_of
from trailveil.kinds import DesignFor, kind_of
from trailveil.selection import Stretch
from trailveil.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class UsedDesign:
    """How a release uses a design of its kind: its own noise is scale * columns[rows].

    rows: (n,). left: what each adversary is left with, at least.
    """

    design: OfKind
    rows: NDArray[np.intp]
    scale: float
    left: tuple[Left, ...]


def used_design(
    trace: Trace,
    part: Stretch,
    kernel: Kernel,
    target: Target,
    wanted: DesignFor,
    kept: Kept | None = None,
) -> UsedDesign | None:
    """The design of the kind of a part; None where it has none, or none is wanted.

    kept: where designs are kept beyond this process.
    """
    kind = kind_of(trace.times, part.begin, part.end, kernel, target, wanted)
    design = None if kind is None else design_of(kind, kept)
    if kind is None or design is None:
        return None
    rows, scale, left = design.rows(kind, trace.times, part.begin), 1.0, design.left
    inside = part.rows(trace)
    if 1 < np.sum(inside) < kind.inside:
        # The mean of these fixes is none that the kind was designed for.
        ratio, left = means_of(kind, design, rows[inside])
        scale = float(np.sqrt(ratio))
    return UsedDesign(design, rows, scale, left)
