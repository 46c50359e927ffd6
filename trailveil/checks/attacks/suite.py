"""Every attack on a designed release: how near each comes, against what was promised.

Each is tried on recordings drawn from the prior of the adversary that the promise is about, and on
the recording itself with fresh noise. Nothing of that is a further release: nothing leaves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.special import bdtr, bdtrc

from trailveil.checks.attacks import worlds
from trailveil.checks.attacks.contract import Background, Estimate, Evidence, OnGrid, TruePlaces
from trailveil.checks.attacks.files import Drawn, drawn
from trailveil.checks.attacks.on_streets import usual_pace
from trailveil.checks.attacks.registry import Needs, chosen
from trailveil.checks.attacks.scenes import Scene, Trial
from trailveil.checks.attacks.trials import PLACES, around
from trailveil.checks.attacks.worlds import World, measured, noises, recordings, released, rides
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import crops
from trailveil.release.plan import Plan
from trailveil.traces.grid import METRES_A_DEGREE
from trailveil.traces.projection import MICRO
from trailveil.traces.streets.network import Network

# Trying an attack many times: how near it comes, how sure that is, and whether that was promised.
#
# A promise is a deviation that somebody is left with, over recordings as their prior has them and
# over the noise. Whatever an attack does, then, its estimate is within c deviations of the truth
# with probability 1 - exp(-c^2 / 2) at most (Anderson (1955), Proc. AMS 6: no estimate is better
# than the middle of what is left). An attack that is there more often has beaten the promise.

# An attack is looked for within so many promised deviations of the truth.
_WITHIN = (0.1, 0.25, 0.5, 1.0, CIRCLE_68)
LEVEL = 1e-4
"""The chance, of each attack and part, of a false alarm on simulated recordings."""

# Of the interval around the circle that is found.
_CONFIDENCE = 0.95


class Verdict(StrEnum):
    """What became of a promise."""

    HOLDS = "holds"
    BEATEN = "BEATEN"
    CLOSER = "CLOSER than promised on this recording"
    NOT_PROMISED = "not promised"
    NOTHING = "nothing to go by"


@dataclass(frozen=True, slots=True)
class Circle68:
    """The circle around the truth that holds 68 % of the estimates of an attack: its radius.

    low, high: metres, a 95 % interval for it that assumes nothing of how errors are distributed.
    count: independent estimates.
    """

    radius: float
    low: float
    high: float
    count: int


def circle_68(errors: FloatArray) -> Circle68:
    """The circle of independent errors (count,) in metres."""
    ordered, count = np.sort(errors), errors.size
    outside = (1 - _CONFIDENCE) / 2
    inside = bdtr(np.arange(count + 1), count, 0.68)
    low = int(np.searchsorted(inside, outside)) - 1
    high = int(np.searchsorted(inside, 1 - outside))
    return Circle68(
        float(np.quantile(ordered, 0.68)),
        float(ordered[low]) if low >= 0 else 0.0,
        float(ordered[high]) if high < count else np.inf,
        count,
    )


def beaten(errors: FloatArray, deviation: float) -> bool:
    """Whether independent errors (count,) are too often too near for a promised deviation.

    Metres both, the deviation per coordinate. False alarms: LEVEL at most.
    """
    for share in _WITHIN:
        near = int(np.sum(errors <= share * deviation))
        chance = -np.expm1(-(share**2) / 2)
        if near and bdtrc(near - 1, errors.size, chance) < LEVEL / len(_WITHIN):
            return True
    return False


def easier(errors: FloatArray, simulated: FloatArray) -> float:
    """The chance that a recording drawn from the prior is as easy as this one, or easier.

    errors: (draws,) on this recording. simulated: (count, draws) on recordings that were drawn. The
    root mean square over the draws is compared; it is at least 1 / (count + 1).
    """
    squared = float(np.mean(errors**2))
    below = int(np.sum(np.mean(simulated**2, axis=1) <= squared))
    return float((1 + below) / (len(simulated) + 1))


# Numbers of a temporary array of released places.
_CHUNK = 2**23
# The least that is significant on one recording, of an attack and part.
EASY = 1e-3
"""The least that is significant on one recording, of an attack and part."""

# An attack on what is exact has solved for it where it is this much nearer than was promised, in
# most of its draws, or on the file alone. Chance is so near in 3 % and 0.1 % of cases.
_SOLVED, _SOLVED_ONCE = 0.25, 0.05
# How much less is tried with a map: rides, and draws of the noise for each.
_LEAST_RIDES, _SLOWER, _MAPPED = 10, 50, 1


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried: recordings drawn from the prior, and draws of the noise for each."""

    recordings: int = 999
    draws: int = 10

    @property
    def mapped(self) -> "Effort":
        """Of an attack with a map, which takes seconds: a fiftieth, ten at the least."""
        return Effort(max(_LEAST_RIDES, self.recordings // _SLOWER), _MAPPED)


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """What one attack makes of one protected part. Distances in metres.

    adversary: who it is, in words. promised: the 68 % circle around the true
    place that is promised, or None. simulated: what it comes to on recordings drawn from the prior.
    recorded: the same on this recording, over the noise; easier: the chance that a recording of the
    prior is as easy; None where nothing was promised.
    file: how far off the released file itself leaves it, if that is of this design.
    """

    attack: str
    part: int
    adversary: str
    promised: float | None
    simulated: Circle68 | None
    recorded: Circle68 | None
    easier: float | None
    file: float | None
    verdict: Verdict


def attacked(
    plan: Plan,
    names: Sequence[str] | None = None,
    *,
    file: FloatArray | None = None,
    tracks: Sequence[FloatArray] = (),
    streets: Network | None = None,
    effort: Effort | None = None,
    generator: np.random.Generator | None = None,
) -> Iterator[AttackOutcome]:
    """The outcome of each attack, of `ATTACKS` by name or all, on each part of a release.

    file: (m, 2) metres in the frame of the plan, the released fixes of a file. tracks: (k, 2)
    metres in that frame, earlier recordings. streets: a map, in that frame.
    Of noise for every place, at the first fix, the one in the middle and the last.
    Raises InvalidValue for a name that is none.
    """
    rows = chosen(names, _given(tracks, streets))
    effort, generator = effort or Effort(), generator or worlds.fresh()
    for bare in _scenes(plan, file, tuple(tracks)):
        scene = replace(bare, streets=streets)
        for row in rows:
            if plan.everywhere:
                trials = row.everywhere(scene, plan.everywhere) if row.everywhere else []
            else:
                trials = row.tried(scene)
            for trial in trials:
                yield _outcome(row.name, scene, trial, effort, generator)


def file_as_designed(plan: Plan, file: FloatArray) -> tuple[Drawn, ...]:
    """Whether a released file holds a draw of the noise of a plan, around each of its parts.

    file: (m, 2) metres in the frame of the plan.
    """
    by_part: dict[int, Drawn] = {}
    for scene in _scenes(plan, file, ()):
        if scene.file is not None:
            step = plan.grid.released_step * METRES_A_DEGREE
            by_part[scene.part] = drawn(scene.part, scene.mechanism, scene.fixes, scene.file, step)
    return tuple(by_part.values())


def _scenes(plan: Plan, file: FloatArray | None, tracks: tuple[FloatArray, ...]) -> Iterator[Scene]:
    """Each protected part; of noise for every place, three places."""
    request, trace = plan.request, plan.trace
    order = np.cumsum(np.asarray(plan.mechanism.released)) - 1
    if plan.everywhere:
        fitted = [around(request.kernel, trace.seconds, part) for part in range(len(PLACES))]
    else:
        spans = [stretch.seconds(trace) for stretch in request.stretches]
        fitted = crops(request.kernel, trace.seconds, spans, request.variance**0.5)
    for crop in fitted:
        mechanism = crop.part_of(plan.mechanism)
        rows = order[crop.rows][mechanism.rows]
        for number, part in enumerate(crop.parts):
            fixes = plan.lattice[crop.rows] / MICRO
            released = None if file is None else file[rows]
            coarse = replace(plan.coarse, fixes=plan.coarse.fixes[crop.rows])
            grid = OnGrid(plan.frame, plan.grid.step, coarse)
            scene = Scene(crop, number, request.kernel, mechanism, fixes, released, tracks, grid)
            if not plan.everywhere:
                finding, pace = plan.findings[part], request.slowest.speed
                through = request.paces.around(finding.stretch, finding.sides).speed
                known = request.adversaries
                scene = replace(
                    scene, exposures=finding.exposures, floors=(pace, through), knowledge=known
                )
            yield replace(scene, uncertain=float(request.uncertain))


def attacked_alone(
    released: Evidence,
    recorded: tuple[FloatArray, FloatArray],
    spans: Sequence[tuple[float, float]],
    kernel: Kernel,
    names: Sequence[str] | None = None,
    *,
    tracks: Sequence[FloatArray] = (),
    streets: Network | None = None,
) -> Iterator[AttackOutcome]:
    """How far off a released file alone leaves attacks that need not know how its noise varies.

    recorded: times (n,) in seconds and places (n, 2) in metres. spans: the protected parts. Nothing
    is promised of a file of any other design.
    """
    times, fixes = recorded
    secrets = []
    for begin, end in spans:
        inside = times[(times >= begin) & (times <= end)]
        secrets.append(Secret.mean(inside) if inside.size > 1 else Secret.at((begin + end) / 2))
    known = Background(tuple(secrets), kernel, tracks=tuple(tracks), streets=streets)
    for row in chosen(names, _given(tracks, streets)):
        if not row.alone:
            continue
        for part, estimate in enumerate(row.attack(released, known)):
            if estimate is None:
                yield AttackOutcome(
                    row.name, part, "", None, None, None, None, None, Verdict.NOTHING
                )
                continue
            of = secrets[part]
            at = np.transpose([np.interp(of.times, times, axis) for axis in fixes.T])
            error = float(estimate.errors(of.weights[0] @ at)[0])
            yield AttackOutcome(
                row.name, part, "", None, None, None, None, error, Verdict.NOT_PROMISED
            )


def _given(tracks: Sequence[FloatArray], streets: Network | None) -> list[Needs]:
    return [
        need
        for need, stands in ((Needs.TRACKS, bool(tracks)), (Needs.STREETS, streets is not None))
        if stands
    ]


def _outcome(
    name: str, scene: Scene, trial: Trial, effort: Effort, generator: np.random.Generator
) -> AttackOutcome:
    fixes = np.broadcast_to(scene.fixes, (1, *scene.fixes.shape))
    truth = scene.truth(trial.secret, still=trial.still)
    attempt = _tried(scene, trial, fixes, _draws(scene, trial, effort), generator)
    promised = None if trial.deviation is None else CIRCLE_68 * trial.deviation
    outcome = AttackOutcome(
        name,
        scene.part,
        (trial.believed or trial.who).name,
        promised,
        None,
        None,
        None,
        None,
        Verdict.NOTHING,
    )
    if attempt is None:
        return outcome
    errors = attempt.errors(truth)
    alone = None
    if scene.file is not None and not trial.repeated:
        on_file = _tried(scene, trial, fixes, 1, generator, released_as=scene.file)
        alone = None if on_file is None else float(on_file.errors(truth)[0])
    outcome = replace(outcome, recorded=circle_68(errors), file=alone, verdict=Verdict.NOT_PROMISED)
    if trial.deviation is None:
        return outcome
    if trial.exact:
        near = float(np.median(errors)) <= _SOLVED * trial.deviation
        once = alone is not None and alone <= _SOLVED_ONCE * trial.deviation
        return replace(outcome, verdict=Verdict.BEATEN if near or once else Verdict.HOLDS)
    simulated = _simulated(scene, trial, effort.mapped if trial.mapped else effort, generator)
    if simulated is None:
        return outcome
    chance = easier(errors, simulated)
    closer = chance <= EASY and np.mean(errors**2) < 2 * trial.deviation**2
    wrong = beaten(simulated[:, 0], trial.deviation)
    held = Verdict.CLOSER if closer else Verdict.HOLDS
    return replace(
        outcome,
        simulated=circle_68(simulated[:, 0]),
        easier=chance,
        verdict=Verdict.BEATEN if wrong else held,
    )


def _draws(scene: Scene, trial: Trial, effort: Effort) -> int:
    """Draws of the noise for the recording itself: where there is none, all are the same."""
    return 1 if trial.mapped and not scene.mechanism.noise_trace else effort.draws


def _simulated(
    scene: Scene, trial: Trial, effort: Effort, generator: np.random.Generator
) -> FloatArray | None:
    """Errors (recordings, draws) where recordings are as the prior of the adversary has them."""
    if trial.mapped and scene.streets is not None:
        pace = usual_pace(scene.times, scene.fixes, np.zeros(scene.times.size))
        asked = (scene.times, trial.secret, pace, effort.recordings, generator)
        return _errors(scene, trial, rides(scene.streets, *asked), effort.draws, generator)
    judge = trial.who.judging(scene.prior, trial.secret)
    each = effort.draws * scene.times.size * 2
    step = max(1, min(effort.recordings, _CHUNK // each))
    samples = []
    for first in range(0, effort.recordings, step):
        count = min(step, effort.recordings - first)
        world = recordings(judge, trial.secret, count, generator)
        errors = _errors(scene, trial, world, effort.draws, generator)
        if errors is None:
            return None
        samples.append(errors)
    return np.concatenate(samples)


def _errors(
    scene: Scene, trial: Trial, world: World, draws: int, generator: np.random.Generator
) -> FloatArray | None:
    tried = _tried(scene, trial, world.recorded, draws, generator)
    if tried is None:
        return None
    truth = np.repeat(world.secret, draws, axis=0)
    return tried.errors(truth).reshape(len(world.recorded), draws)


def _tried(
    scene: Scene,
    trial: Trial,
    recorded: FloatArray,
    draws: int,
    generator: np.random.Generator,
    *,
    released_as: FloatArray | None = None,
) -> Estimate | None:
    """The estimate of recordings (count, n, 2), each with so many draws: (count * draws, 2)."""
    mechanism, times = scene.mechanism, scene.times
    each = np.repeat(recorded, draws, axis=0)
    view = released(each, mechanism, generator) if released_as is None else released_as[None]
    true = None
    if trial.known.times.size:
        places = measured(each, times, trial.known, generator)
        true = TruePlaces(trial.known.times, places, trial.known.accuracy)
    others = None
    if trial.repeated:
        more = noises(mechanism, (len(each), trial.repeated - 1), generator)
        others = each[:, None, mechanism.rows] + more
    known = Background(
        (trial.secret, *trial.besides),
        scene.kernel,
        mechanism,
        trial.believed or trial.who,
        true,
        tuple(scene.tracks),
        others,
        scene.grid,
        scene.streets,
    )
    return trial.attack(Evidence(times[mechanism.rows], view), known)[0]
