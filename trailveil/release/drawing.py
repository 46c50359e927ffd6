"""The noise of a release, drawn, and the fixes that leave with it."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.randomness import normals
from trailveil.privacy.mechanism import Mechanism
from trailveil.release.plan import Plan
from trailveil.traces.formats.grid import Degrees
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Trace, cut_out


def draw(plan: Plan, seed: bytes, *base: bytes) -> tuple[Trace, Degrees]:
    """The released fixes: their trace, and their places in whole microdegrees (n, 2).

    seed: 32 secret bytes that belong to this plan alone. base: of a version, the seeds of those
    that it is drawn from. Positions of the trace are those released.
    All lie on the grid that was recorded, or on a coarser one of decimals. Without any noise they
    are those that were recorded, and their places are float64 degrees.
    """
    released = cut_out(plan.trace, np.asarray(plan.mechanism.released))
    if plan.mechanism.noise_trace == 0:
        return released, released.positions
    noise = np.column_stack([_unshared(plan, (seed, *base), axis) for axis in ("east", "north")])
    for shared in plan.common:
        noise = noise + shared.columns @ shared.draw.T
    moved = plan.lattice + on_lattice(noise)
    # No digit is finer than what was recorded, whether a fix is moved or not.
    grid = plan.grid.rounded_places(plan.frame.to_degrees(moved[plan.mechanism.rows]))
    return replace(released, positions=grid / MICRO), grid


def _unshared(plan: Plan, seeds: tuple[bytes, ...], axis: str) -> FloatArray:
    """One draw (n,) of the noise that is the release's, or that of its versions, for one axis."""
    if plan.layer is not None:
        return np.asarray(sum(plan.layer.drawn(seeds, axis)))
    alone = plan.mechanism
    if plan.common:
        alone = replace(alone, factor=alone.factor[:, : plan.own_columns])
    return noise_of(alone, seeds[0], axis)


def on_lattice(noise: FloatArray) -> NDArray[np.int64]:
    """Metres in whole micrometres: floor(x + 1/2), a function of the noise alone."""
    return np.floor(noise * MICRO + 0.5).astype(np.int64)


def noise_of(mechanism: Mechanism, seed: bytes, axis: str) -> FloatArray:
    """One draw of G (n,), in the unit of the series, for one coordinate; O(n) for a process.

    A process is part of the name of its normals: two of them never share a draw, and their
    difference is no multiple of it. Raises InvalidValue for a process that is not Markov.
    """
    if mechanism.refinement is not None:
        raise InvalidValue("noise to release must be in double precision, got finer noise")
    columns = normals(seed, f"{axis} factor", mechanism.factor.shape[1])
    total = mechanism.factor @ columns
    if mechanism.floor > 0:
        total = total + np.sqrt(mechanism.floor) * normals(seed, f"{axis} floor", total.size)
    if np.any(mechanism.independent_variances):
        deviations = np.sqrt(mechanism.independent_variances)
        total = total + deviations * normals(seed, f"{axis} independent", total.size)
    if mechanism.process is not None:
        from trailveil.gp.chains import normals_needed, sample_process

        shape = (total.size, normals_needed(mechanism.process))
        kicks = normals(seed, f"{axis} process {mechanism.process!r}", shape[0] * shape[1])
        total = total + sample_process(mechanism.process, mechanism.times, kicks.reshape(shape))
    return np.asarray(total)
