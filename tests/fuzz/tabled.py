"""Parquet files with odd schemas, and with odd ways to lay down their bytes."""

import datetime
import decimal
import io
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

from tests.traces.formats.traces import PLACES, SECONDS

_COUNT = 12
_NANOSECONDS = [int(at) * 10**9 for at in SECONDS[:_COUNT]]
_LATITUDES, _LONGITUDES = (PLACES[:_COUNT, axis].tolist() for axis in (0, 1))
_NAMES = (
    *("time", "timestamp", "date", "Time (ms)", "t", "time"),
    *("latitude", "lat", "latitudeE7", "y", "longitude", "lon", "x", "geometry"),
    *("track", "segment", "user_id", "participant", "ts", "elevation", "speed_km_h", "hr", ""),
)


def parquet(rng: Random, _: bytes) -> bytes:
    """A table of times and positions, with some of its columns of another type."""
    import pyarrow
    import pyarrow.parquet

    columns = {"time": _times(rng), "latitude": None, "longitude": None}
    columns["latitude"] = _numbers(rng, _LATITUDES)
    columns["longitude"] = _numbers(rng, _LONGITUDES)
    for name in rng.sample(
        ["track", "segment", "uid", "Zaphod", "elevation", "hr", "speed_m_s"], 2
    ):
        if rng.random() < 0.4:
            columns[name] = rng.choice(_KINDS)(rng, list(range(_COUNT)))
    about = None
    if rng.random() < 0.35:
        columns["geometry"] = _points(rng)
        about = _geo(rng)
    if rng.random() < 0.15:
        name = rng.choice(list(columns))
        columns[rng.choice(_NAMES)] = columns.pop(name)
    names, arrays = list(columns), list(columns.values())
    if rng.random() < 0.05:
        names.append(names[0])
        arrays.append(arrays[0])
    made = pyarrow.Table.from_arrays(arrays, names=names)
    made = made.slice(0, rng.choice((_COUNT, _COUNT, _COUNT, 1, 0)))
    made = made.replace_schema_metadata({"geo": about} if about is not None else None)
    layout = {
        "use_dictionary": rng.random() < 0.5,
        "compression": rng.choice(("none", "snappy", "gzip", "zstd")),
        "row_group_size": rng.choice((1, 5, 1000)),
        "data_page_version": rng.choice(("1.0", "2.0")),
        "store_schema": rng.random() < 0.8,
    }
    stream = io.BytesIO()
    try:
        pyarrow.parquet.write_table(made, stream, **layout)
    except pyarrow.ArrowException:  # types that pyarrow has and Parquet has not
        return parquet(rng, _)
    return stream.getvalue()


def _with_gaps(rng: Random, values: list[Any]) -> list[Any]:
    """Some of the values, or all, are null."""
    part = rng.choice((0.0, 0.0, 0.0, 0.2, 1.0))
    return [None if rng.random() < part else value for value in values]


def _times(rng: Random) -> Any:
    import pyarrow

    how = rng.randrange(12) - 3
    unit, per = rng.choice((("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)))
    counts = [at // per for at in _NANOSECONDS]
    if rng.random() < 0.2:
        counts[rng.randrange(_COUNT)] = rng.choice((2**62, -(2**62), 0, -1, 2**63 - 1, -(2**63)))
    zone = rng.choice(("UTC", "UTC", None, "Europe/Berlin", "+02:00", "Nowhere/Land"))
    if how <= 3:
        return pyarrow.array(_with_gaps(rng, counts), pyarrow.timestamp(unit, zone))
    if how == 4:
        return pyarrow.array(_with_gaps(rng, counts), pyarrow.int64())
    if how == 5:
        return pyarrow.array(_with_gaps(rng, [at / 1e9 for at in _NANOSECONDS]))
    if how == 6:
        texts = [f"2024-05-01T07:30:{i:02d}{rng.choice(('Z', '', '+02:00'))}" for i in range(12)]
        texts[rng.randrange(12)] = rng.choice(("", "x", "9" * 300, "2024-02-30", "\x00"))
        return pyarrow.array(_with_gaps(rng, texts))
    if how == 7:
        return pyarrow.array(_with_gaps(rng, [at // 10**9 for at in _NANOSECONDS])).cast("uint64")
    return rng.choice(_KINDS)(rng, [at // 10**9 for at in _NANOSECONDS])


def _numbers(rng: Random, values: list[float]) -> Any:
    import pyarrow

    if rng.random() < 0.2:
        odd = (float("nan"), float("inf"), -1e308, 1e-320, 91.0, 181.0, 0.0)
        values = [value if rng.random() < 0.8 else rng.choice(odd) for value in values]
    if rng.random() < 0.8:
        return pyarrow.array(_with_gaps(rng, values))
    return rng.choice(_KINDS)(rng, values)


def _decimals(rng: Random, values: list[Any]) -> Any:
    import pyarrow

    places = rng.choice((0, 6, 30))
    kind = (
        pyarrow.decimal256(60, places)
        if rng.random() < 0.5
        else pyarrow.decimal128(38, min(places, 20))
    )
    step = decimal.Decimal(1).scaleb(-6 if places else 0)
    return pyarrow.array(
        [decimal.Decimal(repr(float(v))).quantize(step) if abs(v) < 1e12 else None for v in values],
        kind,
    )


def _cast(kind: str) -> Callable[[Random, list[Any]], Any]:
    def make(rng: Random, values: list[Any]) -> Any:
        import pyarrow

        whole = kind.startswith(("int", "uint"))
        largest = {"8": 100, "6": 30_000}.get(kind[-1], 2**31)
        numbers = [v if isinstance(v, int | float) and abs(v) < largest else 0 for v in values]
        plain = [int(v) if whole else v for v in numbers]
        return pyarrow.array(_with_gaps(rng, plain)).cast(kind, safe=False)

    return make


def _texts(rng: Random, values: list[Any]) -> Any:
    import pyarrow

    texts = [rng.choice((repr(v), repr(v), "x", "", "9" * 500)) for v in values]
    made = pyarrow.array(_with_gaps(rng, texts))
    return rng.choice((made, made.dictionary_encode(), made.cast("large_string")))


def _binaries(rng: Random, values: list[Any]) -> Any:
    import pyarrow

    kind = rng.choice((pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary(4)))
    return pyarrow.array(_with_gaps(rng, [rng.randbytes(4) for _ in values]), kind)


def _nested(rng: Random, values: list[Any]) -> Any:
    import pyarrow

    how = rng.randrange(4)
    if how == 0:
        return pyarrow.array(_with_gaps(rng, [[v, v] for v in values]))
    if how == 1:
        return pyarrow.array(_with_gaps(rng, [{"latitude": v, "time": 1} for v in values]))
    if how == 2:
        return pyarrow.array([{"a": {"b": [v]}} for v in values])
    return pyarrow.array([[("k", v)] for v in values], pyarrow.map_("string", "double"))


def _odd(rng: Random, values: list[Any]) -> Any:
    import pyarrow

    count = len(values)
    day = datetime.date(2024, 5, 1)
    return rng.choice(
        (
            lambda: pyarrow.nulls(count, rng.choice((pyarrow.null(), pyarrow.float64()))),
            lambda: pyarrow.array([True] * count),
            lambda: pyarrow.array([day] * count),
            lambda: pyarrow.array([datetime.time(7, 30, i) for i in range(count)]),
            lambda: pyarrow.array(range(count), pyarrow.duration("s")),
            lambda: pyarrow.array([*values[:-1], values[0]]).dictionary_encode(),
        )
    )()


_KINDS: tuple[Callable[[Random, list[Any]], Any], ...] = (
    *(_cast("float32"), _cast("float16"), _cast("int8"), _cast("uint16"), _cast("int64")),
    *(_decimals, _texts, _binaries, _nested, _odd),
)


def _points(rng: Random) -> Any:
    """Points in WKB, some of them of another kind or cut off."""
    import pyarrow

    cells: list[bytes | None] = []
    for a, b in zip(_LATITUDES, _LONGITUDES, strict=True):
        order = rng.choice(("<", "<", "<", ">"))
        kind = rng.choice((1, 1, 1, 1, 1, 1, 1001, 0x20000001, 2, 0)) if rng.random() < 0.3 else 1
        more = b"\0\0\0\0" if kind & 0x20000000 else b""
        cell = bytes([order == "<"]) + struct.pack(order + "I", kind) + more
        cell += struct.pack(order + "2d", *rng.choice(((b, a), (b, a), (float("nan"),) * 2)))
        if rng.random() < 0.03:
            cell = rng.choice((b"", cell[:3], cell[:9], cell[:20], cell + b"x"))
        cells.append(cell if rng.random() < 0.95 else None)
    return pyarrow.array(cells, pyarrow.binary())


def _geo(rng: Random) -> str:
    """What a GeoParquet file says of its columns, sometimes of another shape."""
    about: Any = {"encoding": "WKB", "geometry_types": ["Point"]}
    if rng.random() < 0.3:
        about["crs"] = rng.choice((None, {}, [], "EPSG:4326", {"id": None}, {"id": {"code": []}}))
    if rng.random() < 0.2:
        about = rng.choice(({}, [], None, "WKB", {"encoding": ["WKB"]}))
    names: tuple[Any, ...] = (*(("geometry",) * 8), "x", "", None, 3, [])
    name = rng.choice(names)
    columns: Any = {"geometry": about}
    if rng.random() < 0.1:
        columns = rng.choice(([], None, {}, {"x": about}))
    geo: Any = {"version": "1.1.0", "primary_column": name, "columns": columns}
    if rng.random() < 0.1:
        geo = rng.choice(([], None, {}, 3, "x", {"columns": {}}))
    text = json.dumps(geo)
    return text if rng.random() < 0.95 else rng.choice((text[:-3], "", "[" * 5000, "\x00"))
