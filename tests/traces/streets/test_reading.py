"""Street networks come out of every format alike, and hostile files are one clear line."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trailveil.errors import InvalidValue, Refused, TrailveilError, UnreadableInput
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.streets import reading
from trailveil.traces.streets.network import network
from trailveil.traces.streets.reading import streets_near
from trailveil.traces.streets.town import FRAME, as_trace, town, town_geojson, town_ride

HERE = Frame(46, -33)
TRACK = np.array([[46.0, -33.0], [46.0, -32.9985], [46.0, -32.997]])
NODES = {1: (46.0, -33.0), 2: (46.0, -32.999), 3: (46.0, -32.998), 4: (46.0, -32.997)}
FAR = {5: (46.5, -33.0)}
BOMB = '<?xml version="1.0"?><!DOCTYPE osm [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><osm>&b;</osm>'


def osm(*, ways: str, first: bool = False) -> str:
    nodes = "".join(
        f'<node id="{name}" lat="{lat}" lon="{lon}"/>'
        for name, (lat, lon) in {**NODES, **FAR}.items()
    )
    return f'<osm version="0.6">{ways}{nodes}</osm>' if first else f"<osm>{nodes}{ways}</osm>"


def way(*names: object, tag: str = '<tag k="highway" v="residential"/>') -> str:
    return "<way>" + "".join(f'<nd ref="{name}"/>' for name in names) + tag + "</way>"


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "streets"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def pbf(folder: Path) -> bytes:
    osmium = pytest.importorskip("osmium")
    path = folder / "made.osm.pbf"
    with osmium.SimpleWriter(str(path)) as out:
        for name, (lat, lon) in {**NODES, **FAR}.items():
            out.add_node(osmium.osm.mutable.Node(id=name, location=(lon, lat)))
        tags = {"highway": "residential"}
        out.add_way(osmium.osm.mutable.Way(id=1, nodes=[1, 2, 3, 4, 99, 5], tags=tags))
        out.add_way(osmium.osm.mutable.Way(id=2, nodes=[1, 4], tags={"building": "yes"}))
    return path.read_bytes()


def geojson() -> str:
    line = [[lon, lat] for lat, lon in NODES.values()]
    lines = {"type": "MultiLineString", "coordinates": [line[:3], line[2:]]}
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [{"type": "Feature", "geometry": lines, "properties": None}],
        }
    )


@pytest.mark.parametrize("form", ["xml", "ways first", "pbf", "geojson"])
def test_the_streets_of_a_file_are_the_same_in_every_format(form: str, tmp_path: Path) -> None:
    """Four nodes in a row; what is far, missing or no street is not there."""
    ways = way(1, 2, 3, 4, 99, 5) + way(1, 4, tag='<tag k="building" v="yes"/>')
    texts: dict[str, Callable[[], str | bytes]] = {
        "xml": lambda: osm(ways=ways),
        "ways first": lambda: osm(ways=ways, first=True),
        "pbf": lambda: pbf(tmp_path),
        "geojson": geojson,
    }
    network = streets_near(written(tmp_path, texts[form]()), HERE, TRACK)
    expected = HERE.to_lattice(np.array(list(NODES.values()))) / MICRO
    assert network.nodes == pytest.approx(expected, abs=0.02)
    assert list(zip(network.tails.tolist(), network.heads.tolist(), strict=True)) == [
        *((0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2))
    ]
    assert network.total == pytest.approx(np.hypot(*(expected[3] - expected[0])), abs=0.05)


def test_a_way_is_cut_where_a_node_has_no_id_or_no_place(tmp_path: Path) -> None:
    ways = way(1, 2, "x", 3, 4) + '<node id="7" lat="nan" lon="-33"/>' + way(1, 7, 4)
    network = streets_near(written(tmp_path, osm(ways=ways)), HERE, TRACK)
    assert network.tails.size == 4


def test_streets_on_both_sides_of_the_antimeridian_meet(tmp_path: Path) -> None:
    text = (
        '<osm><node id="1" lat="10" lon="179.999"/><node id="2" lat="10" lon="-179.999"/>'
        + way(1, 2)
        + "</osm>"
    )
    track = np.array([[10.0, 179.9995], [10.0, -179.9995]])
    network = streets_near(written(tmp_path, text), Frame(10, -180), track)
    assert network.total == pytest.approx(219.3, abs=0.5)


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (BOMB, UnreadableInput, "plain XML, got a document type"),
        ("<gpx/>", UnreadableInput, "got other XML"),
        ("<osm><node", UnreadableInput, "well-formed XML"),
        ('{"type": "Topology"}', UnreadableInput, "must be lines of GeoJSON"),
        ("[1]", UnreadableInput, "must be lines of GeoJSON"),
        ('{"type": "LineString", "coordinates": [1, [2], "x", [null, 1]]}', Refused, "0%"),
        (osm(ways=way() + way(99) + way(1, 1)), Refused, "got 0% of its fixes"),
        (osm(ways=way(1, 2)), Refused, "got 67% of its fixes"),
        (b"\0\0\0\x0d\x0a\x09OSMHeader\x18\x09xxxxx", UnreadableInput, "damaged"),
        (b"\0\x01\x02", UnreadableInput, "must be XML"),
        ("<a>" * 2000, UnreadableInput, "elements in one another"),
    ],
)
def test_what_is_no_street_network_is_one_clear_line(
    text: str | bytes, error: type[TrailveilError], says: str, tmp_path: Path
) -> None:
    if isinstance(text, bytes) and b"OSMHeader" in text:
        pytest.importorskip("osmium")
    with pytest.raises(error, match=says) as caught:
        streets_near(written(tmp_path, text), HERE, TRACK)
    assert "\n" not in str(caught.value)


def test_more_nodes_than_are_read_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, osm(ways=way(1, 2, 3, 4)))
    monkeypatch.setattr(reading, "_MOST_NODES", 3)
    with pytest.raises(UnreadableInput, match="at most 3 nodes"):
        streets_near(path, HERE, TRACK)
    monkeypatch.setattr(reading, "_MOST_NODES", 4)
    monkeypatch.setattr(reading, "_MOST_NAMED", 3)
    with pytest.raises(UnreadableInput, match="and 3 in all"):
        streets_near(path, HERE, TRACK)


def test_a_star_of_streets_is_no_network() -> None:
    angles = np.arange(101.0)
    nodes = np.concatenate([[[0.0, 0.0]], np.stack([angles, angles + 1], axis=1)])
    spokes = np.stack([np.zeros(101, dtype=np.intp), np.arange(1, 102)], axis=1)
    with pytest.raises(InvalidValue, match="at most 100 streets at a crossing"):
        network(nodes, spokes)
    assert network(nodes, spokes[:100]).most_ways == 100


def test_the_made_up_town_is_read_as_it_was_written(tmp_path: Path) -> None:
    streets = town(blocks=8)
    times, places = town_ride(streets, seed=2, minutes=15)
    trace = as_trace(times, places)
    network = streets_near(written(tmp_path, town_geojson(streets)), FRAME, trace.positions)
    assert network.total == pytest.approx(streets.total, rel=1e-4)
    assert network.tails.size == streets.tails.size
    # 2.5 m a coordinate, and half the five metres between the points that are looked up.
    assert np.quantile(streets.distances(places), 0.99) < 12


def test_a_ride_moves_at_its_pace_turns_and_stands_in_its_stay() -> None:
    times, places = town_ride(town(blocks=8), seed=5, minutes=20, stay=(300.0, 600.0))
    inside = (times >= 300) & (times <= 600)
    assert np.ptp(places[inside], axis=0).max() < 20
    steps = np.hypot(*np.diff(places, axis=0).T)[~inside[1:]] / 5
    assert 3 < np.median(steps) < 5
    assert np.ptp(places, axis=0).min() > 200
