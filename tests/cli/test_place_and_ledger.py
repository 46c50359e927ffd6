"""`trailveil place` and `trailveil ledger`, and what `protect` makes of them."""

import json
import re
import stat
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.commands import done, refused, run
from tests.rides import PATIENCE, command, environment, ride, written
from tests.rides import run as real
from trailveil.ledger import user_ledger
from trailveil.traces.formats import read

AT = "48.137,11.575,150"
QUICK = ("--adversary", "plain")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        trace = ride(
            120,
            20.0,
            still=(0, 9),
            seed=number,
            begin=1_715_672_400 + number * 86_400,
            at=(48.137, 11.575),
        )
        written(tmp_path / f"{number}.gpx", trace)
    return tmp_path


def test_home_is_moved_by_the_same_on_every_day_and_its_total_is_told() -> None:
    assert "Added home." in done(
        "place", "add", "home", "--near", AT, "--ways", "1", "--radius", "300", *QUICK
    )
    # Draws are the same in every run: what follows is of these, and no matter of chance.
    Path("my.key").write_text("trailveil key 1\n" + "5a" * 32 + "\n")
    Path("my.key").chmod(0o600)
    keyed = ("--no-returns", "--key", "my.key", "--mechanism", "noise")
    moved, totals = [], []
    report: dict[str, Any] = {}
    for number in range(3):
        report = json.loads(done("protect", f"{number}.gpx", *keyed, "--json"))
        before, after = read(Path(f"{number}.gpx")), read(Path(f"{number}.private.gpx"))
        moved.append((after.positions[:9] - before.positions[:9]).mean(axis=0))
        (home,) = report["ledger"]["places"]
        assert home["name"] == "home"
        assert home["releases"] == report["ledger"]["releases"] == number + 1
        totals.append(home["total"])
        assert [secret["label"] for secret in report["secrets"]] == ["the end"]
        assert (number + 1) / 2 < report["ledger"]["if_one_place"] <= number + 1
    # The noise of the end, some metres here, is each ride's own.
    assert np.ptp(moved, axis=0).max() < 1e-3
    assert np.abs(moved).max() > 1e-3
    assert 0.99 < totals[0] <= 1 < totals[1] < totals[2] < 3 * totals[0]
    shown = r"3 releases by 3 ways, each of its own: epsilon [12]\.\d+ of 1; 0 ways left"
    assert re.search(shown, done("ledger", "show"))
    total_words = r"3 ways may tell epsilon [12]\.\d+ of it, and 1 was stated for 1"
    assert re.search(total_words, " ".join(report["warnings"]))
    # Another radius is another draw, not the same one larger.
    done("place", "add", "home", "--near", AT, "--radius", "100", "--change", "--ways", "1", *QUICK)
    done("protect", "1.gpx", *keyed, "-o", "other.gpx", "--again")
    after = read(Path("other.gpx"))
    again = (after.positions[:9] - read(Path("1.gpx")).positions[:9]).mean(axis=0)
    assert not np.allclose(again, moved[1] / 3, rtol=0.05)
    assert not np.allclose(again, moved[1], rtol=0.05)


def test_the_report_for_others_says_nothing_of_places_and_totals() -> None:
    done("place", "add", "my secret home", "--near", AT, "--ways", "1", *QUICK)
    done("protect", "0.gpx", "--report", "for-others.json")
    words = Path("for-others.json").read_text()
    assert "secret home" not in words
    report = json.loads(words)
    assert "ledger" not in report
    assert "places" not in report


def test_places_are_listed_changed_and_removed(folder: Path) -> None:
    assert "No place has a name yet" in done("place", "list")
    done("place", "add", "home", "--near", AT, "--ways", "1", *QUICK)
    assert "48.137" not in done("place", "list")
    assert AT in done("place", "list", "--where")
    (place,) = json.loads(done("place", "list", "--json"))["places"]
    assert place["radius_m"] == 100.0
    # 158 m left of one visit, 60 s around it included: see docs/activities.md.
    assert place["cut_min"]["ride"] == pytest.approx(4.7, abs=0.1)
    assert "near" not in place
    assert "got one that exists" in refused("place", "add", "home", "--near", AT, *QUICK)
    assert "overlaps 'home'" in refused("place", "add", "flat", "--near", AT, *QUICK)
    assert "got none of the name 'work'" in refused("place", "remove", "work")
    done("place", "remove", "home")
    assert "No place" in done("place", "list")
    assert "home" not in done("protect", "0.gpx")
    done("place", "remove", "home", "--forget")
    assert "48.137" not in (folder / "state" / "trailveil" / "places.json").read_text()


@pytest.mark.parametrize(
    ("near", "reason"),
    [
        ("48.137", "must be LAT,LON,METRES"),
        ("148.1,11.5,100", "latitude"),
        ("48.1,11.5,0", "metres"),
    ],
)
def test_a_place_that_is_none_is_refused_and_not_told(near: str, reason: str) -> None:
    assert reason in refused("place", "add", "home", "--near", near)


def test_what_was_released_is_shown_exported_and_checked() -> None:
    done("protect", "0.gpx")
    done("protect", "1.gpx", "--subject", "anna")
    shown = done("ledger", "show")
    assert "the start, the end" in shown
    assert "2 releases." in shown
    assert "cannot know what other apps" in shown
    (release,) = json.loads(done("ledger", "show", "--subject", "anna", "--json"))["releases"]
    assert release["begin_utc"].startswith("2024-05-15")
    assert 0.99 < release["epsilon"] <= 1.0  # whole seconds are cut
    done("ledger", "export", "mine.jsonl")
    lines = Path("mine.jsonl").read_text().splitlines()
    assert [json.loads(line)["subject"] for line in lines] == ["me", "anna"]
    assert stat.S_IMODE(Path("mine.jsonl").stat().st_mode) == 0o600
    assert "overwrite" in refused("ledger", "export", "mine.jsonl")
    assert "2 releases count" in done("ledger", "verify")


def test_past_a_total_nothing_is_released() -> None:
    done("protect", "0.gpx", "--total-epsilon", "1.5")
    message = refused("protect", "1.gpx", "--total-epsilon", "1.5")
    assert "must be at most 1.5, got 1.99" in message
    assert "would still fit" in message
    assert not Path("1.private.gpx").exists()
    done("protect", "1.gpx", "--total-epsilon", "1.5", "--subject", "somebody else")


@pytest.mark.parametrize("damage", ["edited", "cut", "deleted"])
def test_with_a_damaged_ledger_nothing_is_released(folder: Path, damage: str) -> None:
    done("protect", "0.gpx")
    path = folder / "state" / "trailveil" / "ledger.sqlite"
    data = path.read_bytes()
    if damage == "deleted":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        at = data.index(b"the start") if b"the start" in data else len(data) // 2
        path.write_bytes(data[:at] + b"THE START" + data[at + 9 :])
    assert "ledger" in refused("ledger", "verify")
    assert "ledger" in refused("protect", "0.gpx", "--again", "-o", "b.gpx", "--epsilon", "2")
    assert not Path("b.gpx").exists()


def test_a_thinned_copy_and_a_part_are_recognised_by_their_times() -> None:
    done("protect", "0.gpx")
    trace = ride(120, 20.0, still=(0, 9), seed=0, begin=1_715_672_400, at=(48.137, 11.575))
    thin = trace.only(np.arange(120) % 3 == 1)
    written(Path("thin.gpx"), replace(thin, times=thin.times + 10**6))  # and a millisecond late
    assert "must be released once" in refused("protect", "thin.gpx")


def test_two_processes_at_once_never_both_pass_a_total_that_one_may(folder: Path) -> None:
    state = {"XDG_STATE_HOME": str(folder / "state")}
    user_ledger()
    starts = [
        subprocess.Popen(
            command("protect", f"{number}.gpx", "--total-epsilon", "1.5"),
            env=environment(state),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    with starts[0], starts[1]:
        messages = [start.communicate(timeout=PATIENCE)[1] for start in starts]
    assert sorted(start.returncode for start in starts) == [0, 1]
    assert "epsilon in total must be at most 1.5" in "".join(messages)
    assert [Path(f"{n}.private.gpx").exists() for n in range(2)].count(True) == 1
    assert user_ledger().verify() == 1


def test_killed_at_any_moment_no_file_is_there_that_is_not_counted(folder: Path) -> None:
    """Real processes, killed for real, spread over the time that one takes."""
    state = {"XDG_STATE_HOME": str(folder / "state")}
    begin = time.monotonic()
    assert real("protect", "0.gpx", env=state).returncode == 0
    whole = time.monotonic() - begin
    for number, share in enumerate((0.8, 0.95), start=10):
        trace = ride(60, 20.0, seed=number, begin=1_715_672_400 + number * 86_400)
        written(folder / f"{number}.gpx", trace)
        with subprocess.Popen(
            command("protect", f"{number}.gpx"),
            env=environment(state),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as run_once:
            time.sleep(share * whole)
            run_once.kill()
        counted = json.loads(done("ledger", "show", "--json"))["releases"]
        if Path(f"{number}.private.gpx").exists():
            assert any(
                release["begin_utc"].startswith(f"2024-05-{14 + number}") for release in counted
            )
        # And what was not finished can be: it is the same release, counted once.
        assert real("protect", f"{number}.gpx", "--overwrite", env=state).returncode == 0
        again = json.loads(done("ledger", "show", "--json"))["releases"]
        assert len({release["begin_utc"] for release in again}) == len(again)


def test_a_place_that_is_used_up_is_said_first_however_often_its_file_is_written() -> None:
    done("place", "add", "home", "--near", AT, "--ways", "1", *QUICK)
    assert done("protect", "0.gpx").startswith("home (1 visit), the end: hidden in")
    first = "home is used up: do not publish. From all releases together, a stranger's best guess"
    shown = done("protect", "1.gpx", "--private-report", "1.PRIVATE.html")
    assert shown.startswith(first)
    assert "home, after 2 visits" in shown
    assert "of one time" not in shown  # it is of home
    assert "home is used up: do not publish." in Path("1.PRIVATE.html").read_text()
    assert done("protect", "1.gpx", "--overwrite") == shown
    # Of the first, too: its file is out, and so is the second.
    assert done("protect", "0.gpx", "--overwrite").startswith(first)
    for number in range(2):
        whole = " ".join(done("protect", f"{number}.gpx", "--overwrite", "--explain").split())
        assert re.search(r"home, after 2 visits, .* epsilon [12]\.?\d* of 1; 0 visits left", whole)
        assert "! home: 2 visits may tell epsilon" in whole


def test_releases_that_came_before_a_name_are_warned_of_and_never_forgotten() -> None:
    done("protect", "0.gpx")
    add = ("place", "add", "home", "--near", AT, *QUICK)
    assert "1 release came before this name. Visits of home in them do not count" in (
        run(*add, status=0).stderr
    )
    # What counts for a name goes on counting.
    assert run(*add, "--change", status=0).stderr == ""
    done("protect", "1.gpx")
    totals = [entry["total"] for entry in json.loads(done("ledger", "show", "--json"))["releases"]]
    (home,) = json.loads(done("ledger", "show", "--json"))["places"]
    assert totals[0] > home["total"]
    # Both ends of the first ride may be at home, and the end of the second.
    assert totals[1] == home["at_most"] > totals[0] + home["total"]
    assert re.search(
        r"3 visits left; epsilon 2\.\d+ if the parts without a name", done("ledger", "show")
    )


def test_a_name_that_comes_back_is_warned_of_no_release_that_counts_for_it() -> None:
    add = ("place", "add", "home", "--near", AT, *QUICK)
    done(*add)
    done("protect", "0.gpx")
    done("place", "remove", "home")
    assert run(*add, status=0).stderr == ""
    (home,) = json.loads(done("ledger", "show", "--json"))["places"]
    assert home["releases"] == 1
    # What was released while it had no name does not count, nor does anything for another place.
    done("place", "remove", "home")
    done("protect", "1.gpx")
    assert "1 release came before this name." in run(*add, status=0).stderr
    moved = (*add[:4], "47.2,8.5,150", *QUICK, "--change")
    assert "2 releases came before this name." in run(*moved, status=0).stderr


def test_the_first_name_of_all_is_not_warned_of() -> None:
    assert run("place", "add", "home", "--near", AT, *QUICK, status=0).stderr == ""
