"""Ours, the paper's and what people use today, side by side: a table and a plot.

    python -m benchmarks.comparison [TRACES_FOLDER] [-o FOLDER]

Each way of releasing is tried on recordings drawn from the default prior, and on real ones of a
folder, in which a stay and the end at home are protected. In the tables: metres by which a released
fix is moved, and minutes that are not released; then, for each attack, the radius of the circle
around the true place that holds 68 % of its guesses, at the place where it comes nearer. Of real
recordings the median is shown, and the range. With a street map: rides in a made-up town, of which
the start is protected. Every number is made again by the same command.
"""

import csv
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks._attackers import (
    ATTACKERS,
    NOTHING,
    RIDES,
    Attacker,
    Tried,
    circle_of_rides,
    knows_speed,
    with_map,
)
from benchmarks._comparison_plot import Dots, drawn
from benchmarks._laws import Law, laws, on_streets
from benchmarks._rides import SIMULATED, Ride, in_town, real, simulated
from trailveil.checks.attacks.trial import circle_68
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversaries import SPEEDS, at_speed
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.release.plan import Plan
from trailveil.release.request import DEFAULT_KERNEL, KNOWS_PATH, KNOWS_PLACE, STRANGER
from trailveil.traces.streets.town import town

SEED = 20_210_413
RECORDINGS, DRAWS, REAL, IN_TOWN = 200, 100, 10, 20
TOGETHER, MAP = f"{RIDES} rides", "map"
COLUMNS = (*ATTACKERS, TOGETHER)
PROMISE = "(promised by our noise)"
OF_A_STRANGER = ("prior", "still", "speed", "Kalman", "edges", "average", "circle")


@dataclass(frozen=True)
class Row:
    """One way on one ride. cost: metres, metres, minutes. left: metres, by attack, each part."""

    law: str
    cost: tuple[float, float, float]
    left: dict[str, tuple[float, ...]]

    def least(self, attack: str) -> float:
        """Metres at the place where an attack comes nearer."""
        return min(self.left.get(attack, (np.nan,)))


def rows(
    ride: Ride, draws: int, seed: int, at_speeds: Mapping[float, Ride] | None = None
) -> Iterator[Row]:
    """What is promised, then each way of releasing a ride.

    at_speeds: recordings at the same times of people of these speeds (metres per second), where
    there are many; they are put side by side, too, as rides to one place.
    """
    begun = time.monotonic()
    made = laws(ride, lambda what: click.echo(f"  {what}", err=True))
    yield promised(made.ours)
    parts = range(len(ride.stretches))
    for number, law in enumerate(made.each):
        generator = np.random.default_rng([SEED, seed, number])
        tried = list(attempts(ride, law, draws, generator))
        left = {
            name: tuple(circle(tried, attacker, part) for part in parts)
            for name, attacker in ATTACKERS.items()
        }
        if at_speeds:
            left[TOGETHER] = tuple(circle_together(tried, part) for part in parts)
            each = [
                [circle(own, knows_speed(speed), part) for part in parts]
                for speed, people in at_speeds.items()
                for own in [list(attempts(people, law, draws, generator))]
            ]
            left["speed"] = tuple(min(values) for values in zip(*each, strict=True))
        click.echo(f"  {law.name}: tried after {time.monotonic() - begun:.0f} s", err=True)
        yield Row(law.name, law.cost(ride), left)


def population(
    count: int, *, minutes: tuple[float, float, float, float] = SIMULATED, step: float = 15.0
) -> tuple[Ride, dict[float, Ride]]:
    """Recordings as the default prior has them, and of people of other speeds."""

    def drawn_from(number: int, kernel: Kernel) -> Ride:
        generator = np.random.default_rng([SEED, number])
        return simulated(count, generator, minutes=minutes, step=step, kernel=kernel)

    others = {
        speed: drawn_from(number, kernel)
        for number, speed in enumerate(SPEEDS, start=1)
        for kernel in [at_speed(DEFAULT_KERNEL, speed)]
        if kernel is not None
    }
    return drawn_from(0, DEFAULT_KERNEL), others


def with_a_map(count: int) -> dict[str, tuple[float, ...]]:
    """Metres that an attacker with a street map leaves of the start of rides in a town, by law."""
    streets, found = town(), dict[str, tuple[float, ...]]()
    ride, attacker = in_town(count, streets), with_map(streets)
    for number, law in enumerate(on_streets(ride)):
        generator = np.random.default_rng([SEED, number])
        found[law.name] = (circle(list(attempts(ride, law, 1, generator)), attacker, 0),)
        click.echo(f"  {law.name}: tried with a map", err=True)
    return found


def attempts(ride: Ride, law: Law, draws: int, generator: np.random.Generator) -> Iterator[Tried]:
    """What attackers get, for recordings of one mechanism at a time."""
    for which, mechanism, places in law.views(ride, draws, generator):
        recorded = np.repeat(ride.recorded[which], draws, axis=0)
        yield Tried(ride, law, mechanism, recorded, places, generator)


def circle(tried: Sequence[Tried], attacker: Attacker, part: int) -> float:
    """What an attacker is left with, in the best of its ways."""
    ways = zip(*(attacker(one, part) for one in tried), strict=True)
    return min(circle_68(np.concatenate(errors)).radius for errors in ways)


def circle_together(tried: Sequence[Tried], part: int) -> float:
    """The same of rides to one place that are seen together."""
    single = [
        replace(one, recorded=one.recorded[i : i + 1], released=one.released[i : i + 1])
        for one in tried
        for i in range(len(one.recorded))
    ]
    groups = [single[i : i + RIDES] for i in range(0, len(single) - RIDES + 1, RIDES)]
    return circle_68(np.array([circle_of_rides(group, part) for group in groups])).radius


def promised(plan: Plan) -> Row:
    """The circles that our noise promises: those of the adversary that each attack is held to."""
    columns: dict[str, list[float]] = {}
    for finding in plan.findings:
        left = {
            exposure.adversary: CIRCLE_68 * exposure.posterior for exposure in finding.exposures
        }
        own = dict.fromkeys(OF_A_STRANGER, left[STRANGER])
        own |= {"place": left[KNOWS_PLACE], "path": left[KNOWS_PATH]}
        for column, value in own.items():
            columns.setdefault(column, []).append(value)
    nothing = (np.nan, np.nan, np.nan)
    return Row(PROMISE, nothing, {name: tuple(values) for name, values in columns.items()})


def metres(value: float) -> str:
    """A distance for people."""
    if not value < NOTHING / 2:
        return "none"
    return f"{value:,.0f}" if value >= 9.95 or value == 0 else f"{value:.1f}"


def cell(values: FloatArray) -> str:
    """One number, or the median and range of several."""
    if np.isnan(values).all():
        return ""
    middle, low, high = (metres(float(one(values))) for one in (np.median, np.min, np.max))
    return middle if low == high else f"{middle} ({low} to {high})"


def table(found: Sequence[Sequence[Row]]) -> Iterator[str]:
    """The lines of a table of several rides, each with the same rows."""
    columns = (*COLUMNS, MAP)
    shown = [name for name in columns if any(name in row.left for row in found[0])]
    heads = ["", "moved, m", "most, m", "lost, min", *shown]
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for same in zip(*found, strict=True):
        costs = [np.array([row.cost[i] for row in same]) for i in range(3)]
        cells = [cell(costs[0]), cell(costs[1]), cell(costs[2])]
        left = {name: np.array([row.least(name) for row in same]) for name in shown}
        least = min(np.nanmedian(one) for one in left.values() if not np.isnan(one).all())
        for name in shown:
            text = cell(left[name])
            promise = same[0].law == PROMISE
            cells.append(f"**{text}**" if not promise and np.median(left[name]) == least else text)
        yield f"| {same[0].law} | {' | '.join(cells)} |"


def write_all(out: Path, sets: dict[str, list[list[Row]]]) -> None:
    """Every figure as CSV, and the plot."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "comparison.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["recordings", "ride", "mechanism", "attack", "place", "circle_68_m"])
        for name, found in sets.items():
            for number, each in enumerate(found, start=1):
                for row in each:
                    for attack, values in row.left.items():
                        places = ("start",) if attack == MAP else ("stay", "home")
                        for place, value in zip(places, values, strict=True):
                            told = f"{value:.3f}" if value < NOTHING / 2 else ""
                            lines.writerow([name, number, row.law, attack, place, told])
    panels = {name: dots(found) for name, found in sets.items()}
    for suffix, content in drawn(panels):
        (out / f"comparison.{suffix}").write_bytes(content)


def dots(found: Sequence[Sequence[Row]]) -> list[Dots]:
    """What is drawn of a set of rides: medians over them."""
    shown = []
    for same in zip(*found, strict=True):
        left = {name: float(np.median([row.least(name) for row in same])) for name in same[0].left}
        moved, _, lost = (float(np.median([row.cost[i] for row in same])) for i in range(3))
        kept = {name: value for name, value in left.items() if value < NOTHING / 2}
        shown.append(Dots(same[0].law, moved, lost, kept))
    return shown


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Where plot and CSV go.")
def main(folder: Path | None, out: Path | None) -> None:
    """Print the tables."""
    ride, others = population(RECORDINGS)
    click.echo(f"simulated: {RECORDINGS} recordings", err=True)
    found = list(rows(ride, 1, 0, others))
    for name, left in with_a_map(IN_TOWN).items():
        next(row for row in found if row.law == name).left[MAP] = left
    sets = {"simulated": [found]}
    if folder is not None:
        sets["real"] = []
        for number, one in enumerate(real(folder, REAL), start=1):
            click.echo(f"real recording {number}: {one.times.size} fixes", err=True)
            sets["real"].append(list(rows(one, DRAWS, number)))
    for name, each in sets.items():
        if each:
            click.echo(f"\n{name.capitalize()} recordings\n")
            click.echo("\n".join(table(each)))
    if out is not None:
        write_all(out, {name: each for name, each in sets.items() if each})


if __name__ == "__main__":
    main()
