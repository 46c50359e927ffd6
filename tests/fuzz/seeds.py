"""What is mutated: made-up samples of every format and, where they are, small real recordings."""

import io
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tests.traces.formats.samples import BINARY, FULL, SAMPLES
from tests.traces.formats.traces import PLACES, SECONDS
from trailveil.errors import TrailveilError
from trailveil.traces.formats.table import FORMATS, format_of

REAL = Path(__file__).parents[3] / "shared" / "traces"
LARGEST = 6_000
"""Bytes of a seed: what is larger is cut, so that an input takes milliseconds."""
_LARGEST_REAL = 60_000

SUFFIXES = {row.name: row.suffixes[0] if row.suffixes else ".json" for row in FORMATS}
"""A suffix of each format."""


def _rec() -> bytes:
    """OwnTracks' .rec of the first places."""
    rows = zip(SECONDS[:12].tolist(), PLACES[:12].tolist(), strict=True)
    return "".join(
        f"2024-05-01T07:30:{i:02d}Z\t*                 \t"
        f"{json.dumps({'_type': 'location', 'lat': a, 'lon': b, 'tst': at})}\n"
        for i, (at, (a, b)) in enumerate(rows)
    ).encode()


def _visits() -> bytes:
    """Google Timeline as iOS exports it, with visits and a path."""
    place = f"geo:{PLACES[0, 0]:.6f},{PLACES[0, 1]:.6f}"
    span = {"startTime": "2024-05-01T07:30:00.000Z", "endTime": "2024-05-01T07:40:00.000Z"}
    later = {"startTime": "2024-05-01T07:40:00.000Z", "endTime": "2024-05-01T07:50:00.000Z"}
    path = [{"point": place, "durationMinutesOffsetFromStartTime": str(i)} for i in range(8)]
    visit = {"topCandidate": {"placeLocation": place}, "probability": "0.9"}
    return json.dumps([{**span, "visit": visit}, {**later, "timelinePath": path}]).encode()


MADE: Mapping[str, tuple[bytes, ...]] = {
    name: (SAMPLES[name], FULL[name], *more)
    for name in SAMPLES
    for more in [{"OwnTracks": (_rec(),), "Google Timeline": (_visits(),)}.get(name, ())]
}
"""Samples by the name of their format: the trace alone, and with every further field."""

READINGS: tuple[bytes, ...] = (
    "".join(
        ["time,temperature (degC)\n"]
        + [f"2024-05-01T07:{i:02d}:00Z,{21 + i / 7:.3f}\n" for i in range(30)]
    ).encode(),
    "".join(
        ["date;clock time;room [K];note\n"]
        + [f"01.05.2024;07:{i:02d};{294 + i / 7:.2f};x\n".replace(".2", ",2") for i in range(30)]
    ).encode(),
    "".join(["timestamp\tvalue\n"] + [f"{1714548600 + i}\t{i}\n" for i in range(30)]).encode(),
)
"""Tables of one quantity."""

PRIORS: tuple[bytes, ...] = tuple(
    json.dumps(
        {
            "format": "trailveil-prior",
            "version": 1,
            "unit": unit,
            "terms": [*terms, {"kernel": "white", "std": 4.0}],
            "fitted_on": None,
        }
    ).encode()
    for unit, terms in (
        ("metres", [{"kernel": "integrated-ou", "std": 3.0, "time_constant": 60.0}]),
        (
            "metres",
            [
                {"kernel": "constant", "std": 1000.0},
                {"kernel": "rbf", "std": 300.0, "length_scale": 90.0},
            ],
        ),
        ("degC", [{"kernel": "matern32", "std": 2.0, "length_scale": 600.0}]),
    )
)
"""Prior files."""

KEYS: tuple[bytes, ...] = (f"trailveil key 1\n{'0123456789abcdef' * 4}\n".encode(),)
"""Key files."""


@cache
def recordings(real: Path | None) -> dict[str, tuple[bytes, ...]]:
    """Seeds by the name of their format, those in a folder with them, in the order of names."""
    found = {name: list(samples) for name, samples in MADE.items()}
    for path in sorted(real.rglob("*")) if real else ():
        if path.is_file() and path.stat().st_size <= _LARGEST_REAL:
            data = path.read_bytes()
            try:
                name = format_of(path, data).name
            except TrailveilError:
                continue
            found[name].append(_cut(name, data))
    return {name: _few(samples) for name, samples in found.items()}


def _cut(name: str, data: bytes) -> bytes:
    """A file without its middle; formats that have no parts to leave out stay as they are."""
    if name in BINARY or len(data) <= LARGEST:
        return data
    return _whole_json(data) if data.lstrip()[:1] in b"{[" else _whole_lines(data)


def _whole_lines(data: bytes) -> bytes:
    """The beginning and the end, cut at ends of lines where there are any near."""
    head, tail = data[: LARGEST * 3 // 4], data[-LARGEST // 4 :]
    return head[: head.rfind(b"\n") + 1 or None] + tail[tail.find(b"\n") + 1 :]


def _whole_json(data: bytes) -> bytes:
    """JSON with at most a few elements in each list."""
    try:
        return json.dumps(_short(json.loads(data))).encode()[:_LARGEST_REAL]
    except ValueError:
        return data[:LARGEST]


def _short(value: object) -> object:
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value[:8]] if isinstance(value, list) else value


def _few(samples: Iterable[bytes], most: int = 40) -> tuple[bytes, ...]:
    """At most so many, evenly over all, the made ones among them."""
    whole = list(samples)
    rest = whole[3:]
    return (*whole[:3], *rest[:: max(1, -(-len(rest) // most))])


def table_bytes(columns: Mapping[str, object], **options: object) -> bytes:
    """A Parquet file of columns as pyarrow takes them."""
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(dict(columns)), stream, **options)
    return stream.getvalue()
