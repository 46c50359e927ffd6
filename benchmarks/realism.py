"""How real is the prior? The figures of docs/validation.md that `calibrate` does not print.

    python -m benchmarks.realism FOLDER/*/*.plt [--kept FOLDER] [--only SECTION] [-o FILE.json]

Of the fixes that `trailveil calibrate` predicts, one in two. Sections: mixture (an adversary who
weighs speeds and time constants by what is seen outside of the gap), set (does the most certain of
the adversaries of a release promise what is true?), pace (a steady pace against the prior),
gaussian (is there a better default that is Gaussian?). Everything that is fitted is fitted on four
fifths of the folders and judged on the rest. Some ten minutes; with --kept, predictions are kept
for the next time; with -o, how the mixture and single priors hold is written as JSON, which
docs/validation.md shows.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from benchmarks._kept import keep
from benchmarks._realism_cases import GAPS, Study, hermite, line, moving, study
from trailveil.gp.kernels import Kernel
from trailveil.privacy.priors import BUILT_IN
from trailveil.studies.calibration import PACES, LeftOut, Predictions, half_width, resampled

Floats = NDArray[np.float64]

SPEEDS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
CONSTANTS = (15.0, 60.0, 240.0)
TEMPERS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
FOLDS = 5
FEWEST = 40
LEVELS = (0.68, 0.95)
MIDDLE = half_width(0.68)


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """Predictions that are mixtures: weights, means and deviations (m, J), of each coordinate."""

    weights: Floats
    errors: Floats
    stds: Floats

    @property
    def mean_error(self) -> Floats:
        """Value less the mean of the mixture (m, 2)."""
        return np.asarray(np.einsum("mj,mjd->md", self.weights, self.errors))

    @property
    def log_densities(self) -> Floats:
        """Nats per coordinate (m,): of both together, halved, since they share a component."""
        return np.asarray(logsumexp(_logs(self.weights) + _joint(self.errors, self.stds), 1) / 2)

    def levels(self) -> Floats:
        """The level of the central interval that just holds each coordinate (m, 2)."""
        below = np.einsum("mj,mjd->md", self.weights, norm.cdf(self.errors / self.stds[..., None]))
        return np.asarray(np.abs(2 * below - 1))

    def half_widths(self, level: float = 0.68) -> Floats:
        """Half of an interval about the mean that holds `level`, (m, 2)."""
        apart = self.errors - self.mean_error[:, None, :]
        low, high = np.zeros(apart.shape[::2]), np.full(apart.shape[::2], 1e6)
        for _ in range(50):
            middle = (low + high) / 2
            upper = norm.cdf((apart + middle[:, None, :]) / self.stds[..., None])
            lower = norm.cdf((apart - middle[:, None, :]) / self.stds[..., None])
            holds = np.einsum("mj,mjd->md", self.weights, upper - lower) >= level
            low, high = np.where(holds, low, middle), np.where(holds, middle, high)
        return high


def _logs(weights: Floats) -> Floats:
    return np.log(np.maximum(weights, 1e-300))


def _joint(errors: Floats, stds: Floats) -> Floats:
    """Log density of both coordinates under each component (m, J)."""
    size = np.sum((errors / stds[..., None]) ** 2, axis=2)
    return np.asarray(-size / 2 - 2 * np.log(stds) - np.log(2 * np.pi))


def stacked(found: Sequence[Predictions], rows: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """Errors (m, J, 2), deviations (m, J) and evidence (m, J) of some fixes."""
    return (
        np.stack([one.errors[rows] for one in found], axis=1),
        np.stack([one.stds[rows] for one in found], axis=1),
        np.stack([one.evidence[rows] for one in found], axis=1),
    )


def gated(evidence: Floats, temper: float) -> Floats:
    """Weights by what is seen outside of the gap, to the power of `temper`."""
    scaled = temper * evidence
    return np.asarray(np.exp(scaled - logsumexp(scaled, axis=1, keepdims=True)))


def learned(joint: Floats, evidence: Floats) -> tuple[float, Floats]:
    """The temper, and the shares (1 + J,) of the gated mixture and of each component regardless.

    By expectation and maximisation of the likelihood of the fixes that were left out: a regime that
    is seen may have ended in the gap, and evidence of a wrong model is too sure of itself.
    """
    best: tuple[float, float, Floats] | None = None
    for temper in TEMPERS:
        own = logsumexp(_logs(gated(evidence, temper)) + joint, axis=1)
        parts = np.column_stack([own, joint])
        shares = np.full(parts.shape[1], 1 / parts.shape[1])
        for _ in range(60):
            claimed = _logs(shares) + parts
            claimed -= logsumexp(claimed, axis=1, keepdims=True)
            shares = np.exp(claimed).mean(axis=0)
        value = float(np.mean(logsumexp(_logs(shares) + parts, axis=1)))
        if best is None or value > best[0]:
            best = (value, temper, shares)
    assert best is not None
    return best[1:]


def mixture(
    grid: Sequence[Predictions],
    chosen: NDArray[np.intp],
    folds: NDArray[np.int_],
    paces: NDArray[np.str_],
) -> Mixture:
    """Of these fixes, each with what was learned at its pace on the other folds.

    Where these have fewer than FEWEST fixes of its pace, on all of their fixes.
    """
    errors, stds, evidence = stacked(grid, chosen)
    joint = _joint(errors, stds)
    weights = np.empty_like(stds)
    for fold in range(FOLDS):
        for pace in PACES:
            out = (folds[chosen] == fold) & (paces == pace)
            others = (folds[chosen] != fold) & (paces == pace)
            if others.sum() < FEWEST:
                others = folds[chosen] != fold
            if out.any():
                temper, shares = learned(joint[others], evidence[others])
                weights[out] = shares[0] * gated(evidence[out], temper) + shares[1:]
    return Mixture(weights, errors, stds)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What all sections look at."""

    study: Study
    folds: NDArray[np.int_]
    grid: dict[tuple[float, float], Predictions]
    mixtures: dict[float, Mixture]

    def rows(self, gap: float) -> NDArray[np.intp]:
        """The fixes of one gap."""
        return np.flatnonzero([case.gap == gap for case in self.study.cases])

    def paces(self, gap: float) -> NDArray[np.str_]:
        """Of each fix of a gap."""
        return np.array([self.study.cases[row].pace for row in self.rows(gap)])

    def share(self, hits: Floats, gap: float, pace: str = "") -> str:
        """A share with its interval, of the fixes of a gap, at one pace or at all."""
        groups = self.study.groups[self.rows(gap)]
        own = self.paces(gap) == pace if pace else np.ones(len(groups), dtype=np.bool_)
        if own.sum() < 20:
            return "-"
        found = resampled(hits[own].mean(axis=1)[:, None], groups[own])[0]
        if found.low is None or found.high is None:
            return f"{found.share:.0%}"
        return f"{found.share:.0%} ({found.low:.0%}-{found.high:.0%})"


def prepared(files: Sequence[Path], path: Path | None) -> Question:
    """Read, predict by the grid of speeds and time constants, and learn the mixtures."""
    own = study(files, path)
    ranks = {group: rank for rank, group in enumerate(sorted(set(own.groups.tolist())))}
    folds = np.array([ranks[group] % FOLDS for group in own.groups.tolist()])
    keys = [(speed, constant) for speed in SPEEDS for constant in CONSTANTS]
    grid = dict(zip(keys, own.of([moving(key) for key in keys]), strict=True))
    question = Question(own, folds, grid, {})
    for gap in GAPS:
        question.mixtures[gap] = mixture(
            list(grid.values()), question.rows(gap), folds, question.paces(gap)
        )
    return question


def held(asked: Question) -> list[dict[str, Any]]:
    """How the mixture and single priors hold: a row for each gap and pace, shares of coordinates.

    Nats are means of coordinates, widths and errors medians in metres.
    """
    names = ("default", "walk", "bike", "drive")
    singles = dict(zip(names, asked.study.of([BUILT_IN[n].kernel for n in names]), strict=True))
    rows = []
    for gap in GAPS:
        of_gap, own, paces = asked.rows(gap), asked.mixtures[gap], asked.paces(gap)
        ways = {
            name: (p.log_densities, 2 * norm.cdf(np.abs(p.standardised)) - 1, p.stds, p.errors)
            for name, p in ((name, whole.only(of_gap)) for name, whole in singles.items())
        }
        width = own.half_widths() / MIDDLE
        ways["mixture"] = (own.log_densities, own.levels(), width, own.mean_error)
        for pace in ("all", *PACES):
            mine = (paces == pace) | (pace == "all")
            if mine.sum() >= 20:
                about = {"gap": gap, "pace": pace}
                groups = asked.study.groups[of_gap][mine]
                rows += [
                    about | {"way": name} | _figures([x[mine] for x in way], groups)
                    for name, way in ways.items()
                ]
    return rows


def _figures(way: Sequence[Floats], groups: NDArray[np.int_]) -> dict[str, Any]:
    """Of nats, levels, widths and errors of some fixes, and the group of each."""
    nats, levels, width, errors = way
    inside = np.column_stack([(levels <= level).mean(axis=1) for level in LEVELS])
    shares = zip(LEVELS, resampled(inside, groups), strict=True)
    return {
        "fixes": len(groups),
        "people": len(set(groups.tolist())),
        "nats": float(nats.mean()),
        "width": float(np.median(width)),
        "error": float(np.median(np.abs(errors))),
    } | {f"in_{100 * level:g}": [s.share, s.low, s.high] for level, s in shares}


def section_mixture(asked: Question) -> None:
    """Print how well the mixture predicts, beside single priors."""
    print("gap  pace     way      fixes people   nats  in 68 %  in 95 %  width m  median m")
    for row in held(asked):
        print(
            f"{row['gap']:4.0f} {row['pace']:8} {row['way']:8} {row['fixes']:5} {row['people']:6} "
            f"{row['nats']:6.2f} {row['in_68'][0]:8.1%} {row['in_95'][0]:8.1%} {row['width']:8.0f} "
            f"{row['error']:9.0f}"
        )


SETS: dict[str, tuple[tuple[float, float], ...]] = {
    "1, 3, 10 m/s": ((1.0, 60.0), (3.0, 60.0), (10.0, 60.0)),
    "1 m/s, 15 s": ((1.0, 15.0),),
    "0.3 m/s": ((0.3, 60.0),),
    "0.3 m/s, 15 s": ((0.3, 15.0),),
    "0.3 m/s, 240 s": ((0.3, 240.0),),
    "0.1 m/s": ((0.1, 60.0),),
    "0.03 m/s": ((0.03, 60.0),),
}


def section_set(asked: Question) -> None:
    """Print how often truth is inside what the most certain adversary of a set is left with."""
    for gap in GAPS:
        rows = asked.rows(gap)
        own = asked.mixtures[gap]
        width = own.half_widths() / MIDDLE
        print(
            f"gap {gap:g}: |coordinate error| of the mixture's mean below 68 % of the most certain"
        )
        for name, members in SETS.items():
            least = np.min([asked.grid[key].stds[rows] for key in members], axis=0)
            inside = np.abs(own.mean_error) <= MIDDLE * least[:, None]
            surer = width < least[:, None]
            print(
                f"  {name:14} promised {np.median(least):6.0f} m: {asked.share(inside, gap)}  "
                + "  ".join(f"{p} {asked.share(inside, gap, p)}" for p in PACES)
                + f"; mixture surer in {np.mean(surer):.0%}"
            )
        quantiles = np.quantile(width, [0.05, 0.1, 0.25, 0.5, 0.75])
        print("  mixture's own deviation, quantiles 5 10 25 50 75 %:", np.round(quantiles, 1))


def section_pace(asked: Question) -> None:
    """Print the errors of who reckons with a steady pace, and of the prior's mean."""
    ways: dict[str, Callable[[LeftOut], Floats]] = {"line": line, "hermite": hermite}
    default = asked.study.of([BUILT_IN["default"].kernel])[0]
    print("gap  way  pace: distance in the plane, median and 68 %, metres")
    for gap in GAPS:
        rows, paces = asked.rows(gap), asked.paces(gap)
        cases = [asked.study.cases[row] for row in rows]
        errors = {
            name: np.array([case.value - way(case) for case in cases]) for name, way in ways.items()
        }
        errors["default"] = default.errors[rows]
        errors["mixture"] = asked.mixtures[gap].mean_error
        for name, found in errors.items():
            away = np.hypot(*found.T)
            parts = [
                f"{pace} {np.median(own):.0f}/{np.quantile(own, 0.68):.0f}"
                for pace in PACES
                if len(own := away[paces == pace]) >= 20
            ]
            print(
                f"{gap:4.0f} {name:8} {np.median(away):6.0f} {np.quantile(away, 0.68):6.0f}  "
                + "  ".join(parts)
            )


CANDIDATES: dict[str, Kernel] = {
    **{f"{s:g} m/s, {c:g} s": moving((s, c)) for s in SPEEDS[3:6] for c in CONSTANTS},
    **{
        f"{s:g} m/s, {c:g} s": moving((s, c)) for s, c in ((2, 60), (4.5, 60), (4.5, 120), (6, 120))
    },
    **{
        f"{a:g} m/s, {b:g} s + {c:g} m/s, {d:g} s": moving((a, b), (c, d))
        for a, b in ((1.0, 15.0), (2.0, 30.0))
        for c, d in ((2.0, 300.0), (4.0, 300.0), (6.0, 300.0), (8.0, 600.0))
    },
    "drive": BUILT_IN["drive"].kernel,
}


def section_gaussian(asked: Question) -> None:
    """Print how each Gaussian candidate predicts, and which the other folds would have chosen."""
    names = list(CANDIDATES)
    found = dict(zip(names, asked.study.of([CANDIDATES[n] for n in names]), strict=True))
    cells = {gap: asked.rows(gap) for gap in GAPS}
    means = np.empty((len(names), len(GAPS), FOLDS))
    print("candidate: for each gap nats mean/median, in 68 %, in 95 %, promised m; nats over gaps")
    for i, name in enumerate(names):
        words = []
        for k, (gap, rows) in enumerate(cells.items()):
            one = found[name].only(rows)
            nats, size = one.log_densities.mean(axis=1), np.abs(one.standardised)
            for fold in range(FOLDS):
                means[i, k, fold] = nats[asked.folds[rows] == fold].mean()
            words.append(
                f"{gap:g}: {nats.mean():.2f}/{np.median(nats):.2f} {np.mean(size < MIDDLE):.0%} "
                f"{np.mean(size < half_width(0.95)):.0%} {np.median(one.stds):.0f}"
            )
        print(f"{name:28} {means[i].mean():7.3f} | " + " | ".join(words))
    for fold in range(FOLDS):
        others = means[:, :, np.arange(FOLDS) != fold].mean(axis=(1, 2))
        best = int(np.argmax(others))
        own, default = (
            means[best, :, fold].mean(),
            means[names.index("3 m/s, 60 s"), :, fold].mean(),
        )
        print(
            f"fold {fold}: the others choose {names[best]}: {own:.3f} (3 m/s, 60 s {default:.3f})"
        )


SECTIONS = {
    "mixture": section_mixture,
    "set": section_set,
    "pace": section_pace,
    "gaussian": section_gaussian,
}


def main() -> None:
    """Parse, predict, and print the sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--only", choices=SECTIONS, action="append")
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    if not asked.files:
        print("Needs files of GeoLife, which are not part of this repository: name them.")
        return
    question = prepared(asked.files, asked.kept)
    if asked.output:
        keep(asked.output, {"rows": held(question)})
    for name in asked.only or SECTIONS:
        print(f"== {name}")
        SECTIONS[name](question)


if __name__ == "__main__":
    main()
