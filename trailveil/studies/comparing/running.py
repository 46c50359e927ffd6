"""Run a comparison: in portions that are kept when done, the same on any number of workers.

A portion is some people of a data set under one mechanism. All that it depends on is in its name,
so a run that was stopped goes on, and one with other settings reckons anew what they concern. Every
number that is drawn derives from the seed and the names of what it is for.
"""

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from trailveil.errors import (
    InvalidValue,
    NumericalError,
    Refused,
    TrailveilError,
    UnreadableInput,
)
from trailveil.files.output import write_atomically
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.studies.comparing.cases import Case, Clues, Disclosure, Sighting, generator
from trailveil.studies.comparing.metrics import cells
from trailveil.studies.comparing.settings import Entrant
from trailveil.studies.experiments.folder import code_digest
from trailveil.traces.trace import Trace

# Recordings of a portion, at least, where there are so many; recordings that a model is trained on;
# releases that a process remembers.
_PORTION, _TRAINING, _REMEMBERED = 12, 80, 200

Row = tuple[str, str, str, str, str, float]
"""Person, trace, attack, metric, secret, value."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """All that a portion needs. cases: by data set. It is sent to each worker once."""

    seed: int
    draws: int
    cases: Mapping[str, tuple[Case, ...]]
    mechanisms: tuple[Entrant, ...]
    attacks: tuple[Entrant, ...]
    metrics: tuple[Entrant, ...]
    _releases: dict[Hashable, Sighting | None] = field(default_factory=dict)
    _memory: dict[Hashable, Any] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """All but what is remembered."""
        names = ("seed", "draws", "cases", "mechanisms", "attacks", "metrics")
        return {name: getattr(self, name) for name in names} | {"_releases": {}, "_memory": {}}

    @cached_property
    def people(self) -> Mapping[str, Mapping[str, tuple[Case, ...]]]:
        """The cases of each person of each data set, in order of time."""
        by_person: dict[str, dict[str, list[Case]]] = {}
        for data, cases in self.cases.items():
            of_data = by_person.setdefault(data, {})
            for case in cases:
                of_data.setdefault(case.person, []).append(case)
        return {
            data: {
                person: tuple(sorted(each, key=lambda case: int(case.trace.times[0])))
                for person, each in of_data.items()
            }
            for data, of_data in by_person.items()
        }

    @cached_property
    def known_days(self) -> Mapping[str, Mapping[str, tuple[Case, ...]]]:
        """The first half of the recordings of each person who has two or more."""
        return {
            data: {
                person: cases[: len(cases) // 2]
                for person, cases in of_data.items()
                if len(cases) > 1
            }
            for data, of_data in self.people.items()
        }

    @cached_property
    def identities(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Those of the mechanisms, and those of the attacks and the metrics."""
        others = (*self.attacks, *self.metrics)
        return tuple(each.identity for each in self.mechanisms), tuple(e.identity for e in others)

    @cached_property
    def _order(self) -> Mapping[tuple[str, str], int]:
        """The number of each person in a data set."""
        return {
            (data, person): rank
            for data, of_data in self.people.items()
            for rank, person in enumerate(of_data)
        }

    def release(self, case: Case, mechanism: Entrant, *draw: int) -> Sighting | None:
        """What a mechanism releases of a case; None where it refuses, or cannot compute it."""
        key = (case.data, case.name, mechanism.name, draw)
        if key not in self._releases:
            while len(self._releases) >= _REMEMBERED:
                self._releases.pop(next(iter(self._releases)))
            random = generator("release", self.seed, *key)
            try:
                released = mechanism(case, random)
                if not isinstance(released, Trace | Disclosure):
                    raise InvalidValue(
                        f"mechanism {mechanism.name} must return a trace or a Disclosure, got "
                        f"{type(released).__name__}: return case.placed_at(metres), for example"
                    )
                self._releases[key] = Sighting.of(case, released)
            except (Refused, NumericalError, np.linalg.LinAlgError):
                self._releases[key] = None
        return self._releases[key]

    def clues(self, case: Case, mechanism: Entrant, attack: Entrant, draw: int) -> Clues:
        """What attackers know besides the release of a case."""
        people = self.people[case.data]
        fold = self._order[case.data, case.person] % 2

        def repeat(number: int) -> Sighting:
            again = self.release(case, mechanism, draw, number)
            if again is None:
                raise InvalidValue("a repeated release must be possible, got a refusal")
            return again

        def elsewhere() -> Sequence[Sighting]:
            others = [self.release(each, mechanism, draw) for each in people[case.person]]
            return [each for each in others if each is not None and each.case is not case]

        def training() -> Sequence[tuple[Sighting, Case]]:
            usable = [
                each
                for person, cases in people.items()
                if self._order[case.data, person] % 2 != fold
                for each in cases
            ]
            stride = max(1, len(usable) // _TRAINING)
            pairs = [(self.release(each, mechanism, draw), each) for each in usable[::stride]]
            return [(sighting, each) for sighting, each in pairs if sighting is not None]

        def known_people() -> Mapping[str, Sequence[Case]]:
            days = self.known_days[case.data]
            return {} if case in days.get(case.person, ()) else days

        def remembered(key: Hashable, compute: Callable[[], Any]) -> Any:
            whole = (case.data, mechanism.name, draw, fold, key)
            if whole not in self._memory:
                self._memory[whole] = compute()
            return self._memory[whole]

        names = (case.data, case.name, mechanism.name, draw, attack.name)
        random = generator("attack", self.seed, *names)
        return Clues(
            case, case.spans, random, repeat, elsewhere, training, known_people, remembered
        )


@dataclass(frozen=True, slots=True)
class Portion:
    """Some people of a data set, by their names, under one mechanism, and which draw."""

    data: str
    people: tuple[str, ...]
    mechanism: int
    draw: int


def portions(comparison: Comparison) -> list[Portion]:
    """All that there is to do, in the order of the tables."""
    chunks = []
    for data, people in comparison.people.items():
        chunk: list[str] = []
        size = 0
        for person, cases in people.items():
            chunk.append(person)
            size += len(cases)
            if size >= _PORTION:
                chunks.append((data, tuple(chunk)))
                chunk, size = [], 0
        if chunk:
            chunks.append((data, tuple(chunk)))
    return [
        Portion(data, people, mechanism, draw)
        for mechanism in range(len(comparison.mechanisms))
        for draw in range(comparison.draws)
        for data, people in chunks
    ]


Done = dict[str, Any]
"""rows: lists of `Row`. cells: seconds in each cell, before and after, by person."""


def run_portion(comparison: Comparison, portion: Portion) -> Done:
    """The rows of a portion, and the time that its people spend in cells."""
    rows: list[Row] = []
    spent: dict[str, tuple[dict[str, float], dict[str, float]]] = {}
    mechanism = comparison.mechanisms[portion.mechanism]
    for person in portion.people:
        before: dict[str, float] = {}
        after: dict[str, float] = {}
        for case in comparison.people[portion.data][person]:
            released = comparison.release(case, mechanism, portion.draw)
            about = (person, case.name)
            rows.append((*about, "", "refused", "", float(released is None)))
            if released is None:
                continue
            rows += [(*about, *row) for row in _measured(comparison, case, released)]
            rows += [
                (*about, *row)
                for attack in comparison.attacks
                for row in _attacked(comparison, released, mechanism, attack, portion.draw)
            ]
            spent_before = case.remembered("cells", partial(cells, case.trace))
            for total, each in ((before, spent_before), (after, cells(released.trace))):
                for cell, seconds in each.items():
                    total[cell] = total.get(cell, 0.0) + seconds
        spent[person] = (before, after)
    return {"rows": rows, "cells": spent}


def _measured(
    comparison: Comparison, case: Case, released: Sighting
) -> Iterator[tuple[str, str, str, float]]:
    for metric in comparison.metrics:
        value = metric(case, released) if released.seconds.size else float("nan")
        if not isinstance(value, int | float | np.number):
            kind = type(value).__name__
            raise InvalidValue(f"metric {metric.name} must return a number, got {kind}")
        yield "", metric.name, "", float(value)


def _attacked(
    comparison: Comparison, released: Sighting, mechanism: Entrant, attack: Entrant, draw: int
) -> Iterator[tuple[str, str, str, float]]:
    case = released.case
    try:
        result = attack(released, comparison.clues(case, mechanism, attack, draw))
    except TrailveilError:
        yield attack.name, "failed", "", 1.0
        return
    if result is None:
        return
    yield attack.name, "failed", "", 0.0
    if isinstance(result, str):
        yield attack.name, "identified", "", float(result == case.person)
        return
    places, deviations = result if isinstance(result, tuple) else (result, None)
    places = np.asarray(places, dtype=np.float64)
    if places.shape != case.truths.shape:
        raise InvalidValue(
            f"{attack.name} must return places of shape {case.truths.shape}, got {places.shape}"
        )
    errors = np.hypot(*(places - case.truths).T)
    for number, (label, error) in enumerate(zip(labels(case), errors.tolist(), strict=True)):
        yield attack.name, "error_m", label, error
        if deviations is not None and np.isfinite(deviations[number]):
            radius = CIRCLE_68 * float(deviations[number])
            yield attack.name, "circle_68_m", label, radius
            yield attack.name, "held_68", label, float(error <= radius)


def labels(case: Case) -> list[str]:
    """A name for each secret of a case, each once."""
    named: list[str] = []
    for stretch in case.secrets:
        count = sum(name.split(" #")[0] == stretch.label for name in named)
        named.append(stretch.label if not count else f"{stretch.label} #{count + 1}")
    return named


def identity_of(comparison: Comparison, portion: Portion) -> str:
    """A name of all that a portion depends on."""
    digest = sha256()
    parts = [code_digest(), comparison.seed, portion.data, portion.people, portion.draw]
    parts += [comparison.identities[0][portion.mechanism], _digest(comparison, portion.data)]
    parts += comparison.identities[1]
    for part in parts:
        digest.update(repr(part).encode() + b"\0")
    return digest.hexdigest()[:40]


def _digest(comparison: Comparison, data: str) -> str:
    """Of all recordings of a data set: attackers may learn from any."""

    def compute() -> str:
        digest = sha256()
        for case in comparison.cases[data]:
            digest.update(repr((case.person, case.name, case.secrets)).encode())
            digest.update(case.trace.times.tobytes() + case.trace.positions.tobytes())
        return digest.hexdigest()

    key = ("digest", data)
    if key not in comparison._memory:
        comparison._memory[key] = compute()
    return str(comparison._memory[key])


Engine = Callable[[Comparison, Sequence[Portion]], Iterator[tuple[Portion, Done]]]
"""Runs portions, in any order."""


def here(comparison: Comparison, waiting: Sequence[Portion]) -> Iterator[tuple[Portion, Done]]:
    """In this process."""
    for portion in waiting:
        yield portion, run_portion(comparison, portion)


def run(
    comparison: Comparison, folder: Path, engine: Engine = here, watch: Any = None
) -> list[tuple[Portion, Done]]:
    """What came of all portions, in their order; those that the folder has are not run again.

    Raises UnwritableOutput where the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    every = portions(comparison)
    files = {portion: folder / f"{identity_of(comparison, portion)}.json" for portion in every}
    waiting = [portion for portion in every if not files[portion].exists()]
    outcomes = engine(comparison, waiting)
    for portion, done in outcomes if watch is None else watch(outcomes, len(waiting), "Comparing"):
        content = json.dumps(done, separators=(",", ":")).encode()
        write_atomically(files[portion], partial(_put, content), overwrite=True)
    return [(portion, _read(files[portion])) for portion in every]


def _put(content: bytes, stream: BinaryIO) -> None:
    stream.write(content)


def _read(path: Path) -> Done:
    try:
        done: Done = json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise UnreadableInput(
            f"what is done must be JSON that this program wrote, got other: {path.name}; remove it"
        ) from None
    return done
