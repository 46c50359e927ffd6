"""What makes the samples of formats: TRACE alone, and with all that a format can say besides."""

import io
import json
import struct
import zipfile
from functools import reduce
from operator import xor
from typing import Any

import numpy as np

from tests.studies.datasets.geolife_files import HEADER
from tests.traces.formats.fit_files import (
    DEFINITIONS,
    PLACE,
    RECORD,
    UINT32,
    definition,
    framed,
    record,
    semicircles,
)
from tests.traces.formats.fit_files import EPOCH as FIT_EPOCH
from tests.traces.formats.traces import COUNT, PLACES, SECONDS
from trailveil.traces.projection import MICRO

ELEVATIONS = [512.34 + i for i in range(COUNT)]
FEET = [1681 + i for i in range(COUNT)]
STAMPS = [f"{np.datetime64(int(second), 's')}Z" for second in SECONDS]
FIRST = tuple(PLACES[0].tolist())
"""Latitude and longitude of the first fix, which is protected where nothing else is stated."""

FIELDS: dict[str, list[Any]] = {
    "elevation": ELEVATIONS,
    "speed": [3.217 + i / 100 for i in range(COUNT)],
    "course": [271.6 - i for i in range(COUNT)],
    "heart_rate": [142 + i % 9 for i in range(COUNT)],
    "cadence": [81 + i % 3 for i in range(COUNT)],
    "power": [233 + i for i in range(COUNT)],
    "temperature": [21.53 + i / 7 for i in range(COUNT)],
    "comment": ["Secretville by the lake"] * COUNT,
    "author": ["Petronella Hidden"] * COUNT,
    "device": ["Wristwatch 955"] * COUNT,
    "link": ["https://example.org/petronella"] * COUNT,
}


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


def full_gpx() -> bytes:
    """GPX of TRACE with all that the format can say besides."""
    points = "".join(
        f'<trkpt lat="{a:.6f}" lon="{b:.6f}"><ele>{ele:.2f}</ele><time>{at}</time>'
        f"<course>{course:.1f}</course><speed>{speed:.3f}</speed><cmt>Secretville by the lake</cmt>"
        f"<extensions><gpxtpx:TrackPointExtension><gpxtpx:atemp>{warm:.2f}</gpxtpx:atemp>"
        f"<gpxtpx:hr>{heart}</gpxtpx:hr><gpxtpx:cad>{cadence}</gpxtpx:cad>"
        f"</gpxtpx:TrackPointExtension><power>{power}</power></extensions></trkpt>"
        for (a, b), at, (ele, speed, course, heart, cadence, power, warm) in zip(
            PLACES.tolist(), STAMPS, zip(*list(FIELDS.values())[:7], strict=True), strict=True
        )
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<gpx version="1.1" creator="Wristwatch 955" xmlns="http://www.topografix.com/GPX/1/1"
 xmlns:gpxtpx="http://www.garmin.com/xmlschemas/TrackPointExtension/v1">
<!-- exported for Petronella Hidden -->
<metadata><name>Secretville loop</name><author><name>Petronella Hidden</name></author>
<link href="https://example.org/petronella"/><time>2024-04-30T22:11:10Z</time>
<bounds minlat="46.123456" minlon="7.654321" maxlat="46.127356" maxlon="7.662121"/></metadata>
<wpt lat="46.123456" lon="7.654321"><name>Home</name><ele>513.77</ele></wpt>
<rte><rtept lat="46.127356" lon="7.662121"><name>Clinic</name></rtept></rte>
<trk><name>Morning</name><src>Wristwatch 955</src><trkseg>{points}</trkseg></trk></gpx>""".encode()


def full_tcx() -> bytes:
    """TCX of TRACE with heart rates, elevations, a device and notes."""
    points = "".join(
        f"<Trackpoint><Time>{at}</Time><Position><LatitudeDegrees>{a:.6f}</LatitudeDegrees>"
        f"<LongitudeDegrees>{b:.6f}</LongitudeDegrees></Position><AltitudeMeters>{ele:.2f}"
        f"</AltitudeMeters><HeartRateBpm><Value>{heart}</Value></HeartRateBpm></Trackpoint>"
        for (a, b), at, ele, heart in zip(
            PLACES.tolist(), STAMPS, ELEVATIONS, FIELDS["heart_rate"], strict=True
        )
    )
    return (
        f"<TrainingCenterDatabase><Activities><Activity Sport='Biking'><Lap><Track>{points}</Track>"
        "</Lap><Notes>Secretville loop</Notes><Creator><Name>Wristwatch 955</Name></Creator>"
        "</Activity></Activities></TrainingCenterDatabase>"
    ).encode()


def full_fit() -> bytes:
    """FIT of TRACE with altitudes (a fifth of a metre above -500 m) and a name of the device."""
    name = definition(2, 0, [(8, 16, 7)]) + b"\x02" + b"Secretville".ljust(16, b"\0")
    rows = definition(0, RECORD, [*PLACE, (2, 2, 0x84)]) + b"".join(
        struct.pack(
            "<BIiiBH",
            0,
            int(at) - FIT_EPOCH,
            semicircles(a),
            semicircles(b),
            90,
            round((ele + 500) * 5),
        )
        for at, (a, b), ele in zip(SECONDS, PLACES.tolist(), ELEVATIONS, strict=True)
    )
    return framed(name + rows + definition(3, 18, [(253, 4, UINT32)]))


def full_plt() -> bytes:
    """GeoLife of TRACE with altitudes in feet."""
    rows = [
        f"{a:.6f},{b:.6f},0,{feet},39569.3,{at[:10]},{at[11:19]}"
        for (a, b), feet, at in zip(PLACES, FEET, STAMPS, strict=True)
    ]
    return (HEADER + "\r\n".join(rows)).encode()


def full_kml() -> bytes:
    """KML of TRACE with elevations, arrays of fields, names and a waypoint."""
    coords = "".join(
        f"<gx:coord>{b:.6f} {a:.6f} {ele:.2f}</gx:coord>"
        for (a, b), ele in zip(PLACES.tolist(), ELEVATIONS, strict=True)
    )
    arrays = "".join(
        f'<gx:SimpleArrayData name="{name}">'
        + "".join(f"<gx:value>{value}</gx:value>" for value in values)
        + "</gx:SimpleArrayData>"
        for name, values in FIELDS.items()
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<kml xmlns="http://www.opengis.net/kml/2.2" xmlns:gx="http://www.google.com/kml/ext/2.2">
<Document><name>Secretville loop</name><!-- exported for Petronella Hidden -->
<Placemark><name>Home</name><Point><coordinates>7.654321,46.123456,513.77</coordinates></Point>
</Placemark><Placemark><name>Morning</name><description>Wristwatch 955</description><gx:Track>
{"".join(f"<when>{at}</when>" for at in STAMPS)}{coords}<ExtendedData><SchemaData>{arrays}
</SchemaData></ExtendedData></gx:Track></Placemark></Document></kml>""".encode()


def kmz(document: bytes, name: str = "doc.kml", comment: bytes = b"") -> bytes:
    """A document in an archive, as releases have it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), document)
        archive.comment = comment
    return stream.getvalue()


def full_geojson() -> bytes:
    """GeoJSON of TRACE with elevations as third numbers, and properties."""
    places = [[b, a, e] for (a, b), e in zip(PLACES.tolist(), ELEVATIONS, strict=True)]
    return json.dumps(
        {
            "type": "FeatureCollection",
            "bbox": [7.654321, 46.123456, 7.662121, 46.127356],
            "features": [
                {
                    "type": "Feature",
                    "properties": {"coordTimes": STAMPS, "name": "Secretville loop", **FIELDS},
                    "geometry": {"type": "LineString", "coordinates": places},
                }
            ],
        }
    ).encode()


def full_moving() -> bytes:
    """Moving Features of TRACE with elevations, and values that are measured on the way."""
    feature = moving()
    measured: dict[str, Any] = {name: {"values": values} for name, values in FIELDS.items()}
    feature["temporalProperties"] = [{"datetimes": STAMPS, **measured}]
    feature["properties"] = {"name": "Secretville loop"}
    return json.dumps(feature).encode()


def full_timeline() -> bytes:
    """Google Timeline of TRACE with elevations, and where a visit was."""
    made: Any = signals()
    for one, *values in zip(made["rawSignals"], *FIELDS.values(), strict=True):
        one["position"] |= {"altitudeMeters": values[0], **dict(zip(FIELDS, values, strict=True))}
    made["userLocationProfile"] = {"home": "Secretville", "who": "Petronella Hidden"}
    return json.dumps(made, ensure_ascii=False).encode()


def full_owntracks() -> bytes:
    """OwnTracks of TRACE with further fields, a message a line, as the recorder stores them."""
    lines = [
        f"{at}\t*                 \t"
        + json.dumps({**one, **dict(zip(FIELDS, values, strict=True))})
        for at, one, *values in zip(STAMPS, messages(), *FIELDS.values(), strict=True)
    ]
    return "\n".join([*lines, ""]).encode()


def full_nmea() -> bytes:
    """NMEA of TRACE with heights, and a line of text of the device."""
    heights = iter(ELEVATIONS)
    lines = []
    for line in nmea().decode().split():
        if line.startswith("$GPGGA"):
            body = line[1:].partition("*")[0].replace("1.1,,", f"1.1,{next(heights):.2f},")
            lines.append(sentence(body))
        else:
            lines.append(line)
    made = "\r\n".join([*lines, ""])
    text = "\r\n".join(sentence(f"GPTXT,{word}") for word in ("Secretville", "Petronella"))
    return f"{made}{text}\r\n".encode()


def full_table(delimiter: str) -> bytes:
    """A table of TRACE with a column for each further field, and a comment."""
    names = ["time", "latitude", "longitude", *FIELDS]
    rows = zip(STAMPS, PLACES[:, 0], PLACES[:, 1], *FIELDS.values(), strict=True)
    lines = [delimiter.join(map(str, row)) for row in rows]
    return "\n".join(["# Petronella Hidden", delimiter.join(names), *lines, ""]).encode()


def full_parquet() -> bytes:
    """Parquet of TRACE with a column for each further field, and metadata."""
    import pyarrow
    import pyarrow.parquet

    columns = {"time": STAMPS, "latitude": PLACES[:, 0], "longitude": PLACES[:, 1], **FIELDS}
    stream = io.BytesIO()
    made = pyarrow.table(columns).replace_schema_metadata({"owner": "Petronella Hidden"})
    pyarrow.parquet.write_table(made, stream)
    return stream.getvalue()


def huge_parquet() -> bytes:
    """Parquet of numbers that are beyond all measure."""
    import pyarrow
    import pyarrow.parquet

    stream = io.BytesIO()
    columns = {"lat": [1e300] * 9, "lon": [np.inf] * 9, "time": [2**63 - 1] * 9}
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return stream.getvalue()
