"""The leak scan: what is planted is found in every format, and nothing else ever is."""

from dataclasses import replace

import numpy as np
import pytest

from tests.leaks import GRID, MOVED, NAMED, PLANTS, released
from tests.traces.formats.builders import FIRST
from tests.traces.formats.samples import FULL, SAMPLES, stated
from tests.traces.formats.traces import TRACE, written
from trailveil.checks.scan import LeakKind, Scan, scan
from trailveil.checks.scan.allowed import LAYOUTS
from trailveil.errors import UnreadableInput
from trailveil.traces.formats.table import FORMATS, Format
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

WRITTEN = [row for row in FORMATS if row.write]
CHOSEN = Chosen()
LATITUDE, LONGITUDE = FIRST
OTHER = GRID[20] / 1e6  # a fix that is not protected
E7 = [round(x * 1e7) for x in FIRST]
SEMICIRCLES = [round(x * 2**31 / 180) for x in FIRST]
LEAKS = {
    "a name": ("Secretville", LeakKind.TEXT),
    "a name in capitals, with more": ("the SECRETVILLE of 2024", LeakKind.TEXT),
    "a link": ("https://example.org/petronella", LeakKind.TEXT),
    "an elevation": ("512.34", LeakKind.NUMBER),
    "with another end": ("512.3400", LeakKind.NUMBER),
    "with fewer digits": ("512.3", LeakKind.NUMBER),
    "in scientific notation": ("5.1234e2", LeakKind.NUMBER),
    "with a decimal comma": ("512,34", LeakKind.NUMBER),
    "in another unit": (f"{512.34 / 0.3048:.1f}", LeakKind.FIELD),
    "a place": (f"{LATITUDE} {LONGITUDE}", LeakKind.PLACE),
    "a place, longitude first": (f"at {LONGITUDE},{LATITUDE}!", LeakKind.PLACE),
    "a place to 10 m": (f"{LATITUDE:.4f} {LONGITUDE:.4f}", LeakKind.PLACE),
    "a place to more digits": (f"{LATITUDE:.9f} {LONGITUDE:.9f}", LeakKind.PLACE),
    "a place with commas": (f"{LATITUDE} {LONGITUDE}".replace(".", ","), LeakKind.PLACE),
    "a place in scientific notation": (f"{LATITUDE:.9e} {LONGITUDE:.9e}", LeakKind.PLACE),
    "a place in 1e-7 degree": (f"{E7[0]} {E7[1]}", LeakKind.PLACE),
    "a place in semicircles": (f"{SEMICIRCLES[0]} {SEMICIRCLES[1]}", LeakKind.PLACE),
    "a latitude": (f"{LATITUDE}", LeakKind.COORDINATE),
    "another place": (f"{OTHER[0]} {OTHER[1]}", LeakKind.COORDINATE),
    "nothing known": ("zzyzx", LeakKind.FIELD),
    "nothing but a digit": ("7", LeakKind.FIELD),
}
# JSON in which a key comes twice is not read at all: programs differ in which they take.
TWICE = "key that comes twice"
PLACES_TO_HIDE = [
    (suffix, name) for suffix, plants in PLANTS.items() for name in plants if name != TWICE
]
# Each leak in each format, and every fourth of them in each place: of few places, more.
PLANTED = [
    (*place, leak)
    for i, place in enumerate(PLACES_TO_HIDE)
    for j, leak in enumerate(LEAKS)
    if (i + j) % min(4, sum(place[0] == suffix for suffix, _ in PLACES_TO_HIDE)) == 0
]

all_written = pytest.mark.parametrize("row", WRITTEN, ids=[row.name for row in WRITTEN])


def scanned(data: bytes, suffix: str, source: str = "GPX", chosen: Chosen | None = CHOSEN) -> Scan:
    return scan(("a", FULL[source]), (f"b{suffix}", data), chosen)


def kinds(result: Scan) -> set[LeakKind]:
    return {leak.kind for leak in result.leaks}


def test_each_written_format_has_places_to_hide_a_leak() -> None:
    """A format without a layout is compared byte by byte: tests/checks/test_scan_whole.py."""
    assert {row.name for row in WRITTEN} >= LAYOUTS.keys()
    assert PLANTS.keys() == {row.suffixes[0] for row in WRITTEN if row.name in LAYOUTS}
    assert NAMED.keys() == PLANTS.keys()


@pytest.mark.parametrize(("suffix", "name", "planted"), PLANTED)
def test_what_is_planted_is_found(suffix: str, name: str, planted: str) -> None:
    text, kind = LEAKS[planted]
    result = scanned(PLANTS[suffix][name](released(suffix), text), suffix)
    assert kind in kinds(result)
    assert not result.clean
    for found_leak in result.leaks:
        assert text not in f"{found_leak.where} {found_leak!r}"
        assert found_leak.count >= 1


@all_written
@pytest.mark.parametrize("source", FORMATS, ids=[row.name for row in FORMATS])
def test_a_clean_release_of_a_full_recording_passes(source: Format, row: Format) -> None:
    result = scan(
        ("a" + (source.suffixes or (".json",))[0], FULL[source.name]),
        (f"b{row.suffixes[0]}", released(row.suffixes[0])),
        CHOSEN,
    )
    assert result.leaks == ()
    assert result.notes == ()
    assert (result.recorded, result.released, result.protected) == (40, 40, 2)
    assert (result.every.compared, result.of_protected.compared) == (40, 2)


@pytest.mark.parametrize("source", FORMATS, ids=[row.name for row in FORMATS])
def test_the_original_is_known_whatever_its_format(source: Format) -> None:
    """What FULL does not hold of a format is a leak as well, of something that is not known."""
    full = stated(source)
    planted = PLANTS[".gpx"]["field"](released(".gpx"), full.elevation or "515.34")
    expected = LeakKind.NUMBER if full.elevation else LeakKind.FIELD
    assert kinds(scanned(planted, ".gpx", source.name)) == {expected}
    planted = PLANTS[".gpx"]["field"](released(".gpx"), "Secretville")
    expected = LeakKind.TEXT if full.names else LeakKind.FIELD
    assert kinds(scanned(planted, ".gpx", source.name)) == {expected}


@all_written
def test_a_whole_recording_of_the_format_is_full_of_leaks(row: Format) -> None:
    result = scanned(FULL[row.name], row.suffixes[0], row.name)
    full = stated(row)
    held = {LeakKind.NUMBER} if full.elevation else set()
    assert kinds(result) >= {LeakKind.UNMOVED, *held, *([LeakKind.TEXT] if full.names else [])}
    shown = " ".join(f"{leak.where}" for leak in result.leaks)
    for secret in ("Secretville", "Petronella", "Wristwatch", "46.1", "7.65", "512."):
        assert secret not in shown


@pytest.mark.parametrize("suffix", NAMED)
def test_names_alone_are_found(suffix: str) -> None:
    planted = NAMED[suffix](released(suffix))
    result = scanned(planted, suffix)
    assert kinds(result) == {LeakKind.FIELD}
    assert "Petronella" not in result.leaks[0].where
    assert "another name" in result.leaks[0].where


@all_written
@pytest.mark.parametrize("source", FORMATS, ids=[row.name for row in FORMATS])
def test_a_protected_fix_that_is_not_moved_is_found(source: Format, row: Format) -> None:
    grid = MOVED.copy()
    grid[-1] = GRID[-1]
    result = scanned(released(row.suffixes[0], grid), row.suffixes[0], source.name)
    kind = LeakKind.UNMOVED
    if source.step and result.every.unmoved == 0:  # it is off the public grid
        kind = LeakKind.NEARLY
    assert [(leak.kind, leak.count) for leak in result.leaks] == [(kind, 1)]
    assert result.of_protected.below_1 == 1


def with_grid(grid: np.ndarray, chosen: Chosen | None = CHOSEN) -> Scan:
    return scanned(released(".csv", grid), ".csv", chosen=chosen)


def test_hardly_moved_fixes_are_counted_and_fail_where_protected() -> None:
    grid = MOVED.copy()
    grid[0] = GRID[0] + [4, -3]
    grid[20], grid[21] = GRID[20], GRID[21] + [40, 0]
    result = with_grid(grid)
    assert [(leak.kind, leak.count) for leak in result.leaks] == [(LeakKind.NEARLY, 1)]
    assert (result.every.unmoved, result.every.below_1, result.every.below_10) == (1, 2, 3)
    assert (result.of_protected.unmoved, result.of_protected.below_10) == (0, 1)
    assert {leak.kind for leak in with_grid(grid, None).leaks} == {
        LeakKind.UNMOVED,
        LeakKind.NEARLY,
    }
    assert with_grid(grid, Chosen(at=("start+150s",), ends=False)).clean
    assert not with_grid(grid, Chosen(at=("start+100s",), ends=False)).clean


@pytest.mark.parametrize("chosen", [None, CHOSEN])
@pytest.mark.parametrize("step", [10, 100, 1000])
def test_an_original_with_fewer_decimals_is_no_release(step: int, chosen: Chosen | None) -> None:
    for grid in (np.rint(GRID / step).astype(np.int64) * step, GRID // step * step):
        assert LeakKind.NEARLY in {leak.kind for leak in with_grid(grid, chosen).leaks}


def test_a_protected_time_between_fixes_is_that_of_the_nearest() -> None:
    grid = MOVED.copy()
    grid[20] = GRID[20]
    assert not with_grid(grid, Chosen(at=("start+101s",), ends=False)).clean


def test_one_coordinate_left_as_it_was_is_found() -> None:
    grid = MOVED.copy()
    grid[:10, 1] = GRID[:10, 1]
    result = with_grid(grid, Chosen(between=(("start", "start+45s"),), ends=False))
    assert [(leak.kind, leak.count) for leak in result.leaks] == [(LeakKind.HALF_MOVED, 10)]
    assert with_grid(grid, Chosen(between=(("start+60s", "end"),), ends=False)).clean


def test_the_place_of_a_protected_fix_at_another_time_is_found() -> None:
    grid = MOVED.copy()
    grid[25] = GRID[0]
    result = with_grid(grid)
    assert [(leak.kind, leak.count) for leak in result.leaks] == [(LeakKind.PLACE, 1)]


def test_passing_often_beside_a_protected_place_is_no_leak_in_itself() -> None:
    """One of many fixes within half a metre of the place falls on it by chance."""
    grid = MOVED.copy()
    grid[1:30] = GRID[0] + np.random.default_rng(0).integers(-5, 6, (29, 2))
    grid[30] = GRID[0]
    grid[1:30][(grid[1:30] == GRID[0]).all(axis=1)] += 1
    assert with_grid(grid).clean


@pytest.mark.parametrize(
    "line",
    [
        '<trkseg><trkpt lat="46.2" lon="7.5"></trkpt>',
        '<trkseg><trkpt lat="46.2"><time>2024-05-01T07:30:01Z</time></trkpt>',
        '<trkseg><trkpt lat="" lon="7.5"><time>2024-05-01T07:30:01Z</time></trkpt>',
    ],
)
def test_positions_that_are_of_no_fix_are_found(line: str) -> None:
    data = released(".gpx").replace(b"<trkseg>", line.encode())
    assert LeakKind.STRAY in kinds(scanned(data, ".gpx"))


def test_a_line_without_times_is_found() -> None:
    line = '"features":[{"type":"Feature","geometry":{"type":"LineString","coordinates":[%s]}},'
    place = f"[{FIRST[1]},{FIRST[0]}]"
    data = released(".geojson").replace(b'"features":[', (line % f"{place},{place}").encode())
    assert kinds(scanned(data, ".geojson")) == {LeakKind.STRAY}


def test_numbers_in_place_of_segments_are_found() -> None:
    trace = replace(TRACE, segments=np.repeat([0, 1, 2, 3], 10), tracks=(0, 0, 1, 1))
    for suffix in (".csv", ".geojson", ".parquet"):
        data = written(trace, suffix, MOVED)
        assert scanned(data, suffix).clean
        if suffix != ".parquet":
            mark = b",3" if suffix == ".csv" else b'"segment":3'
            assert kinds(scanned(data.replace(mark, mark[:-1] + b"97"), suffix)) == {LeakKind.STRAY}


def test_coordinates_below_the_grid_are_found() -> None:
    data = released(".csv").replace(f"{MOVED[5, 0] / 1e6:.6f}".encode(), b"46.12345678")
    assert kinds(scanned(data, ".csv")) == {LeakKind.FINE, LeakKind.DIGITS}


@pytest.mark.parametrize("text", ["2024-05-01T09:30:00+02:00", "1714548600", "2024-05-01 07:30:00"])
def test_a_time_that_is_written_in_another_way_is_found(text: str) -> None:
    data = released(".csv").replace(b"2024-05-01T07:30:00Z", text.encode())
    assert not scanned(data, ".csv").clean


def shifted(seconds: float, rows: slice = slice(None)) -> Trace:
    times = TRACE.times[rows] + round(seconds * 1e9)
    return Trace(times, TRACE.positions[rows], TRACE.segments[rows], TRACE.tracks)


@pytest.mark.parametrize("seconds", [1.0, 5.0, -3600.0, 86_400 * 365.25, 0.25])
def test_a_shift_of_all_times_is_found_and_undone(seconds: float) -> None:
    grid = MOVED.copy()
    grid[0] = GRID[0]
    result = scan(("a", FULL["GPX"]), ("b.csv", written(shifted(seconds), ".csv", grid)), CHOSEN)
    assert [(leak.kind, leak.count) for leak in result.leaks] == [(LeakKind.UNMOVED, 1)]
    assert "shifted by one amount" in result.notes[0]
    assert result.every.compared == 40


def test_a_shift_of_a_part_is_told_by_fixes_that_were_not_moved() -> None:
    """All times of the part are times of the original, but of other fixes."""
    grid = MOVED[5:30].copy()
    grid[10:] = GRID[15:30]
    data = written(shifted(10, slice(5, 30)), ".csv", grid)
    result = scan(("a", FULL["GPX"]), ("b.csv", data), CHOSEN)
    assert result.every.unmoved == 15


def test_rounded_times_are_matched_by_order() -> None:
    times = TRACE.times + np.random.default_rng(3).integers(1, 10**9, len(TRACE))
    grid = MOVED.copy()
    grid[-1] = GRID[-1]
    data = written(Trace(times, TRACE.positions, TRACE.segments, (0,)), ".csv", grid)
    result = scan(("a", FULL["GPX"]), ("b.csv", data), CHOSEN)
    assert kinds(result) == {LeakKind.UNMOVED}
    assert "matched by their order" in result.notes[0]


def test_fixes_that_cannot_be_compared_are_no_success() -> None:
    times = TRACE.times[:30] + np.random.default_rng(3).integers(1, 10**9, 30)
    data = written(
        Trace(times, TRACE.positions[:30], TRACE.segments[:30], (0,)), ".csv", MOVED[:30]
    )
    result = scan(("a", FULL["GPX"]), ("b.csv", data), CHOSEN)
    assert kinds(result) == {LeakKind.UNCOMPARED}


def test_fixes_at_other_times_are_counted() -> None:
    times = np.insert(TRACE.times, 1, TRACE.times[0] + 1)
    trace = Trace(times, np.zeros((41, 2)), np.zeros(41, dtype=np.intp), (0,))
    data = written(trace, ".csv", np.insert(MOVED, 1, MOVED[7], axis=0))
    result = scan(("a", FULL["GPX"]), ("b.csv", data), CHOSEN)
    assert result.clean
    assert result.notes == ("Fixes at times that the original does not have: 1.",)


def test_a_field_that_was_kept_is_no_leak_but_a_protected_place_in_it_is() -> None:
    def kinds_of(inner: str, *keep: str) -> set[LeakKind]:
        data = released(".gpx").replace(b"</trkpt>", f"{inner}</trkpt>".encode(), 1)
        return kinds(scan(("a", FULL["GPX"]), ("b.gpx", data), CHOSEN, keep=keep))

    assert kinds_of("<ele>512.34</ele>") == {LeakKind.NUMBER}
    assert kinds_of("<ele>512.34</ele>", "ele") == set()
    assert kinds_of("<ele>512.34</ele>", "hr") == {LeakKind.NUMBER}
    inner = "<g:hr>142</g:hr>"
    nested = f"<extensions><g:TrackPointExtension>{inner}</g:TrackPointExtension></extensions>"
    assert kinds_of(nested, "HR") == set()
    more = nested.replace(inner, f"{inner}<g:cad>233</g:cad>")
    assert kinds_of(more, "hr") == {LeakKind.NUMBER}
    assert kinds_of(f"<cmt>{FIRST[0]}, {FIRST[1]}</cmt>", "cmt") == {LeakKind.PLACE}
    assert kinds_of("<ele/><!-- 512.34 -->", "ele", "comment", "a comment") == {LeakKind.NUMBER}
    data = released(".csv").replace(b"longitude\n", b"longitude,heart rate\n")
    assert scan(("a", FULL["CSV"]), ("b.csv", data), CHOSEN, keep=["heart_rate"]).clean
    assert not scan(("a", FULL["CSV"]), ("b.csv", data), CHOSEN, keep=["", "rate"]).clean


def test_names_of_files_are_noted() -> None:
    data = released(".csv")
    (note,) = scan(("/x/Anna home.gpx", FULL["GPX"]), ("/y/ANNA-2.csv", data), CHOSEN).notes
    assert "anna" not in note.casefold()
    assert scan(("/anna/x.gpx", FULL["GPX"]), ("/anna/y.csv", data), CHOSEN).notes == ()


@pytest.mark.parametrize("name", ["NMEA", "GeoLife"])
def test_a_format_that_is_not_written_is_refused(name: str) -> None:
    with pytest.raises(UnreadableInput, match="must be of a format that is written"):
        scanned(SAMPLES[name], ".x")
