"""Recordings with every field filled in, releases of them, and leaks to plant in these."""

import io
import re
import zipfile
from collections.abc import Callable

import numpy as np

from tests.traces.formats.builders import kmz
from tests.traces.formats.traces import PLACES, TRACE, written
from trailveil.traces.projection import MICRO

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
