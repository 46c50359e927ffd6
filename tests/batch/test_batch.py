"""`trailveil batch` as a process: the same as protect of each, in order, again and again."""

import json
import os
import re
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.batch.fleets import DAY, batch, fleet, outputs, protect, summary
from tests.rides import BEGIN, ride, written
from trailveil.cli import cli
from trailveil.files.keys import new_key
from trailveil.ledger import user_ledger

pytestmark = pytest.mark.slow


def state(home: Path) -> Path:
    return home / "state" / "trailveil"


def test_each_output_is_that_of_protect_with_the_same_key(
    tmp_path: Path, user_folders: Path
) -> None:
    rides, out = fleet(tmp_path / "rides", 3), tmp_path / "out"
    said = summary(rides, "-o", out)
    assert (said["protected"], said["refused"]) == (3, 0)
    assert set(outputs(out)) == {f"p{i}/r000{i}.private.gpx" for i in range(3)}
    key = state(user_folders) / "batch.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    source = rides / "p1" / "r0001.gpx"
    alone = protect(source, tmp_path / "alone.gpx", key, tmp_path / "other")
    assert alone == (out / "p1" / "r0001.private.gpx").read_bytes()


def test_what_is_done_is_skipped_and_what_is_gone_comes_back(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 3), tmp_path / "out"
    summary(rides, "-o", out)
    first = outputs(out)
    (out / "p0" / "r0000.private.gpx").unlink()
    written(rides / "p2" / "r0009.gpx", ride(12, 30.0, seed=9, begin=BEGIN + 9 * DAY))
    said = summary(rides, "-o", out)
    assert (said["protected"], said["as_before"]) == (2, 2)
    assert first.items() < outputs(out).items()


def test_a_changed_input_or_rule_is_done_anew_and_needs_again(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 2), tmp_path / "out"
    summary(rides, "-o", out)
    first = outputs(out)
    written(rides / "p0" / "r0000.gpx", ride(12, 30.0, seed=77, begin=BEGIN))
    refused = batch(rides, "-o", out)
    assert refused.returncode == 1
    assert refused.stderr.startswith("p0/r0000.gpx: a recording must be released once")
    # A batch has no such option, and the file that is in the way is named.
    assert "--replace" not in refused.stderr
    assert "keep to r0000.private.gpx (made " in refused.stderr
    assert outputs(out) == first
    said = summary(rides, "-o", out, "--again")
    assert (said["protected"], said["as_before"]) == (1, 1)
    changed = outputs(out)
    assert changed["p0/r0000.private.gpx"] != first["p0/r0000.private.gpx"]
    assert changed["p1/r0001.private.gpx"] == first["p1/r0001.private.gpx"]
    assert summary(rides, "-o", out, "--again", "--order", "4")["protected"] == 2


def test_a_file_that_was_touched_is_done_anew_counted_once_and_the_same(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 2), tmp_path / "out"
    first = summary(rides, "-o", out), outputs(out)
    (rides / "p0" / "r0000.gpx").touch()
    again = summary(rides, "-o", out)
    assert (again["protected"], again["as_before"]) == (1, 1)
    assert outputs(out) == first[1]
    with user_ledger().open() as book:
        assert len(book.rows) == 2


@pytest.mark.skipif(os.name != "posix", reason="needs the time of a change")
def test_a_change_is_noticed_whatever_time_a_file_says(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 1), tmp_path / "out"
    assert summary(rides, "-o", out)["protected"] == 1
    path = rides / "p0" / "r0000.gpx"
    before, text = path.stat(), path.read_text()
    path.write_text(text[:-1] + "\t")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert summary(rides, "-o", out)["protected"] == 1


def test_what_to_do_is_said_once(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 1), tmp_path / "out"
    for name in "abc":
        (rides / "p0" / f"{name}.gpx").write_bytes(b"<gpx><trk>")
    first, *others = batch(rides, "-o", out).stderr.splitlines()
    what, advice = first.removeprefix("p0/a.gpx: ").split("; ")
    assert what.startswith("input must")
    assert advice != "see above"
    same = [what.replace("a.gpx", f"{name}.gpx") for name in "bc"]
    assert others == [
        f"p0/{name}.gpx: {each}; see above" for name, each in zip("bc", same, strict=True)
    ]


def test_one_bad_file_is_one_line_and_stops_none_of_the_others(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 2), tmp_path / "out"
    (rides / "p0" / "bad.gpx").write_bytes(b"<gpx><trk>")
    (rides / "notes.txt").write_text("none")
    done = batch(rides, "-o", out)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("p0/bad.gpx: input must")
    assert "2 of 3 recordings protected" in done.stdout
    assert re.search(r"left out: \d+ min in total; of half of the recordings up to", done.stdout)
    assert "refused (UnreadableInput): 1" in done.stdout
    assert "other kinds, passed over: 1" in done.stdout
    assert len(outputs(out)) == 2
    assert batch(rides, "-o", out, "--allow-refusals").returncode == 0


def test_people_may_ride_at_once_and_one_person_may_not(tmp_path: Path) -> None:
    for seed, name in enumerate(("anna", "bert")):
        (tmp_path / "rides" / name).mkdir(parents=True)
        written(tmp_path / "rides" / name / "ride.gpx", ride(12, 30.0, seed=seed))
    done = batch(tmp_path / "rides", "-o", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.startswith("bert/ride.gpx: a recording must be released once")
    both = summary(tmp_path / "rides", "-o", tmp_path / "two", "--subject-from", "folder")
    assert both["protected"] == 2


def test_one_that_is_in_no_folder_of_a_person_is_one_line(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 2), tmp_path / "out"
    stray = written(rides / "stray.gpx", ride(12, 30.0, seed=9, begin=BEGIN + 9 * DAY))
    (tmp_path / "rules.csv").write_text("trace,radius\nstray.gpx,300\n")  # it is known all the same
    rules = ("--rules", tmp_path / "rules.csv")
    done = batch(rides, "-o", out, "--subject-from", "folder", *rules)
    assert done.returncode == 1
    assert done.stderr.startswith("stray.gpx: --subject-from folder must have each recording in a")
    assert done.stderr.count("\n") == 1
    assert "2 of 3 recordings protected" in done.stdout
    assert set(outputs(out)) == {"p0/r0000.private.gpx", "p1/r0001.private.gpx"}
    alone = batch(stray, "-o", tmp_path / "none", "--subject-from", "folder")
    assert (alone.returncode, alone.stderr.count("\n")) == (1, 1)
    assert "got stray.gpx beside them: put it into one" in alone.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(os.name != "posix", reason="needs locks of files")
def test_two_runs_on_one_folder_are_refused(tmp_path: Path) -> None:
    import fcntl

    rides, out = fleet(tmp_path / "rides", 1), tmp_path / "out"
    out.mkdir()
    with (out / ".trailveil-batch.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = batch(rides, "-o", out)
    assert done.returncode == 1
    assert done.stderr.startswith("trailveil: -o must be used by one run at a time")
    assert done.stderr.count("\n") == 1
    assert summary(rides, "-o", out)["protected"] == 1
    assert set(outputs(out)) == {"p0/r0000.private.gpx"}


def test_files_of_somebody_else_are_never_replaced(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 1), tmp_path / "out"
    (out / "p0").mkdir(parents=True)
    (out / "p0" / "r0000.private.gpx").write_text("mine")
    done = batch(rides, "-o", out)
    assert done.returncode == 1
    assert "the output must not exist yet, or be as a batch left it" in done.stderr
    assert (out / "p0" / "r0000.private.gpx").read_text() == "mine"
    assert summary(rides, "-o", out, "--overwrite")["protected"] == 1


def test_usage_that_cannot_be_meant_is_one_line_before_any_work(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 2), tmp_path / "out"
    written(rides / "ride.plt.private.gpx", ride(12, 30.0))
    empty = tmp_path / "empty"
    empty.mkdir()
    twice = tmp_path / "twice"
    twice.mkdir()
    for name in ("a.plt", "a.plt.gpx"):
        (twice / name).write_bytes(b"")
    for words, expected in (
        ((empty, "-o", out), "got a folder without any"),
        ((tmp_path / "none", "-o", out), "IN must be recordings that exist, got none"),
        ((str(rides / "*.kml"), "-o", out), "got a pattern that none fits"),
        ((rides, "-o", rides), "-o must be a folder without inputs in it"),
        ((rides, "-o", tmp_path), "-o must be a folder without inputs in it"),
        (("45.1,", "5.2,100", "-o", out), "write LAT,LON,METRES without spaces"),
        ((rides, empty, "-o", out), "got a folder without any"),
        ((rides, "-o", out, "--suffix", ".doc"), "output must be of a format that is written"),
        ((twice, "-o", out), "each trace must have an output of its own"),
    ):
        done = batch(*words)
        assert done.returncode in {1, 2}, words
        assert expected in " ".join(done.stderr.split()), done.stderr
        assert "45.1" not in done.stderr
        assert not out.exists()


def test_places_with_names_are_counted_in_order_and_in_what_is_said(tmp_path: Path) -> None:
    """Rides of one outing: the noise of each depends on the visits that were counted before."""
    rides, key = tmp_path / "rides", tmp_path / "key"
    rides.mkdir()
    new_key(key)
    for i in range(3):
        written(rides / f"r{i}.gpx", ride(12, 30.0, seed=i, begin=BEGIN + 3600 * i))
    words = ["place", "add", "home", "--near", "48.137,11.575,150", "--adversary", "plain"]
    added = CliRunner().invoke(cli, [*words, "--ways", "1"])
    assert added.exit_code == 0, added.output
    said = summary(rides, "-o", tmp_path / "out", "--key", key, "--mechanism", "noise")
    assert said["protected"] == 3
    shown = json.loads(CliRunner().invoke(cli, ["ledger", "show", "--json"]).stdout)["releases"]
    assert [entry["begin_utc"] for entry in shown] == sorted(entry["begin_utc"] for entry in shown)
    assert all("home" in entry["places"] for entry in shown)
    assert said["epsilon"]["most"] == max(entry["epsilon"] for entry in shown)
    assert said["epsilon"]["most"] > 0.5
    # One way was stated: what three rides tell of home is said where their batch is.
    (line,) = said["places"]
    assert "home: " in line
    assert "1 was stated for 1" in line
