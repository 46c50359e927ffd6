"""The main job for readings of one quantity: a plain series in, a protected one out.

As trailveil.release.plan does it for traces: noise is designed and judged by its losses, and never
meets a value in floating point. Values and noise are whole steps of 10^-DECIMALS of the unit, and
their sum is what leaves. The adversary is the paper's: who knows how such a series behaves (the
prior, of any mean), and none of its values.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, NumericalError, Refused, Unavailable
from trailveil.gp.gaussian import cholesky_factor
from trailveil.gp.kernels import Kernel
from trailveil.gp.statespace import is_markov
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.loss import loss_matrix, marginal_losses
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.precision import known_variances
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import LARGEST_FULL_MATRIX, crops
from trailveil.release.drawing import noise_of
from trailveil.release.request import Method, Request
from trailveil.traces.grid import Grid, reading_grid
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Stretch, within
from trailveil.version import DESIGN_VERSION

if TYPE_CHECKING:
    from trailveil.release.designing import Designed

DECIMALS = 6
"""Of the steps in which values and noise are added; released values have as many as recorded."""

_STEP = 10.0**-DECIMALS
# Of the unit: noise of less has, in double precision, digits far below a step. With more, a value's
# last steps could be read through it.
_LARGEST_STD = 1e8
_A_LITTLE, _MOST_STEPS = 1e-6, 20
# How many values of a part are judged by the whole recording, and how much more noise than seems
# to be missing.
_LOOKED_AT, _TO_BE_SURE = 41, 1.02
# The measurement noise of a prior must be this many steps, so that rounding the true values to
# whole steps changes nothing.
_LEAST_NOISE_STEPS = 100


def _measured(kernel: Kernel) -> float:
    """The deviation of the measurement noise that a prior has, in the unit."""
    origin = np.zeros(1)
    white = [float(term.diagonal(origin)[0]) for term in kernel.terms() if term.is_white()]
    return float(np.sqrt(sum(white)))


@dataclass(frozen=True, slots=True)
class ReadingsFinding:
    """What the release guarantees of one stretch.

    readings: recorded in it. withheld: of those. deviation: in the unit, the least that somebody
    who knows the prior is left with, of any reading in it or of their mean.
    """

    stretch: Stretch
    readings: int
    withheld: int
    guarantee: Guarantee
    deviation: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReadingsPlan:
    """A designed release of readings, before any noise is drawn. Keep it private.

    guarantee, deviation: of the worst stretch, as ReadingsFinding has them. findings: of each
    stretch; none where every reading is protected. gap: how far
    above the least noise it may be, or None where no bound is claimed.
    """

    trace: Readings
    request: Request
    mechanism: Mechanism
    guarantee: Guarantee
    deviation: float
    findings: tuple[ReadingsFinding, ...] = ()
    gap: float | None = None

    @property
    def grid(self) -> Grid:
        """The grid that the recorded values lie on."""
        return reading_grid(self.trace.values)

    @property
    def identity(self) -> tuple[bytes, ...]:
        """All that a release depends on: times, values, the whole design, what came of it.

        To be hashed with a key.
        """
        request, steps = self.request, self.trace.steps(DECIMALS).astype("<i8").tobytes()
        when = tuple((stretch.begin, stretch.end) for stretch in request.stretches)
        about = (request.radius, request.unit, request.kernel, request.epsilon, request.order)
        how = (request.withhold, request.method is not Method.CUT)
        design = repr((DESIGN_VERSION, when, *about, *how)).encode()
        times = self.trace.times.astype("<i8").tobytes()
        return (times, steps, design, *self.mechanism.fingerprint)

    @property
    def epsilon(self) -> float:
        """Of the worst stretch."""
        epsilons = [finding.guarantee.epsilon for finding in self.findings]
        return max(epsilons, default=self.request.epsilon)


def plan_readings(readings: Readings, request: Request) -> ReadingsPlan:
    """Design the noise for readings and compute what it guarantees.

    request: in the unit of the readings, with no stretches for every reading. Raises Refused where
    nothing would be left to release, the noise would be too large for exact sums, or withholding
    alone is not enough; Unavailable for full matrices that would be too large; InvalidValue for
    values of too many digits, and a prior of too little measurement noise.
    """
    readings.steps(DECIMALS)
    if (white := _measured(request.kernel)) < _LEAST_NOISE_STEPS * _STEP:
        raise InvalidValue(
            f"a prior must have a measurement noise of {_LEAST_NOISE_STEPS * _STEP:g} "
            f"{request.unit} or more, got {white:g}: state what the instrument has"
        )
    plan = _plan(readings, request) if request.stretches else _plan_every(readings, request)
    plan = replace(plan, mechanism=plan.mechanism.hiding(max(plan.grid.step, white)))
    if plan.mechanism.max_std > _LARGEST_STD:
        raise Refused(
            f"the noise must stay below {_LARGEST_STD:g} {request.unit}, got more: take a larger "
            "unit (and values in it), a smaller radius or a larger epsilon"
        )
    return plan


def _plan(readings: Readings, request: Request) -> ReadingsPlan:
    """Noise for the stated stretches."""
    seconds = readings.seconds
    spans = [stretch.seconds(readings) for stretch in request.stretches]
    silent = within(readings.times, request.stretches, request.withhold)
    base = no_noise(seconds).withholding(silent)
    if base.rows.size < 2:
        raise Refused(
            "at least two readings must remain to be released, got fewer: protect or withhold a "
            "shorter part"
        )
    cropped = crops(request.kernel, seconds, spans, request.bound**-0.5)
    from trailveil.release.designing import only_withheld, optimal  # it takes long to import

    design = only_withheld if request.method is Method.CUT else optimal
    designed = design(cropped, base, request.bound)
    if len(cropped) > 1 or cropped[0].last - cropped[0].first < len(readings):
        designed = _of_the_whole(readings, request, designed)
    return _judged(readings, request, designed)


def _of_the_whole(readings: Readings, request: Request, designed: "Designed") -> "Designed":
    """Noise that holds beside what the rest of a long recording tells of its level, if it has one.

    It was sought around the protected parts alone. Raises Refused where none holds.
    """
    if not any(term.level_variance() for term in request.kernel.terms()):
        return designed
    prior, mechanism = Prior(request.kernel, readings.seconds), designed.mechanism
    spans = [stretch.seconds(readings) for stretch in request.stretches]
    for _ in range(_MOST_STEPS):
        losses = [_loss_of(prior, mechanism, span) for span in spans]
        share = max(losses) / request.bound
        if share <= 1:
            exposures = tuple(map(_at_least, designed.exposures, losses))
            return replace(designed, mechanism=mechanism, exposures=exposures)
        if request.method is Method.CUT:
            break
        mechanism = mechanism.scaled(share * _TO_BE_SURE)
    raise Refused(
        "the rest of a long recording must not tell a protected reading, got a prior whose level "
        "it tells: protect a shorter part, or split the recording"
    )


def _loss_of(prior: Prior, mechanism: Mechanism, span: tuple[float, float]) -> float:
    """The largest loss of the values in a span, some of many, and of their mean."""
    inside = prior.times[(prior.times >= span[0]) & (prior.times <= span[1])]
    if not inside.size:
        inside = np.array([sum(span) / 2])
    some = np.unique(np.linspace(0, inside.size - 1, _LOOKED_AT).round().astype(int))
    every = Secret("every", inside[some], np.eye(some.size))
    losses = [float(np.max(marginal_losses(prior, every, mechanism)))]
    if inside.size > 1:
        losses.append(float(loss_matrix(prior, Secret.mean(inside), mechanism).matrix[0, 0]))
    return max(losses)


def _at_least(exposure: Exposure, loss: float) -> Exposure:
    """What is left where at least so much is lost."""
    if loss <= exposure.loss:
        return exposure
    posterior = (exposure.posterior**-2 + loss - exposure.loss) ** -0.5
    return Exposure.of_loss(exposure.adversary, loss, exposure.prior, posterior)


def draw_readings(readings_plan: ReadingsPlan, seed: bytes) -> tuple[Readings, NDArray[np.int64]]:
    """The released readings, and their values in whole steps of 10^-DECIMALS of the unit (n,).

    seed: 32 secret bytes that belong to this plan alone.
    """
    noise = noise_of(_drawable(readings_plan.mechanism), seed, "value")
    whole = readings_plan.trace.steps(DECIMALS) + np.floor(noise / _STEP + 0.5).astype(np.int64)
    rows = readings_plan.mechanism.rows
    grid = readings_plan.grid.rounded(whole[rows])
    released = readings_plan.trace.only(np.asarray(readings_plan.mechanism.released))
    return replace(released, values=np.asarray(grid * _STEP)), grid


def _drawable(mechanism: Mechanism) -> Mechanism:
    """The same noise, with a matrix in place of a process that is not Markov: O(n^2) numbers."""
    process, times = mechanism.process, mechanism.times
    if process is None or is_markov(process, times):
        return mechanism
    factor = np.hstack([mechanism.factor, cholesky_factor(process(times, times))])
    return replace(mechanism, process=None, factor=factor)


def _plan_every(readings: Readings, request: Request) -> ReadingsPlan:
    """Noise for every reading by itself, a little above the least there can be for all of them."""
    if request.withhold is not None or request.method is Method.CUT:
        raise InvalidValue("a release that protects every reading must withhold nothing, got some")
    if len(readings) > LARGEST_FULL_MATRIX:
        raise Unavailable(
            f"readings of which every one is protected must be at most {LARGEST_FULL_MATRIX}, got "
            f"{len(readings)}: release fewer, such as hourly means"
        )
    prior = Prior(request.kernel, readings.seconds)
    every = Secret("every", prior.times, np.eye(len(readings)))

    # Noise that hides each recorded value so well hides each true one a little less.
    bound = request.bound
    from trailveil.designer import design  # it takes long to import

    for _ in range(_MOST_STEPS):
        mechanism, _certificate = design(prior, None, bounds=[bound])
        losses = marginal_losses(prior, every, mechanism)
        loss = float(np.max(losses))
        if loss <= request.bound:
            break
        bound *= (1 - _A_LITTLE) * request.bound / loss
    else:
        raise NumericalError(
            "noise for every reading must meet its target, got none that does: state another prior"
        )
    guarantee = Guarantee(request.radius * float(np.sqrt(loss)), request.order)
    known = 1.0 / known_variances(prior, every)
    least = 1.0 / float(np.sqrt(np.max(losses + known)))
    return ReadingsPlan(readings, request, mechanism, guarantee, least)


def _judged(readings: Readings, request: Request, designed: "Designed") -> ReadingsPlan:
    released = np.asarray(designed.mechanism.released)
    findings = [
        _finding(readings, request, stretch, exposure, released)
        for stretch, exposure in zip(request.stretches, designed.exposures, strict=True)
    ]
    worst = max(findings, key=lambda finding: finding.guarantee.mu)
    return ReadingsPlan(
        readings,
        request,
        designed.mechanism,
        worst.guarantee,
        worst.deviation,
        tuple(findings),
        designed.gap,
    )


def _finding(
    readings: Readings,
    request: Request,
    stretch: Stretch,
    exposure: Exposure,
    released: NDArray[np.bool_],
) -> ReadingsFinding:
    inside = stretch.rows(readings)
    return ReadingsFinding(
        stretch,
        int(inside.sum()),
        int((inside & ~released).sum()),
        Guarantee(request.radius * float(np.sqrt(exposure.loss)), request.order),
        exposure.posterior if exposure.loss > 0 else float("inf"),
    )
