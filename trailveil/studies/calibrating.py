"""From recordings to how well priors predict them: read, cut, leave out, fit on others, judge."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import numpy as np

from trailveil.errors import InvalidValue, NumericalError, Refused, TrailveilError, UnreadableInput
from trailveil.files.source import load, named
from trailveil.gp.kernels import Constant, Kernel
from trailveil.privacy.priors import PriorSpec
from trailveil.studies.calibration import (
    PACES,
    Coverage,
    LeftOut,
    Predictions,
    coverage,
    left_out,
    predictions,
)
from trailveil.studies.datasets.fitting import METRES, fit_prior, motion_family
from trailveil.studies.datasets.geolife import labelled_traces
from trailveil.studies.datasets.stretches import Stretches, stretches
from trailveil.studies.datasets.workers import Watch, mapped, unwatched
from trailveil.studies.fit import cut
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.projection import EXTENT, MICRO, placed
from trailveil.traces.trace import Trace

GAPS: Final = (0.0, 30.0, 75.0, 150.0, 300.0, 600.0)
"""Seconds left out on each side, where nothing else is asked for; 0: one fix."""

WINDOW: Final = 3600.0
"""Seconds of a window, where nothing else is asked for: no prediction reaches over its ends."""

FITTED: Final = ("rbf", "matern12", "matern32", "matern52", "integrated-ou")
"""The kernels that are fitted on other recordings than those they are judged on."""

ALL: Final = "all"
"""The pace that is every pace."""

By = Literal["folder", "file", "window"]
"""What is held together: of people (a folder each), recordings, or windows of one recording."""

FOLDS: Final = 5
ENOUGH_GROUPS: Final = 10
"""Below, intervals from resampling groups are narrower than they should be."""

_FOLDERS = 5  # that hold files, from which on a folder is taken for a person
_FIT_WINDOW, _MOST_FITTED, _STARTS = 600.0, 100, 2
_PAUSE = 1800.0  # seconds that end a window


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """Traces, with the group that each is held together with, and what these groups are.

    twice: files left out because another has the same content. unreadable: one line each.
    """

    traces: tuple[Trace, ...]
    groups: tuple[int, ...]
    by: By
    twice: int = 0
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """The predictions of a prior for one gap in seconds at one pace, or at ALL."""

    gap: float
    pace: str
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of one prior. fitted: on the other groups, by the name of its kernel."""

    name: str
    fitted: bool
    kernels: tuple[Kernel, ...]
    cells: tuple[CoverageCell, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Of all priors. windows, short, wide: of the recordings, see `Cases`."""

    recordings: int
    windows: int
    short: int
    wide: int
    groups: int
    by: By
    judged: tuple[Judged, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Cases:
    """Fixes to predict, with the group of each, and the windows they are from.

    short: windows without a fix to predict. wide: windows left out, too wide for local metres.
    """

    cases: tuple[LeftOut, ...]
    groups: tuple[int, ...]
    windows: tuple[Trace, ...]
    window_groups: tuple[int, ...]
    short: int
    wide: int
    by: By


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    kernel: Kernel
    cases: Sequence[LeftOut]


def recorded(files: Sequence[Path], watch: Watch = unwatched) -> Recorded:
    """The recordings of files, held together by folder where there are many, else by file.

    Only lengths of time matter here, so any zone will do. A file of the same content as an earlier
    one does not count. What cannot be read is left out, with a line that says why.
    """
    traces, owners, lines = [], [], []
    digests: set[bytes] = set()
    twice = 0
    for path in watch(files, len(files), "Reading"):
        try:
            digest = sha256(load(path)).digest()
            recording = read(path)
            trace = clean(recording, assume_utc=True)[0]
        except TrailveilError as error:
            place = named(path)
            lines.append(str(error) if place in str(error) else f"{place}: {error}")
            continue
        if digest in digests:
            twice += 1
            continue
        digests.add(digest)
        traces.append(trace)
        owners.append(path.parent.parent if path.parent.name == "Trajectory" else path.parent)
    by_folder = len(set(owners)) >= _FOLDERS
    numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
    groups = [numbers[owner] for owner in owners] if by_folder else range(len(traces))
    return Recorded(
        tuple(traces), tuple(groups), "folder" if by_folder else "file", twice, tuple(lines)
    )


def recorded_as(folder: Path, mode: str) -> Recorded:
    """What the users of a GeoLife folder labelled with a mode. Raises as `labelled_traces`."""
    labelled = labelled_traces(folder, mode)
    users = {user: number for number, user in enumerate(sorted({user for user, _ in labelled}))}
    return Recorded(
        tuple(t for _, t in labelled), tuple(users[user] for user, _ in labelled), "folder"
    )


def cases_of(
    recorded: Recorded,
    gaps: Sequence[float] = GAPS,
    window: float = WINDOW,
    watch: Watch = unwatched,
) -> Cases:
    """The fixes to predict, in local metres. A single recording is held together by window.

    Raises UnreadableInput where there is none.
    """
    pieces = [
        (piece, group)
        for trace, group in zip(recorded.traces, recorded.groups, strict=True)
        for piece in _pieces(trace, window)
    ]
    single = len(set(recorded.groups)) == 1
    if single:
        pieces = [(piece, number) for number, (piece, _) in enumerate(pieces)]
    cases: list[LeftOut] = []
    groups: list[int] = []
    used: list[tuple[Trace, int]] = []
    short = wide = 0
    for piece, group in watch(pieces, len(pieces), "Leaving out"):
        try:
            metres = _metres(piece)
        except Refused:  # a flight
            wide += 1
            continue
        of_piece = left_out(piece.seconds, metres, gaps)
        short += not of_piece
        cases += of_piece
        groups += [group] * len(of_piece)
        used.append((piece, group))
    if not cases:
        raise UnreadableInput(
            "a calibration must have a fix with others before and after it within the gap and a "
            f"minute, in a window of {window:g} s, got none in {len(recorded.traces)} recordings: "
            "give longer recordings, a smaller gap, or another --window"
        )
    return Cases(
        tuple(cases),
        tuple(groups),
        tuple(piece for piece, _ in used),
        tuple(group for _, group in used),
        short,
        wide,
        "window" if single else recorded.by,
    )


def calibrate(
    recorded: Recorded,
    priors: Sequence[PriorSpec],
    kernels: Sequence[str] = FITTED,
    *,
    gaps: Sequence[float] = GAPS,
    window: float = WINDOW,
    watch: Watch = unwatched,
    workers: int | None = None,
) -> Calibration:
    """Judge priors as they are, and kernels with parameters fitted on the other groups.

    Raises InvalidValue for a prior that is not in metres, and for kernels to be fitted where there
    is but one group; UnreadableInput where there is nothing to predict or nothing to fit to.
    """
    for spec in priors:
        if spec.unit != METRES.unit:
            raise InvalidValue(
                f"a prior of traces must be in {METRES.unit}, got one in {spec.unit}: {spec.name}"
            )
    cases = cases_of(recorded, gaps, window, watch)
    count = len(set(cases.groups))
    fold_of = {group: rank % FOLDS for rank, group in enumerate(sorted(set(cases.groups)))}
    folds = np.array([fold_of[group] for group in cases.groups])
    candidates: list[tuple[str, tuple[Kernel, ...]]] = [
        (spec.name, (spec.kernel,)) for spec in priors
    ]
    for name in kernels:
        if count < 2:
            raise InvalidValue(
                "kernels must be fitted on other recordings than those they are judged on, got one "
                "window in all: give more recordings, or --kernel none"
            )
        candidates.append((name, _fitted(cases, name, fold_of, watch, workers)))
    judged = []
    for name, candidate in candidates:
        predictions_of = _predicted(candidate, cases, folds, name, watch, workers)
        fitted = len(candidate) > 1
        judged.append(Judged(name, fitted, candidate, _cells(cases, predictions_of)))
    return Calibration(
        recordings=len(recorded.traces),
        windows=len(cases.windows),
        short=cases.short,
        wide=cases.wide,
        groups=count,
        by=cases.by,
        judged=tuple(judged),
    )


def _pieces(trace: Trace, window: float) -> list[Trace]:
    """Windows of a trace, none of which reaches over the end of a segment or a long pause."""
    pieces = []
    for part in np.unique(trace.segments):
        rows_of_part = np.flatnonzero(trace.segments == part)
        for rows in cut(trace.seconds[rows_of_part], window, max(2, len(rows_of_part)), _PAUSE):
            mask = np.zeros(len(trace), dtype=np.bool_)
            mask[rows_of_part[rows]] = True
            pieces.append(trace.only(mask))
    return pieces


def _metres(trace: Trace) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    lattice = placed(trace.positions, furthest=EXTENT)[1]
    return np.asarray((lattice - lattice[0]) / MICRO)


def _fitted(
    cases: Cases, name: str, fold_of: dict[int, int], watch: Watch, workers: int | None
) -> tuple[Kernel, ...]:
    """For each fold, the medians over windows of the groups of the other folds."""
    windows = _thinned(stretches(cases.windows, _FIT_WINDOW), cases.window_groups)
    fits = fit_prior(windows, name, kernel=name, starts=_STARTS, watch=watch, workers=workers).fits
    folds = np.array([fold_of.get(cases.window_groups[s], -1) for s in windows.sources])
    kernels = []
    for fold in range(min(FOLDS, len(fold_of))):
        values = [
            fit.values for fit, fold_of_fit in zip(fits, folds, strict=True) if fold_of_fit != fold
        ]
        if not values:
            raise UnreadableInput(
                "a fit must have a window that is not judged with it, got none: give more "
                "recordings, or --kernel none"
            )
        middle = np.median(values, axis=0).tolist()
        kernels.append(motion_family(name).build(middle) + Constant(METRES.level_std))
    return tuple(kernels)


def _thinned(windows: Stretches, groups: Sequence[int]) -> Stretches:
    """At most so many windows, in turn from each group, evenly from what it has."""
    rows_of_group: dict[int, list[int]] = {}
    for row, source in enumerate(windows.sources):
        rows_of_group.setdefault(groups[source], []).append(row)
    ranked = []
    for rows in rows_of_group.values():
        order = np.argsort([(rank * 0.618034) % 1 for rank in range(len(rows))], kind="stable")
        ranked += list(enumerate(rows[i] for i in order))
    chosen = sorted(row for _, row in sorted(ranked)[:_MOST_FITTED])
    return replace(
        windows,
        series=tuple(windows.series[i] for i in chosen),
        sources=tuple(windows.sources[i] for i in chosen),
    )


_CHUNK = 200  # fixes of one step of the progress bar


def _predicted(
    kernels: Sequence[Kernel],
    cases: Cases,
    folds: np.ndarray[tuple[int], np.dtype[np.int_]],
    name: str,
    watch: Watch,
    workers: int | None,
) -> Predictions:
    """Of every fix, by the kernel of its fold."""
    tasks, order = [], []
    for fold, kernel in enumerate(kernels):
        rows = np.arange(len(folds)) if len(kernels) == 1 else np.flatnonzero(folds == fold)
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            tasks.append(_Task(kernel, [cases.cases[row] for row in chunk]))
            order.append(chunk)
    try:
        predictions_made = mapped(
            _run, tasks, label=f"Predicting, {name}", watch=watch, workers=workers
        )
    except NumericalError as error:
        raise NumericalError(f"{error}: the prior {name}; add measurement noise to it") from None
    whole = Predictions(
        np.concatenate([predictions.errors for predictions in predictions_made]),
        np.concatenate([predictions.stds for predictions in predictions_made]),
        np.concatenate([predictions.evidence for predictions in predictions_made]),
    )
    return whole.only(np.argsort(np.concatenate(order)))


def _run(task: _Task) -> Predictions:
    return predictions(task.kernel, task.cases)


def _cells(cases: Cases, predictions: Predictions) -> tuple[CoverageCell, ...]:
    """One for each gap, of all paces and of each; none where there is nothing."""
    gaps = np.array([case.gap for case in cases.cases])
    paces = np.array([case.pace for case in cases.cases])
    groups = np.array(cases.groups)
    cells = []
    for gap in np.unique(gaps).tolist():
        for pace in (ALL, *PACES):
            rows = (gaps == gap) & (np.ones(len(gaps), bool) if pace == ALL else paces == pace)
            if np.any(rows):
                cells.append(
                    CoverageCell(gap, pace, coverage(predictions.only(rows), groups[rows]))
                )
    return tuple(cells)
