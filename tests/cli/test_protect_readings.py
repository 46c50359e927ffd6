"""`trailveil protect` and `fit` of readings, from a table to a table."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.commands import refused, run
from trailveil.privacy.priors import from_json
from trailveil.traces.formats.series import read_series

PRIOR: dict[str, Any] = {
    "format": "trailveil-prior",
    "version": 1,
    "unit": "degC",
    "terms": [
        {"kernel": "periodic", "length_scale": 1.1, "period": 86_400.0, "std": 2.0},
        {"kernel": "white", "std": 0.3},
    ],
    "fitted_on": None,
}
COUNT = 96


def value(row: int) -> str:
    return f"{20.7391 + 2 * np.sin(row / 8) + 0.01 * (row % 7):.4f}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A room for two days, every half hour, as the paper's data are stated; and a prior."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = datetime(2012, 3, 13, 11, 45, tzinfo=UTC)
    lines = ["# 1:Date 2:Time 3:Temperature_Sensor 4:Humidity_Sensor"]
    for row in range(COUNT):
        when = first + timedelta(minutes=30 * row)
        lines.append(f"{when:%d/%m/%Y %H:%M} {value(row)} {40 + row % 5}")
    (tmp_path / "room.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "prior.json").write_text(json.dumps(PRIOR))
    return tmp_path


WORDS = ["protect", "room.txt", "--column", "3:Temperature_Sensor", "--unit", "degC"]
WORDS += ["--radius", "1", "--prior", "prior.json", "--assume-utc"]
STAY = ["--between", "2012-03-14T08:00:00Z", "2012-03-14T12:00:00Z"]


def keyed() -> str:
    """A key that is always the same, so that no draw comes near a value by chance."""
    path = Path("always.key")
    path.write_text(f"trailveil key 1\n{bytes(range(32)).hex()}\n")
    path.chmod(0o600)
    return str(path)


def test_from_a_table_to_a_table(folder: Path) -> None:
    done = run(*WORDS, *STAY, "--json", "--report", "public.json", "--key", keyed())
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["output"] == "room.private.csv"
    assert report["recording"]["readings"] == COUNT
    assert report["recording"]["cleaning"]["assumed_zone"] == COUNT
    assert report["target"] == {
        "unit": "degC",
        "radius": 1.0,
        "epsilon": 1.0,
        "order": 5.0,
        "withhold": None,
        "every_reading": False,
    }
    assert report["worst"]["epsilon"] <= 1 + 1e-9
    assert report["secrets"][0]["readings"] == 8
    released = read_series("room.private.csv")
    assert released.unit == "degC"
    assert len(released) == COUNT
    recorded = read_series("room.txt", column="3:Temperature_Sensor", unit="degC")
    assert released.times.tolist() == recorded.times.tolist()
    assert np.std(released.values - recorded.values) > 0.2
    assert not any(
        f",{value(row)}00\n" in Path("room.private.csv").read_text() for row in range(COUNT)
    )


def test_reports_hold_no_reading_and_the_public_one_no_protected_time(folder: Path) -> None:
    done = run(*WORDS, *STAY, "--report", "public.txt", "--key", keyed())
    assert done.exit_code == 0, done.output
    public = Path("public.txt").read_text()
    assert "2012-03-14 08:00" in done.stdout
    assert "08:00" not in public
    for text in (done.stdout, public):
        assert not any(value(row) in text for row in range(COUNT))
        assert "degC" in text


def test_the_same_again_is_the_same_and_another_is_refused(folder: Path) -> None:
    assert run(*WORDS, *STAY, "-o", "a.csv").exit_code == 0
    assert run(*WORDS, *STAY, "-o", "b.csv").exit_code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert "--again" in refused(*WORDS, *STAY, "-o", "c.csv", "--epsilon", "2")
    assert not Path("c.csv").exists()
    completed = run(*WORDS, *STAY, "-o", "c.csv", "--epsilon", "2", "--again")
    assert "released before" in completed.stdout
    assert "--again" in refused(*WORDS, "--everywhere", "-o", "d.csv")


def test_every_reading_with_a_key_and_coarse_times(folder: Path) -> None:
    assert run("key", "new", "my.key").exit_code == 0
    more = ["--everywhere", "--key", "my.key", "--round-times", "3600", "--shift-times", "--json"]
    done = run(*WORDS, *more)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert "secrets" not in report
    # Every half hour from 2000 on: of each pair that rounds to one hour the first.
    assert report["times"] == {
        "rounded_to_s": 3600.0,
        "shifted": True,
        "dropped": False,
        "left_out": 47,
    }
    times = read_series("room.private.csv").times
    assert times[0] == np.datetime64("2000-01-01T00:00")
    assert len(times) == COUNT - 47


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([], "at times that are stated"),
        ([*STAY, "--everywhere"], "got neither or both"),
        ([*STAY, "--leave", "3"], "--leave must be for traces"),
        ([*STAY, "--adversary", "path"], "--adversary must be for traces"),
        ([*STAY, "--every", "3"], "--every must be for traces"),
        ([*STAY, "--mechanism", "both"], "by --mechanism noise or cut, got both"),
        ([*STAY, "--withhold", "auto"], "must be a number, without a unit, got 'auto'"),
    ],
)
def test_wrong_usage_is_told(more: list[str], reason: str, folder: Path) -> None:
    done = run(*WORDS, *more)
    assert done.exit_code == 2
    assert reason in " ".join(done.output.split())
    assert not Path("room.private.csv").exists()


def test_what_cannot_be_done_is_refused_in_one_line(folder: Path) -> None:
    stated = WORDS[:4]
    assert "unit must be stated" in refused(*stated, *WORDS[6:], *STAY)
    assert "must be one of the table" in refused(*WORDS, *STAY, "--column", "nothing")
    assert "--prior must be in degC, as the values are, got one in metres" in refused(
        *WORDS, *STAY, "--prior", "walk"
    )
    assert "must be CSV" in refused(*WORDS, *STAY, "-o", "room.gpx")
    quiet = {**PRIOR, "terms": PRIOR["terms"][:1]}
    Path("quiet.json").write_text(json.dumps(quiet))
    assert "measurement noise" in refused(*WORDS, *STAY, "--prior", "quiet.json")
    assert "--tz" in refused(*WORDS[:-1], *STAY)
    needed = run(*WORDS[:6], "--assume-utc", *STAY)
    assert needed.exit_code == 2
    assert "--radius" in needed.output


def test_a_table_of_readings_without_a_column_stated_is_told_how(folder: Path) -> None:
    Path("room.csv").write_text("time,temperature\n2012-03-14T08:00:00Z,21\n")
    assert "--column NAME and --unit UNIT" in refused("protect", "room.csv")


def test_a_prior_is_fitted_on_other_readings(folder: Path) -> None:
    words = ["fit", "room.txt", "-o", "mine.json", *WORDS[2:6], "--window", "172800"]
    done = run(*words, "--kernel", "matern32", "--starts", "1")
    assert done.exit_code == 0, done.output
    assert "degC" in done.stdout
    spec = from_json(Path("mine.json").read_text(), "mine.json")
    assert spec.unit == "degC"
    assert spec.fitted_on is not None
    assert spec.fitted_on.windows == 1
    protected = run(*WORDS, *STAY, "--prior", "mine.json")
    assert protected.exit_code == 0, protected.output
