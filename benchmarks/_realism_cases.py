"""The fixes that benchmarks.realism predicts, and what each kernel says of them.

Kernels are many and predictions slow, so they can be kept in a folder: errors and deviations in
metres, no place and no time.
"""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trailveil.gp.kernels import Constant, IntegratedOU, Kernel, White
from trailveil.privacy.priors import LEVEL_STD
from trailveil.studies.calibrating import Cases, cases_of, recorded
from trailveil.studies.calibration import LeftOut, Predictions, predictions

Floats = NDArray[np.float64]

GAPS = (30.0, 75.0, 150.0, 300.0, 600.0)
EACH = 2
"""One in so many of the fixes that `trailveil calibrate` predicts."""


def moving(*parts: tuple[float, float], noise: float = 2.0) -> Kernel:
    """Integrated OU of these (speed, time constant), added; noise and level as in the default."""
    kernel: Kernel = Constant(LEVEL_STD) + White(noise)
    for speed, constant in parts:
        kernel = kernel + IntegratedOU(speed, constant)
    return kernel


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Fixes to predict, the group of each, and where predictions are kept."""

    cases: tuple[LeftOut, ...]
    groups: np.ndarray[tuple[int], np.dtype[np.int_]]
    kept: Path | None

    def of(self, kernels: Sequence[Kernel]) -> list[Predictions]:
        """What each kernel says of all fixes."""
        places = [self._place(kernel) for kernel in kernels]
        missing = [k for k, place in zip(kernels, places, strict=True) if not _there(place)]
        made = {}
        if missing:
            with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
                tasks = [(kernel, self.cases) for kernel in missing]
                for kernel, found in zip(missing, pool.map(_run, tasks), strict=True):
                    made[kernel] = found
                    if (place := self._place(kernel)) is not None:
                        np.savez(place, found.errors, found.stds, found.evidence)
        return [
            made[kernel] if kernel in made else _loaded(place)
            for kernel, place in zip(kernels, places, strict=True)
        ]

    def _place(self, kernel: Kernel) -> Path | None:
        if self.kept is None:
            return None
        content = f"{kernel!r} {len(self.cases)} {sum(case.time for case in self.cases):.6f}"
        return self.kept / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.npz"


def _there(place: Path | None) -> bool:
    return place is not None and place.is_file()


def _loaded(place: Path | None) -> Predictions:
    assert place is not None
    with np.load(place) as found:
        return Predictions(*(found[name] for name in found.files))


def _run(task: tuple[Kernel, Sequence[LeftOut]]) -> Predictions:
    return predictions(*task)


def study(files: Sequence[Path], path: Path | None) -> Study:
    """One in EACH of the fixes that calibrate predicts in these files, for gaps over 0."""
    found: Cases = cases_of(recorded(files), GAPS)
    chosen = range(0, len(found.cases), EACH)
    return Study(
        tuple(found.cases[i] for i in chosen), np.array([found.groups[i] for i in chosen]), path
    )


def line(case: LeftOut) -> Floats:
    """On a straight line between the nearest fixes on both sides, at a steady pace."""
    return np.array([np.interp(case.time, case.times, column) for column in case.values.T])


def hermite(case: LeftOut, seconds: float = 20.0) -> Floats:
    """On a cubic that keeps place and velocity at both edges; velocity over so many seconds."""
    after = int(np.searchsorted(case.times, case.time))
    start, end = after - 1, after
    before = case.times >= case.times[start] - seconds
    behind = case.times <= case.times[end] + seconds
    first, last = int(np.flatnonzero(before)[0]), int(np.flatnonzero(behind)[-1])
    first, last = min(first, max(start - 1, 0)), max(last, min(end + 1, len(case.times) - 1))
    span = case.times[end] - case.times[start]
    leaving = _velocity(case, first, start) * span
    arriving = _velocity(case, end, last) * span
    u = (case.time - case.times[start]) / span
    return np.asarray(
        (2 * u**3 - 3 * u**2 + 1) * case.values[start]
        + (u**3 - 2 * u**2 + u) * leaving
        + (3 * u**2 - 2 * u**3) * case.values[end]
        + (u**3 - u**2) * arriving
    )


def _velocity(case: LeftOut, first: int, last: int) -> Floats:
    if first == last:
        return np.zeros(case.values.shape[1])
    apart = case.values[last] - case.values[first]
    return np.asarray(apart / (case.times[last] - case.times[first]))
