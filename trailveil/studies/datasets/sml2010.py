"""SML2010: temperatures of a monitored house, and effective length scales by the paper's recipe.

SML2010 (Zamora-Martinez and others 2014, Energy and Buildings 83; UCI repository) holds a row every
15 minutes. Columns are numbered in the header, which has one token too many ("#"), so that a reader
that takes names by position is off: the paper's code asks for 3:Temperature_Comedor_Sensor, the
room, and gets the fifth column, 5:Weather_Temperature, outdoors. Dates are DD/MM/YYYY.

The recipe, in the detail of the authors' published preprocessing: rows from 800, ten windows of two
days (the first without its first row), de-meaned, with unit variance, decimated by 4 behind an
IIR filter (Chebyshev, order 8, forwards and backwards): 48 values, at 0 to 47. A periodic kernel of
unit variance, noise variance 0.1, length scale 0.01 to 100 from 20, period 16 to 34 by maximum
likelihood. Their search starts at a period of 24 * 60, beyond the bounds, thus at 34.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import load, named
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.datasets.fitting import EffectiveScales, LengthScaleTask, collected, fitted
from trailveil.studies.datasets.workers import Watch, mapped, unwatched
from trailveil.studies.fit import FAMILIES, FitSeries

Column = Literal["room", "paper"]

COLUMNS: Final[dict[Column, int]] = {"room": 3, "paper": 5}
"""The number, in the header, of the column of the room sensor, and of the one the paper fits."""

FAMILY: Final = FAMILIES["periodic"].set(
    length_scale=(0.01, 20.0, 100.0), period=(16.0, 34.0, 34.0), std=1.0, noise_std=0.1**0.5
)

_FIRST_ROW = 800
_WINDOWS, _DAYS = 10, 2
_DECIMATION = 4
_QUARTER = 15  # minutes between rows
_NAME = re.compile(r"(\d+):\S+")


@dataclass(frozen=True, slots=True, eq=False)
class Sml2010:
    """The file as it is: times (n,) datetime64[m], local; numbers by column number, (n,) each."""

    times: NDArray[np.datetime64]
    columns: dict[int, FloatArray]


def read_table(path: str | PathLike[str]) -> Sml2010:
    """The table in a file of SML2010.

    Raises UnreadableInput, in one line and without text of the file, for anything else.
    """
    lines = load(path).decode("latin-1").splitlines()
    names = _NAME.findall(lines[0]) if lines and lines[0].startswith("#") else []
    if [int(name) for name in names] != list(range(1, len(names) + 1)) or len(names) < 3:
        raise UnreadableInput(
            "input must be a table of SML2010, with columns 1:Date 2:Time 3:... in the header, got "
            f"another header: {named(path)}"
        )
    rows = [line.split() for line in lines[1:] if line.strip()]
    if not rows or {len(row) for row in rows} != {len(names)}:
        raise UnreadableInput(
            f"every row must have {len(names)} columns, got none or others: {named(path)}"
        )
    try:
        numbers = np.array([[float(x) for x in row[2:]] for row in rows])
        times = [datetime.strptime(f"{r[0]} {r[1]}", "%d/%m/%Y %H:%M") for r in rows]  # noqa: DTZ007 - local, zone unknown
    except ValueError:
        raise UnreadableInput(
            f"every row must be DD/MM/YYYY, HH:MM and numbers, got another: {named(path)}"
        ) from None
    if not np.isfinite(numbers).all():
        raise UnreadableInput(f"every number must be finite, got another: {named(path)}")
    columns = {number: numbers[:, number - 3] for number in range(3, len(names) + 1)}
    return Sml2010(np.array(times, dtype="datetime64[m]"), columns)


def windows(table: Sml2010, column: Column = "room") -> list[FloatArray]:
    """The ten series of the recipe, (48,) each, before any fit.

    Raises InvalidValue for another column, a table that is too short, one that is not a row every
    15 minutes, and a window that never changes.
    """
    from scipy.signal import decimate  # heavy, and only needed here

    if column not in COLUMNS:
        raise InvalidValue(f"columns must be {' or '.join(COLUMNS)}, got {column}")
    per_window = _DAYS * 24 * 60 // _QUARTER
    needed = _FIRST_ROW + _WINDOWS * per_window
    if len(table.times) < needed or COLUMNS[column] not in table.columns:
        raise InvalidValue(
            f"the table must have {needed} rows and column {COLUMNS[column]}, got "
            f"{len(table.times)} rows, {len(table.columns) + 2} columns: use NEW-DATA-1.T15.txt"
        )
    if (np.diff(table.times[:needed]) != np.timedelta64(_QUARTER, "m")).any():
        raise InvalidValue(f"the table must have a row every {_QUARTER} minutes, got gaps in it")
    chosen = table.columns[COLUMNS[column]][_FIRST_ROW:needed]
    series = []
    for start in range(0, len(chosen), per_window):
        window = chosen[start + 1 : start + per_window]  # both ends are left out, by < and >
        if not np.ptp(window) > 0:
            raise InvalidValue("every window must vary, got one that is constant")
        window = (window - np.mean(window)) / np.std(window)
        series.append(np.asarray(decimate(window, _DECIMATION, ftype="iir")))
    return series


def sml2010_scales(
    path: str | PathLike[str],
    *,
    column: Column = "room",
    starts: int = 6,
    watch: Watch = unwatched,
    workers: int | None = None,
) -> EffectiveScales:
    """Effective length scales of the ten windows; see read_table and windows for what is raised."""
    tasks = [
        LengthScaleTask(FitSeries(np.arange(float(len(values))), values), FAMILY, starts, 1.0)
        for values in windows(read_table(path), column)
    ]
    fits = mapped(fitted, tasks, label="Fitting", watch=watch, workers=workers)
    return collected(tasks, fits)
