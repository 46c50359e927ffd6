"""One recording and one person are one for `protect`, however they are written."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import done, refused, run
from tests.cli.test_protect_readings import PRIOR
from tests.rides import ride, written

YEARS = 11 * 365 * 86_400


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(path: str, column: str, values: Sequence[float]) -> None:
    lines = [
        f"2024-05-{1 + i // 24:02d}T{i % 24:02d}:00:00,{reading:.3f}"
        for i, reading in enumerate(values)
    ]
    Path(path).write_text("\n".join([f"time,{column}", *lines, ""]))


def test_one_file_read_with_three_zones_is_one_recording() -> None:
    trace = ride(60, 20.0)
    rows = [
        f"2024-05-14T08:{i // 3:02d}:{i % 3 * 20:02d},{a!r},{b!r}"
        for i, (a, b) in enumerate(trace.positions.tolist())
    ]
    Path("ride.csv").write_text("\n".join(["time,latitude,longitude", *rows, ""]))
    words = ("protect", "ride.csv", "--activity", "drive", "--tz")
    done(*words, "Europe/Berlin")
    before = Path("ride.private.csv").read_bytes()
    for zone in ("America/New_York", "Asia/Kolkata", "UTC"):
        assert "say the same --tz" in refused(*words, zone, "-o", "other.csv")
    assert not Path("other.csv").exists()
    done(*words, "Europe/Berlin", "--overwrite")
    assert Path("ride.private.csv").read_bytes() == before


def test_replace_is_advised_only_where_it_works() -> None:
    """A recording of a few positions is known by its times alone, which others may share."""
    noise = ("--activity", "drive", "--mechanism", "noise")
    for name, fixes in (("long.gpx", 60), ("short.gpx", 3)):
        written(Path(name), ride(fixes, 20.0, begin=86_400 * fixes))
        done("protect", name, *noise)
        words = ("protect", name, *noise, "--radius", "150", "-o", f"other.{name}")
        said = refused(*words)
        assert ("add --replace if nobody has" in said) == (name == "long.gpx")
        if name == "long.gpx":
            done(*words, "--replace")
        else:
            assert "keep to short.private.gpx" in said
            assert refused(*words, "--replace") == said


def test_a_person_is_one_however_the_name_is_written() -> None:
    written(Path("a.gpx"), ride(60, 20.0))
    done("protect", "a.gpx", "--activity", "drive", "--subject", "Me")
    for name in ("me", " me ", "ME"):
        words = ("--subject", name, "--radius", "50", "-o", "b.gpx")
        assert "must be released once" in refused("protect", "a.gpx", "--activity", "drive", *words)
    for name in ("m\u0435", "\u043c\u0435", "me\u200b"):
        wrong = run("protect", "a.gpx", "--activity", "drive", "--subject", name, "-o", "b.gpx")
        assert wrong.exit_code == 2
        assert "the name of a person must be" in wrong.stderr
    assert not Path("b.gpx").exists()
    shown = json.loads(done("ledger", "show", "--json", "--subject", "ME"))
    assert [release["subject"] for release in shown["releases"]] == ["me"]


def test_readings_are_one_series_however_their_column_is_named() -> None:
    values = 20 + 2 * np.sin(np.arange(96) / 8) + 0.01 * (np.arange(96) % 7)
    Path("prior.json").write_text(json.dumps(PRIOR))
    table("room.csv", "temperature (degC)", values)
    when = ("2024-05-02T08:00:00Z", "2024-05-02T12:00:00Z")
    options = ("--prior", "prior.json", "--assume-utc", "--between", *when)
    ways = (("--column", "temperature (degC)"), ("--unit", "degC"))
    done("protect", "room.csv", *ways[0], "--radius", "1", *options)
    before = Path("room.private.csv").read_bytes()
    done("protect", "room.csv", *ways[1], "--radius", "1", *options, "--overwrite")
    assert Path("room.private.csv").read_bytes() == before
    table("named.csv", "Temp [C]", values)
    table("bare.csv", "TEMPERATURE", values + 1)  # other values of the same series and time
    for name in ("room.csv", "named.csv", "bare.csv"):
        words = ("protect", name, "--unit", "degC", "--radius", "2", *options, "-o", "b.csv")
        assert "must be released once" in refused(*words)
    table(
        "humidity.csv", "humidity", [40.0 + i % 5 for i in range(96)]
    )  # another quantity, same times
    done("protect", "humidity.csv", "--unit", "degC", "--radius", "2", *options, "-o", "c.csv")


def test_recordings_with_neither_time_nor_place_in_common_add_nothing() -> None:
    """Zurich in 2012, France in 2023: there is no place that both can have been at."""
    written(Path("a.gpx"), ride(940, 5.0, begin=1_350_000_000, at=(47.37, 8.54)))
    written(Path("b.gpx"), ride(940, 5.0, begin=1_350_000_000 + YEARS, at=(43.7, 3.87), seed=2))
    explained = ""
    for name in ("a", "b"):
        words = ("protect", f"{name}.gpx", "--at", "start")
        explained = " ".join(done(*words, "--explain").split())
        assert "all that can be told" not in explained
        assert "visited again and again: epsilon 2" not in explained
    assert "with all 2 of them, of any one time or place with a name: epsilon 0.996 -" in explained
    # The same recording with other noise is what tells all.
    copy = ride(940, 5.0, begin=1_350_036_000 + YEARS, at=(43.7, 3.87), seed=2)
    words = ("protect", str(written(Path("c.gpx"), copy)), *words[2:])
    assert "must be released once" in refused(*words)
    explained = " ".join(done(*words, "--again", "--radius", "50", "--explain").split())
    assert "of any one time or place with a name: all that can be told" in explained


def test_no_report_replaces_the_key_of_the_ledger(folder: Path) -> None:
    written(Path("a.gpx"), ride(60, 20.0))
    done("protect", "a.gpx", "--activity", "drive")
    key = folder / "state" / "trailveil" / "key"
    before = key.read_bytes()
    for words in (("--report", str(key)), ("-o", str(key.with_name("a.gpx")))):
        message = refused("protect", "a.gpx", "--activity", "drive", *words, "--overwrite")
        assert "must not be in the folder of a ledger" in message
    assert "folder of a ledger" in refused("ledger", "export", str(key), "--overwrite")
    assert "folder of a ledger" in refused("demo", "-o", str(key.parent))
    done("key", "new", "my.key")
    message = refused(
        "protect", "a.gpx", "--activity", "drive", "--report", "my.key", "--overwrite"
    )
    assert "must not replace a key" in message
    assert key.read_bytes() == before
