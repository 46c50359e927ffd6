"""Cases to try mechanisms and attacks on, and releases of them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism
from trailveil.studies.comparing.cases import Case, Clues, Disclosure, Sighting, generator
from trailveil.studies.comparing.running import Comparison
from trailveil.studies.comparing.settings import Entrant
from trailveil.studies.comparing.simulated import from_prior, people
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace


def at_latitude(latitude: int, metres: FloatArray, step: float = 10.0) -> Case:
    """A case with these places (n, 2) in metres of a frame, whose middle is to be hidden."""
    times = np.round(np.arange(len(metres)) * step * NANOSECONDS).astype(np.int64)
    degrees = Frame(latitude, 10).to_degrees(np.round(metres * MICRO).astype(np.int64)) / MICRO
    trace = Trace(times, degrees, np.zeros(len(metres), np.intp), (0,))
    middle = int(times[len(times) // 2])
    return Case("made up", "somebody", "one", trace, (Stretch("middle", middle, middle),))


def walk(count: int = 200, seed: int = 1, step: float = 10.0, latitude: int = 46) -> Case:
    """A case that wanders."""
    steps = np.random.default_rng(seed).normal(0.0, 20.0, (count, 2))
    return at_latitude(latitude, np.cumsum(steps, axis=0), step)


def drawn(count: int = 20, step: float = 30.0) -> tuple[Case, ...]:
    """Cases of the default prior, each of another person: a stay, and home."""
    return tuple(from_prior(traces=count, step=step))


def days(count: int = 6, each: int = 4) -> tuple[Case, ...]:
    """Days of people."""
    return tuple(people(people=count, days=each))


def noisy(metres: float) -> Callable[[Case, np.random.Generator], Disclosure]:
    """Independent Gaussian noise of so many metres a coordinate."""

    def mechanism(case: Case, random: np.random.Generator) -> Disclosure:
        offsets = metres * random.standard_normal(case.metres.shape)
        noise = Mechanism(case.seconds, np.empty((len(case.trace), 0)), floor=metres**2)
        return Disclosure(case.placed_at(case.metres + offsets), noise)

    return mechanism


def comparison(
    cases: Sequence[Case], mechanism: Any, attacks: Sequence[Any] = (), name: str = "tried"
) -> Comparison:
    """A comparison of one mechanism."""
    entrants = tuple(Entrant(f"attack {i}", attack) for i, attack in enumerate(attacks))
    return Comparison(
        1, 1, {cases[0].data: tuple(cases)}, (Entrant(name, mechanism),), entrants, ()
    )


def seen(cases: Sequence[Case], mechanism: Any) -> list[tuple[Sighting, Clues]]:
    """What attackers get of each case."""
    whole = comparison(cases, mechanism, [lambda *_: None])
    return [
        (released, whole.clues(case, whole.mechanisms[0], whole.attacks[0], 0))
        for case in cases
        for released in [whole.release(case, whole.mechanisms[0], 0)]
        if released is not None
    ]


def errors(cases: Sequence[Case], mechanism: Any, attack: Any) -> FloatArray:
    """Metres (cases, secrets) from the truth that an attack comes to; NaN for no idea."""
    found = []
    for released, known in seen(cases, mechanism):
        result = attack(released, known)
        places = result[0] if isinstance(result, tuple) else result
        found.append(np.hypot(*(places - released.case.truths).T))
    return np.array(found)


def random(name: str) -> np.random.Generator:
    """A generator for a test."""
    return generator("test", name)
