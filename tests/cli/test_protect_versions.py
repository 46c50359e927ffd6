"""`protect --version`: several files of one recording, and what the ledger says of them."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import done, refused, run
from tests.rides import ride, written
from trailveil.traces.formats import write
from trailveil.traces.loading import load
from trailveil.traces.trace import Trace

WHAT = ("--no-ends", "--at", "start+9m", "--floor", "3.6")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "ride.gpx"
    with path.open("wb") as out:
        write(ride(90, 20.0), out, ".gpx")
    return path


def trace_of(path: Path) -> Trace:
    return load(path)[0]


def test_cuts_for_friends_and_for_everybody(source: Path) -> None:
    versions = ("--version", "friends", "--radius", "30", "--version=public", "--radius=90")
    said = done("protect", source, *WHAT, *versions)
    assert said.index("Version friends") < said.index("Version public")
    assert "Somebody who has all versions of this recording knows what friends tells" in " ".join(
        said.split()
    )
    friends, public = (
        {*trace_of(source.with_name(f"ride.{name}.private.gpx")).times.tolist()}
        for name in ("friends", "public")
    )
    assert public < friends
    shown = done("ledger", "show")
    assert "(version friends; all versions tell what friends tells)" in shown
    assert "(version public; all versions tell what friends tells)" in shown
    entries = json.loads(done("ledger", "show", "--json"))["releases"]
    assert [(entry["version"], entry["finest"]) for entry in entries] == [
        ("friends", "friends"),
        ("public", "friends"),
    ]


def test_noise_with_files_reports_and_json(source: Path) -> None:
    """Options before the first version, and those that no version has, are of all."""
    words = (
        "--mechanism",
        "noise",
        "--radius",
        "50",
        "--version",
        "friends",
        "--version",
        "public",
    )
    reports = ("--radius", "150", "-o", source.with_name("all.gpx"), "--report", "said.json")
    with_files = (*words, *reports[:-1], source.with_name("said.json"), "--json")
    reports_of = json.loads(done("protect", source, *WHAT, *with_files))["versions"]
    assert [report["target"]["radius_m"] for report in reports_of] == [50, 150]
    assert reports_of[1]["ledger"]["finest"] == "friends"
    assert reports_of[0]["ledger"]["finest"] is None
    assert reports_of[1]["mechanism"]["gap"] < 0.02
    for name in ("all.gpx", "ride.friends.private.gpx", "said.friends.json", "said.public.json"):
        assert source.with_name(name).is_file()
    # Later, a coarser one that goes with them, and a finer one.
    more = ("--mechanism", "noise", "--version", "world", "--radius", "300")
    assert "knows what friends tells" in " ".join(done("protect", source, *WHAT, *more).split())
    last = ("--mechanism", "noise", "--version", "family", "--radius", "25")
    done("protect", source, *WHAT, *last)
    assert done("ledger", "show").count("all versions tell what family tells") == 4
    whole = ("--private-report", source.with_name("p.PRIVATE.json"), "--overwrite")
    done("protect", source, *WHAT, *words, "--radius", "150", *whole)
    done("protect", source, *WHAT, *last, *whole)
    for name in ("friends", "public", "family"):  # as designed, coarser, and finer
        released = source.with_name(f"ride.{name}.private.gpx")
        done("verify", source.with_name(f"p.PRIVATE.{name}.json"), source, released)


def test_each_file_that_is_taken_back_is_named(source: Path) -> None:
    """In the refusal, in the few lines, in full and in JSON; not what the run writes anew."""
    words = ("--version", "friends", "--radius", "30", "--version", "public", "--radius", "90")
    done("protect", source, *WHAT, *words)
    files = [source.with_name(f"ride.{name}.private.gpx").name for name in ("friends", "public")]
    denied = refused("protect", source, *WHAT, "--radius", "20")
    assert all(f"{name} (made 20" in denied for name in files)
    other = ("--replace", "-o", source.with_name("x.gpx"))
    said = " ".join(done("protect", source, *WHAT, *words[:4], *other[:1]).split())
    assert f"Next: delete {files[1]} (made 20" in said
    assert f"delete {files[0]}" not in said
    done("protect", source, *WHAT, *words, "--again", "--overwrite")
    report = json.loads(done("protect", source, *WHAT, "--radius", "60", *other, "--json"))
    assert [each["output"] for each in report["retracted"]] == files
    assert [each["version"] for each in report["retracted"]] == ["friends", "public"]
    assert report["retracted"][0]["hidden"] == ["at a stated time"]
    assert f"You took back {files[0]}" in " ".join(report["warnings"])
    again = done("protect", source, *WHAT, "--radius", "70", *other, "--explain")
    assert "You took back x.gpx (made 20" in " ".join(again.split())


def test_versions_beside_other_versions_say_that_all_is_told(tmp_path: Path) -> None:
    """Two families of noise together: what one of them tells is not what all tell.

    Of a fix a minute: what two noises tell together takes exact numbers, ever more for more fixes.
    """
    source = written(tmp_path / "ride.gpx", ride(50, 12.0))
    words = ("--mechanism", "noise", "--version", "a", "--radius", "50")
    done("protect", source, *WHAT, *words)
    again = ("--mechanism", "noise", "--version", "b", "--radius", "60", "--version", "c")
    said = " ".join(done("protect", source, *WHAT, *again, "--radius", "90", "--again").split())
    assert said.count("You published another version of this recording.") == 2
    assert "knows what b tells" not in said


@pytest.mark.parametrize("radius", [60, 20])
def test_a_cut_and_noise_follow_no_published_coarser_version(source: Path, radius: int) -> None:
    """They release other fixes than it; in one run, all of them are versions."""
    both = ("--mechanism", "both", "--adversary", "plain")
    versions = (*both, "--version", "a", "--radius", "30", "--version", "b", "--radius", "100")
    done("protect", source, *WHAT, *versions)
    other = ("--version", "c", "--radius", radius)
    said = refused("protect", source, *WHAT, *both, *other)
    assert said == (
        "a version that is finer than a published one must release the same fixes, got one that "
        "releases other fixes, as with a cut and noise: state all versions in one run, with "
        "--replace if nobody has the earlier ones"
    )
    done("protect", source, *WHAT, *versions, *other, "--replace")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--version", "a b"), "versions must be 1 to 8"),
        (("--version", "a", "--version", "a"), "versions must be 1 to 8"),
        (
            ("--version", "a", "--version", "b", "--mechanism", "noise", "--radius", "300"),
            "each version must hold nothing that a finer one does not",
        ),
        (("--version", "a", "--unit", "degC"), "--version must be of a track"),
    ],
)
def test_wrong_versions_are_refused(source: Path, words: tuple[str, ...], message: str) -> None:
    assert message in refused("protect", source, *WHAT, *words)


def test_a_version_must_have_usable_options(source: Path) -> None:
    assert run("protect", source, "--version", "a", "--radius", "x").exit_code == 2
    assert run("protect", source, "--version").exit_code != 0
