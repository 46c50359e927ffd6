"""What a recording has of the design of its kind: some of its rows, rarely made a little larger."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trailveil.demands import Left, Target
from trailveil.kernels import Kernel
from trailveil.kind_designs import OfKind, means_of
from trailveil.kind_store import Kept, design_of
from trailveil.kinds import DesignFor, Kind, kind_of
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
    scale, left = _with_its_mean(trace, part, kind, design)
    return UsedDesign(design, design.rows(kind, trace.times, part.begin), scale, left)


def _with_its_mean(
    trace: Trace, part: Stretch, kind: Kind, design: OfKind
) -> tuple[float, tuple[Left, ...]]:
    """The scale of a design, and what is left with it, where fixes of a stay may be missing."""
    inside = trace.times[part.rows(trace)]
    if inside.size < 2 or inside.size == kind.length // kind.step + 1:  # one place, or the kind's
        return 1.0, design.left
    ratio, left = means_of(kind, design, inside - part.begin)
    return float(np.sqrt(ratio)), left
