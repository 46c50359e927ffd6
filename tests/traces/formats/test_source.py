"""Files that cannot be opened, are no files, or hold nothing: one clear line each."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trailveil.errors import TrailveilError, UnreadableInput, UnwritableOutput
from trailveil.files import source
from trailveil.files.source import load, named
from trailveil.traces.formats.table import FORMATS, format_of, format_to_write

ROOT = Path(__file__).parents[3]
MINIMAL = b"<gpx></gpx>"


def refusal(path: Path | str) -> str:
    with pytest.raises(UnreadableInput) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 300
    return message


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.gpx"
    path.write_bytes(b"\r\n\x1a\0" * 1000)
    assert load(path) == load(str(path)) == b"\r\n\x1a\0" * 1000


def test_missing_empty_and_directories(tmp_path: Path) -> None:
    assert "got none" in refusal(tmp_path / "absent.gpx")
    assert "got a directory" in refusal(tmp_path)
    (tmp_path / "empty.gpx").touch()
    assert "got an empty file" in refusal(tmp_path / "empty.gpx")
    assert "no valid name" in refusal("a\0b.gpx")
    assert "got the error" in refusal(tmp_path / ("x" * 5000))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with a name are POSIX")
def test_a_pipe_is_refused_at_once_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gpx")
    assert "got a pipe" in refusal(tmp_path / "pipe.gpx")


@pytest.mark.skipif(sys.platform == "win32", reason="/dev is POSIX")
def test_an_endless_device_is_refused() -> None:
    assert "got a device" in refusal("/dev/zero")


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.gpx").write_bytes(MINIMAL)

    def forbidden(*_: object) -> int:  # a mode would not stop the superuser
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)
    assert "no permission" in refusal(tmp_path / "a.gpx")


def test_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.gpx"
    path.write_bytes(b"x" * 10**6)
    assert len(load(path, 10**6)) == 10**6
    path.write_bytes(b"x" * (10**6 + 1))
    with pytest.raises(UnreadableInput, match="at most 1 MB"):
        load(path, 10**6)


def test_names_stay_on_one_line_and_short() -> None:
    assert named("ride.gpx") == "ride.gpx"
    assert named("a\nb\x1b[31m\u2028.gpx") == "a?b?[31m?.gpx"
    assert len(named("d/" * 500 + "ride.gpx")) == 80
    assert named("d/" * 500 + "ride.gpx").endswith("/ride.gpx")


@pytest.mark.parametrize("name", ["a.gpx", "a.GPX", "a", "a.xml", "a.txt"])
def test_suffix_then_content_tells_the_format(name: str) -> None:
    for content in (b'<?xml version="1.0"?><gpx>', "\ufeff<GPX>".encode("utf-16")):
        assert format_of(name, content).name == "GPX"


def test_the_suffix_is_believed_unless_the_content_looks_like_another() -> None:
    assert format_of("a.gpx", b"no such thing").name == "GPX"
    assert format_of("a.gpx", b"<TrainingCenterDatabase>").name == "TCX"
    assert format_of("a.fit", b"<gpx>").name == "GPX"
    assert format_of("a.tcx", b"\x0e\x10\xd9\x07\0\0\0\0.FIT").name == "FIT"


@pytest.mark.parametrize("name", ["a.xyz", "a", "gpx", "a.gpx.gz"])
def test_an_unknown_format_is_refused_with_what_can_be_read(name: str) -> None:
    with pytest.raises(UnreadableInput, match=r"\(GPX \.gpx, .*\), got another: .*; convert it"):
        format_of(name, b"\x0e\x10\xd9\x07")


@pytest.mark.parametrize("suffix", [".nmea", "", "gpx", ".gpx\n"])
def test_an_unknown_format_is_not_written(suffix: str) -> None:
    with pytest.raises(UnwritableOutput, match=r"\(GPX \.gpx.*\), got the suffix") as caught:
        format_to_write(suffix)
    assert "\n" not in str(caught.value)
    assert "NMEA" not in str(caught.value)


def test_suffixes_are_lower_case_start_with_a_dot_and_belong_to_one_format() -> None:
    suffixes = [suffix for row in FORMATS for suffix in row.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert all(suffix == suffix.lower() and suffix[0] == "." for suffix in suffixes)
    for row in FORMATS:
        for suffix in row.suffixes:
            assert format_of("x" + suffix, b"") is row
            if row.write:
                assert format_to_write(suffix.upper()) is row
    assert issubclass(UnwritableOutput, TrailveilError)


def test_what_is_large_or_rare_is_imported_on_use_alone() -> None:
    program = (
        "import sys, trailveil.cli.protect, trailveil.traces.formats, trailveil.traces.frames\n"
        "trailveil.traces.formats.table.format_of('a.gpx', b'<gpx>')\n"
        "print(*({'pyarrow', 'pandas', 'geopandas', 'shapely', 'fitdecode'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.strip() == ""


def test_no_room_is_taken_for_more_than_a_file_has(tmp_path: Path) -> None:
    path = tmp_path / "a.gpx"
    path.write_bytes(b"x" * 1000)
    assert load(path, 2**62) == b"x" * 1000


def test_a_file_that_grows_while_it_is_read_is_bounded_and_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_STEP", 100)
    path = tmp_path / "a.gpx"
    path.write_bytes(b"x" * 1000)
    with path.open("rb") as stream:
        assert len(source._read(stream, 10, 500)) == 501
        stream.seek(0)
        assert len(source._read(stream, 10, 5000)) == 1000
