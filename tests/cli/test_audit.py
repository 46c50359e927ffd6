"""`trailveil audit`: a line for each leak, without the leak; exit 1 where there is one."""

import json
from pathlib import Path

import pytest

import trailveil as tv
from tests.cli.commands import run
from tests.leaks import GRID, PLANTS, released
from tests.rides import ride, written
from tests.traces.formats.samples import FULL, SAMPLES
from trailveil.errors import Refused, TrailveilError, UnreadableInput
from trailveil.traces.fields import FIELDS
from trailveil.traces.formats.table import FORMATS, Format

SECRETS = ("Secretville", "Petronella", "Wristwatch", "46.1", "7.65", "512.", "46,1")


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A full recording and a clean release of it."""
    original, release = tmp_path / "ride.gpx", tmp_path / "shared.gpx"
    original.write_bytes(FULL["GPX"])
    release.write_bytes(released(".gpx"))
    return original, release


def test_a_clean_release_passes(pair: tuple[Path, Path]) -> None:
    completed = run("audit", *pair)
    assert completed.exit_code == 0, completed.output
    assert completed.stdout.startswith("No leak found.\n")
    assert "40 recorded, 2 of them protected; 40 released" in completed.stdout
    assert "Note" not in completed.stdout
    assert completed.stderr == ""
    record = json.loads(run("audit", *pair, "--json").stdout)
    assert record["clean"] is True
    assert record["findings"] == []
    assert record["fixes"] == {"original": 40, "released": 40, "protected": 2}
    assert record["moved"]["protected"] == {
        "compared": 2,
        "unmoved": 0,
        "below_1": 0,
        "below_10": 0,
    }


def test_each_leak_is_a_line_without_the_leak(pair: tuple[Path, Path]) -> None:
    original, _ = pair
    completed = run("audit", original, original)
    assert isinstance(completed.exception, Refused)
    assert "do not publish it" in str(completed.exception)
    assert "\n" not in str(completed.exception)
    lines = [line for line in completed.stdout.splitlines() if line.startswith("LEAK ")]
    assert "LEAK protected fixes where they were recorded: positions of fixes at their own " in (
        completed.stdout
    )
    for expected in (
        "LEAK coordinates of a protected fix: gpx/wpt/@lon, 1",
        "LEAK numbers of the original: gpx/trk/trkseg/trkpt/ele, 40",
        "LEAK text of the original: gpx/trk/trkseg/trkpt/cmt, 40",
        "LEAK text of the original: gpx/a comment, 1",
        "LEAK text of the original: gpx/@creator, 1",
        "LEAK text of the original: gpx/metadata/link/@href, 1",
        "LEAK coordinates of the original: gpx/metadata/bounds/@minlat, 1",
        "LEAK numbers of the original: gpx/trk/trkseg/trkpt/extensions/TrackPointExtension/hr, 40",
    ):
        assert expected in lines
    assert not [secret for secret in SECRETS if secret in completed.output]
    as_json = run("audit", original, original, "--json")
    assert isinstance(as_json.exception, Refused)
    record = json.loads(as_json.stdout)
    assert len(record["findings"]) == len(lines)
    assert {"kind": "number", "what": "numbers of the original"}.items() <= next(
        finding for finding in record["findings"] if finding["where"].endswith("/ele")
    ).items()
    assert not [secret for secret in SECRETS if secret in as_json.stdout]


def test_values_are_shown_on_request_alone(pair: tuple[Path, Path]) -> None:
    original, release = pair
    shown = run("audit", original, original, "--show")
    assert "'Secretville by the lake'" in shown.stdout
    assert "'512.34' '513.34'" in shown.stdout
    findings = json.loads(run("audit", original, original, "--show", "--json").stdout)["findings"]
    assert ["Petronella Hidden"] in [finding["leaked"] for finding in findings]
    release.write_bytes(PLANTS[".gpx"]["field"](released(".gpx"), "Secretville" * 100_000))
    assert len(run("audit", original, release, "--show").stdout) < 1000


def test_what_was_protected_is_stated_as_to_protect(pair: tuple[Path, Path]) -> None:
    original, release = pair
    grid = GRID.copy()
    grid[:20] += 5_000 + GRID[:20] % 97
    grid[-1] += 5_000
    release.write_bytes(released(".gpx", grid))
    assert run("audit", original, release).exit_code == 0
    assert run("audit", original, release, "--at", "start+20s").exit_code == 0
    assert run("audit", original, release, "--at", "start+150s").exit_code == 1
    assert run("audit", original, release, "--everywhere").exit_code == 1
    window = ("09:30:30", "09:31:20", "--tz", "Europe/Berlin")
    assert run("audit", original, release, "--between", *window).exit_code == 0
    window = ("09:30:30", "09:32:20", "--tz", "Europe/Berlin")
    assert run("audit", original, release, "--between", *window).exit_code == 1
    refused = run("audit", original, release, "--at", "08:30")
    assert "must be passed once by the recording" in str(refused.exception)


def test_kept_fields_are_named(pair: tuple[Path, Path]) -> None:
    original, release = pair
    plant = PLANTS[".gpx"]["field"]
    release.write_bytes(plant(released(".gpx"), "512.34").replace(b"other", b"ele"))
    assert run("audit", original, release).exit_code == 1
    assert run("audit", original, release, "--keep", "ele").exit_code == 0


@pytest.mark.parametrize("keep", ["elevation", "all"])
def test_it_says_what_elevation_tells_where_it_is_kept(pair: tuple[Path, Path], keep: str) -> None:
    original, release = pair
    bare = released(".gpx").decode()
    release.write_text(bare.replace("<time>", "<ele>431.5</ele><time>"), encoding="utf-8")
    completed = run("audit", original, release, "--keep", keep)
    assert completed.exit_code == 0, completed.output
    assert (
        f"Note: Elevation stands at 40 of the released fixes: {FIELDS['elevation'].tells}."
        in completed.stdout
    )
    assert "found on a map and gives the true path back" in completed.stdout
    assert run("audit", original, release).exit_code == 1


def test_wrong_usage_and_files_that_cannot_be_read(pair: tuple[Path, Path], tmp_path: Path) -> None:
    original, release = pair
    assert run("audit", original).exit_code == 2
    assert run("audit", original, release, "--everywhere", "--at", "start").exit_code == 2
    assert run("audit", original, release, "--tz", "Nowhere").exit_code == 2
    bomb = tmp_path / "bomb.gpx"
    bomb.write_bytes(b'<!DOCTYPE gpx [<!ENTITY a "b">]><gpx>&a;</gpx>')
    (tmp_path / "nothing.gpx").write_bytes(b"")
    (tmp_path / "ride.plt").write_bytes(SAMPLES["GeoLife"])
    for recorded, other in (
        (original, tmp_path / "none.gpx"),
        (tmp_path / "nothing.gpx", release),
        (original, tmp_path),
        (original, bomb),
        (bomb, release),
        (original, tmp_path / "ride.plt"),
    ):
        completed = run("audit", recorded, other)
        assert isinstance(completed.exception, UnreadableInput)
        assert "\n" not in str(completed.exception)
        assert completed.stdout == ""


@pytest.mark.parametrize("how", [(), ("--mechanism", "noise")])
def test_a_visit_of_a_place_with_a_name_is_protected(how: tuple[str, ...], tmp_path: Path) -> None:
    """The audit that protect names as the next step passes, where nothing else is protected."""
    trace = ride(120, 20.0, still=(0, 9))
    folder = tmp_path / ("a folder of which the name is long" * 3)
    folder.mkdir()
    source, output = written(folder / "ride.gpx", trace), folder / "shared.gpx"
    refused = run("audit", source, source, "--no-ends")
    assert "something must be protected" in str(refused.exception)
    near = "48.137,11.575,150"
    run("place", "add", "home", "--near", near, "--adversary", "plain", status=0)
    shown = run("protect", source, "--no-ends", *how, "-o", output, status=0).stdout
    # Whole, and as a shell takes it.
    assert f"audit '{source}' '{output}' --no-ends looks for" in " ".join(shown.split())
    passed = json.loads(run("audit", source, output, "--no-ends", "--json", status=0).stdout)
    assert passed["fixes"]["protected"] >= 10
    assert tv.audit(source, output, ends=False).clean
    for released_file in (source, written(tmp_path / "most.gpx", trace.only(trace.seconds > 60))):
        leaks = run("audit", source, released_file, "--no-ends", status=1)
        assert "LEAK protected fixes where they were recorded" in leaks.stdout
        assert not tv.audit(source, released_file, ends=False).clean


def test_times_without_a_zone_need_one(tmp_path: Path) -> None:
    original, release = tmp_path / "ride.csv", tmp_path / "shared.csv"
    original.write_bytes(FULL["CSV"].replace(b"Z,", b","))
    release.write_bytes(released(".csv"))
    refused = run("audit", original, release)
    assert isinstance(refused.exception, TrailveilError)
    assert "--assume-utc" in str(refused.exception)
    assert run("audit", original, release, "--assume-utc").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("row", FORMATS, ids=[row.name for row in FORMATS])
def test_what_protect_releases_passes(row: Format, tmp_path: Path) -> None:
    source = tmp_path / ("ride" + (row.suffixes or (".json",))[0])
    source.write_bytes(FULL[row.name])
    suffixes = (
        [file_format.suffixes[0] for file_format in FORMATS if file_format.write]
        if row.name == "GPX"
        else [".csv"]
    )
    for suffix in {row.suffixes[0] if row.write else ".gpx", *suffixes}:
        output = tmp_path / f"shared{suffix}"
        words = ("-o", output, "--mechanism", "noise", "--again")
        assert run("protect", source, *words).exit_code == 0
        completed = run("audit", source, output)
        assert completed.exit_code == 0, completed.output
        assert "Note" not in completed.stdout
