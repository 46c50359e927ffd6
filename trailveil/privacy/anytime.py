"""The losses of the place at any time and of a stay of any length, under noise that never ends.

Whoever records what, at whatever times: what is left open here is left open there, or more (see
trailveil.privacy.stationary). So these losses depend on no trace, and bound those of every trace.
Against

- plain: the prior alone
- point: one true place, recorded at any time at least so far away, to an accuracy
- path: the true path, but for so long before and after, recorded again and again to an accuracy

each of several speeds, and each for who moves, and for who stands still up to a longest stay and is
known to. A loss is 1 / Q - 1 / P, the variances of the place with and without the release; Q is
taken from below (the measurement noise taken away), P from above (the measurement noise left in).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm, solve_continuous_are

from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import IntegratedOU, Kernel, Matern12, Matern32
from trailveil.gp.statespace import IntegratedState
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.stationary import Motion, after, motion

# Relative: what filters that have settled are known to, and those that see a path well (tested).
SETTLED_SLACK, PATH_SLACK = 1e-9, 1e-5
# Points of the grids of an octave, of seconds away and of the length of a stay.
_AWAY_STEPS, _STAY_STEPS = 32, 4
# Seconds: the shortest stay of the grid. Time constants after which nothing is left of a known one.
_SHORTEST, _FORGOTTEN = 1.0, 40.0


@dataclass(frozen=True, slots=True)
class PriorMovement:
    """A prior of movement: integrated Ornstein-Uhlenbeck, a level, measurement noise.

    std: of the velocity. time_constant: seconds. white, level: variances.
    """

    std: float
    time_constant: float
    white: float
    level: float


@dataclass(frozen=True, slots=True)
class Assumed:
    """Who is reckoned with.

    speeds: deviations of the velocity; each is another prior. longest_stay: seconds, 0 for none.
    point_away, path_away: seconds. accuracy: deviation of what is known. every: seconds between
    two known places of the path. know: whether anybody knows anything besides the prior.
    """

    speeds: tuple[float, ...]
    longest_stay: float = 0.0
    point_away: float = 60.0
    path_away: float = 300.0
    accuracy: float = 10.0
    every: tuple[float, ...] = (1.0, 10.0, 100.0)
    know: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class StationaryVariances:
    """How well one kind of adversary can locate a place, for p noises and s speeds.

    kind: plain, point or path. posterior: Q (p, s, k, j) for k lengths of a stay and j of what is
    known (seconds away, seconds between two places); prior: P (s, j), infinite where nothing is
    known. known: (j,) those seconds.
    """

    kind: str
    posterior: FloatArray
    prior: FloatArray
    known: FloatArray

    def losses(self, level: float) -> FloatArray:
        """1 / Q - 1 / P (p, s, k, j), from above; level: the variance of the prior's level."""
        more, less = 1 / self.posterior, 1 / self.prior[None, :, None, :]
        slack = PATH_SLACK if self.kind == "path" else SETTLED_SLACK
        return np.asarray(more - less + slack * (more + less) + 1 / level)


def movement_of(kernel: Kernel) -> PriorMovement:
    """A kernel as a prior of movement; Refused where it is another."""
    terms = kernel.terms()
    moving = [term for term in terms if isinstance(term, IntegratedOU)]
    level = sum(term.level_variance() for term in terms)
    white = sum(float(term.diagonal([0.0])[0]) for term in terms if term.is_white())
    others = [t for t in terms if t not in moving and not t.is_white() and not t.level_variance()]
    if len(moving) != 1 or others or level == 0.0:
        raise Refused(
            "the prior of noise for every place must be one integrated-ou with a level, got "
            "another: its proof knows no other movement; fit such a prior (trailveil fit), or use "
            "--mechanism cut, which assumes a pace and no prior"
        )
    return PriorMovement(moving[0].std, moving[0].time_constant, white, level)


def stationary_variances(
    person: PriorMovement,
    assumed: Assumed,
    noise: Sequence[Matern12 | Matern32],
    variances: FloatArray,
    *,
    fine: bool,
) -> list[StationaryVariances]:
    """How well every kind of adversary can locate a place under p noises.

    noise: Matern 1/2 and 3/2 kernels of deviation one. variances: (p, m), of each. fine: on grids
    that are dense enough for `worst`; else on a few points.
    """
    count, speeds = variances.shape[0], np.array(assumed.speeds)
    made = motion(
        np.tile(speeds, count), person.time_constant, noise, np.repeat(variances, speeds.size, 0)
    )
    shape = (count, speeds.size)
    stays = stay_grid(assumed.longest_stay, fine=fine)
    settled = made.settled()
    plain = _with_stays(made, settled, stays)
    nothing = np.full((speeds.size, 1), np.inf)
    found = [_left("plain", shape, _variances(made, plain)[..., None], nothing, np.zeros(1))]
    if not assumed.know:
        return found
    slowest = max([person.time_constant, *(term.length_scale for term in noise)])
    aways = away_grid(assumed.point_away, slowest, fine=fine)
    before = np.array([wandered(speed, person.time_constant, aways) for speed in speeds])
    before += assumed.accuracy**2
    known = _with_point(made, settled, plain, aways, assumed.accuracy**2)
    found.append(_left("point", shape, known, before, aways))
    found.append(_with_path(made, person, assumed, stays, shape))
    return found


def _with_path(
    motion: Motion,
    person: PriorMovement,
    assumed: Assumed,
    stays: FloatArray,
    shape: tuple[int, int],
) -> StationaryVariances:
    """What is left to who knows the path but around the place or the stay."""
    away, left_, before = assumed.path_away, [], []
    for intensity in (every * assumed.accuracy**2 for every in assumed.every):
        start = after(motion.settled(path=intensity), motion.element(away))
        left_.append(_variances(motion, _with_stays(motion, start, stays)))
        before.append([_path_variance(person, speed, intensity, away) for speed in assumed.speeds])
    every = np.array(assumed.every)
    return _left("path", shape, np.stack(left_, axis=-1), np.array(before).T, every)


def _left(
    kind: str, shape: tuple[int, int], found: FloatArray, before: FloatArray, known: FloatArray
) -> StationaryVariances:
    return StationaryVariances(kind, found.reshape(*shape, *found.shape[1:]), before, known)


def stay_grid(longest: float, *, fine: bool) -> FloatArray:
    """Lengths of stays (k,), from 0, which is none, to the longest."""
    if longest <= 0:
        return np.zeros(1)
    if not fine:
        return np.array([0.0, longest / 64, longest])
    octaves = max(1, int(np.ceil(np.log2(max(longest / _SHORTEST, 2.0)))))
    return np.concatenate(
        [[0.0], longest * 2.0 ** (-np.arange(octaves * _STAY_STEPS, -1, -1) / _STAY_STEPS)]
    )


def away_grid(nearest: float, slowest: float, *, fine: bool) -> FloatArray:
    """Seconds to a known place (j,), from the nearest to where it tells nothing."""
    if not fine:
        return nearest * np.array([1.0, 2.0, 4.0, 16.0])
    octaves = int(np.ceil(np.log2(max(_FORGOTTEN * slowest / nearest, 2.0))))
    return np.asarray(nearest * 2.0 ** (np.arange(octaves * _AWAY_STEPS + 1) / _AWAY_STEPS))


def wandered(speed: float, time_constant: float, seconds: FloatArray) -> FloatArray:
    """The variance of a displacement (...)."""
    steps = seconds / time_constant
    return np.asarray(2 * (speed * time_constant) ** 2 * (steps + np.expm1(-steps)))


def _with_stays(motion: Motion, start: FloatArray, stays: FloatArray) -> FloatArray:
    """The covariance of the states at the beginning of a stay (b, k, d, d), all seen.

    start: given what is known of one side of it; of the other side just as much is known.
    """
    found = []
    for seconds in stays:
        behind = start if seconds == 0 else after(start, motion.element(float(seconds), still=True))
        found.append(motion.both_sides(start, behind))
    return np.stack(found, axis=1)


def _variances(motion: Motion, states: FloatArray) -> FloatArray:
    """The variance of the place (b, k)."""
    return np.asarray(np.einsum("bi,bkij,bj->bk", motion.place, states, motion.place))


def _with_point(
    motion: Motion, settled: FloatArray, states: FloatArray, aways: FloatArray, accuracy: float
) -> FloatArray:
    """The same to who knows one place besides, so far before the stay, to a variance (b, k, j)."""
    back = _readouts(motion, motion.smoothing(settled), aways)
    place = np.einsum("bkij,bj->bki", states, motion.place)
    shared = np.einsum("bji,bki->bkj", back, place)
    # Away from a stay, the surplus over what is left without one fades.
    surplus = states - motion.both_sides(settled, settled)[:, None]
    alone = np.einsum(
        "bi,bij,bj->b", motion.place, motion.both_sides(settled, settled), motion.place
    )
    own = alone[:, None, None] + np.einsum("bji,bkil,bjl->bkj", back, surplus, back)
    variance = np.einsum("bki,bi->bk", place, motion.place)
    return np.asarray(variance[..., None] - shared**2 / (own + accuracy))


def _readouts(motion: Motion, generator: FloatArray, aways: FloatArray) -> FloatArray:
    """g^T exp(G h) for all h (b, j, d): those of one octave squared again and again."""
    rows = np.empty((*motion.place.shape[:1], aways.size, motion.place.shape[1]))
    powers: dict[float, FloatArray] = {}
    for j, away in enumerate(aways):
        half = powers.pop(away / 2, None)
        power = expm(generator * away) if half is None else half @ half
        powers[float(away)] = power
        rows[:, j] = np.einsum("bi,bij->bj", motion.place, power)
    return rows


def _path_variance(person: PriorMovement, speed: float, intensity: float, away: float) -> float:
    """P of a place whose path is known with white noise of an intensity, but for so long around it.

    In units of the time constant and the speed.
    """
    unit = (speed * person.time_constant) ** 2
    drift = np.array([[0.0, 1.0], [0.0, -1.0]])
    noise = np.array([[intensity / (unit * person.time_constant)]])
    start = solve_continuous_are(drift.T, np.array([[1.0], [0.0]]), np.diag([0.0, 2.0]), noise)
    steps, state = np.array(away / person.time_constant), IntegratedState(1.0, 0.0)
    moved = state.transition(steps)
    reached = np.linalg.inv(moved @ start @ moved.T + state.noise(steps))
    whole = reached + reached * np.outer([1, -1], [1, -1]) - np.diag([0.0, 1.0])
    return float(unit * np.linalg.inv(whole)[0, 0])


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst case of one kind of adversary under one noise.

    exposure: of that kind of adversary, its loss an upper bound. speed. stay: seconds, 0 for a
    person who moves. known: seconds, see `StationaryVariances`.
    """

    exposure: Exposure
    speed: float
    stay: float
    known: float

    @property
    def kind(self) -> str:
        """The kind of adversary: plain, point or path."""
        return self.exposure.adversary


def worst(
    person: PriorMovement,
    assumed: Assumed,
    noise: Sequence[Matern12 | Matern32],
    variances: FloatArray,
) -> list[Worst]:
    """The worst case of each kind of adversary under a noise of variances (m,).

    Losses are smooth in the length of a stay and in what is known, and are taken on fine grids; for
    what may be between two points, twice what the curvature there allows is added.
    """
    stays = stay_grid(assumed.longest_stay, fine=True)
    found = []
    for one in stationary_variances(person, assumed, noise, variances[None], fine=True):
        losses = one.losses(person.level)[0]
        s, k, j = np.unravel_index(int(np.argmax(losses)), losses.shape)
        between = sum(_curvature(losses, axis) for axis in (1, 2))
        exposure = Exposure.of_loss(
            one.kind,
            float(losses[s, k, j] + between),
            float(np.sqrt(one.prior[s, j])),
            float(np.sqrt(one.posterior[0, s, k, j])),
        )
        found.append(Worst(exposure, assumed.speeds[s], float(stays[k]), float(one.known[j])))
    return found


def _curvature(values: FloatArray, axis: int) -> float:
    """Twice the most by which a smooth function exceeds its values on a grid, along an axis.

    That most is an eighth of the second difference there.
    """
    if values.shape[axis] < 3:
        return 0.0
    return float(np.max(np.abs(np.diff(values, 2, axis=axis)))) / 4
