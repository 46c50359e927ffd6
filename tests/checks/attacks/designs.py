"""Releases of a mechanism that is stated, with what it leaves each adversary: nothing is sought."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tests.exposed import variances_left
from trailveil.checks.attacks import suite
from trailveil.checks.attacks.registry import ATTACKS
from trailveil.checks.attacks.scenes import Trial
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import DEFAULT, Named
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.release.plan import Finding, Plan
from trailveil.release.request import Method, Request
from trailveil.traces.projection import placed
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Trace


def bumps(times: FloatArray, middle: float) -> Mechanism:
    """Smooth noise of hundreds of metres around a time, some of it common, and 5 m everywhere."""
    away = (times - middle)[:, None]
    widths, shifts = np.array([300.0, 900.0, 200.0]), np.array([0.0, 0.0, 150.0])
    heights = np.array([500.0, 300.0, 150.0])
    return Mechanism(times, heights * np.exp(-(((away - shifts) / widths) ** 2) / 2), 25.0)


def designed(
    trace: Trace,
    begin: int,
    end: int,
    mechanism: Mechanism,
    who: Sequence[Named] = DEFAULT,
) -> Plan:
    """A release of fixes begin to end (inclusive), with what is left, by dense algebra."""
    stretch = Stretch("part", int(trace.times[begin]), int(trace.times[end]))
    request = Request((stretch,), who=tuple(who), method=Method.NOISE)
    inside = int(stretch.rows(trace).sum())
    names = [adversary.name for adversary in request.adversaries]
    nothing = tuple(Exposure.of_loss(name, 0.0) for name in names)
    finding = Finding(stretch, inside, 0, Guarantee(1.0), nothing)
    plan = Plan(trace, *placed(trace.positions), request, mechanism, (finding,))
    deviation_of = {
        name: [deviation for who, deviation in deviations(plan) if who == name] for name in names
    }
    exposures = tuple(Exposure.of_loss(name, min(deviation_of[name]) ** -2) for name in names)
    worst = max(exposure.loss for exposure in exposures)
    guarantee = Guarantee(request.radius * worst**0.5)
    return replace(plan, findings=(replace(finding, exposures=exposures, guarantee=guarantee),))


def deviations(plan: Plan) -> list[tuple[str, float]]:
    """What each of the best attacks leaves of a designed release, with the name of the promise."""
    return [(name, deviation) for name, trial in _best(plan) for deviation in [_left(plan, trial)]]


def _best(plan: Plan) -> list[tuple[str, Trial]]:
    (scene,) = suite._scenes(plan, None, ())
    tried = ATTACKS["posterior"].tried(scene)
    # A stranger is tried on somebody who moved within the part, and on somebody who did not.
    first = scene.exposures[0].adversary
    others = [exposure.adversary for exposure in scene.exposures[1:]]
    return list(zip([first, first, *others], tried, strict=True))


def _left(plan: Plan, trial: Trial) -> float:
    """Metres per coordinate that a trial leaves of its secret, by its definition."""
    mechanism, secret = plan.mechanism, trial.secret
    kernel = trial.who.prior(Prior(plan.request.kernel, mechanism.times)).kernel
    rows, known = mechanism.rows, trial.known.times
    noise = np.zeros((rows.size + known.size,) * 2)
    noise[: rows.size, : rows.size] = mechanism.covariance()
    noise[rows.size :, rows.size :] = trial.known.accuracy**2 * np.eye(known.size)
    known_times = np.concatenate([mechanism.times[rows], known])
    deviation = variances_left(
        kernel, known_times, noise, np.asarray(secret.times), np.asarray(secret.weights)
    )
    return float(deviation[0] ** 0.5)
