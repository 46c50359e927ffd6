"""Every place of a recording at once: the release of who cannot say what is sensitive.

The noise looks at no position, so that it tells nothing of where somebody stood; of the times it
needs the length of the recording alone, for the longest stay there can be.
"""

from dataclasses import replace

from trailveil.designer.everywhere import alone, noise_everywhere
from trailveil.errors import InvalidValue, Refused
from trailveil.privacy.adversaries import Named
from trailveil.privacy.anytime import Assumed, movement_of
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.mechanism import LARGEST_STD
from trailveil.release.plan import Plan
from trailveil.release.request import DEFAULT_KERNEL, Method, Request, check_target
from trailveil.traces.projection import placed
from trailveil.traces.trace import Trace

LONGEST_STAY = 8 * 3600.0
"""Seconds: a night, or a day at work. No stay is reckoned to be longer where none is stated."""

SPEEDS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Metres per second: the default prior is an average over who strolls, walks, rides and drives."""


def assumed(length: float, request: Request) -> Assumed:
    """Who is reckoned with: of a prior of one mode of movement no other speeds.

    length: seconds of the recording: no stay is longer.
    """
    person = movement_of(request.kernel)
    if request.who == (Named.PLAIN,):
        return alone(person)
    stated = LONGEST_STAY if request.longest_stay is None else request.longest_stay
    return Assumed(_speeds(request, person.std), min(stated, length))


def _speeds(request: Request, usual: float) -> tuple[float, ...]:
    """From the floor on, where one was stated."""
    speeds = SPEEDS if request.kernel == DEFAULT_KERNEL else (usual,)
    if request.floor is None:
        return speeds
    return (request.floor, *(speed for speed in speeds if speed > request.floor))


def plan_everywhere(trace: Trace, request: Request) -> Plan:
    """Design the noise for every place of a trace, and compute what it guarantees; O(n).

    Raises Refused for a prior that is none of movement, too much noise, or a trace with fields,
    since they would be left out around every time; InvalidValue for a request with stretches or
    withheld fixes, or of another kind of noise.
    """
    if request.method is not Method.EVERYWHERE or request.stretches or request.withhold is not None:
        raise InvalidValue(
            "a release that protects every place must have no stretches and withhold nothing, got "
            "some: state times or --everywhere, not both"
        )
    if trace.fields:
        raise Refused(
            "a release that protects every place must have times and places alone, got kept fields "
            "as well: leave --keep out, or state times"
        )
    if len(trace) < 2:
        raise Refused("at least two fixes must be there to be released, got one: nothing to share")
    frame, lattice = placed(trace.positions)
    request = request.framed(frame)
    check_target(request)
    length = float(trace.seconds[-1])
    everywhere = noise_everywhere(
        movement_of(request.kernel), assumed(length, request), request.bound
    )
    mechanism = everywhere.mechanism(trace.seconds)
    if mechanism.max_std > LARGEST_STD:
        raise Refused(
            f"the noise must stay below {LARGEST_STD / 1000:g} km, got more: state a smaller "
            "radius or a larger epsilon"
        )
    worst = tuple(
        replace(case, exposure=_in_metres(case.exposure, request.wide)) for case in everywhere.worst
    )
    return Plan(trace, frame, lattice, request, mechanism, (), everywhere=worst)


def _in_metres(exposure: Exposure, wide: float) -> Exposure:
    """The same with deviations of the ground, of which the map's are so many times."""
    prior, posterior = exposure.prior / wide, exposure.posterior / wide
    return replace(exposure, prior=prior, posterior=posterior)
