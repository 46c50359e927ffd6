"""Names, locales, line ends and homes as they are elsewhere; in real processes where it matters."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.cli.test_surroundings import AT_ONCE, TRACE, shell
from tests.formats.traces import SAMPLES
from tests.rides import written
from trailveil.cli import cli
from trailveil.errors import Refused
from trailveil.formats.table import FORMATS
from trailveil.keys import load_key, new_key
from trailveil.ledger import user_ledger
from trailveil.prior_file import read_prior
from trailveil.priors import BUILT_IN, to_json

NAMES = [
    "my ride of May 'so\" it was.gpx",
    "two\nlines\tand \x1b[31mred.gpx",
    "-o.gpx",
]
LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"},
    {"LANG": "tlh_XX.KOI8-R", "LC_ALL": "", "PYTHONUTF8": "0", "PYTHONIOENCODING": "latin-1"},
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "a place\nof two lines"
    folder.mkdir()
    written(folder / "ride.gpx", TRACE)
    return folder


def told(output: bytes) -> str:
    """What was said, without anything that a terminal takes for a command."""
    assert b"\x1b" not in output
    assert b"\t" not in output
    return output.decode("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_names_of_files(name: str, place: Path) -> None:
    (place / "ride.gpx").rename(place / name)
    known = shell('"$@"', place, "protect", *AT_ONCE, "--", name)
    assert known.returncode == 0, known.stderr
    told(known.stdout)
    assert (place / name).with_suffix(".private.gpx").read_bytes().endswith(b"</gpx>\n")
    missing = shell('"$@"', place, "protect", "--", f"no {name}")
    assert missing.returncode == 1
    assert len(told(missing.stderr).strip().splitlines()) == 1
    assert sorted(path.name for path in place.iterdir()) == sorted(
        [name, Path(name).with_suffix(".private.gpx").name]
    )


@pytest.mark.slow
def test_a_name_that_is_no_text(place: Path) -> None:
    shutil.copy(place / "ride.gpx", place / os.fsdecode(b"r\xff\xfe.gpx"))
    found = shell('"$@"', place, "protect", os.fsdecode(b"r\xff\xfe.gpx"), *AT_ONCE)
    assert found.returncode == 0, found.stderr
    assert (place / os.fsdecode(b"r\xff\xfe.private.gpx")).exists()


@pytest.mark.slow
@pytest.mark.parametrize("locale", LOCALES, ids=["C", "POSIX", "unknown"])
def test_locales_without_the_letters(locale: dict[str, str], place: Path) -> None:
    (place / "ride.gpx").rename(place / "Z\u00fcrich \u2192 \u5317\u4eac.gpx")
    bare = "PYTHONCOERCECLOCALE" in locale  # in which letters of an argument are no text
    words = (
        "Z\u00fcrich \u2192 \u5317\u4eac.gpx",
        *AT_ONCE,
        "--subject",
        "Zoe" if bare else "Zo\u00eb",
    )
    found = shell('"$@"', place, "protect", *words, env=locale)
    assert found.returncode == 0, found.stderr
    assert b"The promise" in found.stdout
    again = shell('"$@"', place, "ledger", "show", env=locale)
    assert again.returncode == 0, again.stderr
    wrong = shell('"$@"', place, "protect", "\u5317\u4eac.gpx", env=locale)
    assert wrong.returncode == 1
    assert len(wrong.stderr.splitlines()) == 1


TEXTS = [row.name for row in FORMATS if b"\0" not in SAMPLES[row.name]]


@pytest.mark.parametrize("ending", [b"\r\n", b"\r"])
@pytest.mark.parametrize("name", TEXTS)
def test_line_ends_of_windows_and_of_old(name: str, ending: bytes) -> None:
    row = next(one for one in FORMATS if one.name == name)
    plain = SAMPLES[name].replace(b"\r\n", b"\n")
    expected, found = row.read(plain, "x"), row.read(plain.replace(b"\n", ending), "x")
    np.testing.assert_array_equal(found.times, expected.times)
    np.testing.assert_array_equal(found.positions, expected.positions)
    assert found.seen == expected.seen


def test_a_key_and_a_prior_with_line_ends_of_windows(place: Path) -> None:
    path = place / "key"
    new_key(path)
    key = load_key(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_key(path) == key
    prior = place / "prior.json"
    prior.write_bytes(to_json(BUILT_IN["walk"]).encode().replace(b"\n", b"\r\n"))
    assert read_prior(prior).kernel == BUILT_IN["walk"].kernel


def test_without_a_home_nothing_is_counted_so_nothing_is_released(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Path:
        raise RuntimeError

    for name in ("XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", none)
    with pytest.raises(Refused, match="got no home; set XDG_STATE_HOME"):
        user_ledger()
    found = CliRunner().invoke(cli, ["protect", str(place / "ride.gpx"), *AT_ONCE])
    assert isinstance(found.exception, Refused)
    assert [path.name for path in place.iterdir()] == ["ride.gpx"]


@pytest.mark.slow
@pytest.mark.parametrize("home", ["/nonexistent", "/proc"])
def test_a_home_that_cannot_be_written(home: str, place: Path) -> None:
    line = 'unset XDG_STATE_HOME LOCALAPPDATA; "$@"'
    found = shell(line, place, "protect", "ride.gpx", *AT_ONCE, env={"HOME": home + "/who"})
    if os.geteuid() == 0 and home == "/nonexistent":  # whom no folder is forbidden
        shutil.rmtree("/nonexistent", ignore_errors=True)
        assert found.returncode == 0
    else:
        assert found.returncode == 1
        assert len(found.stderr.splitlines()) == 1
        assert b"XDG_STATE_HOME" in found.stderr
        assert [path.name for path in place.iterdir()] == ["ride.gpx"]


@pytest.mark.slow
def test_a_disk_that_is_full(place: Path) -> None:
    """The ledger and the release: whichever does not fit, nothing half is left."""
    for blocks in (0, 1, 40, 90):
        line = f'ulimit -f {blocks}; "$@"'  # of 1 KiB a file; the signal of it is passed over
        found = shell(line, place, "protect", "ride.gpx", *AT_ONCE)
        assert found.returncode in (0, 1)
        if found.returncode:
            assert len(found.stderr.splitlines()) == 1, found.stderr
            assert [path.name for path in place.iterdir()] == ["ride.gpx"]
        (place / "ride.private.gpx").unlink(missing_ok=True)
    assert shell('"$@"', place, "protect", "ride.gpx", *AT_ONCE).returncode == 0
    assert shell('"$@"', place, "ledger", "verify").returncode == 0
