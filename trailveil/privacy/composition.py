"""Composition: what several releases together tell of a secret, through their joint prior.

Losses never add up: two releases are one release of more rows, whose joint prior says what they
have in common (the paper, corollary 3.4.1). Then

    L = Q^-1 - P^-1,    Q = Var(secret | all rows of all releases),

as for one release, and epsilon, odds and the rest follow from this L and from nothing else.

- The same recording twice: all of it is shared, its measurement noise too. Equal to one release
  with the parallel sum of the two noises: for two different designs of low rank that is no noise
  at all, and everything is disclosed.
- Overlapping recordings, or some fixes withheld in one: so wherever they have a fix in common.
- Another device at the same moments: the truth is shared, the measurement noise is its own.
- Far apart in time: what the kernel remembers. An RBF prior forgets, a periodic one does not.

The noise of each release is independent of that of the others: a release that is handed out again
with the same noise is no second release.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue, NumericalError, check_kind, each_of_kind
from trailveil.gp.extended import (
    LARGEST_EXTENDED,
    Extended,
    Objects,
    stable,
)
from trailveil.gp.gaussian import (
    LARGEST_LOSS_SLACK,
    LOSS_SLACK,
    FloatArray,
    Joint,
    Posterior,
    posterior,
    rounding,
)
from trailveil.gp.kernels import Kernel, StoppedClock
from trailveil.privacy.coupled import Coupling, independent
from trailveil.privacy.extended_loss import loss_in
from trailveil.privacy.loss import Loss, loss_between
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.precision import inverse_with_levels
from trailveil.privacy.prior import NOTHING_KNOWN, SideInformation
from trailveil.privacy.rows import (
    TRUTH,
    ObservedRows,
    SeriesPoints,
    covariance,
    double,
    everywhere,
    extended,
    extended_noise,
    known_rows,
    least_eigenvalue,
    levels,
    reduced,
    released_rows,
    system,
)
from trailveil.privacy.secrets import Secret


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """One coordinate of one recording, released once: its mechanism, with times and noise.

    recording: whose measurement noise it is. Two releases of one recording share the measurement
    noise of each fix they have in common (same time); another device is another recording.
    dimension: which coordinate it is, for a prior of several.
    """

    mechanism: Mechanism
    recording: str = "recording"
    dimension: int = 0

    def __post_init__(self) -> None:
        """Check that it is of noise, whose times differ."""
        check_kind("mechanism", self.mechanism, Mechanism, "the first of what tv.design returns")


def joint_loss(
    prior: Kernel | Coupling,
    releases: Sequence[Release],
    secret: Secret,
    *,
    recording: str | None = None,
    known: SideInformation = NOTHING_KNOWN,
) -> Loss:
    """The loss matrix of a secret when all the releases are seen together.

    prior: a kernel, measurement noise included, for one coordinate, L (k, k); or a coupled prior of
    d coordinates, L (k d, k d) with the d rows of each location together. secret: of k locations,
    times in seconds on the clock of the releases. recording: whose recorded values are meant by a
    recorded secret and by `known` (default: the first release's). known: what
    the adversary knows besides, in every coordinate.

    Exact for singular noise too. Dense, O(N^3) for N rows in all; O(N) for one coordinate of a
    Markov prior where no two recordings share a moment and no noise is a process.
    Raises NumericalError where no trustworthy figure can be computed; the loss is infinite
    (NumericalError says so) where the releases determine the secret. Source: the paper, corollary
    3.4.1.
    """
    check_kind("secret", secret, Secret, "one at a time")
    scene = _scene(prior, releases, secret, recording, known)
    if scene.released == 0:
        return Loss(np.zeros((scene.size, scene.size)), 0.0)
    loss = _in_double(scene)
    if loss is not None and loss.slack <= LOSS_SLACK:
        return loss
    if scene.released + scene.known.times.size <= LARGEST_EXTENDED:
        return Loss(_in_extended(scene), 0.0)
    if loss is None or loss.slack > LARGEST_LOSS_SLACK:
        raise NumericalError(
            "the loss must be known to 0.1 %, got a wider numerical error: the releases may "
            "determine the secret, or a measurement noise or a noise floor must be stated"
        )
    return loss


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """Several releases that are seen together."""

    prior: Kernel | Coupling
    releases: tuple[Release, ...]

    def loss(self, secret: Secret, **options: Any) -> Loss:
        """The loss of a secret; options and errors are those of `joint_loss`."""
        return joint_loss(self.prior, self.releases, secret, **options)


def compose(prior: Kernel | Coupling, releases: Sequence[Release]) -> Composition:
    """Releases that are seen together. Source: the paper, corollary 3.4.1.

    prior: a kernel, measurement noise included, or a coupled prior of several coordinates. Noise in
    Mechanism(independent=) is not counted: the figures hold with it. State noise that is to count
    as floor= or factor=np.diag(deviations).

    >>> kernel, secret = tv.kernels.RBF(6.1) + tv.kernels.White(0.1), tv.Secret.at(24.0)
    >>> prior = tv.Prior(kernel, np.arange(50.0))
    >>> mechanism, _ = tv.design(prior, [secret], budget=1.0, floor=1e-3)
    >>> once, twice = (
    ...     tv.compose(kernel, [tv.Release(mechanism, "day")] * count).loss(secret).largest
    ...     for count in (1, 2)
    ... )
    >>> bool(once < twice)
    True
    """
    if not isinstance(prior, Kernel | Coupling):
        raise InvalidValue(
            f"compose must get a kernel, got {type(prior).__name__}: say its .kernel"
        )
    if isinstance(releases, Mechanism):
        raise InvalidValue("releases must be a list of tv.Release(mechanism, recording), got one")
    return Composition(prior, each_of_kind("releases", releases, Release))


@dataclass(frozen=True, slots=True, eq=False)
class _Scene:
    """Everything that is seen, and the secret.

    mechanisms: each with the number of its recording and its dimension. known: points known to
    `accuracy`. at: the points that the secret is made of, by `weights` (k d, number of points).
    """

    prior: Coupling
    mechanisms: list[tuple[Mechanism, int, int]]
    known: SeriesPoints
    accuracy: float
    at: SeriesPoints
    weights: FloatArray

    @property
    def size(self) -> int:
        """k d."""
        return int(self.weights.shape[0])

    @property
    def released(self) -> int:
        """How many rows are released."""
        return sum(mechanism.rows.size for mechanism, _, _ in self.mechanisms)

    @property
    def moved(self) -> FloatArray:
        """The loadings (k d, q) of the secret on the levels of the series."""
        return np.asarray(self.weights @ levels(self.prior, self.at))

    @property
    def base(self) -> FloatArray:
        """P0 (k d, k d): the secret's variance without levels."""
        inner = covariance(self.prior, self.at, self.at, double, levels=False)
        return np.asarray(self.weights @ inner @ self.weights.T)

    @property
    def scale(self) -> FloatArray:
        """The deviations that each location weighs up, added up, levels aside (k d,)."""
        inner = covariance(self.prior, self.at, self.at, double, levels=False)
        return np.asarray(np.abs(self.weights) @ np.sqrt(np.diagonal(inner)))


def _scene(
    prior: Kernel | Coupling,
    releases: Sequence[Release],
    secret: Secret,
    recording: str | None,
    known: SideInformation,
) -> _Scene:
    if not releases:
        raise InvalidValue("there must be at least one release, got none")
    coupling = independent(prior) if isinstance(prior, Kernel) else prior
    dimensions = coupling.dimensions
    for release in releases:
        if not 0 <= release.dimension < dimensions:
            raise InvalidValue(
                f"the dimension of a release must be in 0..{dimensions - 1}, "
                f"got {release.dimension}"
            )
    if secret.window is not None:
        coupling = coupling.warp(StoppedClock((secret.window,)))
    names = list(dict.fromkeys(release.recording for release in releases))
    meant = names[0] if recording is None else recording
    if meant not in names:
        raise InvalidValue(f"recording must be one of the releases', got {meant!r} for {names}")
    number = names.index(meant)
    if secret.recorded:
        _check_recorded(secret, [release for release in releases if release.recording == meant])
    return _Scene(
        coupling,
        [
            (release.mechanism, names.index(release.recording), release.dimension)
            for release in releases
        ],
        everywhere(known.times, dimensions, number),
        known.accuracy,
        everywhere(secret.times, dimensions, number if secret.recorded else TRUTH),
        np.asarray(np.kron(secret.weights, np.eye(dimensions)), dtype=np.float64),
    )


def _check_recorded(secret: Secret, releases: list[Release]) -> None:
    fixes = np.concatenate([release.mechanism.times for release in releases])
    if not np.all(np.isin(secret.times, fixes)):
        raise InvalidValue("a recorded secret must be at the times of fixes, got one between them")


def _in_double(scene: _Scene) -> Loss | None:
    """The loss in double precision, or None where that is lost altogether."""
    if any(mechanism.refinement is not None for mechanism, _, _ in scene.mechanisms):
        return None
    known = known_rows(scene.known, scene.accuracy**2)
    released = [released_rows(*mechanism) for mechanism in scene.mechanisms]
    posterior = _posterior(scene, reduced(reduce(ObservedRows.and_then, [*released, known])))
    if posterior is None:
        return None
    variance, moved, scale = scene.base, scene.moved, scene.scale
    if scene.known.times.size:
        before = _posterior(scene, known)
        if before is None:
            return None
        variance = before.covariance + before.doubt * np.eye(scene.size)
        moved, scale = np.zeros((scene.size, 0)), np.sqrt(np.diagonal(variance))
    rounded = rounding(scale.size) * float(np.sum(scale**2))
    try:
        precision = inverse_with_levels(variance, moved, rounded)
    except NumericalError:
        return None
    return loss_between(posterior, *precision)


def _posterior(scene: _Scene, rows: ObservedRows) -> Posterior | None:
    """Q with its slack, or None where double precision cannot hold it."""
    least = least_eigenvalue(scene.prior, rows)
    # Weights W of the residual have |W|^2 least <= Q, so moving F by some way moves the deviation
    # of the residual by at most that share of it.
    share = rows.drift / float(np.sqrt(least)) if least > 0 else float("inf")
    if share > LOSS_SLACK:
        return None
    try:
        joint = Joint(
            system(scene.prior, rows, least),
            covariance(scene.prior, rows.points, scene.at, double, levels=False) @ scene.weights.T,
            scene.base,
            np.hstack([levels(scene.prior, rows.points), rows.factor]),
            np.hstack([scene.moved, np.zeros((scene.size, rows.factor.shape[1]))]),
            scene.scale,
        )
        computed = posterior(joint)
    except NumericalError:
        return None
    return replace(computed, slack=computed.slack + 3 * share * np.diagonal(computed.covariance))


def _in_extended(scene: _Scene) -> FloatArray:
    """L, correct to double precision, by elimination of a joint covariance that may be singular."""

    def compute(bits: int) -> FloatArray:
        m = Extended(bits)
        joint = _joint_covariance(m, scene)
        return loss_in(m, joint, scene.released, scene.known.times.size)

    return stable(compute)


def _joint_covariance(m: Extended, scene: _Scene) -> Objects:
    """Of released values, known values and secret, in the arithmetic m."""
    released = [released_rows(*mechanism).points for mechanism in scene.mechanisms]
    points = reduce(SeriesPoints.and_then, [*released, scene.known])
    data = covariance(scene.prior, points, points, extended(m), levels=True)
    start = 0
    for mechanism, _, _ in scene.mechanisms:
        part = slice(start, start + mechanism.rows.size)
        data[part, part] = data[part, part] + extended_noise(m, mechanism)
        start += mechanism.rows.size
    for i in range(start, points.times.size):
        data[i, i] = data[i, i] + m.number(scene.accuracy) ** 2
    weights = m.numbers(scene.weights.T)
    cross = covariance(scene.prior, points, scene.at, extended(m), levels=True).dot(weights)
    inner = covariance(scene.prior, scene.at, scene.at, extended(m), levels=True)
    return np.block([[data, cross], [cross.T, weights.T.dot(inner).dot(weights)]])
