"""Where somebody who knows the prior and the noise looks for what is protected, given a release.

The posterior mean of trailveil.checks.attacks.posterior, of what was released: never the true
place. Where it lies tells when the protected parts are, so it is for the owner of a recording
alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trailveil.checks.attacks.contract import Background, Evidence
from trailveil.checks.attacks.posterior import posterior_mean
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.secrets import Secret
from trailveil.release.crops import crops
from trailveil.release.places import Visited
from trailveil.release.plan import Plan
from trailveil.release.readings_release import ReadingsPlan
from trailveil.traces.projection import MICRO
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Trace

# Of noise for every place: how many places are shown, and fixes either way that are looked at.
_PLACES, _AROUND = 8, 300


@dataclass(frozen=True, slots=True)
class Guess:
    """The best guess of one part. number: of it, from 1. begin, end: nanoseconds since 1970.

    place: east and north in metres of the frame; of readings the value alone.
    """

    number: int
    begin: int
    end: int
    place: tuple[float, ...]


def guesses(plan: Plan, drawn: Trace) -> list[Guess]:
    """The guesses of the protected parts, in their order; of noise for every place, of some times.

    drawn: what was released, at its recorded times.
    """
    released = np.asarray(plan.frame.to_lattice(drawn.positions) / MICRO)
    if plan.everywhere:
        return list(_of_some_times(plan, released))
    guesses_made = _of_stretches(plan, released, plan.request.stretches, plan.request.kernel)
    return sorted(guesses_made, key=lambda guess: guess.number)


def guesses_of_visits(plan: Plan, drawn: Trace, visited: Visited) -> list[Guess]:
    """The guesses of each visit of a place with a name, by its number among those of the trace."""
    released = np.asarray(plan.frame.to_lattice(drawn.positions) / MICRO)
    return list(_of_stretches(plan, released, visits_of(plan, visited), visited.place.kernel))


def visits_of(plan: Plan, visited: Visited) -> list[Stretch]:
    """The visits of a place with a name, as far as they are in the recording."""
    first, last = int(plan.trace.times[0]), int(plan.trace.times[-1])
    return [
        Stretch(visited.place.name, max(begin, first), min(end, last))
        for begin, end in visited.intervals
        if begin <= last and end >= first
    ]


def guesses_of_readings(plan: ReadingsPlan, drawn: Readings) -> list[Guess]:
    """The guesses of the protected stretches of readings: the value at a time, the mean of more."""
    times, mechanism = plan.trace.seconds, plan.mechanism
    guessed = []
    for number, stretch in enumerate(plan.request.stretches, start=1):
        secret = _middle(times, stretch.seconds(plan.trace))
        places = np.column_stack([drawn.values, drawn.values])
        where = _guess(times, mechanism, plan.request.kernel, secret, places)
        if where is not None:
            guessed.append(Guess(number, stretch.begin, stretch.end, (float(where[0]),)))
    return guessed


def _of_stretches(
    plan: Plan, released: FloatArray, stretches: Sequence[Stretch], kernel: Kernel
) -> Iterator[Guess]:
    if not stretches:
        return
    order = np.cumsum(np.asarray(plan.mechanism.released)) - 1
    spans = [stretch.seconds(plan.trace) for stretch in stretches]
    for crop in crops(kernel, plan.trace.seconds, spans, plan.request.variance**0.5):
        mechanism = crop.part_of(plan.mechanism)
        places = released[order[crop.rows][mechanism.rows]]
        times = crop.prior.times
        for span, part in zip(crop.spans, crop.parts, strict=True):
            where = _guess(times, mechanism, kernel, _middle(times, span), places)
            if where is not None:
                asked = stretches[part]
                yield Guess(part + 1, asked.begin, asked.end, (float(where[0]), float(where[1])))


def _of_some_times(plan: Plan, released: FloatArray) -> Iterator[Guess]:
    """At times that are evenly spread: every fix is released, and any is protected."""
    times, count = plan.trace.seconds, len(plan.trace)
    for number, row in enumerate(
        np.unique(np.linspace(0, count - 1, _PLACES).round().astype(int)).tolist(), start=1
    ):
        rows = slice(max(0, row - _AROUND), min(count, row + _AROUND + 1))
        whole = plan.mechanism
        parts = whole.factor[rows], whole.floor, whole.process, np.asarray(whole.released)[rows]
        mechanism = Mechanism(times[rows], *parts, independent=whole.independent_variances[rows])
        order = np.cumsum(np.asarray(whole.released)) - 1
        places = released[order[rows][mechanism.rows]]
        secret = Secret.at(float(times[row]))
        where = _guess(mechanism.times, mechanism, plan.request.kernel, secret, places)
        if where is not None:
            when = int(plan.trace.times[row])
            yield Guess(number, when, when, (float(where[0]), float(where[1])))


def _middle(times: FloatArray, span: tuple[float, float]) -> Secret:
    """The mean of a stay, or the place at a time."""
    inside = times[(times >= span[0]) & (times <= span[1])]
    return Secret.mean(inside) if inside.size > 1 else Secret.at(sum(span) / 2)


def _guess(
    times: FloatArray, mechanism: Mechanism, kernel: Kernel, secret: Secret, places: FloatArray
) -> FloatArray | None:
    view = Evidence(times[mechanism.rows], places[None])
    posterior = posterior_mean(view, Background((secret,), kernel, mechanism))[0]
    return None if posterior is None else np.asarray(posterior.places[0])
