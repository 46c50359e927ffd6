"""What is asked of a trace of a batch: the options of one release, without whose it is.

A table has rules of single traces: trace, and any of from, to, radius, epsilon. From and to are
times as of --between, from alone one as of --at; they stand in place of what is stated for other
traces. The times are secrets: no message repeats a cell other than the name of a trace.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.source import load, named
from trailveil.release.request import Request
from trailveil.traces.formats import MOST_POINTS
from trailveil.traces.formats.parquet import opened
from trailveil.traces.retiming import AS_RECORDED, Retiming
from trailveil.traces.selection import Chosen


@dataclass(frozen=True, slots=True)
class Rules:
    """How to read a trace, what of it to protect, how, and what becomes of its times.

    chosen: what to protect. request: how much, of no part yet. assume_utc, zone, every, most, keep:
    as of `trailveil.traces.loading.load`.
    """

    chosen: Chosen = field(default_factory=Chosen)
    request: Request = field(default_factory=lambda: Request(()))
    retiming: Retiming = AS_RECORDED
    keep: Sequence[str] = ()
    assume_utc: bool = False
    zone: ZoneInfo | None = None
    every: float | None = None
    most: int = MOST_POINTS

    @property
    def statement(self) -> bytes:
        """All of it that the outcome depends on. It holds stated times and places: a secret."""
        chosen = self.chosen
        near = [(circle.latitude, circle.longitude, circle.metres) for circle in chosen.near]
        stated = (chosen.at, chosen.between, str(chosen.zone), near, chosen.stops)
        further = (chosen.returns, chosen.ends)
        reading = (self.assume_utc, str(self.zone), self.every, self.most, tuple(self.keep))
        return repr((stated, further, self.request.design, self.retiming, reading)).encode()


_COLUMNS = ("trace", "from", "to", "radius", "epsilon")
_LARGEST = 500_000_000
_MOST = 10_000_000


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What is stated of one trace; None for what is as of the others."""

    begin: str | None = None
    end: str | None = None
    radius: float | None = None
    epsilon: float | None = None

    def over(self, rules: Rules) -> Rules:
        """The rules of this trace. Raises InvalidValue for numbers that cannot be."""
        request = rules.request
        if self.radius is not None:
            request = replace(request, radius=self.radius)
        if self.epsilon is not None:
            request = replace(request, epsilon=self.epsilon)
        chosen = rules.chosen
        bare = Chosen(zone=chosen.zone, returns=chosen.returns, ends=chosen.ends)
        if self.begin is not None and self.end is not None:
            chosen = replace(bare, between=((self.begin, self.end),))
        elif self.begin is not None:
            chosen = replace(bare, at=(self.begin,))
        return replace(rules, chosen=chosen, request=request)


def read_rules(path: Path) -> dict[str, RuleChange]:
    """The rules in a CSV or Parquet file, by the name of their trace.

    Raises UnreadableInput where it is no such table; Refused for two rules of one trace, a `to`
    without a `from`, and a number that is none.
    """
    where = named(path)
    data = load(path, _LARGEST)
    parquet = path.suffix.lower() in {".parquet", ".geoparquet"}
    names, rows = _parquet(data, where) if parquet else _csv(data, where)
    _check_columns(names, where)
    changes: dict[str, RuleChange] = {}
    for number, row in enumerate(rows, start=1):
        name, change = _change(row, f"row {number} of {where}")
        if name in changes:
            raise Refused(
                f"each trace must have one rule, got two of {named(name)}: row {number} of "
                f"{where}; take one out"
            )
        changes[name] = change
    return changes


def check_rules(rules: Iterable[str], names: Iterable[str], where: str) -> None:
    """Refuse rules of traces that are not there."""
    strays = sorted(set(rules) - set(names))
    if strays:
        more = f", and {len(strays) - 1} more" if len(strays) > 1 else ""
        raise Refused(
            f"rules must be of traces that are there, got one of {named(strays[0])}{more}: "
            f"{where}; name traces as the report does (a path below IN, or an id), or take it out"
        )


def _csv(data: bytes, where: str) -> tuple[list[str], Iterable[Mapping[str, Any]]]:
    try:
        text = data.decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        return list(reader.fieldnames or ()), list(reader)
    except (UnicodeDecodeError, csv.Error):
        raise UnreadableInput(
            f"--rules must be CSV in UTF-8, or Parquet, got another: {where}; save it as CSV"
        ) from None


def _parquet(data: bytes, where: str) -> tuple[list[str], Iterable[Mapping[str, Any]]]:
    with opened(data, where, _MOST) as file:
        names = list(file.schema_arrow.names)
        _check_columns(names, where)
        return names, file.read().to_pylist()


def _check_columns(names: Sequence[str], where: str) -> None:
    strange = [name for name in names if name not in _COLUMNS]
    if strange or "trace" not in names or len(set(names)) < len(names):
        what = f"another, {named(strange[0])!r}" if strange else f"{', '.join(names) or 'none'}"
        raise UnreadableInput(
            f"--rules must have the column trace, and of {', '.join(_COLUMNS[1:])} those that are "
            f"wanted, each once, got {what}: {where}; rename or remove columns"
        )


def _change(row: Mapping[str, Any], where: str) -> tuple[str, RuleChange]:
    if None in row:  # where the csv module puts cells beyond the columns
        raise _refused("as many cells as there are columns", where)
    name = _text(row["trace"])
    if name is None:
        raise _refused("the name of a trace", where)
    begin, end = _text(row.get("from")), _text(row.get("to"))
    if end is not None and begin is None:
        raise _refused("a from where it has a to", where)
    numbers = {column: _number(row.get(column), column, where) for column in ("radius", "epsilon")}
    return name, RuleChange(begin, end, numbers["radius"], numbers["epsilon"])


def _text(cell: Any) -> str | None:
    if isinstance(cell, datetime):
        return cell.isoformat()
    text = "" if cell is None else str(cell).strip()
    return text or None


def _number(cell: Any, what: str, where: str) -> float | None:
    text = _text(cell)
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 1e9:
        raise _refused(f"a {what} that is a number above 0, or none", where)
    return number


def _refused(need: str, where: str) -> InvalidValue:
    return InvalidValue(f"a rule must have {need}, got another: {where}; correct the row")
