"""What a calibration found: as text, as an object for programs, and as a picture."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from trailveil.errors import said
from trailveil.plots import CoverageCurve, CoveragePanel, coverages
from trailveil.privacy.priors import PriorSpec, to_json
from trailveil.report.parts import count_of
from trailveil.studies.calibrating import ALL, ENOUGH_GROUPS, Calibration, CoverageCell, Judged
from trailveil.studies.calibration import CURVE, FAR, LEVELS, PACES

_GROUPS = {"folder": "folders (people)", "file": "recordings", "window": "windows"}
_MIDDLE = 0.68


def calibration_record(calibration: Calibration) -> dict[str, Any]:
    """The object that is printed with --json."""
    return {
        "recordings": calibration.recordings,
        "windows": calibration.windows,
        "windows_without_prediction": calibration.short,
        "windows_too_wide": calibration.wide,
        "groups": calibration.groups,
        "grouped_by": calibration.by,
        "paces": PACES,
        "far": FAR,
        "curve_levels": list(CURVE),
        "judged": [_judged(judged) for judged in calibration.judged],
    }


def _judged(judged: Judged) -> dict[str, Any]:
    return {
        "name": judged.name,
        "fitted": judged.fitted,
        "terms": [
            json.loads(to_json(PriorSpec(judged.name, kernel, "metres", None)))["terms"]
            for kernel in judged.kernels
        ],
        "cells": [_cell(cell) for cell in judged.cells],
    }


def _cell(cell: CoverageCell) -> dict[str, Any]:
    whole = asdict(cell.coverage)
    inside = {f"{level:g}": whole["inside"][level] for level in LEVELS}
    return {"gap": cell.gap, "pace": cell.pace, **whole, "inside": inside}


def calibration_text(calibration: Calibration) -> list[str]:
    """The lines that are printed: a table for each prior."""
    groups = _GROUPS[calibration.by]
    lines = [
        f"{count_of(calibration.recordings, 'recording')}, "
        f"{count_of(calibration.windows, 'window')} ({calibration.short} without a fix to "
        f"predict), {calibration.groups} {groups}.",
        "Each row: fixes predicted from all that is further away than the gap, on both sides; "
        "shares of",
        f"coordinates inside the interval; in brackets 95 % confidence, from resampling {groups}.",
    ]
    if calibration.groups < ENOUGH_GROUPS:
        lines.append(f"Warning: of {calibration.groups} {groups}, such intervals are narrow.")
    if calibration.wide:
        lines.append(f"Left out {count_of(calibration.wide, 'window')} too wide for local metres.")
    met = {cell.pace for prior in calibration.judged for cell in prior.cells}
    paces = [pace for pace in PACES if pace in met]
    for judged in calibration.judged:
        lines += ["", _name(judged), _header(paces), *_rows(judged, paces)]
    return lines


def _name(judged: Judged) -> str:
    return f"{judged.name}, fitted on the others" if judged.fitted else judged.name


def _header(paces: Sequence[str]) -> str:
    return (
        "  gap s fixes  50 %  68 %             95 % >3 sd    nats promised    rms median"
        " | 68 %:" + "".join(f"{pace:>8}" for pace in paces)
    )


def _rows(judged: Judged, paces: Sequence[str]) -> list[str]:
    by = {(cell.gap, cell.pace): cell.coverage for cell in judged.cells}
    lines = []
    for gap in sorted({gap for gap, _ in by}):
        coverage = by[gap, ALL]
        half, middle, most = (coverage.inside[level] for level in LEVELS)
        between = "" if middle.low is None else f"({middle.low:.0%}-{middle.high:.0%})"
        line = (
            f"{gap:7g} {coverage.predictions:5} {half.share:5.0%} {middle.share:5.0%} {between:10} "
            f"{most.share:5.0%} {coverage.far.share:5.1%} {coverage.log_density_median:7.2f} "
            f"{coverage.promised:6.0f} m {coverage.rms:4.0f} m {coverage.median:4.0f} m |      "
        )
        for pace in paces:
            of_pace = by.get((gap, pace))
            line += f"{of_pace.inside[_MIDDLE].share:8.0%}" if of_pace else f"{'-':>8}"
        lines.append(line)
    return lines


def panels(calibration: Calibration, suffix: str) -> bytes:
    """The picture: what held against what was promised, a row a prior, a panel a pace."""
    every = [cell for judged in calibration.judged for cell in judged.cells]
    gaps = sorted({cell.gap for cell in every})
    paces = [pace for pace in (ALL, *PACES) if any(cell.pace == pace for cell in every)]
    rows = [
        (f"{judged.name} (fitted)" if judged.fitted else judged.name, _row(judged, gaps, paces))
        for judged in calibration.judged
    ]
    title = "Intervals: held (up) against promised (across), by pace (predictions)"
    pictures = dict(coverages("coverage", rows, title))
    return pictures[f"coverage{suffix}"]


def _row(judged: Judged, gaps: list[float], paces: Sequence[str]) -> list[CoveragePanel]:
    panels = []
    for pace in paces:
        cells = [cell for cell in judged.cells if cell.pace == pace]
        count = sum(cell.coverage.predictions for cell in cells)
        curves = [_curve(cell, gaps) for cell in cells]
        panels.append(CoveragePanel(f"{pace} ({count:,})", curves))
    return panels


def _curve(cell: CoverageCell, gaps: list[float]) -> CoverageCurve:
    middle = cell.coverage.inside[_MIDDLE]
    bar = None
    if middle.low is not None and middle.high is not None:
        bar = (_MIDDLE, middle.low, middle.high)
    return CoverageCurve(
        "one fix" if cell.gap == 0 else f"{said(cell.gap)} s",
        np.array(CURVE),
        np.array(cell.coverage.curve),
        gaps.index(cell.gap) / max(len(gaps) - 1, 1),
        bar,
    )
