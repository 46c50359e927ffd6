"""Tables of many traces: which traces are in one, whose they are, and which rows are of each.

Parquet is looked through by row groups and text by lines, only for the columns that name trace and
person; a worker reads the rows of one trace when it is at it. What it reads is a table like any
other, of that trace alone, by the same readers.
"""

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.files.source import named, stamp_of
from trailveil.traces.formats import size_of
from trailveil.traces.formats.columns import columns_of, people_in, tracks_in
from trailveil.traces.formats.delimited import Header, header_of, rows_in
from trailveil.traces.formats.delimited import read as read_text
from trailveil.traces.formats.parquet import needed, opened_file
from trailveil.traces.formats.parquet import read as read_parquet
from trailveil.traces.formats.table import TABLES
from trailveil.traces.trace import Recording

_HEAD = 8192
# Row groups, or stretches of lines, that a trace may be spread over on average.
_SPREAD = 4


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one trace. column, value: what they have in common.

    groups: row groups of Parquet. head, spans: of text, where its line of names ends and (begin,
    end) of its rows, in bytes.
    """

    column: str
    value: Any
    groups: tuple[int, ...] = ()
    head: int = 0
    spans: tuple[tuple[int, int], ...] = ()


def traces_of(path: Path, trace: str | None, person: str | None) -> Iterator[tuple[TableRows, str]]:
    """Each trace of a table, in its order, and the person it is of ("" where no column says).

    trace, person: the columns that name them, or None for what their names tell. Raises
    UnreadableInput where no one column names traces, a row is of none, or rows of traces lie apart.
    """
    where = named(path)
    find = _in_parquet if TABLES[path.suffix.lower()] else _in_text
    traces, pieces = find(path, trace, person, where)
    if sum(len(part.groups) + len(part.spans) for part, _ in traces) > _SPREAD * (
        len(traces) + pieces
    ):
        raise UnreadableInput(
            "the rows of a trace must lie together in a table of traces, got rows that are spread: "
            f"{where}; sort it by the column that names them ({named(traces[0][0].column)}), then "
            "by time"
        )
    return iter(traces)


def column_of_people(path: Path) -> str:
    """The column of a table (TABLES) by which a batch knows whose traces are; "" for none."""
    if TABLES[path.suffix.lower()]:
        with opened_file(path, named(path)) as file:
            names = file.schema_arrow.names
    else:
        with path.open("rb") as stream:
            header = header_of(stream.read(_HEAD), columns_of)[1]
        names = () if header is None else header.names
    return next(iter(people_in(names)), "")


def read_part(path: Path, part: TableRows, field_names: Sequence[str], most: int) -> Recording:
    """The recording in the rows of one trace. Raises as `trailveil.traces.formats.read` does."""
    where = f"trace {named(str(part.value))} of {named(path)}"
    if not part.groups:
        with path.open("rb") as stream:
            data = stream.read(part.head) + b"".join(_pieces(stream, part.spans))
        return read_text(data, where, field_names, most)
    import pyarrow
    import pyarrow.parquet

    stamp = stamp_of(path)
    groups = [_group(path, stamp, number, part.column, *field_names) for number in part.groups]
    rows = [table.take(places[part.value]) for table, places in groups if part.value in places]
    out = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.concat_tables(rows), out, compression="none", write_statistics=False
    )
    if out.tell() > size_of(most):
        raise UnreadableInput(f"a trace must have at most {most} fixes, got more: {where}")
    return read_parquet(out.getvalue(), where, field_names, most)


def _in_parquet(
    path: Path, trace: str | None, person: str | None, where: str
) -> tuple[list[tuple[TableRows, str]], int]:
    groups: dict[Any, list[int]] = {}
    people: dict[Any, str] = {}
    with opened_file(path, where) as file:
        names = file.schema_arrow.names
        column = _column(names, trace, tracks_in(names), "--trace-column", "traces", where)
        whose = _column_of_people(names, person, where)
        columns = [column, *([whose] if whose is not None else [])]
        for number in range(file.num_row_groups):
            table = file.read_row_group(number, columns=columns)
            values, first, codes = _coded(table[column], where)
            persons: list[Any] = [None] * len(values)
            if whose is not None:
                persons = table[whose].take(first).to_pylist()
                of_rows = _indices(_encoded(table[whose]))
                if not np.array_equal(of_rows, of_rows[first][codes]):
                    raise _several_people(where)
            for value, its in zip(values, persons, strict=True):
                groups.setdefault(value, []).append(number)
                known = "" if its is None else str(its)
                if people.setdefault(value, known) != known:
                    raise _several_people(where)
        count = file.num_row_groups
    parts = [TableRows(column, value, tuple(numbers)) for value, numbers in groups.items()]
    return [(part, people[part.value]) for part in parts], count


def _coded(column: Any, where: str) -> tuple[list[Any], NDArray[np.intp], NDArray[np.intp]]:
    """The values of a column in their order, where each is first, and which one each row has."""
    if column.null_count:
        raise _no_trace(where)
    coded = _encoded(column)
    codes = _indices(coded)
    known, first = np.unique(codes, return_index=True)
    order = np.argsort(first)
    values = coded.dictionary.to_pylist()
    ranks = np.empty(len(values), dtype=np.intp)
    ranks[known[order]] = np.arange(order.size)
    return [values[i] for i in known[order]], first[order], ranks[codes]


def _encoded(column: Any) -> Any:
    """A column as numbers of its values, of which no value is one."""
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)
    coded = column.combine_chunks().dictionary_encode("encode")
    return coded.combine_chunks() if hasattr(coded, "combine_chunks") else coded


def _indices(coded: Any) -> NDArray[np.intp]:
    return np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.intp)


@lru_cache(maxsize=2)  # the traces of one row group come one after the other
def _group(
    path: Path, stamp: tuple[int, ...], number: int, column: str, *field_names: str
) -> tuple[Any, dict[Any, NDArray[np.intp]]]:
    """The columns that are needed of a row group, and the rows of each trace in it."""
    with opened_file(path, named(path)) as file:
        names = needed(file, named(path), field_names)
        table = file.read_row_group(number, columns=[*names, column])
        values, _, codes = _coded(table[column], named(path))
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(values) + 1))
        places = {value: order[ends[i] : ends[i + 1]] for i, value in enumerate(values)}
        return table.select(names), places


def _in_text(
    path: Path, trace: str | None, person: str | None, where: str
) -> tuple[list[tuple[TableRows, str]], int]:
    spans: dict[str, list[tuple[int, int]]] = {}
    people: dict[str, str] = {}
    with path.open("rb") as stream:
        encoding, header = header_of(stream.read(_HEAD), columns_of)
        if header is None or encoding == "utf-16":
            raise UnreadableInput(
                "a table of traces must be text in UTF-8 with a line that names latitude, "
                f"longitude and time, got another: {where}; name the columns so"
            )
        names = list(header.names)
        column = _column(names, trace, tracks_in(names), "--trace-column", "traces", where)
        whose = _column_of_people(names, person, where)
        at, by = names.index(column), None if whose is None else names.index(whose)
        stream.seek(0)
        for _ in range(header.line + 1):
            stream.readline()
        head = stream.tell()
        for cells, begin, end in _lines(stream, head, encoding, header, where):
            if not cells or cells[0].startswith("#"):
                continue
            value = cells[at].strip() if at < len(cells) else ""
            if not value:
                raise _no_trace(where)
            pieces = spans.setdefault(value, [])
            if pieces and pieces[-1][1] == begin:
                pieces[-1] = (pieces[-1][0], end)
            else:
                pieces.append((begin, end))
            person = cells[by].strip() if by is not None and by < len(cells) else ""
            if people.setdefault(value, person) != person:
                raise _several_people(where)
    parts = [TableRows(column, value, (), head, tuple(lines)) for value, lines in spans.items()]
    return [(part, people[part.value]) for part in parts], 1


def _lines(
    stream: io.BufferedReader, begin: int, encoding: str, header: Header, where: str
) -> Iterator[tuple[list[str], int, int]]:
    """The rows of a table of text, and where each begins and ends, in bytes."""
    end = begin

    def lines() -> Iterator[str]:
        nonlocal end
        for line in stream:
            end += len(line)
            yield line.decode(encoding, errors="replace")

    for cells in rows_in(lines(), header.delimiter, where):
        yield cells, begin, end
        begin = end


def _pieces(stream: io.BufferedReader, spans: Sequence[tuple[int, int]]) -> Iterator[bytes]:
    for begin, end in spans:
        stream.seek(begin, os.SEEK_SET)
        yield stream.read(end - begin)


def _column(
    names: Sequence[str],
    stated: str | None,
    known: Sequence[str],
    option: str,
    what: str,
    where: str,
) -> str:
    """The stated column, else the one that is known by its name."""
    if stated is not None and list(names).count(stated) == 1:
        return stated
    if stated is None and len(known) == 1:
        return known[0]
    got = f"none named {named(stated)}" if stated else f"{', '.join(known) or 'none'}"
    raise UnreadableInput(
        f"a table must have one column that names its {what}, got {got}: {where}; state it "
        f"({option} NAME), or say --whole-files where each file is one recording"
    )


def _column_of_people(names: Sequence[str], stated: str | None, where: str) -> str | None:
    known = people_in(names)
    if stated is None and not known:
        return None
    return _column(names, stated, known, "--subject-column", "people", where)


def _no_trace(where: str) -> UnreadableInput:
    return UnreadableInput(
        f"each row of a table must say which trace it is of, got one that does not: {where}; take "
        "such rows out"
    )


def _several_people(where: str) -> UnreadableInput:
    return UnreadableInput(
        "each trace of a table must be of one person, got one of several: "
        f"{where}; name a column of traces that tells them apart (--trace-column), or another of "
        "people (--subject-column)"
    )
