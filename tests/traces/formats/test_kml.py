"""KML and KMZ: what is a fix, what is not, and archives that are made to do harm."""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.traces.formats.samples import SAMPLES
from tests.traces.formats.traces import TRACE, written
from trailveil.errors import UnreadableInput
from trailveil.files import source
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import kml, kmz, read
from trailveil.traces.trace import Recording

WHENS = [f"2024-05-01T08:00:0{i}Z" for i in range(3)]
COORDS = ["7.0 46.0 500", "7.1 46.1", "7.2 46.2 520.5"]


def document(inner: str) -> bytes:
    return (
        f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{inner}</Document></kml>'.encode()
    )


def track(whens: list[str], coords: list[str], more: str = "") -> str:
    parts = [f"<when>{at}</when>" for at in whens]
    parts += [f"<gx:coord>{place}</gx:coord>" for place in coords]
    return f"<gx:Track>{''.join(parts)}{more}</gx:Track>"


def placemark(inner: str) -> str:
    return f"<Placemark>{inner}</Placemark>"


def taken(inner: str, *field_names: str) -> Recording:
    return kml.read(document(inner), "x", field_names)


def refusal(data: bytes) -> str:
    with pytest.raises(UnreadableInput) as caught:
        kmz.read(data, "input.kmz")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def stamp(at: str, name: str = "TimeStamp", leaf: str = "when") -> str:
    return f"<{name}><{leaf}>{at}</{leaf}></{name}>"


SPAN = f"<TimeSpan><begin>{WHENS[0]}</begin><end>{WHENS[2]}</end></TimeSpan>"
POINT = "<Point><coordinates>\n 7.5,46.5,300 </coordinates></Point>"


def test_times_and_positions_of_a_track_are_paired_in_whatever_order() -> None:
    mixed = "".join(
        f"<gx:coord>{place}</gx:coord><when>{at}</when>"
        for place, at in zip(COORDS, WHENS, strict=True)
    )
    for inner in (track(WHENS, COORDS), f"<Track>{mixed}</Track>"):
        riders = taken(placemark(inner))
        assert riders.positions.tolist() == [[46.0, 7.0], [46.1, 7.1], [46.2, 7.2]]
        assert [f"{at}"[:19] + "Z" for at in riders.times] == WHENS
        assert not riders.naive.any()
        assert riders.seen.other_fields == 1  # the height


def test_a_track_with_more_of_one_than_of_the_other_is_refused() -> None:
    for whens, coords in ((WHENS[:2], COORDS), (WHENS, COORDS[:1])):
        with pytest.raises(UnreadableInput, match="a time for each position, got"):
            taken(placemark(track(whens, coords)))


def test_a_track_without_times_has_fixes_without_times() -> None:
    assert np.isnat(taken(placemark(track([], COORDS))).times).all()


def test_an_empty_position_takes_its_time_with_it() -> None:
    riders = taken(placemark(track(WHENS, ["", *COORDS[1:]])))
    assert [f"{at}"[17:19] for at in riders.times] == ["01", "02"]
    assert riders.seen.without_position == 1


def test_tracks_and_segments() -> None:
    several = f"<gx:MultiTrack>{track(WHENS[:1], COORDS[:1]) * 2}</gx:MultiTrack>"
    riders = taken(placemark(several) + placemark(track(WHENS, COORDS)))
    assert riders.segments.tolist() == [0, 1, 2, 2, 2]
    assert riders.tracks == (0, 0, 1)


def test_a_placemark_with_a_time_is_a_fix_and_with_a_span_two() -> None:
    riders = taken(placemark(stamp(WHENS[1]) + POINT) + placemark(POINT + SPAN))
    assert riders.positions.tolist() == [[46.5, 7.5]] * 3
    assert [f"{at}"[17:19] for at in riders.times] == ["01", "00", "02"]
    assert riders.seen.waypoints == 0


def test_beside_a_track_it_is_a_waypoint() -> None:
    line = f"{SPAN}<LineString><coordinates>1,2 3,4</coordinates></LineString>"
    inner = placemark(stamp(WHENS[1]) + POINT) + placemark(line)
    riders = taken(inner + placemark(track(WHENS, COORDS)))
    assert len(riders) == 3
    assert (riders.seen.waypoints, riders.seen.routes) == (1, 1)


def test_a_line_with_a_span_has_times_at_its_ends_alone() -> None:
    line = "<LineString><coordinates>7,46,1 7.1,46.1\n7.2,46.2,0</coordinates></LineString>"
    riders = taken(placemark(SPAN + line))
    assert np.isnat(riders.times).tolist() == [False, True, False]
    assert riders.positions.tolist() == [[46.0, 7.0], [46.1, 7.1], [46.2, 7.2]]
    for other in ("", stamp(WHENS[0])):
        with pytest.raises(UnreadableInput, match="got routes: 1"):
            taken(placemark(other + line))


def test_a_view_of_the_map_is_no_place_and_a_link_is_not_followed() -> None:
    view = f"<LookAt>{SPAN}<longitude>7</longitude><latitude>46</latitude></LookAt>"
    link = "<NetworkLink><Link><href>http://127.0.0.1:9/x.kml</href></Link></NetworkLink>"
    with pytest.raises(UnreadableInput, match="KML that only links to where it is, which is not"):
        taken(link + placemark(view + POINT))
    with pytest.raises(UnreadableInput, match="got waypoints: 1"):
        taken(placemark(view + POINT))
    assert len(taken(link + placemark(track(WHENS, COORDS)))) == 3


@pytest.mark.parametrize(
    "place", ["NaN NaN 1", "inf 46", "7", "7,46", "x" * 1000, "7 46 1 2", "1e999 1e999", "7 95"]
)
def test_odd_positions_are_counted_and_never_a_traceback(place: str) -> None:
    riders = taken(placemark(track(WHENS, [place] * 3)))
    assert len(riders) == 3
    if place != "7 46 1 2":
        with pytest.raises(UnreadableInput):
            clean(riders)


@pytest.mark.parametrize("when", ["2024", "2024-05", "2024-05-01", "0725", "9999-01-01T00:00:00Z"])
def test_times_that_are_none_are_counted(when: str) -> None:
    riders = taken(placemark(track([*WHENS[:2], when], COORDS)))
    assert riders.seen.unreadable_times + riders.seen.impossible_years == 1
    assert np.isnat(riders.times[2])


def test_fields_are_taken_by_name_where_each_fix_has_one() -> None:
    values = "".join(f"<gx:value>{text}</gx:value>" for text in ("150", "", "152"))
    arrays = "".join(
        f'<gx:SimpleArrayData name="{name}">{text}</gx:SimpleArrayData>'
        for name, text in (("heartrate", values), ("cadence", values[:24]), ("secret", values))
    )
    more = f"<ExtendedData><SchemaData>{arrays}</SchemaData></ExtendedData>"
    inner = "<name>Loop</name>" + track(WHENS, COORDS, more)
    riders = taken(placemark(inner), "elevation", "heart_rate", "cadence", "name")
    fields = dict(riders.fields)
    np.testing.assert_array_equal(fields["elevation"], [500, np.nan, 520.5])
    np.testing.assert_array_equal(fields["heart_rate"], [150, np.nan, 152])
    assert "cadence" not in fields
    assert riders.names == ("Loop",)
    assert riders.seen.other_fields == 1


def nested(depth: int) -> str:
    return "<Folder>" * depth + placemark(track(WHENS, COORDS)) + "</Folder>" * depth


def test_folders_may_be_in_one_another_but_not_without_end() -> None:
    assert len(taken(nested(500))) == 3
    with pytest.raises(UnreadableInput, match="at most 1000 elements in one another"):
        taken(nested(100_000))


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        for name, content in members:
            file.writestr(name, content)
    return stream.getvalue()


TRACKED = document(placemark(track(WHENS, COORDS)))


def test_an_archive_is_read_with_pictures_beside() -> None:
    data = archive(("files/a.png", b"\x89PNG"), ("my/ride.KML", TRACKED))
    assert len(kmz.read(data, "x")) == 3
    assert len(kmz.read(archive(("doc.kml", TRACKED), method=zipfile.ZIP_STORED), "x")) == 3


def test_what_is_written_tells_nothing_of_when_and_where() -> None:
    data = written(TRACE, ".kmz")
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        (entry,) = file.infolist()
        assert (entry.filename, entry.date_time) == ("doc.kml", (1980, 1, 1, 0, 0, 0))
        assert entry.extra == entry.comment == file.comment == b""
        assert file.read(entry) == SAMPLES["KML"]


def test_no_document_or_several_are_refused() -> None:
    assert "with a recording, got 0" in refusal(archive(("a.png", b"x")))
    assert "with a recording, got 0" in refusal(archive(("inner.kmz", SAMPLES["KMZ"])))
    root = b"<kml><NetworkLink><Link><href>b.kml</href></Link></NetworkLink></kml>"
    assert len(kmz.read(archive(("doc.kml", root), ("b.kml", TRACKED)), "x")) == 3
    assert "got 2 in 2" in refusal(archive(("doc.kml", TRACKED), ("b.kml", TRACKED)))


@pytest.mark.parametrize("name", ["../doc.kml", "/etc/doc.kml", "a/../../doc.kml", "C:\\doc.kml"])
def test_names_that_lead_outside_are_refused(name: str) -> None:
    assert "leads outside" in refusal(archive((name, TRACKED)))


def test_a_bomb_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = archive(("doc.kml", b"<kml>" + b" " * 2**23))
    assert len(bomb) < 2**15
    assert "200 times its packed size" in refusal(bomb)
    monkeypatch.setattr(source, "LARGEST", 1000)
    stored = archive(("doc.kml", b"<kml>" + b" " * 1000), method=zipfile.ZIP_STORED)
    assert "must be at most 0 MB" in refusal(stored)


def test_a_size_that_is_stated_wrongly_does_not_help_a_bomb() -> None:
    bomb = archive(("doc.kml", b" " * 2**23))
    at = bomb.index(b"PK\1\2")
    lying = bomb[: at + 24] + struct.pack("<L", 100) + bomb[at + 28 :]
    assert "damaged" in refusal(lying) or "packed size" in refusal(lying)


def test_too_many_files_are_refused_without_listing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    many = archive(*((f"{i}", b"") for i in range(kmz.MOST_MEMBERS + 1)))

    def listed(*_: object) -> None:
        pytest.fail("the archive was listed")

    with monkeypatch.context() as patched:
        patched.setattr(zipfile.ZipFile, "__init__", listed)
        assert "at most 1000 files" in refusal(many)
    at = many.rindex(b"PK\5\6")  # it says that it has one
    fewer = many[: at + 8] + struct.pack("<HH", 1, 1) + many[at + 12 :]
    assert "at most 1000 files" in refusal(fewer)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_pack_are_refused(method: int) -> None:
    assert "stored or deflated" in refusal(archive(("doc.kml", TRACKED), method=method))


def test_encrypted_and_damaged_archives_are_refused() -> None:
    data = archive(("doc.kml", TRACKED))
    at = data.index(b"PK\1\2")
    assert "not encrypted" in refusal(data[: at + 8] + b"\1" + data[at + 9 :])
    broken = bytearray(data)
    broken[60:90] = bytes(30)
    assert "damaged" in refusal(bytes(broken))


REAL = {
    "gpsbabel/track__google_ext.kml": 451,
    "gpsbabel/track__gpx_garmin_extensions-kml_track.kml": 8,
    "togeojson/gxtrack.kml": 7,
    "togeojson/non_gx_multitrack.kml": 16,
    "opentracks/kml22_order_location_and_when.kml": 3,
    "dawarich/kml/points_with_timestamps.kmz": 3,
}
REAL_REFUSED = {
    "opentracks/kml22_when_locations_different.kml": "1 times and 2 positions",
    "opentracks/kml22_time_decreases.kml": "two fixes or more",
    "dawarich/kml/linestring_track.kml": "routes: 1",
    "dawarich/kml/large_track.kml": "routes: 2",
    "dawarich/kml/multigeometry.kml": "routes: 1, waypoints: 2",
    "gpsbabel/GPSData000001-A810-Doriel.kml": "routes: 4",
}


def outcome(path: Path) -> tuple[int, str]:
    """Fixes kept and no message, or none and the refusal."""
    try:
        return len(clean(read(path))[0]), ""
    except UnreadableInput as error:
        return 0, str(error)


def test_real_files(shared: Path) -> None:
    folder = shared / "traces" / "kml"
    for path in sorted(folder.rglob("*.km[lz]")):
        name = path.relative_to(folder).as_posix()
        count, message = outcome(path)
        assert count == REAL.get(name, 2 if name == "dawarich/kml/timespan.kml" else 0), name
        assert "\n" not in message
        assert REAL_REFUSED.get(name, "") in message


def test_the_same_ride_in_kml_and_gpx_is_one(shared: Path) -> None:
    trace, _ = clean(read(shared / "traces/kml/gpsbabel/track__google_ext.kml"))
    other, _ = clean(read(shared / "traces/gpx/gpsbabel/track__google_ext~kml.gpx"))
    np.testing.assert_allclose(trace.positions, other.positions, rtol=0, atol=1e-6)
    assert trace.times.tolist() == other.times.tolist()
