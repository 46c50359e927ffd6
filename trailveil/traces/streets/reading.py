"""Street networks from files: OpenStreetMap XML and PBF, and lines of GeoJSON; only what is near.

Ways of OpenStreetMap are streets where they have a `highway`; in GeoJSON each line is one, and
lines meet where they have a position in common. Files come from strangers: their size is bounded,
XML is guarded (`trailveil.traces.formats.collect`), and PBF is taken apart by pyosmium. What a way
names and the file does not hold (extracts are cut so) is a gap in that way.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from os import PathLike
from typing import Any, Final
from xml.sax import ContentHandler
from xml.sax.xmlreader import AttributesImpl

import numpy as np

from trailveil.errors import Refused, Unavailable, UnreadableInput, installing
from trailveil.files.source import load, named
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.formats.collect import check_depth, number, parse
from trailveil.traces.formats.json_text import inner, is_list, objects, parsed, plain_number
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.streets.network import Network, network

LARGEST = 1_000_000_000
"""Bytes of a file of streets that are read at most."""

_AROUND = 5_000.0  # metres around the track of which streets are kept
_DEGREE = 111_000.0  # metres of a degree of latitude, about
# Nodes near the track, and nodes that ways name, that are read at most.
_MOST_NODES, _MOST_NAMED = 3_000_000, 50_000_000
_NEAR, _COVERED = 60.0, 0.8  # metres to a street; the share of fixes that must be so near
_ID = re.compile(r"-?\d{1,18}", re.ASCII)
_GAP: Final = 10**18  # no id of a node: one that is missing
_NO_STREETS = {"proposed", "construction", "razed", "abandoned", "platform", "corridor", "elevator"}
_LINES: Final[dict[str, Callable[[Any], Iterable[Any]]]] = {
    "LineString": lambda at: [at],
    "MultiLineString": lambda at: at,
}


def streets_near(path: str | PathLike[str], frame: Frame, positions: FloatArray) -> Network:
    """The streets of a file within 5 km of a track, in metres of a frame.

    positions: (n, 2) degrees of the track. Raises UnreadableInput for a file that is none of
    streets, Unavailable where PBF needs what is not installed, and Refused where the streets are
    not those of the track: fewer than four of five fixes are within 60 m of one.
    """
    data, where = load(path, LARGEST), named(path)
    collected = _Collected(positions, where)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}:
        _take_geojson(parsed(data, where), collected, where)
    elif b"OSMHeader" in data[:64]:
        _take_pbf(data, collected, where)
    else:
        handler = _Ways(collected, where)
        parse(data, handler, where)
        if not handler.is_osm:
            raise UnreadableInput(
                "streets must be a file of OpenStreetMap (XML or PBF) or GeoJSON, got other XML: "
                f"{where}; name a file of streets"
            )
    network = collected.network(frame)
    share = 0.0
    if network is not None:
        near = network.distances(frame.to_lattice(positions) / MICRO) <= _NEAR
        share = float(np.mean(near))
    if network is None or share < _COVERED:
        raise Refused(
            f"streets must cover the track, got {share:.0%} of its fixes within {_NEAR:.0f} m of a "
            f"street ({_COVERED:.0%} are the least): {where}; name a file of the streets around it"
        )
    return network


class _Collected:
    """Nodes near a track, by their ids, and the ways that name them."""

    def __init__(self, positions: FloatArray, where: str) -> None:
        self._where = where
        low, high = positions.min(axis=0), positions.max(axis=0)
        self._low, self._high = low[0] - _AROUND / _DEGREE, high[0] + _AROUND / _DEGREE
        # Longitudes are taken from that of the first fix: a track may pass the antimeridian.
        self._first = float(positions[0, 1])
        away = (positions[:, 1] - self._first + 180) % 360 - 180
        widest = max(abs(self._low), abs(self._high))
        more = _AROUND / _DEGREE / max(0.01, float(np.cos(np.radians(min(widest, 89.0)))))
        self._west, self._east = away.min() - more, away.max() + more
        self._rows: dict[Any, int] = {}
        self._degrees = array("d")
        self._named: list[list[Any]] = []
        self._count = 0

    def node(self, name: Any, latitude: float, longitude: float) -> None:
        """A node in degrees; what is no place on the globe, or far from the track, is passed by."""
        if not (-90 <= latitude <= 90 and -180 <= longitude <= 180 and name not in self._rows):
            return
        away = (longitude - self._first + 180) % 360 - 180
        if self._low <= latitude <= self._high and self._west <= away <= self._east:
            if len(self._rows) >= _MOST_NODES:
                raise self._too_many()
            self._rows[name] = len(self._rows)
            self._degrees.extend((latitude, longitude))

    def way(self, names: list[Any]) -> None:
        """A street along nodes, which may come later."""
        self._count += len(names)
        if self._count > _MOST_NAMED:
            raise self._too_many()
        if len(names) > 1:
            self._named.append(names)

    def network(self, frame: Frame) -> Network | None:
        """The streets between nodes that are near; None where there is none."""
        pairs = array("q")
        for names in self._named:
            rows = [self._rows.get(name, -1) for name in names]
            for row, other in pairwise(rows):
                if row >= 0 and other >= 0 and row != other:
                    pairs.extend((row, other))
        if not pairs:
            return None
        degrees = np.array(self._degrees).reshape(-1, 2)
        metres = frame.to_lattice(degrees) / MICRO
        return network(metres, np.array(pairs, dtype=np.intp).reshape(-1, 2))

    def _too_many(self) -> UnreadableInput:
        return UnreadableInput(
            f"streets must have at most {_MOST_NODES:,} nodes near the track and "
            f"{_MOST_NAMED:,} in all, got more: {self._where}; cut out the region first"
        )


class _Ways(ContentHandler):
    """Nodes and ways with a `highway` of OpenStreetMap XML."""

    def __init__(self, collected: _Collected, where: str) -> None:
        super().__init__()
        self._collected, self._where = collected, where
        self._depth = 0
        self._names: list[int] = []
        self._street = False
        self.is_osm = False

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802 - of SAX
        """Take a node, or what belongs to a way."""
        check_depth(self._depth, self._where)
        self._depth += 1
        if self._depth == 1:
            self.is_osm = name == "osm"
        elif name == "node" and (ident := _id(attrs.get("id"))) is not None:
            self._collected.node(ident, number(attrs.get("lat")), number(attrs.get("lon")))
        elif name == "way":
            self._names, self._street = [], False
        elif name == "nd" and len(self._names) <= _MOST_NAMED:
            ident = _id(attrs.get("ref"))
            self._names.append(_GAP if ident is None else ident)
        elif name == "tag" and attrs.get("k") == "highway":
            self._street = attrs.get("v") not in _NO_STREETS

    def endElement(self, name: str) -> None:  # noqa: N802 - of SAX
        """Take the way that ends, if it is a street."""
        self._depth -= 1
        if name == "way":
            if self._street:
                self._collected.way(self._names)
            self._names, self._street = [], False


def _id(text: str | None) -> int | None:
    return int(text) if text is not None and _ID.fullmatch(text) else None


def _take_pbf(data: bytes, collected: _Collected, where: str) -> None:
    try:
        import osmium
    except ImportError:
        raise Unavailable(
            f"streets as PBF need pyosmium, got none installed: {where}; say "
            f"{installing('streets')}, or name streets as OpenStreetMap XML or GeoJSON"
        ) from None
    kinds = osmium.osm.NODE | osmium.osm.WAY
    try:
        ways = osmium.FileProcessor(osmium.io.FileBuffer(data, "pbf"), kinds)
        # The index of ids grows with the nodes that there are, and not with their largest id.
        ways = ways.with_locations("sparse_mem_array")
        ways = ways.with_filter(osmium.filter.EntityFilter(osmium.osm.WAY))
        for way in ways.with_filter(osmium.filter.KeyFilter("highway")):
            if not isinstance(way, osmium.osm.Way) or way.tags["highway"] in _NO_STREETS:
                continue
            for node in way.nodes:
                if node.location.valid():
                    collected.node(node.ref, node.lat, node.lon)
            collected.way([node.ref for node in way.nodes])
    except (RuntimeError, ValueError, OSError):
        raise UnreadableInput(
            f"streets must be a whole PBF file, got one that is damaged: {where}; download it again"
        ) from None


def _take_geojson(root: Any, collected: _Collected, where: str) -> None:
    if not isinstance(root, dict) or inner(root, "type") not in {
        "FeatureCollection",
        "Feature",
        *_LINES,
    }:
        raise UnreadableInput(
            f"streets must be lines of GeoJSON, got other JSON: {where}; name a file of streets"
        )
    for line in _lines(root):
        names = []
        for position in line if isinstance(line, list) else []:
            pair = position[:2] if isinstance(position, list) else []
            lon, lat = [plain_number(value) for value in pair] if len(pair) == 2 else (1e9, 1e9)
            usable = abs(lat) <= 90 and abs(lon) <= 180
            name: Any = (round(lat * 1e7), round(lon * 1e7)) if usable else _GAP
            collected.node(name, lat, lon)
            names.append(name)
        collected.way(names)


def _lines(root: dict[str, Any]) -> Iterator[Any]:
    """The lists of positions in a tree."""
    several = inner(root, "type") == "FeatureCollection"
    features: Iterable[dict[str, Any]] = objects(root.get("features")) if several else [root]
    for feature in features:
        shape = feature.get("geometry") if feature.get("type") == "Feature" else feature
        if inner(feature, "properties", "highway") in _NO_STREETS or not isinstance(shape, dict):
            continue
        taken = _LINES.get(str(shape.get("type")))
        at = shape.get("coordinates")
        if taken is not None and is_list(at):
            yield from taken(at)
