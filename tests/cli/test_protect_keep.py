"""`trailveil protect --keep`: fields that leave as they were, and what is said of them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.cli.commands import refused, run
from tests.rides import ride
from tests.traces.formats.traces import written
from trailveil.cli import cli
from trailveil.errors import UnwritableOutput
from trailveil.traces.fields import FIELDS, NEVER
from trailveil.traces.formats import read
from trailveil.traces.trace import Recording

BARE = ride(180, 20.0)  # an hour
STATED = {
    "elevation": np.round(400 + np.sin(np.arange(180.0)), 1),
    "speed": np.full(180, 2.34),
    "course": np.full(180, 91.5),
    "heart_rate": 90.0 + np.arange(180) % 60,
    "temperature": np.full(180, 21.5),
}
TRACE = replace(BARE, fields=tuple(STATED.items()))
MIDDLE = ("--no-ends", "--at", "start+30m", "--no-returns", "--mechanism", "noise")

pytestmark = pytest.mark.slow


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "ride.gpx"
    path.write_bytes(written(TRACE, ".gpx"))
    return path


def done(*words: str | Path) -> str:
    completed = run("protect", *words, *(() if "--json" in words else ("--explain",)))
    assert completed.exit_code == 0, completed.output
    return " ".join(completed.stdout.split())


def fields(path: Path) -> dict[str, np.ndarray]:
    return dict(read(path, tuple(FIELDS)).fields)


def test_nothing_is_kept_that_was_not_asked_for(source: Path) -> None:
    words = done(source, *MIDDLE)
    output = source.with_name("ride.private.gpx")
    assert fields(output) == {}
    assert not re.search(r"<ele|hr>|extensions|>21\.5|gpxtpx", output.read_text(encoding="utf-8"))
    assert "further fields of fixes, kinds: 2; none is released" in words
    assert "kept as it" not in words


@pytest.mark.parametrize(
    "suffix", [".gpx", ".kml", ".kmz", ".csv", ".tsv", ".geojson", ".parquet", ".tcx"]
)
def test_what_is_kept_leaves_far_from_what_is_protected(source: Path, suffix: str) -> None:
    output = source.with_name(f"out{suffix}")
    words = done(source, "-o", output, *MIDDLE, "--keep", "heart_rate", "--keep", "elevation")
    held = fields(output)
    assert held.keys() == {"elevation", "heart_rate"}
    gap = np.abs(BARE.seconds - 1800.0)
    for name, values in held.items():
        assert np.isnan(values[gap <= 600]).all()
        assert values[gap >= 900].tolist() == STATED[name][gap >= 900].tolist()
    assert "Elevation (m) of 119 fixes, kept as it was recorded" in words
    assert "Heart rate (1/min) of 119 fixes, kept as it was recorded" in words
    assert "its profile, found on a map, gives the true path back" in words
    assert "left out within 10 min of each protected part" in words
    assert "further fields of fixes, kinds: 3; none is released" in words
    assert "SPEED AND COURSE" not in words


CUT = ("--no-ends", "--at", "start+30m", "--no-returns", "--withhold", "900", "--activity", "drive")


def test_a_cut_keeps_what_is_harmless_of_every_released_fix(source: Path) -> None:
    """Elevations, pulses and temperatures of all; speeds from 10 minutes beyond the cut on."""
    words = done(source, *CUT, "--keep", "all")
    held = fields(source.with_name("ride.private.gpx"))
    gap = np.abs(BARE.seconds - 1800.0)
    released = gap > 900
    for name in ("elevation", "heart_rate", "temperature"):
        assert held[name].tolist() == STATED[name][released].tolist()
    for name in ("speed", "course"):
        # Of whole five minutes since the first released fix, which is at the beginning.
        assert np.isfinite(held[name]).tolist() == (gap[released] > 1500).tolist()
    assert "leaves with each released fix, whose place is released as it is" in words
    assert "No power is released" in words


def test_all_is_what_the_output_has_a_place_for(source: Path) -> None:
    output = source.with_name("out.tcx")
    done(source, "-o", output, *MIDDLE, "--keep", "all")
    assert fields(output).keys() == {"elevation", "speed", "heart_rate"}
    again = run("protect", source, "-o", output, *MIDDLE, "--keep", "course", "--overwrite")
    assert isinstance(again.exception, UnwritableOutput)
    assert "the output must have a place for course, got TCX" in str(again.exception)


def test_the_noise_is_the_same_whatever_is_kept(source: Path) -> None:
    released: list[Recording] = []
    for name, words in {"a": (), "b": ("--keep", "speed"), "c": ("--keep", "heart_rate")}.items():
        output = source.with_name(f"{name}.gpx")
        assert "released before" not in done(source, "-o", output, *MIDDLE, *words)
        released.append(read(output))
    for other in released[1:]:
        np.testing.assert_array_equal(other.positions, released[0].positions)


def test_speed_and_course_together_are_warned_of_first(source: Path) -> None:
    report = source.with_name("report.json")
    words = ("--keep", "course", "--keep", "speed", "--report", report)
    printed = json.loads(done(source, *MIDDLE, *words, "--json"))
    assert printed["warnings"][0].startswith("SPEED AND COURSE ARE BOTH KEPT")
    path = next(
        exposure
        for exposure in printed["secrets"][0]["exposures"]
        if "path" in exposure["adversary"]
    )
    assert f"({path['circle_68_m']:,.0f} m at worst" in printed["warnings"][1]
    assert [(field["field"], field["unit"], field["fixes"]) for field in printed["kept"]] == [
        ("speed", "m/s", 119),
        ("course", "degrees", 119),
    ]
    public = json.loads(report.read_text(encoding="utf-8"))
    assert public["kept"] == printed["kept"]
    assert public["warnings"][:2] == printed["warnings"][:2]
    assert "secrets" not in public


def test_fields_beside_places_with_names_alone(source: Path) -> None:
    """Both ends are at home: no part is left of which metres could be said."""
    back = np.concatenate([BARE.positions[:90], BARE.positions[89::-1]])
    source.write_bytes(written(replace(TRACE, positions=back), ".gpx"))
    at = ",".join(f"{degrees:.5f}" for degrees in back[0])
    words = ["place", "add", "home", "--near", f"{at},80", "--ways", "1", "--adversary", "path"]
    added = CliRunner().invoke(cli, words)
    assert added.exit_code == 0, added.output
    explained = done(source, "--mechanism", "noise", "--keep", "heart_rate")
    expected = "learns about what one who knows the path does. Epsilon and odds are not said"
    assert expected in explained


def test_a_field_that_no_fix_states_is_a_note_and_no_failure(source: Path) -> None:
    report = json.loads(done(source, *MIDDLE, "--keep", "power", "--json"))
    assert report["warnings"][0].startswith("No power is released: it was to be kept, but no fix")
    assert report["kept"][0]["recorded"] is False
    assert not any("kept as it" in sentence for sentence in report["not_protected"])


def test_a_field_that_is_near_what_is_protected_throughout_is_a_note(source: Path) -> None:
    trace = TRACE.only(BARE.seconds < 1200)
    source.write_bytes(written(trace, ".gpx"))
    report = json.loads(
        done(source, "--no-ends", *MIDDLE[3:], "--at", "start+10m", "--keep", "speed", "--json")
    )
    assert "every fix that states it is withheld, or within 10 min" in report["warnings"][0]
    assert (report["kept"][0]["recorded"], report["kept"][0]["fixes"]) == (True, 0)
    assert fields(source.with_name("ride.private.gpx")) == {}


def test_rounded_times_take_the_fields_of_the_fixes_that_are_released(source: Path) -> None:
    words = ("--keep", "heart_rate", "--round-times", "60", "--json")
    report = json.loads(done(source, *MIDDLE, *words))
    held = fields(source.with_name("ride.private.gpx"))["heart_rate"]
    assert int(np.isfinite(held).sum()) == report["kept"][0]["fixes"] < 60


def test_the_name_of_the_track_leaves_where_the_output_has_a_place_for_it(source: Path) -> None:
    source.write_bytes(written(replace(BARE, names=("Tom & Ann",)), ".gpx"))
    done(source, "-o", source.with_name("bare.gpx"), *MIDDLE)
    assert b"Ann" not in source.with_name("bare.gpx").read_bytes()
    for suffix in (".gpx", ".kml", ".kmz", ".geojson"):
        output = source.with_name(f"out{suffix}")
        report = json.loads(done(source, "-o", output, *MIDDLE, "--keep", "name", "--json"))
        assert read(output, ("name",)).names == ("Tom & Ann",)
        assert report["kept"][0] | {"tells": ""} == {
            "field": "name",
            "unit": None,
            "recorded": True,
            "fixes": 180,
            "tells": "",
        }
        assert report["warnings"][0].startswith("The name of the track is kept: read it before")
        assert "Ann" not in json.dumps(report)
    report = run("protect", source, "-o", source.with_name("out.csv"), *MIDDLE, "--keep", "name")
    assert isinstance(report.exception, UnwritableOutput)
    assert "must be GPX, KML, KMZ or GeoJSON to hold the name" in str(report.exception)


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_released_is_refused_by_name(source: Path, name: str) -> None:
    assert f"got {name}, never released: {NEVER[name]}" in refused(
        "protect", source, "--keep", name
    )
    assert [path.name for path in source.parent.iterdir() if path.is_file()] == ["ride.gpx"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--keep", "distance"), "must be one of elevation, speed, course"),
        (("--keep", "speed", "--everywhere"), "--everywhere must come alone, got --keep"),
        (("--keep", "speed", "--unit", "degC"), "--keep must be for traces of places"),
    ],
)
def test_wrong_usage(source: Path, words: tuple[str, ...], message: str) -> None:
    completed = run("protect", source, *words)
    assert completed.exit_code == 2
    assert message in " ".join(completed.stderr.split())


def test_noise_that_is_not_made_against_who_knows_the_path_is_refused(source: Path) -> None:
    assert "add --adversary path" in refused(
        *("protect", source, "--keep", "speed", "--mechanism", "noise", "--adversary", "plain")
    )


def test_the_help_says_what_may_be_kept() -> None:
    words = " ".join(run("protect", "--help").stdout.split())
    assert all(name in words for name in FIELDS)


@pytest.mark.parametrize("suffix", [".gpx", ".tcx", ".geojson", ".fit"])
def test_a_type_leaves_by_its_name_or_with_all(source: Path, suffix: str, tmp_path: Path) -> None:
    """`audit` and `verify` take what was kept, and nothing that was not."""
    source.write_bytes(written(replace(TRACE, types=("ride",)), ".gpx"))
    output, report = tmp_path / f"out{suffix}", tmp_path / "out.PRIVATE.json"
    ends = ("--activity", "drive", "--no-returns")
    for keep, more in (("type", ()), ("all", ("--again", "--overwrite"))):
        report.unlink(missing_ok=True)
        explained = done(
            *(source, "-o", output, *ends, *more, "--keep", keep, "--private-report", report)
        )
        assert "The type of the track of" in explained
        assert "it tells how you moved, in one word" in explained

        def run(*words: str | Path) -> int:
            return CliRunner().invoke(cli, [*map(str, words)]).exit_code

        assert run("audit", source, output, "--no-returns", "--keep", keep) == 0
        assert run("audit", source, output, "--no-returns") == 1
        assert run("verify", report, source, output) == 0
        stated = json.loads(report.read_text(encoding="utf-8"))
        stated["kept"] = [field for field in stated["kept"] if field["field"] != "type"]
        report.write_text(json.dumps(stated), encoding="utf-8")
        assert run("verify", report, source, output) == 1
