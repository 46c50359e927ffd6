"""Which way of fitting a prior predicts best the movements of people it has not seen?

    python -m benchmarks.prior_held_out GEOLIFE_FOLDER [--mode walk] [--window 600] [--kernels]
        [-o benchmarks/prior_held_out.json]

For each mode the windows of `trailveil fit --labels MODE` are split by user into four parts; a
prior is fitted to three and judged on the fourth: at seven fixes a window the recorded place is
predicted from all fixes that are at least a gap away, on both sides. Printed for each way and gap:
mean and median of the log density in nats per coordinate, the shares of coordinates inside the 68 %
and the 95 % interval, and the median deviation that was promised. With --kernels: how often each
kernel is the likeliest of its window, and its parameters. With -o the figures are written as JSON,
which docs/validation.md shows. The folder is not in this repository.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._kept import keep
from trailveil.gp.kernels import Kernel
from trailveil.privacy.priors import BUILT_IN, LEVEL_STD
from trailveil.studies.calibration import half_width, predicted, resampled
from trailveil.studies.datasets.fitting import fit_prior, motion_family
from trailveil.studies.datasets.geolife import FASTEST, MODES, labelled_traces
from trailveil.studies.datasets.stretches import Stretches, stretches
from trailveil.studies.fit import FitSeries, fit

GAPS = (30.0, 75.0, 150.0)
PARTS = 4
FIXES = 7
LEVELS = (0.68, 0.95)

Floats = NDArray[np.float64]
Way = Callable[[Stretches], Kernel]


def predictions(series: FitSeries, kernel: Kernel, gap: float) -> Iterator[tuple[Floats, float]]:
    """Errors (2,) and deviation of the recorded place, from fixes `gap` seconds away or more."""
    times = series.times
    for index in np.linspace(0, len(times) - 1, FIXES + 2)[1:-1].astype(int):
        kept = np.abs(times - times[index]) >= gap
        if not (kept[:index].any() and kept[index:].any()):
            continue
        found = predicted(kernel, times[kept], series.values[kept], float(times[index]))
        yield series.values[index] - found.mean, found.std


def judge(windows: Sequence[FitSeries], kernel: Kernel) -> dict[float, list[Floats]]:
    """For each gap: log density, |error| / deviation and deviation of each coordinate predicted."""
    found: dict[float, list[Floats]] = {gap: [] for gap in GAPS}
    for series in windows:
        for gap in GAPS:
            for error, std in predictions(series, kernel, gap):
                score = -np.log(2 * np.pi * std**2) / 2 - error**2 / (2 * std**2)
                found[gap].append(np.stack([score, np.abs(error) / std, np.full(2, std)]))
    return found


def only(windows: Stretches, chosen: Sequence[int]) -> Stretches:
    """Some of the windows."""
    return replace(
        windows,
        series=tuple(windows.series[i] for i in chosen),
        sources=tuple(windows.sources[i] for i in chosen),
    )


def pooled(windows: Stretches) -> Kernel:
    """One set of parameters for all windows."""
    return fit_prior(windows, "", how="pooled", starts=1, workers=1).spec.kernel


def medians(windows: Stretches) -> Kernel:
    """The median of each parameter."""
    return fit_prior(windows, "", how="median", starts=1, workers=1).spec.kernel


WAYS: dict[str, Way] = {
    "default": lambda _: BUILT_IN["default"].kernel,
    "median": medians,
    "pooled": pooled,
}


def held_out(windows: Stretches, owners: Sequence[str]) -> list[dict[str, Any]]:
    """How well each way predicts users that it has not seen: a row for each gap.

    In nats and metres, of coordinates; shares have 95 % intervals from resampling users.
    """
    users = sorted(set(owners))
    total = {name: {gap: list[Floats]() for gap in GAPS} for name in WAYS}
    people: dict[float, list[int]] = {gap: [] for gap in GAPS}
    for part in range(PARTS):
        apart = set(users[part::PARTS])
        tested = [i for i, owner in enumerate(owners) if owner in apart]
        others = only(windows, [i for i, owner in enumerate(owners) if owner not in apart])
        kernels = {name: way(others) for name, way in WAYS.items()}
        for i in tested:
            for name, kernel in kernels.items():
                for gap, scores in judge([windows.series[i]], kernel).items():
                    total[name][gap] += scores
                    if name == "default":
                        people[gap] += [users.index(owners[i])] * len(scores)
    return [
        {"way": name, "gap": gap} | _figures(np.array(scores), np.array(people[gap]))
        for name, by_gap in total.items()
        for gap, scores in by_gap.items()
    ]


def _figures(scores: Floats, people: NDArray[np.int_]) -> dict[str, Any]:
    """Of predictions (n, 3, 2): nats, |error| / deviation and deviation of each coordinate."""
    nats, size, std = np.moveaxis(scores, 1, 0)
    inside = np.column_stack([(size < half_width(level)).mean(axis=1) for level in LEVELS])
    shares = resampled(inside, people)
    return {
        "nats": float(nats.mean()),
        "nats_median": float(np.median(nats)),
        "promised_m": float(np.median(std)),
        "people": len(set(people.tolist())),
        "coordinates": int(size.size),
    } | {
        f"in_{100 * level:g}": [share.share, share.low, share.high]
        for level, share in zip(LEVELS, shares, strict=True)
    }


def printed(rows: Sequence[dict[str, Any]]) -> None:
    print("way      gap s   mean  median  in 68 %  in 95 %  promised m  coordinates")
    for row in rows:
        print(
            f"{row['way']:8} {row['gap']:5.0f} {row['nats']:6.2f} {row['nats_median']:7.2f} "
            f"{row['in_68'][0]:8.1%} {row['in_95'][0]:8.1%} {row['promised_m']:11.1f} "
            f"{row['coordinates']:12}"
        )


def kernels(windows: Stretches) -> None:
    """Print how often each kernel is the likeliest, and its parameters: quartiles."""
    names = ("integrated-ou", "matern32", "matern12", "rbf")
    fits = {
        name: [
            fit(series, motion_family(name), level_std=LEVEL_STD, starts=2)
            for series in windows.series
        ]
        for name in names
    }
    heights = {name: np.array([one.log_likelihood for one in fits[name]]) for name in names}
    best = Counter(max(names, key=lambda name: heights[name][i]) for i in range(len(fits["rbf"])))
    coordinates = np.array([series.values.size for series in windows.series])
    for name in names:
        gain = np.median((heights[name] - heights["rbf"]) / coordinates)
        print(f"{name:14} best in {best[name]} of {len(coordinates)}, {gain:+.3f} nats over rbf")
        for index, parameter in enumerate(motion_family(name).parameters):
            low, middle, high = np.percentile(
                [one.values[index] for one in fits[name]], [25, 50, 75]
            )
            print(f"    {parameter.name:14} {low:8.3g} {middle:8.3g} {high:8.3g}")


def main() -> None:
    """Parse, then judge each mode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--mode", action="append", choices=MODES)
    parser.add_argument("--window", type=float, default=600.0)
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    if asked.folder is None:
        print("Needs the folder of GeoLife, which is not part of this repository: name it.")
        return
    modes: dict[str, Any] = {}
    for mode in asked.mode or MODES:
        parts = labelled_traces(asked.folder, mode)
        windows = stretches([trace for _, trace in parts], asked.window, FASTEST[mode])
        owners = [parts[source][0] for source in windows.sources]
        print(f"{mode}: {len(owners)} windows of {asked.window:g} s, {len(set(owners))} users")
        if asked.kernels:
            kernels(windows)
            continue
        rows = held_out(windows, owners)
        printed(rows)
        modes[mode] = {"windows": len(owners), "people": len(set(owners)), "rows": rows}
    if asked.output and modes:
        keep(asked.output, {"window_s": asked.window, "modes": modes})


if __name__ == "__main__":
    main()
