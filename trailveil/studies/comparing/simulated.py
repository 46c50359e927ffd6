"""Recordings that are nobody's: drawn from the prior, of people with a home, and on streets."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np

from trailveil.checks.attacks.worlds import recordings
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import Adversary
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.request import DEFAULT_KERNEL
from trailveil.studies.comparing.cases import Case, generator
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.selection import Stretch
from trailveil.traces.streets.network import Network
from trailveil.traces.streets.town import FRAME, as_trace, town, town_ride
from trailveil.traces.trace import NANOSECONDS, Trace

_BEGIN = int(np.datetime64("2024-06-04T07:00:00", "ns").astype(np.int64))
_DAY = 86_400 * NANOSECONDS
# Minutes of a recording: a ride, a stay, a ride, home; of a person's day: home first.
_MINUTES, _OF_A_DAY = (20.0, 15.0, 20.0, 10.0), (8.0, 20.0, 15.0, 20.0, 8.0)
# Metres: how far apart homes are, and how far from home the place of the stay is, per coordinate.
_APART, _AWAY = 5000.0, 2500.0
_RIDE = 40.0  # minutes


def from_prior(
    *, traces: int = 100, step: float = 30.0, speed: float = 3.0, seed: int = 1
) -> Iterator[Case]:
    """Recordings drawn from the default prior, each of another person: a stay, and home at the end.

    What is promised of the prior holds here as it says. step: seconds between fixes. speed: metres
    a second; that of the default prior is 3.
    """
    edges = 60.0 * np.cumsum(_MINUTES)
    times = np.arange(0.0, edges[-1] + step / 2, _positive("step", step))
    windows = [(float(edges[0]), float(edges[1])), (float(edges[2]), float(times[-1]))]
    kernel = at_speed(DEFAULT_KERNEL, _positive("speed", speed)) or DEFAULT_KERNEL
    judge = Adversary.sees_stillness(windows).prior(Prior(kernel, times))
    for number in range(int(_positive("traces", traces))):
        random = generator("from prior", seed, number)
        world = recordings(judge, Secret.at(windows[0][0]), 1, random)
        trace = _trace(times, world.recorded[0], number)
        yield Case("", f"person {number}", f"{number}", trace, _stretches(trace, windows))


def people(*, people: int = 20, days: int = 4, step: float = 30.0, seed: int = 1) -> Iterator[Case]:
    """Days of people who go from home to a place of theirs and back, for attacks on many days.

    Home, the place and the ways between them are a person's; each day has other detours.
    """
    edges = 60.0 * np.cumsum(_OF_A_DAY)
    times = np.arange(0.0, edges[-1] + step / 2, _positive("step", step))
    windows = [(0.0, float(edges[0])), (float(edges[1]), float(edges[2]))]
    windows.append((float(edges[3]), float(times[-1])))
    still = Adversary.sees_stillness(windows).prior(Prior(DEFAULT_KERNEL, times))
    for number in range(int(_positive("people", people))):
        fixed = generator("people", seed, number)
        home = _APART * fixed.standard_normal(2)
        place = home + _AWAY * fixed.standard_normal(2)
        usual = recordings(still, Secret.at(0.0), 1, fixed).recorded[0]
        for day in range(int(_positive("days", days))):
            random = generator("day", seed, number, day)
            other = recordings(still, Secret.at(0.0), 1, random).recorded[0]
            wander = 0.8 * usual + 0.6 * other
            metres = _through(times, wander, windows, np.array([home, place, home]))
            trace = _trace(times, metres, day)
            yield Case(
                "", f"person {number}", f"{number} day {day}", trace, _stretches(trace, windows)
            )


def _through(
    times: FloatArray, wander: FloatArray, windows: list[tuple[float, float]], places: FloatArray
) -> FloatArray:
    """A track (n, 2) that wanders, but is at three places while it stands still.

    It is bent by a smooth line through what it misses each place by.
    """
    middles = [wander[(times >= begin) & (times <= end)].mean(axis=0) for begin, end in windows]
    missed = places - np.array(middles)
    knots = np.array(windows).ravel()
    bend = np.transpose([np.interp(times, knots, np.repeat(axis, 2)) for axis in missed.T])
    return np.asarray(wander + bend)


@lru_cache(maxsize=2)
def _town(seed: int) -> Network:
    return town(seed)


def on_streets(*, traces: int = 10, step: float = 5.0, seed: int = 1) -> Iterator[Case]:
    """Rides in a made-up town, each of another person, whose start is to be hidden; with a map."""
    streets = _town(seed)
    for number in range(int(_positive("traces", traces))):
        trace = as_trace(*town_ride(streets, 100 + number, _RIDE, _positive("step", step)))
        begin = int(trace.times[0])
        hidden = (Stretch("start", begin, begin),)
        case = Case("", f"rider {number}", f"{number}", trace, hidden, streets)
        if case.frame != FRAME:
            raise InvalidValue("rides must be in the frame of their streets, got another")
        yield case


def _trace(times: FloatArray, metres: FloatArray, day: int) -> Trace:
    """A trace in the middle of the North Atlantic."""
    moments = _BEGIN + day * _DAY + np.round(times * NANOSECONDS).astype(np.int64)
    lattice = np.floor(metres * MICRO + 0.5).astype(np.int64)
    degrees = Frame(46, -33).to_degrees(lattice) / MICRO
    return Trace(moments, degrees, np.zeros(times.size, np.intp), (0,))


def _stretches(trace: Trace, windows: list[tuple[float, float]]) -> tuple[Stretch, ...]:
    first, last = int(trace.times[0]), windows[-1][1]
    hidden = []
    for begin, end in windows:
        name = "home" if begin == 0 or end == last else "stay"
        moments = (first + round(begin * NANOSECONDS), first + round(end * NANOSECONDS))
        hidden.append(Stretch(name, *moments))
    return tuple(hidden)


def _positive(name: str, value: float) -> float:
    if not 0 < value < 1e7:
        raise InvalidValue(f"{name} must be above 0 and below 10 million, got {value}")
    return value


MADE_UP: Mapping[str, object] = {"prior": from_prior, "people": people, "town": on_streets}
