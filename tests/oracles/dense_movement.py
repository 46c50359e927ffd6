"""An oracle for noise in continuous time: exact conditioning of finitely many Gaussian numbers.

It shares no code with the package. A recording is a linear map of independent standard normal
numbers: the innovations of its movement, law after law, and the draws of its noise. What an
adversary observes is a set of rows; the place, on which nothing is known, adds a level to some.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

Rows = NDArray[np.float64]
MP = mpmath.MPContext()
MP.dps = 50
# Observations that depend on the others by less than this, relative, count as told by them.
_SAME = 1e-10


@dataclass(frozen=True, slots=True)
class Law:
    """Movement until a time (s): integrated OU, or at a steady pace, or not at all.

    speed: m/s, with its time constant (s). pace: "usual", "steady" or "still" (the clock stops).
    """

    until: float
    speed: float
    time_constant: float = 60.0
    pace: str = "usual"


@lru_cache(maxsize=100_000)
def step(seconds: float, law: Law) -> tuple[float, float, float, float, float]:
    """How far v carries, what is left of v, and the lower factor of the innovations of (x, v)."""
    if law.pace == "still":
        return 0.0, 1.0, 0.0, 0.0, 0.0
    if law.pace == "steady":
        return seconds, 1.0, 0.0, 0.0, 0.0
    tau, s = MP.mpf(law.time_constant), MP.mpf(law.speed)
    d = MP.mpf(seconds) / tau
    e = MP.exp(-d)
    moved = (s * tau) ** 2 * (2 * d - 3 + 4 * e - e**2)
    both = s**2 * tau * (1 - e) ** 2
    faster = s**2 * (1 - e**2)
    root = MP.sqrt(moved)
    last = MP.sqrt(faster - both**2 / moved)
    return float(tau * (1 - e)), float(e), float(root), float(both / root), float(last)


class Motion:
    """Positions and velocities at times, as rows of independent standard normal numbers."""

    def __init__(self, times: Iterable[float], laws: Sequence[Law], start: float) -> None:
        """Movement by laws, one after the other; start: the deviation of the first velocity."""
        inner = [law.until for law in laws[:-1]]
        first, last = min(times := list(times)), max(times)
        at = sorted({*times, *(u for u in inner if first < u < last)})
        self.size = 2 * len(at) - 1
        self.index = {t: i for i, t in enumerate(at)}
        self.x, self.v = np.zeros((len(at), self.size)), np.zeros((len(at), self.size))
        self.v[0, 0] = start
        for i, (a, b) in enumerate(pairwise(at)):
            law = next(law for law in laws if b <= law.until)
            carried, distinct, moved, both, faster = step(round(b - a, 9), law)
            self.x[i + 1] = self.x[i] + carried * self.v[i]
            self.v[i + 1] = distinct * self.v[i]
            self.x[i + 1, 2 * i + 1] += moved
            self.v[i + 1, 2 * i + 1] += both
            self.v[i + 1, 2 * i + 2] += faster

    def position(self, *times: float) -> Rows:
        """Rows (n, size) of the places at times, but for the level."""
        return np.asarray(self.x[[self.index[t] for t in times]])

    def velocity(self, *times: float) -> Rows:
        """Rows (n, size) of the velocities at times."""
        return np.asarray(self.v[[self.index[t] for t in times]])


def variance_of(secret: Rows, level: float, rows: Rows, levels: Rows) -> float:
    """The variance (m^2) of a quantity given exact observations, all of independent normal numbers.

    secret: (m,), rows: (n, m). level, levels: (n,) what the unknown place adds to each.
    """
    known = np.flatnonzero(levels)
    if level and not known.size:
        return math.inf
    if known.size:
        about = rows[known[0]] / levels[known[0]]
        rows, secret = rows - np.outer(levels, about), secret - level * about
    sizes = np.linalg.norm(rows, axis=1)
    rows = rows[sizes > 0] / sizes[sizes > 0, None]
    if not rows.size:
        return float(secret @ secret)
    basis, triangle, _ = qr(rows.T, mode="economic", pivoting=True)
    each = np.abs(np.diag(triangle))
    basis = basis[:, each > _SAME * each[0]]
    for _ in range(2):
        secret = secret - basis @ (basis.T @ secret)
    return float(secret @ secret)


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """One recording: fixes (s), its movement, the factor (n, r) of its noise at the fixes."""

    fixes: Rows
    motion: Motion
    factor: Rows

    def rows(self, places: Rows) -> Rows:
        """Rows of the movement with no noise, as wide as those of the release."""
        return np.hstack([places, np.zeros((places.shape[0], self.factor.shape[1] + 1))])

    @property
    def release(self) -> Rows:
        """The rows of what is released; the last column is of what somebody knows besides."""
        noise = np.hstack([self.factor, np.zeros((self.fixes.size, 1))])
        return np.hstack([self.motion.position(*self.fixes), noise])

    def posterior(
        self, secret: Rows, extra: Rows | None = None, levels: Rows | None = None
    ) -> float:
        """The variance of a place that is a weighted mean of positions (size,), to whom knows more.

        extra: rows that are known besides, exactly, with their levels.
        """
        rows, each = self.release, np.ones(self.fixes.size)
        if extra is not None and levels is not None:
            rows, each = np.vstack([rows, extra]), np.hstack([each, levels])
        return variance_of(self.rows(secret[None, :])[0], 1.0, rows, each)

    def known_place(self, time: float, accuracy: float) -> Rows:
        """The row of a place that is known to an accuracy (m)."""
        row = self.rows(self.motion.position(time))
        row[0, -1] = accuracy
        return row

    def granted(self, begin: float, end: float) -> Rows:
        """All of the movement between two times: places less the first, velocities at the edges."""
        inside = [t for t in self.motion.index if begin <= t <= end]
        places = self.motion.position(*inside)
        moved = places[1:] - places[0]
        return self.rows(np.vstack([moved, self.motion.velocity(begin, end)]))


def released(
    fixes: Rows,
    laws: Sequence[Law],
    factor: Rows,
    besides: Iterable[float] = (),
    start: float | None = None,
) -> Released:
    """A recording; besides: other times (s) at which something is asked or known."""
    first = laws[0].speed if start is None else start
    motion = Motion([*fixes.tolist(), *besides], laws, first)
    return Released(fixes, motion, factor)


@lru_cache(maxsize=100_000)
def returning_step(seconds: float, smoothness: int, std: float, length: float) -> tuple[Rows, Rows]:
    """The transition (2, 2) of place and velocity of a Matern process, and its innovations.

    The latter as a lower factor (2, 2). smoothness: twice that, 1 or 3; 1 has no velocity.
    """
    d, s = MP.mpf(seconds), MP.mpf(std)
    rate = MP.sqrt(smoothness) / MP.mpf(length)
    fade = MP.exp(-rate * d)
    if smoothness == 1:
        moved, root = MP.matrix([[fade, 0], [0, 0]]), MP.zeros(2)
        root[0, 0] = s * MP.sqrt(1 - fade**2)
    else:
        moved = fade * MP.matrix([[1 + rate * d, d], [-(rate**2) * d, 1 - rate * d]])
        settled = MP.diag([s**2, (rate * s) ** 2])
        root = MP.cholesky(settled - moved * settled * moved.T)
    return np.array(moved.tolist(), dtype=float), np.array(root.tolist(), dtype=float)


class Returning(Motion):
    """A Matern process about a mean that has a deviation of its own.

    stopped: times between which its clock stands still, or None.
    """

    def __init__(
        self,
        times: Iterable[float],
        smoothness: int,
        std: float,
        length: float,
        mean: float = 0.0,
        stopped: tuple[float, float] | None = None,
    ) -> None:
        """Settled where it begins."""
        at = sorted(set(times))
        self.size = 2 * len(at) + 1
        self.index = {t: i for i, t in enumerate(at)}
        states = np.zeros((len(at), 2, self.size))
        rate = float(smoothness**0.5 / length)
        states[0, 0, 0], states[0, 1, 1] = std, rate * std if smoothness == 3 else 0.0
        for i, (a, b) in enumerate(pairwise(at)):
            if stopped and stopped[0] <= a and b <= stopped[1]:
                states[i + 1] = states[i]
                continue
            moved, root = returning_step(round(b - a, 9), smoothness, std, length)
            states[i + 1] = moved @ states[i]
            states[i + 1, :, 2 * i + 2 : 2 * i + 4] += root
        states[:, 0, -1] = mean
        self.x, self.v = states[:, 0], states[:, 1]
