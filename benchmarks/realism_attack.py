"""Slow people under the noise of a release: who guesses the place of a moment, and how near?

    python -m benchmarks.realism_attack FOLDER/*/*.plt

Windows of 40 minutes of real recordings without a pause over ten minutes, a place every 20 s, with
noise for the moment in the middle: of the least trace at radius 200 m and epsilon 1, against the
set of `trailveil protect`, and against one with 0.1 m/s for 1 m/s. An adversary of one prior
guesses the place from the release, the design known. Printed by the mean pace of the 40 minutes:
root mean square of the error of a coordinate, over windows and noise, and the share of guesses
within the circle of 477 m that is promised to hold 68 in 100 at most. Both are exact in the noise:
it is not drawn. In brackets 95 % confidence from resampling folders, where there are several.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ncx2

from benchmarks._realism_cases import moving
from benchmarks.realism_design import BOUND, against
from trailveil.designer import design
from trailveil.errors import Refused
from trailveil.gp.kernels import Kernel, split
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.priors import BUILT_IN
from trailveil.privacy.secrets import Secret
from trailveil.studies.calibrating import recorded
from trailveil.studies.calibration import PACES, pace_of, resampled
from trailveil.studies.fit import cut
from trailveil.traces.projection import MICRO, frame_for

Floats = NDArray[np.float64]

STEP, LENGTH, PAUSE, STRIDE = 20.0, 2400.0, 600.0, 300.0
TIMES = np.arange(0.0, LENGTH + 1, STEP)
MIDDLE = len(TIMES) // 2
PROMISED = BOUND**-0.5
CIRCLE = PROMISED * (-2 * np.log(0.32)) ** 0.5
KERNEL = BUILT_IN["default"].kernel
SETS = ((1.0, 10.0), (0.1, 10.0))
WHO: dict[str, Kernel] = {
    "3 m/s, 60 s": KERNEL,
    "1 m/s, 60 s": moving((1.0, 60.0)),
    "walk": BUILT_IN["walk"].kernel,
    "0.3 m/s, 60 s": moving((0.3, 60.0)),
    "0.3 m/s, 15 s": moving((0.3, 15.0)),
    "0.1 m/s, 60 s": moving((0.1, 60.0)),
}


@dataclass(frozen=True, slots=True)
class Window:
    """Places (n, 2) in metres at TIMES, the folder they are from, and the pace in the middle."""

    places: Floats
    group: int
    pace: str


def windows(files: Sequence[Path]) -> list[Window]:
    """One every STRIDE of all stretches that are dense enough."""
    found = []
    own = recorded(files)
    for trace, group in zip(own.traces, own.groups, strict=True):
        for rows in cut(trace.seconds, 1e9, len(trace), PAUSE):
            seconds = trace.seconds[rows] - trace.seconds[rows[0]]
            for start in np.arange(0, seconds[-1] - LENGTH, STRIDE):
                near = (seconds >= start - PAUSE) & (seconds <= start + LENGTH + PAUSE)
                try:
                    places = _places(trace.positions[rows[near]], seconds[near] - start)
                except Refused:  # a flight
                    continue
                steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
                found.append(Window(places, group, pace_of(float(np.mean(steps)) / STEP)))
    return found


def _places(degrees: Floats, seconds: Floats) -> Floats:
    lattice = frame_for(degrees).to_lattice(degrees)
    metres = (lattice - lattice[0]) / MICRO
    return np.column_stack([np.interp(TIMES, seconds, column) for column in metres.T])


def made_against(speeds: tuple[float, ...]) -> Mechanism:
    """The noise against the set of a release with these speeds."""
    secret = Secret.at(TIMES[MIDDLE])
    own = tuple(against(KERNEL, speeds, ()))
    return design(Prior(KERNEL, TIMES), [secret], bounds=[BOUND], adversaries=own)[0]


def guess(kernel: Kernel, noise: Floats) -> Floats:
    """Weights (n,) of the released places in the guess of who believes in a kernel: they sum to 1.

    Ordinary kriging: where on the map the recording lies is left open.
    """
    varying, _ = split(kernel)
    assert varying is not None
    observed = varying(TIMES, TIMES) + noise
    across = varying(TIMES, TIMES[MIDDLE : MIDDLE + 1])[:, 0]
    ones = np.ones(len(TIMES))
    solved = np.linalg.solve(observed, np.column_stack([across, ones]))
    missing = (1 - ones @ solved[:, 0]) / (ones @ solved[:, 1])
    return np.asarray(solved[:, 0] + missing * solved[:, 1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", type=Path, nargs="*")
    asked = parser.parse_args()
    if not asked.files:
        print("Needs files of GeoLife, which are not part of this repository: name them.")
        return
    found = windows(asked.files)
    print(f"{len(found)} windows; promised {PROMISED:.0f} m, a circle of {CIRCLE:.0f} m")
    for speeds in SETS:
        mechanism = made_against(speeds)
        noise = mechanism.covariance()
        rms = float(np.sqrt(mechanism.noise_trace / len(TIMES)))
        print(f"against 3 m/s and {speeds[0]:g}, {speeds[1]:g} m/s: {rms:.0f} m rms")
        for who, kernel in WHO.items():
            weights = guess(kernel, noise)
            variance = float(weights @ noise @ weights)
            words = [
                _judged([w for w in found if w.pace == p], p, weights, variance) for p in PACES
            ]
            print(f"  {who:14} " + "  ".join(word for word in words if word))


def _judged(own: Sequence[Window], pace: str, weights: Floats, variance: float) -> str:
    if len(own) < 8:
        return ""
    bias = np.array([weights @ one.places - one.places[MIDDLE] for one in own])
    rms = float(np.sqrt(np.mean(bias**2) + variance))
    off = np.sum(bias**2, axis=1) / variance
    inside = ncx2.cdf(CIRCLE**2 / variance, 2, np.maximum(off, 1e-12))
    share = resampled(inside[:, None], np.array([one.group for one in own]))[0]
    between = "" if share.low is None else f" ({share.low:.0%}-{share.high:.0%})"
    people = len({one.group for one in own})
    return f"{pace} ({len(own)} of {people}): {rms:.0f} m, {share.share:.0%}{between}"


if __name__ == "__main__":
    main()
