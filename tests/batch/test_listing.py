"""`batch --manifest`: what became of each trace, for its owner, without places and times."""

import csv
import hashlib
import json
import re
import stat
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.batch.fleets import batch, fleet, outputs, summary
from tests.report.pages import scanned
from tests.rides import BEGIN, gpx, ride, written
from trailveil.batch.listing import COLUMNS
from trailveil.checks.scan.tokens import from_json, from_table
from trailveil.cli import cli

pytestmark = pytest.mark.slow

SECRET = "2024-05-14T07:41:10Z"
QUICK = ("--activity", "drive", "--radius", "1")
ASKED = ("--no-ends", "--at", SECRET, *QUICK, "--order", "4", "--round-times", "60")


def read(path: Path) -> list[dict[str, Any]]:
    """The traces of a manifest, as JSON has them."""
    if path.suffix == ".json":
        rows: list[dict[str, Any]] = json.loads(path.read_text())["traces"]
        return rows
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def invoke(*words: str | Path) -> str:
    done = CliRunner().invoke(cli, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_each_trace_is_told_of_in_order_and_the_same_whenever_it_was_done(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 3), tmp_path / "out"
    (rides / "p1" / "bad.gpx").write_bytes(b"<gpx>")
    (rides / "nameless.csv").write_text("time,lat,lon\n2024-05-14T07:40:00Z,48,11\n")
    paths = [tmp_path / "m.json", tmp_path / "m.csv"]
    words = (rides, "-o", out, "--subject-from", "folder", "--manifest")
    for path in paths:
        done = batch(*words, path)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 2
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = [path.read_bytes() for path in paths]
    rows = read(paths[0])
    names = ["nameless.csv", "p0/r0000.gpx", "p1/bad.gpx", "p1/r0001.gpx", "p2/r0002.gpx"]
    assert [each["trace"] for each in rows] == names
    kinds = [None, "UnreadableInput"]
    assert [each["refused_by"] for each in rows] == [kinds[i] for i in (1, 0, 1, 0, 0)]
    assert rows[2]["reason"].startswith("input must be")
    assert [each["subject"] for each in rows[1:]] == ["p0", "p1", "p1", "p2"]
    good = [each for each in rows if each["status"] == "protected"]
    assert {each["output"]: each["output_sha256"] for each in good} == outputs(out)
    # No digest of an input that somebody could try guesses against, and one for each of them.
    digests = {each["input_digest"] for each in good}
    sources = [(rides / each["trace"]).read_bytes() for each in good]
    assert len(digests) == 3
    assert not digests & {hashlib.sha256(source).hexdigest() for source in sources}
    for row, other in zip(rows, read(paths[1]), strict=True):
        assert tuple(row) == tuple(other) == COLUMNS
        plain = {name: json.dumps(value).strip('"') for name, value in row.items()}
        same = {name for name in COLUMNS if plain[name] == other[name]}
        assert {name for name in set(COLUMNS) - same if row[name] not in (None, [])} <= {
            "adversaries"
        }
    # Again, where nothing is left to do; and replaced without being asked, since it is a batch's.
    for path, before in zip(paths, first, strict=True):
        batch(*words, path)
        assert path.read_bytes() == before


def test_an_earlier_output_of_one_that_is_refused_is_named(tmp_path: Path) -> None:
    rides, out, path = fleet(tmp_path / "rides", 1), tmp_path / "out", tmp_path / "m.json"
    summary(rides, "-o", out)
    written(rides / "p0" / "r0000.gpx", ride(12, 30.0, seed=77))
    assert batch(rides, "-o", out, "--manifest", path).returncode == 1
    (row,) = read(path)
    assert (row["status"], row["refused_by"]) == ("refused", "Refused")
    assert {row["output"]: row["output_sha256"]} == outputs(out)
    assert (row["input_digest"], row["epsilon"]) == (None, None)
    (out / "p0" / "r0000.private.gpx").write_text("mine")
    assert batch(rides, "-o", out, "--manifest", path).returncode == 1
    assert read(path)[0]["output"] is None


@pytest.mark.parametrize(
    "asked",
    [ASKED, (*ASKED, "--leave", "5"), ("--everywhere", "--adversary", "plain", "--order", "4")],
)
def test_it_states_what_the_report_for_others_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...]
) -> None:
    rides, report, listed = fleet(tmp_path / "rides", 1), tmp_path / "r.json", tmp_path / "m.json"
    alone = invoke(
        "protect",
        rides / "p0/r0000.gpx",
        "-o",
        tmp_path / "alone.gpx",
        *asked,
        "--report",
        report,
        "--json",
    )
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    invoke("batch", rides, "-o", tmp_path / "out", *asked, "--manifest", listed)
    (row,), report_of_others = read(listed), json.loads(report.read_text())
    for name in ("epsilon", "order", "mu", "odds_factor_99", "advantage"):
        # Never better; of everywhere the report says what was reached.
        assert row[name] >= report_of_others["worst"][name] * (1 - 1e-12)
        if "--everywhere" not in asked:
            assert row[name] == pytest.approx(report_of_others["worst"][name], rel=1e-12)
        assert row[name] >= json.loads(alone)["worst"][name] * (1 - 1e-12)
    assert row["radius_m"] == report_of_others["target"]["radius_m"]
    assert row["leave_m"] == report_of_others["target"]["leave_m"]
    assert row["withhold"] == report_of_others["target"]["withhold"]
    if "--everywhere" not in asked:  # which reckons with no pace
        assert row["floor_m_s"] == report_of_others["target"]["floor_m_s"] == 3.6
    assert row["fixes"] == json.loads(alone)["recording"]["fixes"]
    assert row["released"] == report_of_others["mechanism"]["released_fixes"]
    assert row["withheld_min"] == round(json.loads(alone)["mechanism"]["withheld_min"], 1)
    assert row["mechanism"] == report_of_others["mechanism"]["name"]
    assert (row["prior"], row["prior_kernel"]) == (
        report_of_others["prior"]["name"],
        report_of_others["prior"]["kernel"],
    )
    assert (row["rounded_to_s"], row["shifted"]) == (
        report_of_others["times"]["rounded_to_s"],
        False,
    )
    assert row["chosen_by_place"] is ("--everywhere" not in asked)  # returns are looked for


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_it_tells_no_place_and_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Of what is protected by a table of rules, and of what is refused for a time of it."""
    for module in ("ledger.store", "files.keys"):  # always the same digests, which hold any digits
        monkeypatch.setattr(f"trailveil.{module}.fresh_seed", lambda: bytes(range(32)))
    rides, path, rules = fleet(tmp_path / "rides", 2), tmp_path / f"m{suffix}", tmp_path / "r.csv"
    late = "2024-05-14T09:59:59Z"
    rules.write_text(f"trace,from\np0/r0000.gpx,{SECRET}\np1/r0001.gpx,{late}\n")
    words = ["batch", rides, "-o", tmp_path / "out", *QUICK, "--no-ends", "--rules", rules]
    done = CliRunner().invoke(cli, [*map(str, words), "--manifest", str(path)])
    assert done.exit_code == 1
    assert [row["status"] for row in read(path)] == ["protected", "refused"]
    data, trace = path.read_bytes(), ride(12, 30.0, seed=0)

    def told(what: bytes) -> list[str]:
        tokens = partial({".json": from_json, ".csv": from_table}[suffix], what, path.name)
        shown = scanned(tokens, trace, gpx(trace))
        times = re.findall(r"\d\d:\d\d|20\d\d-\d\d|start|end\b", what.decode())
        return [*shown, *times, *re.findall(rf"\b{BEGIN // 1000}\d\d\d", what.decode())]

    assert told(data) == []
    latitude, longitude = trace.positions[3]
    for leak in (f"{latitude:.4f}", f"{latitude:.6f} {longitude:.6f}", SECRET, str(BEGIN + 70)):
        assert told(data.replace(b"p0/r0000.private.gpx", leak.encode())), leak


def test_where_it_may_be_is_checked_before_any_work(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 1), tmp_path / "out"
    mine = tmp_path / "mine.json"
    mine.write_text('{"mine": 1}')
    for path, expected in (
        (out / "m.json", "must be outside of the folders of inputs and outputs"),
        (rides / "p0" / "m.csv", "must be outside of the folders of inputs and outputs"),
        (rides / "p0" / "r0000.gpx", "--manifest must be .json or .csv"),
        (tmp_path / "m.txt", "--manifest must be .json or .csv"),
        (tmp_path / "none" / "m.json", "the manifest must be in a folder that exists"),
        (mine, "the manifest must not exist yet"),
    ):
        done = batch(rides, "-o", out, "--manifest", path)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), path
        assert expected in done.stderr
        assert not out.exists()
    assert mine.read_text() == '{"mine": 1}'
    # An input by itself, which even --overwrite does not replace.
    table = tmp_path / "table.csv"
    table.write_text("time,lat,lon,trip_id\n2024-05-14T07:40:00Z,48,11,1\n")
    done = batch(table, "-o", out, "--overwrite", "--manifest", table)
    assert "must be outside of the folders of inputs" in done.stderr
    summary(rides, "-o", out, "--overwrite", "--manifest", mine)
    assert len(read(mine)) == 1
