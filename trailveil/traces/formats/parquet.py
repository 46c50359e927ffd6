"""Parquet and GeoParquet: times and positions in and out, by pyarrow, which is an optional extra.

Read is either a column of points (WKB, as GeoParquet has it) or columns of latitude and longitude,
and one of times. Columns are known by their names, as in tables of text; only those needed are
read, in batches, so that a small file cannot unfold in memory beyond what its columns need. Text
and geometry are read as dictionaries: a long value repeated a million times is held once.
"""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import Unavailable, UnreadableInput, installing
from trailveil.files.source import once
from trailveil.traces.fields import FIELDS
from trailveil.traces.formats.collect import MOST_POINTS, number, too_many
from trailveil.traces.formats.columns import (
    Columns,
    FieldColumn,
    columns_beside,
    columns_of,
    field_columns,
    no_time,
)
from trailveil.traces.formats.grid import Degrees, rows_of, whole_degrees
from trailveil.traces.formats.json_text import inner
from trailveil.traces.formats.people import may_name_people
from trailveil.traces.formats.tabular import RowCollector, add_arrays
from trailveil.traces.trace import Recording, Trace

_BATCH = 65_536
_LONGEST = 1000  # bytes of a time, a name or a point
_TEXT: Final = ("string", "large_string", "binary", "large_binary")
_DEGREES: Final = ("OGC", "CRS84", "EPSG", 4326, "4326")
_NUMBERS: Final = ("int", "uint", "float", "double", "halffloat", "decimal")
_POINT = 21  # bytes of a point in WKB: order, kind, x and y
_KINDS: Final = {1, 1001, 2001, 3001, 0x80000001, 0x40000001, 0xC0000001}

_WKB: Final = np.dtype([("order", "u1"), ("kind", "<u4"), ("xy", "<f8", 2)])
_PART = 2**22  # points whose offsets surely fit 32 bits


def read(
    data: bytes, where: str, field_names: Sequence[str] = (), most: int = MOST_POINTS
) -> Recording:
    """The fixes of a Parquet file, in file order; `where` names it in messages.

    field_names: fields to read besides.

    Raises UnreadableInput where it is no Parquet, has no columns of positions and times, or is not
    in degrees (WGS84); Unavailable without pyarrow.
    """
    with opened(data, where, most) as file:
        names = file.schema_arrow.names
        geometry = _geometry(file, where)
        roles = _roles(names, geometry, where)
        rows = RowCollector(roles, where, field_names, most)
        fields = field_columns(names, field_names)
        people = _people(file, geometry)
        for columns in _batches(file, _needed(names, geometry, roles, fields) | people):
            _take(
                columns, geometry, rows, [(names[field.index], field) for field in fields], people
            )
    return rows.recording(other_fields=roles.others - (geometry is not None) - len(fields))


@contextmanager
def opened(data: bytes, where: str, most: int = MOST_POINTS) -> Iterator[Any]:
    """The file as pyarrow has it, text and binary columns as dictionaries, its rows bounded.

    Raises UnreadableInput for what pyarrow stumbles over, also inside; Unavailable without it.
    """
    with opened_file(io.BytesIO(data), where) as plain:
        texts = [f.name for f in plain.schema_arrow if str(f.type) in _TEXT]
        about = {"metadata": plain.metadata, "read_dictionary": texts}
        file = _arrow().parquet.ParquetFile(io.BytesIO(data), **about)
        if file.metadata.num_rows > most:  # before the first batch unfolds
            raise too_many(where, most)
        yield file


@contextmanager
def opened_file(source: Path | io.BytesIO, where: str) -> Iterator[Any]:
    """A file as pyarrow has it, to be read by row groups. Raises as `opened` does."""
    arrow = _arrow()
    try:
        with arrow.parquet.ParquetFile(source) as file:
            yield file
    except (arrow.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError):
        raise UnreadableInput(
            f"input must be a whole Parquet file, got one that is damaged or cut off: {where}; "
            "export the recording again"
        ) from None


def needed(file: Any, where: str, field_names: Sequence[str] = ()) -> list[str]:
    """The columns of a file that `read` would take. Raises as it does."""
    names = file.schema_arrow.names
    geometry = _geometry(file, where)
    roles = _roles(names, geometry, where)
    columns = _needed(names, geometry, roles, field_columns(names, field_names))
    return sorted(columns | _people(file, geometry))


def _people(file: Any, geometry: str | None) -> set[str]:
    """The columns of text and of whole numbers whose names may be those of people."""
    return {
        field.name
        for field in file.schema_arrow
        if field.name != geometry
        and may_name_people(field.name)
        and str(field.type).startswith(("int", "uint", *_TEXT, "dictionary"))
    }


def write(trace: Trace, grid: ArrayLike, stream: BinaryIO) -> None:
    """Write times of a trace at positions `grid`, (n, 2) whole microdegrees, as GeoParquet 1.1.

    Columns: time, geometry; the fields of the trace; where there is more than one segment, track
    and segment. Raises
    InvalidValue for a grid that does not fit, Unavailable without pyarrow.
    """
    arrow = _arrow()
    rows = rows_of(trace, grid)
    columns = {
        "time": _column(rows.times, arrow.timestamp("ns", tz="UTC")),
        "geometry": _wkb(arrow, rows.points),
    }
    for name, texts in rows.fields:
        values = np.array([float(text or "nan") for text in texts], dtype=np.float64)
        there = np.array([bool(text) for text in texts], dtype=np.bool_)
        columns[FIELDS[name].column] = _column(values, arrow.float64(), there)
    if len(rows.starts) > 2:
        for name, numbers in (("track", rows.tracks), ("segment", rows.segments)):
            columns[name] = _column(np.asarray(numbers, dtype=np.int64), arrow.int64())
    about = {"encoding": "WKB", "geometry_types": ["Point"]}  # no crs: degrees, OGC:CRS84
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": about}}
    table = arrow.table(columns).replace_schema_metadata({"geo": json.dumps(geo)})
    arrow.parquet.write_table(table, stream)


def _column(values: NDArray[Any], kind: Any, known: NDArray[np.bool_] | None = None) -> Any:
    """Numbers (n,) of eight bytes as a column; known: which of them (n,) there are, None for all.

    From their bytes: where pandas is installed, `pyarrow.array` loads it, half a second a process.
    """
    arrow = _arrow()
    valid = None if known is None else arrow.py_buffer(np.packbits(known, bitorder="little"))
    data = arrow.py_buffer(np.ascontiguousarray(values))
    return arrow.Array.from_buffers(kind, len(values), [valid, data])


def _wkb(arrow: Any, points: Degrees) -> Any:
    """Points in WKB (n, 2)."""
    parts = []
    for begin in range(0, max(1, len(points)), _PART):
        part = points[begin : begin + _PART]
        wkb = np.zeros(len(part), dtype=_WKB)
        wkb["order"], wkb["kind"] = 1, 1
        wkb["xy"] = whole_degrees(part)[:, ::-1]
        offsets = np.arange(len(part) + 1, dtype=np.int32) * np.int32(_WKB.itemsize)
        buffers = [None, arrow.py_buffer(offsets), arrow.py_buffer(wkb)]
        parts.append(arrow.Array.from_buffers(arrow.binary(), len(part), buffers))
    return arrow.chunked_array(parts, type=arrow.binary())


def _arrow() -> ModuleType:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Unavailable(
            "Parquet must be read and written with pyarrow, which is not installed: "
            f"{installing('parquet')}, or use GPX, GeoJSON or CSV"
        ) from None
    module_type: ModuleType = pyarrow
    return module_type


def _geometry(file: Any, where: str) -> str | None:
    """The column of points that a GeoParquet file names, after a look at its reference system."""
    stated = (file.schema_arrow.metadata or {}).get(b"geo")
    if stated is None:
        return None
    try:
        geo = _object(json.loads(stated, object_pairs_hook=once))
    except RecursionError:
        raise ValueError from None
    name = str(geo["primary_column"])
    column = _object(_object(geo["columns"])[name])
    if column.get("encoding") != "WKB":
        raise _refused("points as WKB", "another encoding", where)
    reference = column.get("crs")
    if reference is not None:
        known = [inner(reference, "id", part) for part in ("authority", "code")]
        if any(part not in _DEGREES for part in known):
            raise _refused("positions in degrees (WGS84)", "another reference system", where)
    return name


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _refused(need: str, got: str, where: str) -> UnreadableInput:
    return UnreadableInput(f"input must have {need}, got {got}: {where}; convert it first")


def _roles(names: list[str], geometry: str | None, where: str) -> Columns:
    roles = columns_of(names) if geometry is None else columns_beside(names)
    if roles is not None and roles.time is None:
        raise no_time(names, where)
    if roles is None or roles.date is not None:
        raise UnreadableInput(
            "input must have columns of time, and of latitude and longitude or of points (as "
            f"GeoParquet), got others: {where}; name the columns so"
        )
    return roles


def _batches(file: Any, needed_names: set[str]) -> Iterator[dict[str, Any]]:
    """The columns that are needed, batch by batch."""
    for batch in file.iter_batches(_BATCH, columns=sorted(needed_names), use_threads=False):
        plain = [_plain_unless_text(column) for column in batch.columns]
        yield dict(zip(batch.schema.names, plain, strict=True))


def _needed(
    names: list[str], geometry: str | None, roles: Columns, fields: Sequence[FieldColumn]
) -> set[str]:
    """The columns that are needed."""
    indices = [roles.latitude, roles.longitude, roles.time]
    indices += [roles.track, roles.segment, roles.person, *(field.index for field in fields)]
    chosen = {names[index] for index in indices if index is not None and index >= 0}
    return chosen | ({geometry} if geometry is not None else set())


def _plain_unless_text(column: Any) -> Any:
    """Numbers and times that a file holds as a dictionary, one by one."""
    plain = not hasattr(column, "dictionary") or str(column.dictionary.type) in _TEXT
    return column if plain else column.dictionary_decode()


def _take(
    columns: dict[str, Any],
    geometry: str | None,
    rows: RowCollector,
    fields: Sequence[tuple[str, FieldColumn]],
    people: set[str],
) -> None:
    names = list(columns)
    held = columns_of(names) if geometry is None else columns_beside(names)
    if held is None or held.time is None:
        raise LookupError
    if geometry is None:
        degrees = [
            _numbers(columns[names[index]]) / per
            for index, per in zip((held.latitude, held.longitude), held.per_degree, strict=True)
        ]
        positions = np.stack(degrees, axis=1)
    else:
        positions = _points(columns[geometry])
    times, naive = _times(columns[names[held.time]])
    keys = [
        None if index is None else _plain(columns[names[index]])
        for index in (held.track, held.segment, held.person)
    ]
    values = [(column.field, column.values(_stated(columns[name]))) for name, column in fields]
    three = (keys[0], keys[1], keys[2])
    others = {name: _whole(columns[name]) for name in sorted(people)}
    add_arrays(rows, positions, times, three, naive=naive, fields=values, others=others)


def _whole(column: Any) -> list[Any]:
    """The values of a column, however long."""
    if not hasattr(column, "dictionary"):
        return list(column.to_pylist())
    known = [*column.dictionary.to_pylist(), None]
    return [known[index] for index in _indices(column).tolist()]


def _plain(column: Any) -> list[Any]:
    """The values of a column, none of them longer than a name or a time may be."""
    if hasattr(column, "dictionary"):
        known = [*column.dictionary.to_pylist(), None]
        if max((len(value) for value in known if value is not None), default=0) > _LONGEST:
            raise ValueError
        return [known[index] for index in _indices(column).tolist()]
    if str(column.type).startswith(("int", "uint")) and not column.null_count:
        return list(column.to_numpy().tolist())
    return list(column.to_pylist())


def _numbers(column: Any) -> NDArray[np.float64]:
    if hasattr(column, "dictionary"):  # numbers as text
        cells = _plain(column)
        return np.array([number(cell) if isinstance(cell, str) else np.nan for cell in cells])
    return np.array(column.cast("float64").to_numpy(zero_copy_only=False), dtype=float)


def _stated(column: Any) -> NDArray[np.float64]:
    """The numbers of a column of any kind, NaN for what is none."""
    if hasattr(column, "dictionary"):  # text, of any length, each looked at once
        texts = column.dictionary.to_pylist()
        known = [number(text) if isinstance(text, str) else np.nan for text in texts]
        return np.asarray(np.array([*known, np.nan])[_indices(column)])
    if not str(column.type).startswith(_NUMBERS):
        return np.full(len(column), np.nan)
    plain = column.cast("float64", safe=False)
    return np.array(plain.to_numpy(zero_copy_only=False), dtype=float)


def _indices(column: Any) -> NDArray[np.intp]:
    """Where each value stands in the dictionary of its column, -1 for none."""
    index = column.indices.to_numpy(zero_copy_only=False)
    gone = np.isnan(index) if index.dtype.kind == "f" else np.zeros(len(index), dtype=np.bool_)
    return np.where(gone, -1, index).astype(np.intp)


def _times(column: Any) -> tuple[NDArray[Any], bool]:
    """Times as pyarrow holds them, NaT or NaN where there is none; whether they have no zone."""
    kind = column.type
    if str(kind).startswith("timestamp"):
        moments = column.to_numpy(zero_copy_only=False)
        return moments, getattr(kind, "tz", None) is None
    if str(kind).startswith(("int", "uint")) and not column.null_count:
        return column.to_numpy(), False
    return np.array(_plain(column), dtype=object), False


def _points(column: Any) -> NDArray[np.float64]:
    """Latitude and longitude of points in WKB, NaN for null and for empty points."""
    if not hasattr(column, "dictionary"):
        column = column.dictionary_encode()
    known = _plain_points(column.dictionary)
    if known is None:
        known = np.array([_point(value) for value in column.dictionary.to_pylist()])
    known = known.reshape(-1, 2)
    known = np.vstack([known, [np.nan, np.nan]])
    return np.asarray(known[_indices(column)])


def _plain_points(column: Any) -> NDArray[np.float64] | None:
    """Points of two coordinates in the usual order of bytes, all at once; None for others."""
    if str(column.type) != "binary" or column.null_count:
        return None
    _, offsets, data = column.buffers()
    at = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    if data is None or not np.all(np.diff(at) == _WKB.itemsize):
        return None
    held = np.frombuffer(data, np.uint8)[int(at[0]) : int(at[-1])].view(_WKB)
    if not np.all((held["order"] == 1) & (held["kind"] == 1)):
        return None
    return np.array(held["xy"][:, ::-1], dtype=np.float64)


def _point(value: bytes | None) -> tuple[float, float]:
    if value is None:
        return np.nan, np.nan
    order = "<" if value[0] else ">"
    kind = int(np.frombuffer(value, f"{order}u4", 1, 1)[0])
    if kind not in _KINDS or len(value) < _POINT:
        raise ValueError
    start = 9 if kind & 0x20000000 else 5
    x, y = np.frombuffer(value, f"{order}f8", 2, start).tolist()
    return y, x
