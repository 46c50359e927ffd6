"""GPX in and out: what is read, what is refused in one line, and that nothing else is written."""

from xml.etree import ElementTree

import gpxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.formats.traces import traces, written
from trailveil.errors import InvalidValue, TrailveilError, UnreadableInput
from trailveil.traces.formats.gpx import read
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Recording, Seen, Trace

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
NAMESPACE = "http://www.topografix.com/GPX/1/1"
SECOND = 10**9


def fix(lat: object = "12.5", lon: object = "-33.25", inside: str = "") -> str:
    return f'<trkpt lat="{lat}" lon="{lon}">{inside}</trkpt>'


def at(second: int) -> str:
    return f"<time>2024-05-01T00:00:{second:02d}Z</time>"


def gpx(*tracks: str, extra: str = "", version: str = "1.1") -> str:
    return (
        f'{DECLARATION}<gpx version="{version}" creator="x" xmlns="{NAMESPACE}">{extra}'
        + "".join(f"<trk><name>Secretville</name>{track}</trk>" for track in tracks)
        + "</gpx>"
    )


def segment(*fixes: str) -> str:
    return f"<trkseg>{''.join(fixes)}</trkseg>"


SOUND = gpx(
    segment(fix(inside=at(0)), fix(12.6, -33.26, at(5))),
    segment(fix(12.7, -33.27, at(9))) + segment(fix(12.8, -33.28, at(11))),
    extra='<wpt lat="1" lon="2"/><rte><rtept lat="3" lon="4"/></rte>',
)


def parse(document: str | bytes) -> Recording:
    data = document.encode() if isinstance(document, str) else document
    return read(data, "ride.gpx")


def refusal(document: str | bytes) -> str:
    with pytest.raises(UnreadableInput) as caught:
        parse(document)
    message = str(caught.value)
    assert "\n" not in message
    assert "ride.gpx" in message
    assert "Secretville" not in message
    assert len(message) < 300
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


def test_fixes_of_all_tracks_are_read_in_file_order() -> None:
    recording = parse(SOUND)
    assert recording.positions.tolist() == [
        [12.5, -33.25],
        [12.6, -33.26],
        [12.7, -33.27],
        [12.8, -33.28],
    ]
    start = np.datetime64("2024-05-01T00:00:00", "ns")
    assert [(time - start) // np.timedelta64(1, "s") for time in recording.times] == [0, 5, 9, 11]
    assert recording.naive.tolist() == [False] * 4
    assert recording.segments.tolist() == [0, 0, 1, 2]
    assert recording.tracks == (0, 1, 1)
    assert recording.seen == Seen(routes=1, waypoints=1)


def test_empty_tracks_and_segments_get_no_number() -> None:
    recording = parse(
        gpx(
            segment(),
            "",
            segment() + segment(fix(inside=at(0))),
            segment(),
            segment(fix(inside=at(1))),
        )
    )
    assert recording.segments.tolist() == [0, 1]
    assert recording.tracks == (0, 1)
    assert recording.seen.empty_segments == 3


@pytest.mark.parametrize(
    ("lat", "expected"),
    [
        ("undefined", np.nan),
        ("", np.nan),
        ("NaN", np.nan),
        ("inf", np.nan),
        ("1_0", np.nan),
        ("46,5", np.nan),
        ("0x10", np.nan),
        ("\u0661\u0662", np.nan),
        ("400", 400.0),
        ("1e999", np.inf),
        (" +46.5\t", 46.5),
        ("4.65E1", 46.5),
        ("-.5", -0.5),
        ("7.", 7.0),
    ],
)
def test_coordinates_are_read_as_they_stand_or_not_at_all(lat: str, expected: float) -> None:
    recording = parse(gpx(segment(fix(lat, "1.25", at(0)))))
    np.testing.assert_array_equal(recording.positions, [[expected, 1.25]])


def test_missing_coordinates_and_times_lose_only_their_fix() -> None:
    recording = parse(
        gpx(segment("<trkpt/>", fix(inside=at(0)), fix(), fix(inside="<time>soon</time><time/>")))
    )
    assert np.isnan(recording.positions[0]).all()
    assert np.isnat(recording.times).tolist() == [True, False, True, True]
    assert recording.seen.unreadable_times == 2


def test_times_keep_nine_decimals_and_say_when_they_have_no_zone() -> None:
    recording = parse(
        gpx(
            segment(
                fix(inside="<time>2024-05-01T02:00:00.123456789+02:00</time>"),
                fix(inside="<time>\n 2024-05-01T00:00:01 \n</time>"),
                fix(inside="<time>1234-05-01T00:00:01Z</time>"),
            )
        )
    )
    assert recording.times[0] == np.datetime64("2024-05-01T00:00:00.123456789")
    assert recording.naive.tolist() == [False, True, False]
    assert np.isnat(recording.times[2])
    assert recording.seen.impossible_years == 1


def test_of_two_times_in_a_fix_the_first_counts() -> None:
    assert parse(gpx(segment(fix(inside=at(3) + at(7))))).times[0] == np.datetime64(
        "2024-05-01T00:00:03"
    )


def test_elements_of_the_same_name_elsewhere_are_not_taken_for_fixes() -> None:
    foreign = "<extensions><x:trkpt/><trkpt lat='9' lon='9'><time>x</time></trkpt></extensions>"
    recording = parse(
        gpx(
            foreign + segment(fix(inside=foreign + "<x:time>no</x:time>" + at(3))) + fix("8", "8"),
            extra=f"<metadata>{at(1)}</metadata>" + fix("7", "7"),
        )
    )
    assert recording.positions.tolist() == [[12.5, -33.25]]
    assert recording.times[0] == np.datetime64("2024-05-01T00:00:03")
    assert recording.seen == Seen(misplaced_points=2, other_fields=2)


@pytest.mark.parametrize(
    "document",
    [
        SOUND.replace(f' xmlns="{NAMESPACE}"', ""),
        SOUND.replace("1.1", "1.0").replace("GPX/1/1", "GPX/1/0"),
        SOUND.replace("<", "<g:").replace("<g:/", "</g:").replace("<g:?", "<?").replace(":g:", ":"),
        SOUND.replace(DECLARATION, ""),
        "\n \r\n" + SOUND,
        "\ufeff" + SOUND,
        "\ufeff\n" + SOUND,
        SOUND.replace("<trkpt", "<!-- 12.5 --><trkpt").replace("2024-05", "2024<!-- -->-05"),
        SOUND.replace("2024-05-01T00:00:00Z", "<![CDATA[2024-05-01T00:00:00Z]]>"),
        SOUND.replace("12.5", "&#49;2.5"),
    ],
    ids=["no-ns", "1.0", "prefix", "bare", "blank", "bom", "both", "comments", "cdata", "char"],
)
def test_variants_of_one_document_say_the_same(document: str) -> None:
    expected, parsed = parse(SOUND), parse(document)
    assert parsed.times.tolist() == expected.times.tolist()
    assert parsed.positions.tolist() == expected.positions.tolist()
    assert (parsed.tracks, parsed.seen) == (expected.tracks, expected.seen)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
def test_other_encodings_are_read_where_declared(encoding: str) -> None:
    declared = "utf-16" if encoding.startswith("utf-16") else encoding.replace("cp", "windows-")
    document = SOUND.replace('encoding="UTF-8"', f'encoding="{declared}"').replace(
        "lle<", "ll\xe9<"
    )
    assert parse(document.encode(encoding)).positions.tolist() == parse(SOUND).positions.tolist()


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (b"track: could not read Secretville", "must be XML, got something else"),
        (b"\x00\x01\x02\x03", "must be XML, got something else"),
        (b"  \n ", "must be XML, got something else"),
        (b"<html><p>Secretville</p></html>", "must be GPX, got XML of another kind"),
        (b"<kml><gpx/></kml>", "must be GPX, got XML of another kind"),
        (SOUND[: len(SOUND) // 2], "must be well-formed XML, got"),
        (SOUND[:-1], "got 'unclosed token' in line 2"),
        ("\n\n" + SOUND.replace("</trkseg>", "", 1), "got 'mismatched tag' in line 4"),
        (SOUND.replace("<name>", "<name>&Secretville;"), "got 'undefined entity' in line 2"),
        (SOUND + "Secretville", "well-formed XML, got 'junk after document element'"),
        (SOUND.replace("<name>S", "<name>\xff S").encode("latin-1"), "invalid token"),
        (SOUND.replace("UTF-8", "Secretville").encode(), "got another encoding"),
        (SOUND.replace("UTF-8", "shift_jis").encode(), "got another encoding"),
        (SOUND.encode("utf-32"), "must be"),
    ],
)
def test_what_is_no_gpx_is_refused_in_one_line(document: str | bytes, expected: str) -> None:
    assert expected in refusal(document)


def test_without_a_fix_of_a_track_the_message_says_what_there_was() -> None:
    assert "track, got none:" in refusal(gpx())
    assert "got empty segments: 1:" in refusal(gpx(segment()))
    plan = gpx(extra='<wpt lat="1" lon="2"/>' * 3 + "<rte/><rte/>")
    assert "got routes: 2, waypoints: 3: ride.gpx; export the recorded activity" in refusal(plan)


BOMB = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 50}">' for n in range(1, 12))


@pytest.mark.parametrize(
    "doctype",
    [
        f'<!DOCTYPE gpx [<!ENTITY a0 "Secretville">{BOMB}]>',
        '<!DOCTYPE gpx [<!ENTITY a11 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE gpx SYSTEM "http://example.org/Secretville.dtd">',
        '<!DOCTYPE gpx [<!ENTITY % a11 SYSTEM "http://example.org/x"> %a11;]>',
        "<!DOCTYPE gpx>",
    ],
    ids=["bomb", "file", "dtd", "parameter", "empty"],
)
def test_document_types_are_refused_before_anything_is_expanded(doctype: str) -> None:
    document = SOUND.replace("<gpx", doctype + "<gpx", 1).replace("Secretville", "&a11;")
    assert "got a document type or entities" in refusal(document)


def test_nesting_is_survived_and_refused_where_it_is_too_deep() -> None:
    inner = "<trkpt>" * 900 + "</trkpt>" * 900
    assert len(parse(gpx(segment(fix(inside=at(1)) + inner)))) == 2
    assert "in one another" in refusal(gpx(segment("<trkpt>" * 200_000 + "</trkpt>" * 200_000)))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for document in (data, b"<gpx>" + data, DECLARATION.encode() + data):
        with pytest.raises(TrailveilError):
            parse(document)


@given(st.integers(0, len(SOUND)), st.integers(0, 40), st.binary(max_size=8))
def test_damage_is_refused_or_survived(place: int, length: int, patch: bytes) -> None:
    data = SOUND.encode()
    try:
        recording = parse(data[:place] + patch + data[place + length :])
    except TrailveilError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine
    else:
        assert len(recording) >= 1


def test_agrees_with_gpxpy() -> None:
    points = [
        (point, track_number)
        for track_number, track in enumerate(gpxpy.parse(SOUND).tracks)
        for part in track.segments
        for point in part.points
    ]
    recording = parse(SOUND)
    assert recording.positions.tolist() == [[p.latitude, p.longitude] for p, _ in points]
    assert [recording.tracks[s] for s in recording.segments] == [number for _, number in points]
    seconds = recording.times.astype("datetime64[s]").astype(int).tolist()
    assert seconds == [p.time and p.time.timestamp() for p, _ in points]


@given(traces())
def test_gpxpy_reads_what_is_written(case: tuple[Trace, np.ndarray]) -> None:
    trace, grid = case
    tracks = gpxpy.parse(written(trace, ".gpx").decode()).tracks
    points = [p for track in tracks for part in track.segments for p in part.points]
    assert sorted((p.latitude, p.longitude) for p in points) == sorted(
        (a / MICRO, b / MICRO) for a, b in grid.tolist()
    )
    assert [len(track.segments) for track in tracks] == np.bincount(trace.tracks).tolist()


EXAMPLE = Trace(
    np.array([0, 1_500_000_000, 2**60]),
    np.array([[-0.0000004, 179.9999996], [-89.9999994, -0.000001], [7.25, 180.0]]),
    np.array([0, 2, 0]),
    (0, 0, 1),
)


def test_the_bytes_are_these() -> None:
    assert written(EXAMPLE, ".gpx").decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<gpx version="1.1" creator="trailveil" xmlns="http://www.topografix.com/GPX/1/1">\n'
        "<trk>\n"
        "<trkseg>\n"
        '<trkpt lat="0.000000" lon="-180.000000"><time>1970-01-01T00:00:00Z</time></trkpt>\n'
        '<trkpt lat="7.250000" lon="-180.000000">'
        "<time>2006-07-14T23:58:24.606846976Z</time></trkpt>\n"
        "</trkseg>\n"
        "</trk>\n"
        "<trk>\n"
        "<trkseg>\n"
        '<trkpt lat="-89.999999" lon="-0.000001"><time>1970-01-01T00:00:01.5Z</time></trkpt>\n'
        "</trkseg>\n"
        "</trk>\n"
        "</gpx>\n"
    )


def test_nothing_but_tracks_positions_and_times_is_written() -> None:
    root = ElementTree.fromstring(written(EXAMPLE, ".gpx"))
    names = {element.tag.removeprefix(f"{{{NAMESPACE}}}") for element in root.iter()}
    assert names == {"gpx", "trk", "trkseg", "trkpt", "time"}
    assert {name for element in root.iter() for name in element.attrib} == {
        "version",
        "creator",
        "lat",
        "lon",
    }


@pytest.mark.parametrize(
    "wrong", [[90 * MICRO + 1, 0], [0, 180 * MICRO + 1], [0, -180 * MICRO - 1]]
)
def test_a_grid_off_the_globe_is_refused(wrong: list[int]) -> None:
    grid = np.array([[0, 0], [0, 0], wrong])
    with pytest.raises(InvalidValue, match="on the globe"):
        written(EXAMPLE, ".gpx", grid)
