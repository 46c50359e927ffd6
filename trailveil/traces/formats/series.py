"""Plain time series: tables of text with a time and one value, in and out.

The line of names, times, delimiters and encodings are those of other tables of text. The value is
the column that is asked for by name, else the only one beside the time; its unit is stated, or
stands in brackets in its name: "temperature (degC)". Rows without a value are counted.
"""

import re
from array import array
from collections.abc import Sequence
from os import PathLike
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import ArrayLike

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import load, named
from trailveil.traces.fields import decimal
from trailveil.traces.formats.collect import MOST_POINTS, number, too_many
from trailveil.traces.formats.columns import Columns, columns_beside
from trailveil.traces.formats.delimited import Header, cell_getter, table_of
from trailveil.traces.formats.grid import decimals_of
from trailveil.traces.formats.moments import Stamps, format_moments
from trailveil.traces.readings import Readings, RecordedReadings, check_decimals
from trailveil.traces.trace import Seen

_UNIT: Final = re.compile(r"[^()\[\]]{1,20}")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+", re.ASCII)


def read_series(
    path: str | PathLike[str],
    *,
    column: str | None = None,
    unit: str | None = None,
    most: int = MOST_POINTS,
) -> RecordedReadings:
    """The readings in a table of text, in file order.

    column: the name of the value's column, where there are several. unit: of its values, where the
    name of the column does not say it in brackets. most: how many readings there may be.
    Raises UnreadableInput, in one line, for a file that is no such table; InvalidValue where the
    column or the unit is to be named.
    """
    where = named(path)
    header, lines = table_of(load(path), _roles, "a time and a value", where, blanks=True)
    index = _value(header, column, where)
    stated = unit or _unit_of(header.names[index])
    if stated is None:
        raise InvalidValue(
            f"the unit must be stated, got none: {where}; say it (such as degC), or put it in "
            "brackets after the column's name"
        )
    columns = header.columns
    stamps = Stamps(per_second=columns.per_second, utc=columns.utc)
    values = array("d")
    counts = {"other_records": 0}
    for cells in lines:
        get = cell_getter(cells)
        if not get(index).strip():
            counts["other_records"] += 1
            continue
        if len(values) >= most:
            raise too_many(where, most)
        values.append(_number(get(index)))
        stamps.text(get(columns.time), get(columns.date))
    times, naive = stamps.finished(where)
    if not values:
        raise UnreadableInput(
            f"input must hold readings, got none: {where}; name the column that has them"
        )
    noticed = Seen(**stamps.counts, **counts, other_fields=_others(header))
    return RecordedReadings(times, naive, np.array(values), stated, noticed, header.names[index])


def write_series(
    readings: Readings, stream: BinaryIO, *, decimals: int = 6, grid: ArrayLike | None = None
) -> None:
    """Write times and values, and nothing else, as CSV with the unit in the name of the value.

    grid: (n,) int64, whole steps of 10^-decimals of the unit; by default those of the readings.
    Each value has as many decimals as the finest needs. Raises InvalidValue for a grid that does
    not fit the readings, or other decimals than 0..12.
    """
    check_decimals(decimals)
    steps = readings.steps(decimals) if grid is None else np.asarray(grid)
    if steps.shape != readings.times.shape or steps.dtype != np.int64:
        raise InvalidValue(
            f"grid must be {readings.times.shape} of int64, got {steps.shape} of {steps.dtype}: "
            "give whole steps, one for each reading"
        )
    few = decimals_of(steps, decimals)
    steps, decimals = steps // 10 ** (decimals - few), few
    stream.write(f'time,"value ({readings.unit.replace(chr(34), "")})"\n'.encode())
    lines = [
        f"{time},{decimal(step, decimals)}\n"
        for time, step in zip(format_moments(readings.times), steps.tolist(), strict=True)
    ]
    stream.write("".join(lines).encode())


def _roles(names: Sequence[str]) -> Columns | None:
    columns = columns_beside(names)
    return columns if columns.time is not None and _candidates(names, columns) else None


def _candidates(names: Sequence[str], columns: Columns) -> list[int]:
    """The columns that may be the value: those that are no time."""
    return [i for i in range(len(names)) if i not in (columns.time, columns.date)]


def _others(header: Header) -> int:
    return len(_candidates(header.names, header.columns)) - 1


def _value(header: Header, column: str | None, where: str) -> int:
    """The index of the value's column."""
    names = [name.strip() for name in header.names]
    if column is not None and column.strip() in names:
        return names.index(column.strip())
    candidates = _candidates(names, header.columns)
    if column is None and len(candidates) == 1:
        return candidates[0]
    must = "be named" if column is None else "be one of the table"
    got = f"{len(candidates)} that it could be" if column is None else "another"
    raise InvalidValue(
        f"the column of values must {must}, got {got}: {where}; give its name as it stands in "
        "the line of names"
    )


def _unit_of(name: str) -> str | None:
    """What stands in the last brackets of a name, if it ends with them."""
    whole = name.rstrip()
    begin = max(whole.rfind("("), whole.rfind("["))
    unit = whole[begin + 1 : -1].strip()
    sound = begin >= 0 and whole.endswith((")", "]")) and _UNIT.fullmatch(unit)
    return unit if sound else None


def _number(text: str) -> float:
    text = text.strip()
    return number(text.replace(",", ".") if _DECIMAL_COMMA.fullmatch(text) else text)
