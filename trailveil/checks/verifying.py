"""Whether a released file is what its private report says, of a recording: cut, kept and moved.

The curves of the noise are evaluated anew from the report: no code of the designer is used. What is
drawn at random is tested: of true releases a millionth fails each test.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, gammaincinv

from trailveil.checks.scan import files, further
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.promises import Check
from trailveil.traces.activities import called
from trailveil.traces.grid import position_grid
from trailveil.traces.projection import MICRO, placed
from trailveil.traces.retiming import Retiming
from trailveil.traces.trace import NANOSECONDS, Recording, Trace

FALSE_ALARM = 1e-6
"""How likely each test of the noise fails though nothing is wrong."""

# Degrees by which a format may write a place otherwise: half a semicircle, as FIT has them.
_WRITTEN = 5e-8
# Seconds: times of reports are rounded numbers.
_EDGE = 1e-6
# Metres in a degree, at most. Noise is tested along directions in which it is so many times as
# large as what is added besides, by rounding for one.
_DEGREE, _LARGER = 111_700.0, 10.0


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A protected part. before, after: (m,) seconds to its window. cut: of that, or None."""

    before: FloatArray
    after: FloatArray
    cut: float | None
    sides: int
    design: dict[str, Any] | None

    @property
    def away(self) -> FloatArray:
        """Seconds from the window (m,), 0 within."""
        return np.asarray(np.maximum(self.before, self.after))

    @property
    def silent(self) -> NDArray[np.bool_]:
        """What is not released (m,)."""
        return np.asarray(self.away <= (-1.0 if self.cut is None else self.cut))

    @property
    def at_edge(self) -> NDArray[np.bool_]:
        """What is so near to the edge of the cut (m,) that rounding decides on which side it is."""
        return np.abs(self.away - (-1.0 if self.cut is None else self.cut)) < _EDGE

    @property
    def has_sides(self) -> bool:
        """Whether fixes are on no more sides than the promise reckons with."""
        sides = self.sides if self.design is None else min(self.sides, self.design["sides"])
        return sides > 1 or not (np.any(self.before > 0) and np.any(self.after > 0))

    def columns(self) -> FloatArray:
        """The factor (m, r) of the noise at the fixes, metres."""
        if self.design is None:
            return np.zeros((self.away.size, 0))
        knots = np.array(self.design["knots"], dtype=np.float64)
        values = _curves(knots, self.away)
        even = values @ np.array(self.design["even"])
        if self.design["sides"] == 1:
            return np.asarray(even)
        side = np.where(self.before > self.after, -1.0, 1.0)[:, None]
        return np.hstack([even, side * (values[:, 1:] @ np.array(self.design["odd"]))])


def _curves(knots: FloatArray, away: FloatArray) -> FloatArray:
    """Cubic Hermite curves at seconds outward (m, size): of value and slope at each knot.

    Without the slope at the first knot, and all of the last: these are 0.
    """
    piece = np.clip(np.searchsorted(knots, away, side="right") - 1, 0, knots.size - 2)
    width = knots[piece + 1] - knots[piece]
    z = np.minimum((away - knots[piece]) / width, 1.0)
    values = np.zeros((away.size, 2 * knots.size))
    rows = np.arange(away.size)
    values[rows, 2 * piece] = 1 - 3 * z**2 + 2 * z**3
    values[rows, 2 * piece + 1] = width * (z - 2 * z**2 + z**3)
    values[rows, 2 * piece + 2] = 3 * z**2 - 2 * z**3
    values[rows, 2 * piece + 3] = width * (z**3 - z**2)
    return np.asarray(np.delete(values, [1, 2 * knots.size - 2, 2 * knots.size - 1], axis=1))


def compared(report: dict[str, Any], original: Trace, released: Recording) -> Iterator[Check]:
    """Check a released file, as it was read, against its recording and its private report.

    Raises as a report that is none makes it: ArithmeticError, LookupError, TypeError, ValueError.
    """
    whole = _parts(report, original.times)
    cut, edge = np.zeros((2, len(original)), dtype=np.bool_)
    for part in whole:
        cut |= part.silent
        edge |= part.at_edge
    yield from _amounts(report, original, cut & ~edge, cut | edge)
    matched, checks = of_fixes(report, original, released, cut, edge)
    yield from checks
    rows, count = np.unique(matched[matched >= 0]), int(released.times.size)
    for number, (part, said) in enumerate(zip(whole, report["secrets"], strict=True), 1):
        if part.cut is not None:
            inside = bool(np.any(part.away[rows] < part.cut))
            yield Check(f"part {number}: nothing that is cut is in the release", not inside)
        yield _counted(f"part {number}", said, original.times, cut, edge)
    if rows.size != count or not count:
        return
    parts = _parts(report, original.times[matched])
    for number, part in enumerate(parts, 1):
        yield Check(f"part {number}: it has the sides that it is reckoned to have", part.has_sides)
    yield from _places(report, parts, original, matched, released.positions)


def of_fixes(
    report: dict[str, Any],
    original: Trace,
    released: Recording,
    cut: NDArray[np.bool_],
    edge: NDArray[np.bool_],
) -> tuple[NDArray[np.intp], list[Check]]:
    """Which recorded fix each released one is (m,), -1 for none, and whether these are all.

    cut: what is not released (n,), but for what is at an edge, which may be.
    """
    matched, due = _found(report, original.times, released, cut)
    rows, count = np.unique(matched[matched >= 0]), int(released.times.size)
    stated = report["mechanism"]["released_fixes"] - report["times"]["left_out"]
    missing = int(np.sum(~edge[np.setdiff1d(due, rows)]))
    return matched, [
        *_of_recording(report, original, released),
        Check("each released fix is of a recorded time, once", rows.size == count),
        Check(f"the release has the {stated} fixes that the report says", count == stated),
        Check(
            f"every fix that no listed part cuts is in the release ({missing} are not)", not missing
        ),
    ]


def step_width(step: float) -> float:
    """Metres that rounding to a grid of a step (degrees) moves a coordinate, at most."""
    return step * _DEGREE / 2


def beyond_fixes(
    report: dict[str, Any],
    original: tuple[str, bytes],
    released: tuple[str, bytes],
    trace: Trace,
    fixes: Recording,
) -> Iterator[Check]:
    """Check that a released file holds its fixes, the fields that the report lists, and no more.

    original, released: each a name and the content. trace: of the former, cleaned. fixes: what the
    reader finds in the latter. Raises as `compared` does, and UnreadableInput as `scan.files`.
    """
    keep = [entry["field"] for entry in report["kept"]]
    cut = np.zeros(len(trace), dtype=np.bool_)
    for part in _parts(report, trace.times):
        cut |= part.silent | (part.away == 0)
    leaks = further(*files(original, released), trace.positions, cut, fixes, keep)
    yield Check("the file holds its fixes, the listed fields and nothing else", not leaks)
    for leak in leaks:
        yield Check(f"the file is free of {leak.kind.value} ({leak.count}, at {leak.where})", False)


def _amounts(
    report: dict[str, Any], original: Trace, least: NDArray[np.bool_], most: NDArray[np.bool_]
) -> Iterator[Check]:
    """Whether as much is withheld as is said. least, most: what is cut (n,), but for rounding."""
    said = report["mechanism"]
    steps = np.hypot(*(np.diff(placed(original.positions)[1], axis=0) / MICRO).T)
    minutes = np.diff(original.times) / NANOSECONDS / 60
    both = [
        {"fixes": float(cut.sum()), "min": _lost(minutes, cut), "km": _lost(steps / 1000, cut)}
        for cut in (least, most)
    ]
    for unit, low in both[0].items():
        amount = said[f"withheld_{unit}"]
        holds = low - 1e-6 <= amount <= both[1][unit] + 1e-6
        yield Check(f"{amount:.6g} {unit} are withheld", holds)
    total = said["released_fixes"] + said["withheld_fixes"]
    due = [_sizes(report, original.times[~cut]) for cut in (least, most)]
    stated = [said[name] for name in ("rms_m", "largest_rms_m", "largest_99_m")]
    holds = any(np.allclose(stated, amount, rtol=1e-6, atol=1e-9) for amount in due)
    yield Check(
        f"the noise is {said['rms_m']:.4g} m, and {said['largest_rms_m']:.4g} m at most", holds
    )
    whole = total == report["recording"]["fixes"] == len(original)
    yield Check(f"what is released and withheld is the recording, {len(original)} fixes", whole)


def _sizes(report: dict[str, Any], times: NDArray[np.int64]) -> list[float]:
    """Metres that fixes at times (m,) are moved: root mean square, the largest, and 99 % of it."""
    factors = [part.columns() for part in _parts(report, times)]
    variances = np.sum(np.hstack(factors) ** 2, axis=1)
    variances[variances > 0] += float(report["mechanism"]["independent_m"]) ** 2
    most = float(np.max(variances, initial=0.0)) ** 0.5
    mean = float(np.sum(variances)) / max(variances.size, 1)
    return [(2 * mean) ** 0.5, 2**0.5 * most, (-2 * np.log(0.01)) ** 0.5 * most]


def _lost(values: FloatArray, cut: NDArray[np.bool_]) -> float:
    """The sum of what each step has (n - 1,), but for those between two fixes that are released."""
    return float(np.sum(values[cut[1:] | cut[:-1]]))


def _of_recording(report: dict[str, Any], original: Trace, released: Recording) -> Iterator[Check]:
    """Whether times leave, the grid is the recording's, and the activity is in it, as is said."""
    dropped = bool(np.all(np.isnat(released.times)))
    holds = report["times"]["dropped"] == dropped
    yield Check(f"the release has {'no ' if dropped else ''}times, as is said", holds)
    step, target = float(report["mechanism"]["grid_deg"]), report["target"]
    same = step == position_grid(original.positions).released_step
    yield Check(f"the grid of the recording is {step:g} degrees", same)
    stated = original.activity
    name = called(target["floor_m_s"], target["floor_middle_m_s"], stated) or None
    same = (target["activity"], target["activity_in_file"]) == (name, name in {stated} - {""})
    yield Check("it says what the recording states of its activity", same)


def _counted(
    name: str,
    said: dict[str, Any],
    times: NDArray[np.int64],
    cut: NDArray[np.bool_],
    edge: NDArray[np.bool_],
) -> Check:
    """Whether as many fixes are in a part, and withheld of it, as the report says."""
    inside = (times >= said["begin_ns"]) & (times <= said["end_ns"])
    fixes, most = int(inside.sum()), int((inside & (cut | edge)).sum())
    least = int((inside & cut & ~edge).sum())
    counted = said["fixes"] == fixes and least <= said["withheld"] <= most
    return Check(f"{name}: it holds {said['fixes']} fixes, {said['withheld']} withheld", counted)


def _found(
    report: dict[str, Any],
    times: NDArray[np.int64],
    released: Recording,
    cut: NDArray[np.bool_],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which recorded fix each released one is, by its time (m,), -1 for none; and which must be.

    Of several at one rounded time it is the first, and one that is not cut where there is any.
    """
    if report["times"].get("dropped"):  # the order alone says which is which
        rows = np.flatnonzero(~cut)
        unlike = np.full(len(released), -1, dtype=np.intp)
        return rows if rows.size == len(released) else unlike, rows
    retiming = Retiming(report["times"]["rounded_to_s"], bool(report["times"]["shifted"]))
    order = np.concatenate([np.flatnonzero(~cut), np.flatnonzero(cut)])
    # Shifted times count from the first that is released.
    new, first = np.unique(retiming.times(times[order]), return_index=True)
    moments = released.times.astype("datetime64[ns]").astype(np.int64)
    at = np.minimum(np.searchsorted(new, moments), new.size - 1)
    indices = np.where(new[at] == moments, order[first[at]], -1)
    return indices, order[first][~cut[order[first]]]


def _places(
    report: dict[str, Any],
    parts: list[_Part],
    original: Trace,
    rows: NDArray[np.intp],
    positions: FloatArray,
) -> Iterator[Check]:
    """Check released positions (m, 2), in degrees, of recorded fixes (m,)."""
    frame, lattice = placed(original.positions)
    off = positions - original.positions[rows]
    off[:, 1] = (off[:, 1] + 180) % 360 - 180
    step = float(report["mechanism"]["grid_deg"])
    near = _WRITTEN if report["mechanism"]["name"] == "cut" else max(step, 1 / MICRO)
    noise = np.hstack([np.zeros((rows.size, 0)), *(part.columns() for part in parts)])
    still = ~np.any(noise, axis=1)
    same = bool(np.all(np.abs(off[still]) <= near))
    yield Check(f"all {int(still.sum())} fixes outside of cuts and noise are as recorded", same)
    independent = float(report["mechanism"]["independent_m"])
    if np.all(still):
        yield Check("it claims no independent noise, as no fix is moved", independent == 0)
    else:
        whole = np.abs(positions / step - np.round(positions / step)) * step <= _WRITTEN
        yield Check("the released positions are on the grid", bool(np.all(whole)))
        moved = (frame.to_lattice(positions) - lattice[rows])[~still] / MICRO
        yield from plausible_draw(
            noise[~still], moved, float(np.hypot(step_width(step) / 3**0.5, independent))
        )
        yield as_large(noise[~still], moved, step_width(step), independent)


def _parts(report: dict[str, Any], times: NDArray[np.int64]) -> list[_Part]:
    """The protected parts, with where released fixes (m,) are from each."""
    around = report["target"]["uncertain_s"]
    designs = report["designs"] or [None] * len(report["secrets"])
    parts = []
    for secret, design in zip(report["secrets"], designs, strict=True):
        before = np.maximum((secret["begin_ns"] - times) / NANOSECONDS - around, 0.0)
        after = np.maximum((times - secret["end_ns"]) / NANOSECONDS - around, 0.0)
        cut = None if secret["cut_s"] is None else float(secret["cut_s"] - around)
        parts.append(_Part(before, after, cut, secret["sides"], design))
    return parts


def plausible_draw(factor: FloatArray, moved: FloatArray, width: float) -> Iterator[Check]:
    """Whether displacements (m, 2) are a plausible draw of noise.

    factor: (m, r). width: the deviation of all else that moves a fix, by itself. Along the
    directions in which the noise is large, squares in units of what is expected are chi-square;
    what is left of each fix is about as large as `width`.
    """
    axes, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    large = sizes > _LARGER * width
    along = axes.T @ moved
    squares = along[large] ** 2 / (sizes[large, None] ** 2 + width**2)
    freedom, total = squares.size, float(np.sum(squares))
    # Beside a cut the noise may be small everywhere: then no direction is left to judge it by.
    tails = (gammainc(freedom / 2, total / 2), gammaincc(freedom / 2, total / 2))
    chance = 2 * min(tails) if freedom else 1.0
    yield Check(
        f"the noise is a plausible draw (chi-square {total:.1f} of {freedom} degrees of freedom, "
        f"which {min(chance, 1.0):.2g} of draws are as far from)",
        bool(chance > FALSE_ALARM),
    )
    residual = np.abs(moved - axes[:, large] @ along[large])
    small = np.sum((axes[:, ~large] * sizes[~large]) ** 2, axis=1)
    most = np.sqrt(2 * np.log(2 * residual.size / FALSE_ALARM) * (width**2 + small))
    what = f"no fix is moved beside the noise (the most is {float(np.max(residual)):.2f} m)"
    yield Check(what, bool(np.all(residual <= most[:, None])))


def as_large(factor: FloatArray, moved: FloatArray, rounding: float, independent: float) -> Check:
    """Whether displacements (m, 2) have independent noise of at least such a deviation.

    factor: (m, r). rounding: the most that it moves a coordinate. In the directions (fixed by the
    design) in which the noise is small, what is drawn has at least the variance of independent
    noise: its squares are at least chi-square. Rounding takes no more than its length from that.
    """
    axes, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    large = axes[:, sizes > independent / _LARGER]
    squares = float(np.sum((moved - large @ (large.T @ moved)) ** 2))
    freedom = moved.size - 2 * large.shape[1]
    least = independent * (2 * gammaincinv(freedom / 2, FALSE_ALARM)) ** 0.5 if freedom else 0.0
    return Check(
        f"each fix is moved by independent noise of {independent:g} m besides",
        bool(squares**0.5 + rounding * moved.size**0.5 >= least) and independent >= 0,
    )
