"""Traces to write, drawn by hypothesis or made, and a sample file of each format."""

import io
import json
from dataclasses import replace
from functools import reduce
from operator import xor

import numpy as np
from hypothesis import strategies as st

from tests.studies.datasets.geolife_files import HEADER
from tests.traces.formats.fit_files import DEFINITIONS, framed, record, semicircles
from trailveil.traces.fields import FIELDS
from trailveil.traces.formats import write
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Trace

LATITUDES = st.integers(-90 * MICRO, 90 * MICRO)
LONGITUDES = st.integers(-180 * MICRO, 180 * MICRO - 1)
MOMENTS = st.integers(-(2**62), 2**62)


@st.composite
def traces(draw: st.DrawFn) -> tuple[Trace, np.ndarray]:
    """A trace whose segments all have fixes, interleaved in time, and its positions as integers."""
    times = sorted(draw(st.sets(MOMENTS, min_size=1, max_size=12)))
    count = len(times)
    grid = np.array(
        draw(st.lists(st.tuples(LATITUDES, LONGITUDES), min_size=count, max_size=count))
    )
    parts = draw(st.integers(1, count))
    further = draw(
        st.lists(st.integers(0, parts - 1), min_size=count - parts, max_size=count - parts)
    )
    segments = draw(st.permutations([*range(parts), *further]))
    steps = draw(st.lists(st.booleans(), min_size=parts - 1, max_size=parts - 1))
    tracks = tuple(int(number) for number in np.cumsum([0, *steps]))
    return Trace(np.array(times), grid / MICRO, np.array(segments), tracks), grid


@st.composite
def traces_with_fields(draw: st.DrawFn) -> tuple[Trace, np.ndarray]:
    """The same with some fields, stated at some fixes and impossible at others."""
    trace, grid = draw(traces())
    odd = st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e6])
    fields = [
        (name, draw(st.lists(odd | st.floats(least, most), min_size=len(grid), max_size=len(grid))))
        for name in sorted(draw(st.sets(st.sampled_from(sorted(FIELDS)))))
        for least, most in [(FIELDS[name].least, FIELDS[name].most)]
    ]
    return replace(trace, fields=tuple((name, np.array(numbers)) for name, numbers in fields)), grid


def written(trace: Trace, suffix: str, grid: np.ndarray | None = None) -> bytes:
    """What a format writes of a trace."""
    stream = io.BytesIO()
    write(trace, stream, suffix, grid=grid)
    return stream.getvalue()


START = 1_714_548_600  # 2024-05-01T07:30:00Z
COUNT = 40
SECONDS = START + 5 * np.arange(COUNT)
PLACES = np.array([[46_123_456 + 100 * i, 7_654_321 + 200 * i] for i in range(COUNT)]) / MICRO
TRACE = Trace(SECONDS * 10**9, PLACES, np.zeros(COUNT, dtype=np.intp), (0,))


def tcx(places: list[tuple[str, str]]) -> bytes:
    """TCX of positions as text, one at each of SECONDS."""
    points = "".join(
        f"<Trackpoint><Time>{np.datetime64(int(second), 's')}Z</Time><Position><LatitudeDegrees>"
        f"{latitude}</LatitudeDegrees><LongitudeDegrees>{longitude}</LongitudeDegrees></Position>"
        "</Trackpoint>\n"
        for second, (latitude, longitude) in zip(SECONDS, places, strict=True)
    )
    return (
        "<TrainingCenterDatabase><Activities><Activity><Lap><Track>\n"
        f"{points}</Track></Lap></Activity></Activities></TrainingCenterDatabase>"
    ).encode()


def plt(places: list[tuple[str, str]]) -> bytes:
    """GeoLife's .plt of positions as text, one at each of SECONDS."""
    stamps = [str(np.datetime64(int(second), "s")).replace("T", ",") for second in SECONDS]
    rows = [f"{a},{b},0,-777,0,{at}" for (a, b), at in zip(places, stamps, strict=True)]
    return (HEADER + "\r\n".join(rows)).encode()


def fit(places: list[tuple[int, int]]) -> bytes:
    """FIT of positions in semicircles, one at each of SECONDS."""
    rows = zip(SECONDS.tolist(), places, strict=True)
    return framed(DEFINITIONS + b"".join(record(at, *place) for at, place in rows))


def sentence(body: str) -> str:
    """A sentence of NMEA with its checksum."""
    return f"${body}*{reduce(xor, body.encode()):02X}"


def angle(degrees: float, width: int) -> str:
    """Degrees and minutes of NMEA; five decimals hold a microdegree exactly."""
    minutes = round(abs(degrees) * MICRO) * 6
    return f"{minutes // 6_000_000:0{width}d}{minutes % 6_000_000 / 100_000:08.5f}"


def nmea(more: str = "") -> bytes:
    """RMC and GGA of TRACE, in the north-east, with further sentences after each."""
    lines = []
    for at, (a, b) in zip(SECONDS.tolist(), PLACES.tolist(), strict=True):
        day, clock = str(np.datetime64(at, "s")).split("T")
        stamp, date = clock.replace(":", ""), f"{day[8:]}{day[5:7]}{day[2:4]}"
        place = f"{angle(a, 2)},N,{angle(b, 3)},E"
        lines.append(sentence(f"GPRMC,{stamp}.000,A,{place},,,{date},,"))
        lines.append(sentence(f"GPGGA,{stamp}.000,{place},1,07,1.1,,M,,M,,") + more)
    return "\r\n".join([*lines, ""]).encode()


def messages() -> list[dict[str, object]]:
    """Messages of OwnTracks, one at each of SECONDS."""
    return [
        {"_type": "location", "lat": a, "lon": b, "tst": at}
        for at, (a, b) in zip(SECONDS.tolist(), PLACES.tolist(), strict=True)
    ]


def moving() -> dict[str, object]:
    """Moving Features of TRACE."""
    return {
        "type": "Feature",
        "temporalGeometry": {
            "type": "MovingPoint",
            "datetimes": [f"{np.datetime64(int(second), 's')}Z" for second in SECONDS],
            "coordinates": [[b, a] for a, b in PLACES.tolist()],
        },
    }


def signals() -> dict[str, object]:
    """What Android exports of Google Timeline, with a raw signal at each of SECONDS."""
    rows = zip(SECONDS.tolist(), PLACES.tolist(), strict=True)
    return {
        "semanticSegments": [],
        "rawSignals": [
            {
                "position": {
                    "LatLng": f"{a:.6f}°, {b:.6f}°",
                    "timestamp": f"{np.datetime64(at, 's')}Z",
                }
            }
            for at, (a, b) in rows
        ],
    }


TEXT = [(f"{a:.6f}", f"{b:.6f}") for a, b in PLACES]
SAMPLES = {
    "FIT": fit([(semicircles(a), semicircles(b)) for a, b in PLACES.tolist()]),
    "TCX": tcx(TEXT),
    "NMEA": nmea(),
    "GeoLife": plt(TEXT),
    "Moving Features": json.dumps(moving()).encode(),
    "Google Timeline": json.dumps(signals(), ensure_ascii=False).encode(),
    "OwnTracks": json.dumps(messages()).encode(),
    **{
        name: written(TRACE, suffix)
        for name, suffix in (
            ("GPX", ".gpx"),
            ("KML", ".kml"),
            ("KMZ", ".kmz"),
            ("GeoJSON", ".geojson"),
            ("GeoParquet", ".parquet"),
            ("CSV", ".csv"),
            ("TSV", ".tsv"),
        )
    },
}
"""TRACE in each format, by the name of its row in the table."""
