"""Home, after three years of rides: what attacks find of it, by how it was protected.

    python -m benchmarks.recurring_places [--places N] [--plot FILE]

Each of many homes is left and come back to on 365 days of three years; a ride is half an hour out
and half an hour back, a fix every 10 s. Two worlds: in one there are four ways to and from home,
and each ride follows one of them but for what is its own; in the other every ride goes a way of its
own. Everything is drawn from the default prior. Errors are metres in the plane, the 68 % quantile
over homes. See docs/recurring-places.md.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.release.place_noise import PlaceNoise, place_noise
from trailveil.release.request import Request

DAYS, WAYS = 3 * 365, 4
# Seconds of a ride from home to where it turns, and between fixes.
HALF, STEP = 1800.0, 10.0
# The default prior: m/s, seconds. A ride begins when a visit of no length ends.
SPEED, FADES, VISIT = 3.0, 60.0, [(0.0, 0.0)]
# Metres: a zone around home of which nothing is released; how far rides of a way are from it; noise
# of a fix.
ZONE, STRAYS, FIX = 200.0, 20.0, 2.0
QUANTILE = 0.68


@dataclass(frozen=True)
class World:
    """What was released of one home at (0, 0): halves of rides (k, n, 2), true and as they left.

    hole: of each half, the first fix that is outside of the zone.
    """

    times: FloatArray
    true: FloatArray
    of_way: NDArray[np.intp]


Mechanism = Callable[[World, np.random.Generator], FloatArray]


def movement(times: FloatArray) -> FloatArray:
    """How far ways lead: Cov(X(t) - X(0), X(t') - X(0)), X an integrated OU process (n, n)."""
    one, other = times[:, None] / FADES, times[None, :] / FADES
    fade = np.exp(-one) + np.exp(-other) - np.exp(-np.abs(one - other)) - 1
    return np.asarray((SPEED * FADES) ** 2 * (2 * np.minimum(one, other) + fade))


def rides(rng: np.random.Generator, *, fresh: bool) -> World:
    """The halves of all rides of one home."""
    times = np.arange(0.0, HALF, STEP)
    root = np.linalg.cholesky(movement(times) + 1e-6 * np.eye(times.size))
    halves = 2 * DAYS
    of_way = np.arange(halves) if fresh else rng.integers(WAYS, size=halves)
    normals = rng.normal(size=(times.size, 2 * (int(of_way.max()) + 1)))
    ways = np.moveaxis((root @ normals).reshape(times.size, -1, 2), 0, 1)
    true = ways[of_way]
    if not fresh:
        # What is a ride's own is not there at home.
        own = rng.normal(size=true.shape) * STRAYS * (1 - np.exp(-times / 60.0))[None, :, None]
        true = true + own
    return World(times, true + FIX * rng.normal(size=true.shape), of_way)


def common(noise: PlaceNoise) -> Mechanism:
    """One draw for all halves of all rides."""

    def release(world: World, rng: np.random.Generator) -> FloatArray:
        drawn = noise.at(world.times, VISIT) @ rng.normal(size=(noise.root.shape[1], 2))
        return np.asarray(world.true + drawn)

    return release


def independent(noise: PlaceNoise) -> Mechanism:
    """Another draw for each ride: both its halves have it."""

    def release(world: World, rng: np.random.Generator) -> FloatArray:
        draws = rng.normal(size=(noise.root.shape[1], 2 * DAYS))
        drawn = (noise.at(world.times, VISIT) @ draws).reshape(world.times.size, DAYS, 2)
        return np.asarray(world.true + np.repeat(np.moveaxis(drawn, 0, 1), 2, axis=0))

    return release


def exact(world: World, rng: np.random.Generator) -> FloatArray:
    """No noise: what a zone leaves."""
    del rng
    return world.true


def average(world: World, seen: FloatArray) -> FloatArray:
    """The mean of the ends of all rides."""
    del world
    return np.asarray(seen[:, 0].mean(axis=0))


def edges(world: World, seen: FloatArray) -> FloatArray:
    """Where rides leave the zone first (k, 2); those that never do are none."""
    outside = np.hypot(*np.moveaxis(world.true, 2, 0)) > ZONE
    left = outside.any(axis=1)
    first = np.argmax(outside, axis=1)
    return np.asarray(seen[np.arange(first.size), first][left])


def circle(points: FloatArray) -> FloatArray:
    """The middle of the circle that fits points best. Source: Kasa (1976)."""
    design = np.column_stack([2 * points, np.ones(len(points))])
    found = np.linalg.lstsq(design, np.sum(points**2, axis=1), rcond=None)[0]
    return np.asarray(found[:2])


Estimate = Callable[[World, FloatArray], FloatArray]


def posterior(
    gamma: FloatArray | None, noises: int, *, fresh: bool, since: float = 0.0
) -> Estimate:
    """The joint posterior mean of home, by who knows the world, the noise and each ride's way.

    gamma: of one draw of noise (n, n), or None; noises: how many draws there are. since: seconds
    from which fixes are released.
    """

    def estimate(world: World, seen: FloatArray) -> FloatArray:
        kept = world.times >= since
        moved = movement(world.times)
        counts = np.bincount(world.of_way)
        # The mean of the halves of each way, then of the ways, is all that tells of home.
        means = (
            np.stack([seen[world.of_way == way].mean(axis=0) for way in range(counts.size)])
            if not fresh
            else seen
        )
        whole = means.mean(axis=0)
        spread = moved / counts.size
        own = FIX**2 + (0.0 if fresh else STRAYS**2)
        spread = spread + own / world.of_way.size * np.eye(world.times.size)
        if gamma is not None:
            spread = spread + gamma / noises
        solved = np.linalg.solve(spread[np.ix_(kept, kept)], np.ones(int(kept.sum())))
        return np.asarray(solved @ whole[kept] / solved.sum())

    return estimate


def trial(places: int, seed: int = 7) -> dict[str, object]:
    """The errors of all attacks on all ways to protect a home, in both worlds."""
    request = Request((), radius=300.0)
    ours, single = place_noise(request, WAYS), place_noise(request, 1)
    times = np.arange(0.0, HALF, STEP)
    both = {name: one.at(times, VISIT) for name, one in (("o", ours), ("s", single))}
    gammas = {name: columns @ columns.T for name, columns in both.items()}
    found: dict[str, dict[str, list[float]]] = {}
    for fresh in (False, True):
        name = "every ride a way of its own" if fresh else "four ways"
        ways: dict[str, tuple[Mechanism, Estimate]] = {
            "ours, common": (common(ours), posterior(gammas["o"], 1, fresh=fresh)),
            "independent noise": (independent(single), posterior(gammas["s"], DAYS, fresh=fresh)),
            "zone of 200 m": (exact, posterior(None, 1, fresh=fresh, since=120.0)),
        }
        for place in range(places):
            rng = np.random.default_rng([seed, place, fresh])
            world = rides(rng, fresh=fresh)
            for how, (mechanism, joint) in ways.items():
                seen = mechanism(world, rng)
                hidden = how.startswith("zone")
                attacks = {
                    "average of ends": edges(world, seen).mean(axis=0)
                    if hidden
                    else average(world, seen),
                    "circle of ends": circle(edges(world, seen) if hidden else seen[:, 0]),
                    "circle of holes": circle(edges(world, seen)),
                    "joint posterior": joint(world, seen),
                }
                row = found.setdefault(f"{name}: {how}", {})
                for attack, where in attacks.items():
                    row.setdefault(attack, []).append(float(np.hypot(*where)))
    return {
        "places": places,
        "left_by_ways_m": CIRCLE_68 * ours.exposures[0].posterior,
        "counted_m": CIRCLE_68 * ours.loss(2 * DAYS, request) ** -0.5,
        "moved_m": float(np.sqrt(2) * ours.std),
        "errors": found,
    }


def told(found: dict[str, object]) -> str:
    """The table."""
    errors = found["errors"]
    if not isinstance(errors, dict):
        raise TypeError("errors must be by world and mechanism")
    names = ["average of ends", "circle of ends", "circle of holes", "joint posterior"]
    lines = [f"| protected by | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    for how, row in errors.items():
        sizes = [f"{np.quantile(row[name], QUANTILE):,.0f} m" for name in names]
        lines.append(f"| {how} | {' | '.join(sizes)} |")
    return "\n".join(lines)


def picture(found: dict[str, object], path: Path) -> None:
    """What each attack comes to, and what is promised."""
    import matplotlib.pyplot as plt

    errors = found["errors"]
    if not isinstance(errors, dict):
        raise TypeError("errors must be by world and mechanism")
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    names: list[str] = []
    for ax, world in zip(axes, ("four ways", "every ride a way of its own"), strict=True):
        for place, how in enumerate(("ours, common", "independent noise", "zone of 200 m")):
            row = errors[f"{world}: {how}"]
            names = [name.replace(" ", "\n", 1) for name in row]
            sizes = [float(np.quantile(one, QUANTILE)) for one in row.values()]
            ax.bar(np.arange(len(sizes)) + 0.27 * (place - 1), sizes, 0.25, label=how)
        left = "left_by_ways_m" if world == "four ways" else "counted_m"
        ax.axhline(float(str(found[left])), color="black", lw=0.8, ls="--")
        ax.set_xticks(range(len(names)), names)
        ax.set_yscale("log")
        ax.set_title(f"Three years of rides, {world}", fontsize=10)
    axes[0].set_ylabel("error, metres (68 of 100 homes)")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=110)


@click.command()
@click.option("--places", default=1000, show_default=True)
@click.option("--plot", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True)
def main(places: int, plot: Path | None, *, as_json: bool) -> None:
    """Print the table."""
    found = trial(places)
    if plot:
        picture(found, plot)
    click.echo(json.dumps(found) if as_json else told(found))
    if not as_json:
        names = ("left_by_ways_m", "counted_m", "moved_m")
        click.echo(", ".join(f"{name} {found[name]:.0f}" for name in names))


if __name__ == "__main__":
    main()
