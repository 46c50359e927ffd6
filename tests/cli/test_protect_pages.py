"""`protect --report out.html` and `--private-report`: the files, their marks, what is refused."""

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.report.pages import read_page
from tests.rides import ride, written
from trailveil.cli import cli
from trailveil.gp.kernels import Constant, Matern32, White
from trailveil.privacy.priors import PriorSpec
from trailveil.report.pages import public_page
from trailveil.traces.cleaning import clean, clean_readings
from trailveil.traces.formats import read
from trailveil.traces.formats.series import read_series

TRACE = ride(30, 30.0)
# Of a quarter of an hour something is left.
AT_ONCE = ("--withhold", "300", "--radius", "1", "--no-returns")
HOSTILE = 'a&"<img src=x onerror=alert(1)>'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return written(folder / "ride.gpx", TRACE)


def protect(*words: str | Path, status: int = 0) -> Result:
    completed = CliRunner().invoke(cli, ["protect", *(os.fspath(word) for word in words)])
    assert completed.exit_code == status, completed.output
    return completed


def refused(*words: str | Path) -> str:
    before = sorted(Path().iterdir())
    completed = CliRunner().invoke(cli, ["protect", *(os.fspath(word) for word in words)])
    assert completed.exit_code != 0
    assert sorted(Path().iterdir()) == before
    return str(completed.exception)


def test_both_pages_are_written_with_the_release(source: Path) -> None:
    words = (source, *AT_ONCE, "--report", "out.html", "--private-report", "out.PRIVATE.html")
    protect(*words, "--json")
    public, private = Path("out.html"), Path("out.PRIVATE.html")
    content = read_page(public.read_bytes())
    assert content.title == "What ride.private.gpx promises"
    assert "recorded" not in content.drawn
    owner = read_page(private.read_bytes())
    assert owner.title.startswith("PRIVATE")
    assert "recorded" in owner.drawn
    if os.name == "posix":
        assert private.stat().st_mode & 0o777 == 0o600
    first = public.read_bytes()
    protect(*words, "--overwrite")
    again = private.read_bytes()  # without the account, which is of a release that is new
    protect(*words, "--overwrite")
    assert public.read_bytes() == first
    assert private.read_bytes() == again


@pytest.mark.parametrize(
    "words",
    [
        ("--everywhere", "--adversary", "plain"),
        ("--mechanism", "noise", "--at", "start+4m", "--no-returns"),
        (*AT_ONCE, "--round-times", "60", "--shift-times"),
    ],
)
def test_a_page_for_others_is_made_of_what_is_public(words: tuple[str, ...], source: Path) -> None:
    """Of the released file, as anybody reads it, and the report as JSON: to the byte."""
    protect(source, *words, "--report", "a.html")
    protect(source, *words, "--report", "a.json", "--overwrite")
    released, _ = clean(read("ride.private.gpx"))
    report = json.loads(Path("a.json").read_text())
    assert public_page(report, released) == Path("a.html").read_bytes()
    if "--shift-times" not in words:
        assert public_page(report, TRACE) != Path("a.html").read_bytes()


def test_the_page_has_the_numbers_of_the_json_report(source: Path) -> None:
    protect(source, *AT_ONCE, "--report", "a.html")
    protect(source, *AT_ONCE, "--report", "a.json", "--overwrite")
    report = json.loads(Path("a.json").read_text())
    values = read_page(Path("a.html").read_bytes()).values
    assert report["worst"]["mu"] in values
    assert report["mechanism"]["released_fixes"] in values
    assert report["mechanism"]["withheld_fixes"] is None  # it would tell how long a stay was
    assert report["recording"]["fixes"] == report["mechanism"]["released_fixes"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mine.html", "PRIVATE in its name, in capitals"),
        ("ride.private.html", "say ride.private.PRIVATE.html"),
        ("PRIVATE.txt", "must be a page (.html) or JSON (.json)"),
        ("no/PRIVATE.html", "folder that exists"),
        ("ride.gpx.PRIVATE.html", "must not exist yet"),
    ],
)
def test_private_reports_are_refused_before_any_work(
    name: str, expected: str, source: Path
) -> None:
    Path("ride.gpx.PRIVATE.html").write_text("mine")
    assert expected in refused(source, "--private-report", name)
    assert Path("ride.gpx.PRIVATE.html").read_text() == "mine"


def test_one_file_is_not_both_reports(source: Path) -> None:
    words = ("--report", "PRIVATE.html", "--private-report", "PRIVATE.html")
    assert "file of its own" in refused(source, *words)


@pytest.mark.parametrize("option", [("--report", "a.html"), ("--private-report", "PRIVATE.htm")])
def test_a_page_without_matplotlib(
    option: tuple[str, str], source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = refused(source, *AT_ONCE, *option)
    assert "pip install '.[plots]'), or name the report .json or .txt" in message
    protect(source, *AT_ONCE, "--report", "a.json")


def test_a_place_with_a_hostile_name(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a place may be called so at all; else it is refused, and no page is asked for."""
    at = ",".join(f"{degrees:.5f}" for degrees in TRACE.positions[0])
    name = "Ida & <b>Co</b>"
    words = ["place", "add", name, "--near", f"{at},80", "--adversary", "plain", "--ways", "1"]
    added = CliRunner().invoke(cli, words)
    assert added.exit_code == 0, added.output
    pages = ("--report", "a.html", "--private-report", "a.PRIVATE.html")
    protect(source, *pages, "--subject", HOSTILE, "--mechanism", "noise")
    public, private = Path("a.html").read_bytes(), Path("a.PRIVATE.html").read_bytes()
    assert b"Ida" not in public
    content = read_page(private)
    assert any(word.startswith(name) for word in content.words)
    assert "P1" in content.drawn
    assert f"P1, {name}" in content.words
    assert any("onerror" in word for word in content.words)  # whose releases
    read_page(public)


def test_every_place_at_once(source: Path) -> None:
    words = ("--everywhere", "--adversary", "plain")
    protect(source, *words, "--report", "a.html", "--private-report", "a.PRIVATE.html")
    assert any("at any time" in word for word in read_page(Path("a.html").read_bytes()).words)
    drawn = read_page(Path("a.PRIVATE.html").read_bytes()).drawn
    assert {str(number) for number in range(1, 9)} <= set(drawn)


def test_kept_fields_and_shifted_times(source: Path) -> None:
    words = ("--keep", "name", "--shift-times", "--round-times", "60", "--report", "a.html")
    protect(source, *AT_ONCE, *words)
    said = " ".join(read_page(Path("a.html").read_bytes()).words)
    assert "Times are rounded to 1 min" in said
    assert "2024" not in said


UNITS = ["degC", "<i>W</i>"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("chosen", ["between", "everywhere"])
def test_readings(unit: str, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = 21 + np.cumsum(np.random.default_rng(3).normal(0, 0.2, 60))
    lines = [
        f"2024-05-14T{row // 4:02}:{15 * (row % 4):02}:00Z,{value:.2f}"
        for row, value in enumerate(values)
    ]
    Path("room.csv").write_text("\n".join(["time,value", *lines]))
    kernel = Matern32(7200.0, 1.0) + Constant(100.0) + White(0.05)
    spec = PriorSpec("rooms", kernel, unit, None)
    monkeypatch.setattr("trailveil.cli.protect_readings.prior_in", lambda *_: spec)
    when = ("--between", "start+4h7m", "start+6h11m") if chosen == "between" else ("--everywhere",)
    words = ("room.csv", "--column", "value", "--unit", unit, "--radius", "0.5")
    words = (*words, "--prior", "rooms.json", *when)
    protect(*words, "--report", "a.html", "--private-report", "PRIVATE.html", "--json")
    public, private = (read_page(Path(name).read_bytes()) for name in ("a.html", "PRIVATE.html"))
    assert "size of what is left" in public.drawn
    assert len(public.charts) == 2
    assert len(private.charts) == 3
    assert "recorded" in private.drawn
    assert any(unit in word for word in public.words)
    assert not any(re.search(r"\d\d:\d\d", word) for word in public.words)
    assert ("guess" in private.drawn) == (chosen == "between")
    again = ("--overwrite", "--report", "a.json")
    protect(*words, *again)
    released, _ = clean_readings(read_series("room.private.csv"))
    report = json.loads(Path("a.json").read_text())
    assert public_page(report, released) == Path("a.html").read_bytes()
