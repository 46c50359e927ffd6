"""`trailveil ledger import`: tracks, photos and stated positions that are public already."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import done, refused, run
from tests.rides import ride
from tests.traces.formats.photos import photo
from trailveil.traces.formats import write
from trailveil.traces.trace import cut_out

WHAT = ("--no-ends", "--at", "start+30m", "--no-returns", "--floor", "3", "--radius", "30")
AT = ("--at", "48.137,11.575", "--time", "2024-05-14T08:12:30Z")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "ride.gpx"
    with path.open("wb") as out:
        write(ride(180, 20.0), out, ".gpx")
    return path


def test_a_position_makes_the_next_cut_longer(source: Path) -> None:
    plain = json.loads(done("protect", source, *WHAT, "--json", "-o", source.with_name("a.gpx")))
    said = done("ledger", "import", *AT)
    assert "is counted as public now: 1 position, exact, 2024-05-14 08:12:30 UTC." in said
    assert "was counted before" in done("ledger", "import", *AT)
    words = (*WHAT, "--json", "-o", source.with_name("b.gpx"), "--replace")
    longer = json.loads(done("protect", source, *words))
    assert longer["secrets"][0]["cut_s"] > plain["secrets"][0]["cut_s"]
    shown = done("ledger", "show")
    assert "public already: 1 position, exact" in shown
    assert "1 release." in shown
    done("ledger", "verify")
    private = source.with_name("c.PRIVATE.json")
    done("protect", source, *WHAT, "-o", source.with_name("c.gpx"), "--private-report", private)
    done("verify", private, source, source.with_name("c.gpx"))


def test_what_was_counted_is_said_and_no_place(source: Path, tmp_path: Path) -> None:
    """In the few lines and in full: what makes the cut longer, and what tells nothing more."""
    far = ("--at", "48.137,11.575", "--time", "2024-05-14T08:33:00Z", "--accuracy", "30")
    for imported in (AT, far):
        done("ledger", "import", *imported)
    for more in ((), ("--explain",)):
        output = tmp_path / f"{len(more)}.gpx"
        said = " ".join(
            done("protect", source, *WHAT, "--tz", "UTC", "--again", "-o", output, *more).split()
        )
        assert "Counted: what is public already, at 2024-05-14 08:12:30 UTC (exact)." in said
        assert "1 position that is public already tells nothing more" in said
        assert "48.137" not in said


def test_the_public_track_of_a_ride_leaves_nothing_to_hide(source: Path, tmp_path: Path) -> None:
    """All of it, or a part: what is hidden must lie farther off."""
    trace = ride(180, 20.0)
    part = tmp_path / "part.gpx"
    with part.open("wb") as out:
        write(cut_out(trace, trace.times > trace.times[100]), out, ".gpx")
    assert "79 positions, within 20 m 68 times in 100" in done(
        "ledger", "import", part, "--accuracy", "20"
    )
    assert "tells it within" in refused("protect", source, *WHAT[:2], "start+40m", *WHAT[3:])
    done("ledger", "import", source)
    assert "tells it exactly" in refused("protect", source, *WHAT)
    assert "try --mechanism cut, which reckons with it, or state parts that" in refused(
        "protect", source, *WHAT, "--mechanism", "noise"
    )
    done("protect", source, *WHAT, "--subject", "anna")


def test_photos(tmp_path: Path) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(photo())
    assert "1 position, within 30 m 68 times in 100, 2024-05-14 12:00:30 UTC" in done(
        "ledger", "import", path, "--accuracy", "30"
    )
    path.write_bytes(photo(position=((0, 1),) * 6))
    assert "photo.jpg: a photo must say where it was taken, got 0 degrees" in refused(
        "ledger", "import", path
    )
    path.write_bytes(photo(gps=False))
    assert "photo.jpg: a photo must be a JPEG that says when and where" in refused(
        "ledger", "import", path
    )


def test_a_time_that_cannot_be_counted_in_nanoseconds_is_refused() -> None:
    for time in ("9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z"):
        said = refused("ledger", "import", "--at", "46,7", "--time", time)
        assert "a time must be like 2024-05-14T08:30:00Z" in said


def test_the_circle_that_was_stated_is_said_again(source: Path) -> None:
    """Not the standard deviation that it stands for."""
    done(
        "ledger",
        "import",
        "--at",
        "48.137,11.575",
        "--time",
        "2024-05-14T08:10Z",
        "--accuracy",
        "30",
    )
    assert "tells it within 30 m 68 times in 100, by a position in it" in refused(
        "protect", source, *WHAT
    )


def test_a_place_with_a_name_that_is_public_is_told(source: Path) -> None:
    """Whenever the position was: where home is does not change."""
    done("place", "add", "home", "--near", "48.137,11.575,100", "--radius", "30")
    year_before = ("--at", "48.1371,11.5751", "--time", "2023-05-14T08:12:30Z")
    assert "It shows home: that counts as told" in done("ledger", "import", *year_before)
    assert "home" in done("ledger", "show")
    assert "all that can be told" in done("ledger", "show")
    limited = refused("protect", source, "--floor", "3", "--total-epsilon", "5")
    assert "epsilon in total must be at most 5" in limited
    elsewhere = ("--at", "48.2,11.575", "--time", "2023-05-14T08:12:30Z")
    assert "home" not in done("ledger", "import", *elsewhere)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--at", "48.1,11.5", "--time", "noon"), "a time must be like"),
        (("--at", "48.1", "--time", "2024-05-14T08:12:30Z"), "--at must be LAT,LON"),
        (("--at", "98.1,11.5", "--time", "2024-05-14T08:12:30Z"), "--at must be LAT,LON"),
        (("missing.gpx",), "must be a file that exists"),
    ],
)
def test_wrong_imports_are_refused(words: tuple[str, ...], message: str) -> None:
    assert message in refused("ledger", "import", *words)


def test_files_or_a_position(source: Path) -> None:
    for words in ((), AT[:2], AT[2:], (*AT, source)):
        assert run("ledger", "import", *words).exit_code == 2
