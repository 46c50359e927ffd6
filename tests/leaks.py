"""Recordings with every field filled in, releases of them, and leaks to plant in these."""

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.studies.datasets.geolife_files import HEADER
from tests.traces.formats import traces
from tests.traces.formats.fit_files import EPOCH as FIT_EPOCH
from tests.traces.formats.fit_files import PLACE, RECORD, UINT32, definition, framed, semicircles
from tests.traces.formats.traces import COUNT, PLACES, SECONDS, TRACE, written
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


def gpx() -> bytes:
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


def tcx() -> bytes:
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


def fit() -> bytes:
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


def plt() -> bytes:
    """GeoLife of TRACE with altitudes in feet."""
    rows = [
        f"{a:.6f},{b:.6f},0,{feet},39569.3,{at[:10]},{at[11:19]}"
        for (a, b), feet, at in zip(PLACES, FEET, STAMPS, strict=True)
    ]
    return (HEADER + "\r\n".join(rows)).encode()


def kml() -> bytes:
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


def geojson() -> bytes:
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


def moving() -> bytes:
    """Moving Features of TRACE with elevations, and values that are measured on the way."""
    adversaries = traces.moving()
    measured: dict[str, Any] = {name: {"values": values} for name, values in FIELDS.items()}
    adversaries["temporalProperties"] = [{"datetimes": STAMPS, **measured}]
    adversaries["properties"] = {"name": "Secretville loop"}
    return json.dumps(adversaries).encode()


def timeline() -> bytes:
    """Google Timeline of TRACE with elevations, and where a visit was."""
    made: Any = traces.signals()
    for one, *values in zip(made["rawSignals"], *FIELDS.values(), strict=True):
        one["position"] |= {"altitudeMeters": values[0], **dict(zip(FIELDS, values, strict=True))}
    made["userLocationProfile"] = {"home": "Secretville", "who": "Petronella Hidden"}
    return json.dumps(made, ensure_ascii=False).encode()


def owntracks() -> bytes:
    """OwnTracks of TRACE with further fields, a message a line, as the recorder stores them."""
    lines = [
        f"{at}\t*                 \t"
        + json.dumps({**one, **dict(zip(FIELDS, values, strict=True))})
        for at, one, *values in zip(STAMPS, traces.messages(), *FIELDS.values(), strict=True)
    ]
    return "\n".join([*lines, ""]).encode()


def nmea() -> bytes:
    """NMEA of TRACE with heights, and a line of text of the device."""
    heights = iter(ELEVATIONS)
    lines = []
    for line in traces.nmea().decode().split():
        if line.startswith("$GPGGA"):
            body = line[1:].partition("*")[0].replace("1.1,,", f"1.1,{next(heights):.2f},")
            lines.append(traces.sentence(body))
        else:
            lines.append(line)
    made = "\r\n".join([*lines, ""])
    text = "\r\n".join(traces.sentence(f"GPTXT,{word}") for word in ("Secretville", "Petronella"))
    return f"{made}{text}\r\n".encode()


def table(delimiter: str) -> bytes:
    """A table of TRACE with a column for each further field, and a comment."""
    names = ["time", "latitude", "longitude", *FIELDS]
    rows = zip(STAMPS, PLACES[:, 0], PLACES[:, 1], *FIELDS.values(), strict=True)
    lines = [delimiter.join(map(str, row)) for row in rows]
    return "\n".join(["# Petronella Hidden", delimiter.join(names), *lines, ""]).encode()


def parquet() -> bytes:
    """Parquet of TRACE with a column for each further field, and metadata."""
    import pyarrow
    import pyarrow.parquet

    columns = {"time": STAMPS, "latitude": PLACES[:, 0], "longitude": PLACES[:, 1], **FIELDS}
    stream = io.BytesIO()
    made = pyarrow.table(columns).replace_schema_metadata({"owner": "Petronella Hidden"})
    pyarrow.parquet.write_table(made, stream)
    return stream.getvalue()


FULL = {
    "GPX": gpx(),
    "FIT": fit(),
    "TCX": tcx(),
    "KML": kml(),
    "KMZ": kmz(kml()),
    "NMEA": nmea(),
    "GeoLife": plt(),
    "GeoJSON": geojson(),
    "Moving Features": moving(),
    "Google Timeline": timeline(),
    "OwnTracks": owntracks(),
    "GeoParquet": parquet(),
    "CSV": table(","),
    "TSV": table("\t"),
}
"""TRACE with every further field, in each format by the name of its row."""

GRID = np.rint(PLACES * MICRO).astype(np.int64)
MOVED = GRID + np.random.default_rng(7).normal(0, 5_000, GRID.shape).round().astype(np.int64)
"""Places some 500 m away from the true ones, in whole microdegrees."""


def released(suffix: str, grid: np.ndarray = MOVED) -> bytes:
    """A release of TRACE at other places."""
    return written(TRACE, suffix, grid)


def _once(old: str, new: str) -> Callable[[bytes, str], bytes]:
    """Puts a text in place of the first match of a pattern; {} in the new text is the leak."""

    def put(data: bytes, leak: str) -> bytes:
        whole = new.replace("{}", leak)
        found, count = re.subn(old, lambda _: whole, data.decode(), count=1)
        assert count == 1
        return found.encode()

    return put


def _with_columns(name: str, *, in_metadata: bool = False) -> Callable[[bytes, str], bytes]:
    def put(data: bytes, leak: str) -> bytes:
        import pyarrow.parquet

        sml2010 = pyarrow.parquet.read_table(io.BytesIO(data))
        if in_metadata:
            sml2010 = sml2010.replace_schema_metadata({**sml2010.schema.metadata, name: leak})
        else:
            cells = [None] * (sml2010.num_rows - 1) + [leak]
            sml2010 = sml2010.append_column(name.replace("{}", leak), pyarrow.array(cells))
        stream = io.BytesIO()
        pyarrow.parquet.write_table(sml2010, stream)
        return stream.getvalue()

    return put


def _column(name: str, delimiter: str) -> Callable[[bytes, str], bytes]:
    def put(data: bytes, leak: str) -> bytes:
        head, first, *rest = data.decode().splitlines()
        lines = [f"{head}{delimiter}{name.replace('{}', leak)}", f'{first}{delimiter}"{leak}"']
        return "\n".join([*lines, *rest, ""]).encode()

    return put


def _zipped(put: Callable[[bytes, str], bytes]) -> Callable[[bytes, str], bytes]:
    """The same in the document of an archive."""

    def inner(data: bytes, leak: str) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return kmz(put(archive.read("doc.kml"), leak))

    return inner


def _archive(**options: str) -> Callable[[bytes, str], bytes]:
    """Something of the archive itself."""

    def put(data: bytes, leak: str) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            document = archive.read("doc.kml")
        if "comment" in options:
            return kmz(document, comment=leak.encode())
        stream = io.BytesIO(data)
        with zipfile.ZipFile(stream, "a") as archive:
            archive.writestr(zipfile.ZipInfo("other"), leak)
        return stream.getvalue()

    return put


_KML_PLANTS: dict[str, Callable[[bytes, str], bytes]] = {
    "field": _once("</gx:Track>", "<other>{}</other></gx:Track>"),
    "array": _once(
        "</gx:Track>",
        '<gx:SimpleArrayData name="other"><gx:value>{}</gx:value></gx:SimpleArrayData></gx:Track>',
    ),
    "attribute": _once("<gx:Track>", '<gx:Track other="{}">'),
    "comment": _once("<gx:Track>", "<!-- {} --><gx:Track>"),
    "name": _once("<Placemark>", "<Placemark><name>{}</name>"),
    "text of a position": _once("</gx:coord>", " {}</gx:coord>"),
    "namespace": _once("<kml ", '<kml xmlns:other="{}" '),
}

PLANTS: dict[str, dict[str, Callable[[bytes, str], bytes]]] = {
    ".gpx": {
        "field": _once("</trkpt>", "<other>{}</other></trkpt>"),
        "attribute": _once("<trkseg>", '<trkseg other="{}">'),
        "comment": _once("<trkseg>", "<!-- {} --><trkseg>"),
        "instruction": _once("<trkseg>", "<?other {}?><trkseg>"),
        "creator": _once('creator="trailveil"', 'creator="{}"'),
        "cdata": _once("<trkseg>", "<trkseg><![CDATA[{}]]>"),
        "after the time": _once("Z</time>", "Z</time><time>{}</time>"),
        "namespace": _once("<gpx ", '<gpx xmlns:other="{}" '),
    },
    ".tcx": {
        "field": _once("</Trackpoint>", "<AltitudeMeters>{}</AltitudeMeters></Trackpoint>"),
        "comment": _once("<Activities>", "<!-- {} --><Activities>"),
        "notes": _once("</Lap>", "</Lap><Notes>{}</Notes>"),
        "seconds of a lap": _once("Seconds>[^<]*<", "Seconds>{}<"),
        "metres of a lap": _once("DistanceMeters>[^<]*<", "DistanceMeters>{}<"),
    },
    ".kml": _KML_PLANTS,
    ".kmz": {
        **{name: _zipped(put) for name, put in _KML_PLANTS.items() if name in {"field", "comment"}},
        "comment of the archive": _archive(comment=""),
        "another file": _archive(),
    },
    ".geojson": {
        "field": _once('"properties":{', '"properties":{"other":"{}",'),
        "list": _once('"properties":{', '"properties":{"other":["x",{"y":"{}"}],'),
        "member": _once('{"type":"FeatureCollection"', '{"other":"{}","type":"FeatureCollection"'),
        "key that comes twice": _once('"properties":{', '"properties":{"note":"{}","note":"",'),
        "position": _once(r"\]\]", ',"{}"]]'),
        "type": _once('"FeatureCollection"', '"{}"'),
    },
    **{
        suffix: {
            "field": _column("other", delimiter),
            "comment before": _once("^", "# {}\n"),
            "comment between": _once("\n", "\n# {}\n"),
            "row without a position": _once("\n", f'\n"{{}}"{delimiter * 2}\n'),
        }
        for suffix, delimiter in ((".csv", ","), (".tsv", "\t"))
    },
    ".parquet": {
        "field": _with_columns("other"),
        "metadata": _with_columns("other", in_metadata=True),
    },
}
"""Where a text can be hidden in a release of a format: a function of the file and the text."""


def _in_place(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new)


NAMED: dict[str, Callable[[bytes], bytes]] = {
    ".tcx": _in_place(b"<Track>", b"<Track><Petronella/>"),
    ".gpx": _in_place(b"<trkseg>", b"<trkseg><Petronella/>"),
    ".kml": _in_place(b"<gx:Track>", b"<gx:Track><Petronella/>"),
    ".kmz": lambda data: _zipped(_once("<gx:Track>", "<gx:Track><Petronella/>"))(data, ""),
    ".geojson": _in_place(b'ties":{', b'ties":{"Petronella":[],'),
    ".csv": _in_place(b"longitude", b"longitude,Petronella"),
    ".tsv": _in_place(b"longitude", b"longitude\tPetronella"),
    ".parquet": lambda data: PLANTS[".parquet"]["metadata"](data, ""),
}
"""A release of a format with a name in it that holds nothing."""
