"""How far people are from where somebody places them who has the rest of their track?

    python -m benchmarks.activity_floors GEOLIFE_FOLDER [--more FOLDER] [-o FILE.json]

A cut releases nothing within 60 s and h seconds of a place, and all else as it was recorded. Two
adversaries guess the place. The first has the rest of the track alone, and the best linear use of
its last speeds (over 10 s, 1 min and 4 min), found on the very people it is tried on. The second
is the one of the promise: told every movement within the 60 s, it guesses where they lie by the
prior of the floor (time constant 60 s) from the velocities on both sides. The floor of an activity
is the largest speed at which both are left with the root mean square error that is promised, each
person counted once, and the first with the circle that holds 68 %; at every h from 1 to 15 minutes
that five people or more have. Stated is what 90 of 100 draws of people exceed. Printed are
aggregate figures alone, as tables of Markdown. The folders are not in this repository.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._kept import keep
from trailveil.errors import TrailveilError
from trailveil.files.source import load
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.movement import Movement
from trailveil.studies.datasets.geolife import read_labels, users
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import plt
from trailveil.traces.loading import load as load_trace
from trailveil.traces.projection import MICRO, placed

Floats = NDArray[np.float64]

LABELS = {"walk": "walk", "run": "run", "bike": "ride"} | dict.fromkeys(
    ("bus", "car", "taxi"), "drive"
)
FASTEST = {"walk": 4.0, "run": 7.0, "ride": 12.0, "drive": 40.0}
"""Metres a second: where half of the steps are faster, the label is wrong."""
ENDS, ALONG, MIDDLE = "leaving or arriving", "anywhere, one side", "anywhere, both sides"
ALONE, TOLD = "rest of the track", "told the movement within 60 s"
WAITS = (60, 120, 180, 300, 480, 600, 900)
SLOPES = (10.0, 60.0, 240.0)
WINDOW, TIME_CONSTANT, BEYOND, GAP, STILL, EVERY = 60.0, 60.0, 60.0, 60.0, 30.0, 120.0
FEWEST = 5
UNIT = Movement(1.0, TIME_CONSTANT)


@dataclass(frozen=True)
class Part:
    """One person's uninterrupted movement: seconds (n,), metres (n, 2). first, last: whether the
    stated activity begins and ends with it."""

    user: str
    activity: str
    times: Floats
    places: Floats
    first: bool = True
    last: bool = True

    def backwards(self) -> "Part":
        """The same movement, as if time ran backwards."""
        times, places = -self.times[::-1], self.places[::-1]
        return Part(self.user, self.activity, times, places, self.last, self.first)

    def at(self, seconds: float) -> Floats:
        """Where the person was (2,)."""
        return np.array([np.interp(seconds, self.times, row) for row in self.places.T])

    def left_at(self) -> float | None:
        """When the first place was left: the last fix before one that is 30 m from it."""
        away = np.hypot(*(self.places - self.places[0]).T) > STILL
        return float(self.times[max(int(np.argmax(away)) - 1, 0)]) if away.any() else None


@dataclass(frozen=True)
class Side:
    """What is seen from a place on: metres (2,) from it, and from the edge of its window, to where
    the track is known from on; speeds (2,) at the edge and there; mean speeds beyond, (3, 2)."""

    place: Floats
    edge: Floats
    edge_speed: Floats
    speed: Floats
    beyond: Floats


def side(part: Part, when: float, wait: float) -> Side | None:
    """One side of a place, or None where the part ends too early."""
    edge, known = when + WINDOW, when + WINDOW + wait
    left = float(part.times[-1]) - known
    if left < BEYOND:
        return None
    far = part.at(known)
    speeds = [(part.at(moment + 5) - part.at(moment - 5)) / 10 for moment in (edge, known)]
    spans = [min(span, left) for span in SLOPES]
    beyond = np.array([(part.at(known + span) - far) / span for span in spans])
    return Side(far - part.at(when), far - part.at(edge), speeds[0], speeds[1], beyond)


@dataclass(frozen=True)
class Case:
    """Guesses of one adversary: whose, and how far off (n,); sides of the place that are known.
    circle: whether the 68 % circle counts for the floor, and not the mean square alone."""

    users: NDArray[np.str_]
    errors: Floats
    wait: float
    sides: int
    circle: bool = True

    @property
    def promised(self) -> Floats:
        """Metres per coordinate that are promised at 1 m/s."""
        return np.asarray(np.sqrt(UNIT.bridged(self.wait) / self.sides))

    def speeds(self, weights: Floats) -> tuple[float, float]:
        """The floors (m/s) at which the root mean square and the 68 % circle are as promised."""
        total = weights.sum()
        rms = np.sqrt(np.sum(weights * self.errors**2) / total / 2)
        order = np.argsort(self.errors)
        index = np.searchsorted(np.cumsum(weights[order]) / total, 0.68)
        circle = self.errors[order][min(int(index), order.size - 1)]
        return float(rms / self.promised), float(circle / CIRCLE_68 / self.promised)

    def share_within(self, floor: float, part: float) -> float:
        """How many are within so much of the 68 % circle, each person counted once."""
        near = self.errors <= part * CIRCLE_68 * floor * self.promised
        weights = self.weights()
        return float(np.sum(weights * near) / weights.sum())

    def weights(self, times: Mapping[str, int] | None = None) -> Floats:
        """(n,) so that each person counts once, or so many times."""
        names, owner, count = np.unique(self.users, return_inverse=True, return_counts=True)
        often = np.array([1 if times is None else times.get(name, 0) for name in names])
        return np.asarray((often / count)[owner])

    def slowest(self) -> float:
        """The floor (m/s) of the root mean square of a person whom 90 % are faster than."""
        squares = self.errors**2 / 2
        each = [np.sqrt(squares[self.users == name].mean()) for name in np.unique(self.users)]
        return float(np.quantile(each, 0.1) / self.promised)


def best_linear(metres: Floats, speeds: Floats, weights: Floats) -> Floats:
    """What is left (n, 2) of displacements after the best linear use of speeds (n, k, 2)."""
    rows = speeds.transpose(0, 2, 1).reshape(metres.size, -1)
    scale = np.repeat(weights, 2) ** 0.5
    used = np.linalg.lstsq(rows * scale[:, None], metres.ravel() * scale, rcond=None)[0]
    return metres - (rows @ used).reshape(metres.shape)


def moments(part: Part, where: str) -> Iterable[float]:
    """The times of a part that are asked about."""
    if where == ENDS:
        left = part.left_at() if part.first else None
        return () if left is None else (left,)
    return np.arange(part.times[0], part.times[-1], EVERY)


def sides(parts: Iterable[Part], where: str, wait: float) -> Iterator[tuple[str, list[Side]]]:
    """Each place that is asked about: whose, and what is seen on its sides."""
    for part in parts:
        back = part.backwards()
        for when in moments(part, where):
            ahead = side(part, when, wait)
            behind = side(back, -when, wait) if where != ENDS else None
            if where == MIDDLE:
                if ahead is not None and behind is not None:
                    yield part.user, [ahead, behind]
            else:
                yield from ((part.user, [one]) for one in (ahead, behind) if one is not None)
        if where == ENDS:
            for when in moments(back, where):
                if (ahead := side(back, when, wait)) is not None:
                    yield part.user, [ahead]


def cases(parts: Sequence[Part], where: str, wait: float) -> dict[str, Case]:
    """The guesses of both adversaries; none where nobody's part is long enough."""
    found = list(sides(parts, where, wait))
    if not found:
        return {}
    names = np.array([user for user, _ in found])
    count = len(found[0][1])

    def mean(what: Callable[[Side], Floats]) -> Floats:
        return np.array([np.mean([what(one) for one in both], axis=0) for _, both in found])

    even = Case(names, np.zeros(names.size), wait, count)
    alone = best_linear(mean(lambda one: one.place), mean(lambda one: one.beyond), even.weights())
    used = TIME_CONSTANT * np.tanh(wait / TIME_CONSTANT / 2)
    told = mean(lambda one: one.edge) - used * mean(lambda one: one.edge_speed + one.speed)
    return {
        ALONE: replace(even, errors=np.hypot(*alone.T)),
        TOLD: replace(even, errors=np.hypot(*told.T), circle=False),
    }


def floor_of(cases: Sequence[Case], times: Mapping[str, int] | None = None) -> float:
    """The largest speed at which every case is left with what is promised."""
    return min(min(one.speeds(one.weights(times))[: 1 + one.circle]) for one in cases)


def lower_bound(cases: Sequence[Case], draws: int, seed: int = 0) -> float:
    """What 90 of 100 draws of people exceed; a case that nobody drawn has says nothing."""
    names = np.unique(np.concatenate([one.users for one in cases]))
    random = np.random.default_rng(seed)
    floors = []
    for _ in range(draws):
        drawn = random.integers(0, names.size, names.size)
        times = dict(zip(names.tolist(), np.bincount(drawn, minlength=names.size), strict=True))
        there = [one for one in cases if one.weights(times).sum() > 0]
        floors.append(floor_of(there, times))
    return float(np.quantile(floors, 0.1))


def rounded_down(speed: float) -> float:
    """Two significant digits, never more."""
    unit = 10.0 ** (np.floor(np.log10(speed)) - 1)
    return float(round(np.floor(speed / unit + 1e-9) * unit, 6))


def table(parts: Sequence[Part], draws: int) -> dict[str, Any]:
    """Floors and figures of one activity: at ends (one side), and in the middle (both)."""
    found = {
        (where, wait): cases(parts, where, wait)
        for where in (ENDS, ALONG, MIDDLE)
        for wait in WAITS
    }
    floors: dict[str, Any] = {}
    for name, places in (("end", (ENDS, ALONG)), ("middle", (MIDDLE,))):
        used = [
            one
            for (where, _), both in found.items()
            for one in both.values()
            if where in places and np.unique(one.users).size >= FEWEST
        ]
        floors[name] = {
            "found": floor_of(used) if used else None,
            "bound": lower_bound(used, draws) if used else None,
        }
    rows = []
    for (where, wait), both in found.items():
        for adversary, one in both.items():
            bound = floors["middle" if where == MIDDLE else "end"]["bound"]
            rows.append(
                {"where": where, "wait": wait, "adversary": adversary} | figures(one, bound)
            )
    hours = sum(part.times[-1] - part.times[0] for part in parts) / 3600
    people = len({part.user for part in parts})
    return {"people": people, "parts": len(parts), "hours": hours, "floors": floors, "rows": rows}


def figures(case: Case, floor: float | None) -> dict[str, Any]:
    """A row: what the case alone asks for, and what a floor does in it."""
    rms, circle = case.speeds(case.weights())
    within: dict[str, float | None] = {"in_68": None, "in_quarter": None}
    if floor is not None:
        within = {
            "in_68": case.share_within(floor, 1),
            "in_quarter": case.share_within(floor, 0.25),
        }
    counts = {"people": int(np.unique(case.users).size), "places": int(case.users.size)}
    return counts | {"rms": rms, "circle": circle, "slowest": case.slowest(), **within}


def pieces(user: str, activity: str, times: Floats, places: Floats) -> list[Part]:
    """A labelled movement in parts without a gap; none where it is too fast for its label."""
    steps = np.hypot(*np.diff(places, axis=0).T) / np.diff(times)
    if not steps.size or np.median(steps) > FASTEST[activity]:
        return []
    cuts = np.flatnonzero(np.diff(times) > GAP) + 1
    both = list(zip(np.split(times, cuts), np.split(places, cuts), strict=True))
    last = len(both) - 1
    parts = [Part(user, activity, *one, i == 0, i == last) for i, one in enumerate(both)]
    return [part for part in parts if part.times.size > 3]


def labelled(folder: Path) -> Iterator[Part]:
    """What users of GeoLife labelled. A file that several have counts once."""
    seen = set()
    for user in users(folder):
        labels = () if user.labels is None else read_labels(user.labels)
        for path in user.files if labels else ():
            data = load(path)
            digest = sha256(data).digest()
            if digest in seen:
                continue
            seen.add(digest)
            try:
                trace, _ = clean(plt.read(data, path.name))
                places = placed(trace.positions)[1] / MICRO
            except TrailveilError:
                continue
            for label in labels:
                inside = (trace.times >= label.begin) & (trace.times <= label.end)
                if label.mode in LABELS and inside.sum() > 1:
                    times = trace.seconds[inside]
                    yield from pieces(user.name, LABELS[label.mode], times, places[inside])


def stated(folder: Path) -> Iterator[Part]:
    """Recordings of other people that state what they are; each counts as one person."""
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        try:
            trace, _ = load_trace(path, assume_utc=True)
            places = placed(trace.positions)[1] / MICRO
        except TrailveilError:
            continue
        if trace.activity:
            yield from pieces(str(path), trace.activity, trace.seconds, places)


def printed(found: Mapping[str, Any]) -> None:
    """The tables in Markdown."""
    print(
        "| activity | people | parts | hours | end, m/s | middle, m/s |\n|---|---|---|---|---|---|"
    )
    for activity, one in found.items():
        both = []
        for floor in one["floors"].values():
            bound = floor["bound"]
            both.append(
                "too few" if bound is None else f"{rounded_down(bound)} ({floor['found']:.2f})"
            )
        counts = f"{one['people']} | {one['parts']} | {one['hours']:.1f}"
        print(f"| {activity} | {counts} | {' | '.join(both)} |")
    print(
        "\n| activity | where | h, s | adversary | people | places | rms | circle | slowest | in "
        "| 1/4 |"
    )
    print("|---" * 11 + "|")
    for activity, one in found.items():
        for row in one["rows"]:
            shares = [
                "" if row[name] is None else f"{row[name]:.0%}" for name in ("in_68", "in_quarter")
            ]
            numbers = [f"{row[name]:.2f}" for name in ("rms", "circle", "slowest")]
            names = [row[name] for name in ("where", "wait", "adversary", "people", "places")]
            print("| " + " | ".join(map(str, [activity, *names, *numbers, *shares])) + " |")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--more", type=Path, help="recordings that state their activity")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--draws", type=int, default=500)
    given = parser.parse_args(arguments)
    parts = [*labelled(given.folder), *(stated(given.more) if given.more else ())]
    found = {
        activity: table(mine, given.draws)
        for activity in FASTEST
        if (mine := [part for part in parts if part.activity == activity])
    }
    printed(found)
    if given.output:
        keep(given.output, {"activities": found})


if __name__ == "__main__":
    main()
