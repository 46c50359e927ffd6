"""Files appear whole or not at all, never over something else unasked, private until they do."""

import os
import resource
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from trailveil.errors import UnwritableOutput
from trailveil.files import output
from trailveil.files.output import check_output, is_same_file, staged, write_atomically

Link = Callable[[Path, Path], None]


def put(text: bytes) -> Callable[[BinaryIO], object]:
    return lambda out: out.write(text)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written(place: Path) -> None:
    write_atomically(place / "a", put(b"whole"), overwrite=False)
    assert (place / "a").read_bytes() == b"whole"
    assert names(place) == ["a"]


@pytest.mark.parametrize(("mask", "private", "mode"), [(0o022, False, 0o644), (0, True, 0o600)])
def test_modes(place: Path, mask: int, private: bool, mode: int) -> None:
    before = os.umask(mask)
    try:
        write_atomically(place / "a", put(b""), overwrite=False, private=private)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert stat.S_IMODE((place / "a").stat().st_mode) == mode


def test_until_it_is_in_place_only_the_user_reads_it(place: Path) -> None:
    modes = []

    def write(stream: BinaryIO) -> None:
        modes.append(stat.S_IMODE(os.fstat(stream.fileno()).st_mode))
        assert not (place / "a").exists()

    before = os.umask(0)
    try:
        write_atomically(place / "a", write, overwrite=False)
    finally:
        os.umask(before)
    assert modes == [0o600]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, OSError])
def test_nothing_is_left_where_writing_fails(place: Path, error: type[BaseException]) -> None:
    (place / "a").write_bytes(b"old")

    def write(stream: BinaryIO) -> None:
        stream.write(b"part")
        raise error

    with pytest.raises(UnwritableOutput if error is OSError else error):
        write_atomically(place / "a", write, overwrite=True)
    assert names(place) == ["a"]
    assert (place / "a").read_bytes() == b"old"


def test_a_step_that_is_not_taken_leaves_nothing(place: Path) -> None:
    with staged(place / "a", put(b"x"), overwrite=False):
        assert len(names(place)) == 1
        assert names(place) != ["a"]
    assert names(place) == []


def test_what_appears_in_the_meantime_stays(place: Path) -> None:
    with staged(place / "a", put(b"new"), overwrite=False) as last:
        (place / "a").write_bytes(b"theirs")
        with pytest.raises(UnwritableOutput, match="must not exist yet"):
            last()
    assert (place / "a").read_bytes() == b"theirs"
    assert names(place) == ["a"]


def test_file_systems_without_links(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    write_atomically(place / "a", put(b"x"), overwrite=False)
    assert names(place) == ["a"]
    with pytest.raises(UnwritableOutput, match="must not exist yet"):
        output._link(place / "b", place / "a", "output")


def test_a_name_that_is_taken_at_the_last_moment_stays(place: Path) -> None:
    (place / "rough").write_bytes(b"new")
    (place / "a").write_bytes(b"theirs")
    with pytest.raises(UnwritableOutput, match="must not exist yet"):
        output._link(place / "rough", place / "a", "output")
    assert (place / "a").read_bytes() == b"theirs"


def test_a_full_disk_is_one_line_and_no_file(place: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(
            UnwritableOutput, match="must be writable, got the error 'File too larg"
        ):
            write_atomically(place / "a", put(bytes(100_000)), overwrite=False)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(place) == []


def test_overwriting_takes_the_name_and_not_what_a_link_leads_to(place: Path) -> None:
    (place / "target").write_bytes(b"precious")
    (place / "a").symlink_to(place / "target")
    write_atomically(place / "a", put(b"new"), overwrite=True)
    assert (place / "target").read_bytes() == b"precious"
    assert not (place / "a").is_symlink()


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to], ids=["soft", "hard"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_the_input_by_another_name_is_the_input(place: Path, link: Link, overwrite: bool) -> None:
    source = place / "ride.gpx"
    source.write_bytes(b"x")
    link(place / "other.gpx", source)
    (place / "folder").symlink_to(place)
    for path in (
        source,
        place / "other.gpx",
        place / "folder" / "ride.gpx",
        place / "folder" / ".." / place.name / "other.gpx",
    ):
        with pytest.raises(UnwritableOutput, match="must be a file of its own"):
            check_output(path, source, overwrite=overwrite)


def test_two_files_to_come_are_one_where_their_names_are(place: Path) -> None:
    (place / "link").symlink_to(place)
    assert is_same_file(place / "a.json", place / "link" / "A.json")
    assert not is_same_file(place / "a.json", place / "b.json")


def test_what_cannot_be_a_target(place: Path) -> None:
    (place / "file").write_bytes(b"")
    (place / "dangling").symlink_to(place / "nowhere")
    (place / "loop").symlink_to(place / "loop")
    os.mkfifo(place / "pipe")
    (place / "device").symlink_to("/dev/null")
    for path, overwrite, what in (
        (place, True, "must be a file, got a folder"),
        (place / "none" / "a", True, "in a folder that exists, got none"),
        (place / "file" / "a", True, "in a folder that exists, got none"),
        (place / "file", False, "must not exist yet"),
        (place / "dangling", False, "must not exist yet"),
        (place / "loop", False, "must not exist yet"),
        (place / "pipe", True, "got a device, pipe or socket"),
        (place / "device", True, "got a device, pipe or socket"),
        (Path("/dev/null"), True, "got a device, pipe or socket"),
        (place / ("x" * 300), True, "must be writable, got the error 'File name too long'"),
    ):
        with pytest.raises(UnwritableOutput, match=what) as caught:
            check_output(path, overwrite=overwrite)
        assert "\n" not in str(caught.value)


def test_a_socket_is_no_target(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        with pytest.raises(UnwritableOutput, match="pipe or socket"):
            check_output(Path("s"), overwrite=True)


def test_a_long_name_leaves_room_for_the_temporary_one(place: Path) -> None:
    path = place / ("\u00e9" * 127)
    write_atomically(path, put(b"x"), overwrite=False)
    assert names(place) == [path.name]


def test_a_folder_that_vanishes(place: Path) -> None:
    folder = place / "folder"
    folder.mkdir()

    def write(stream: BinaryIO) -> None:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    with pytest.raises(UnwritableOutput, match="No such file or directory"):
        write_atomically(folder / "a", write, overwrite=False)


def test_a_place_that_takes_no_files() -> None:
    with pytest.raises(UnwritableOutput, match="must be writable, got the error"):
        write_atomically(Path("/proc/trailveil.gpx"), put(b""), overwrite=False)
