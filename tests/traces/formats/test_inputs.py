"""What people hand in by mistake, in every format: marks, blank lines, encodings, no files."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.traces.formats.samples import BINARY, SAMPLES
from tests.traces.formats.traces import PLACES
from trailveil.errors import UnreadableInput
from trailveil.files import source
from trailveil.traces.formats import read
from trailveil.traces.formats.table import FORMATS, Format

TEXT = [row for row in FORMATS if row.name not in BINARY]

all_formats = pytest.mark.parametrize("row", FORMATS, ids=[row.name for row in FORMATS])
all_text = pytest.mark.parametrize("row", TEXT, ids=[row.name for row in TEXT])


def path_of(row: Format, folder: Path) -> Path:
    return folder / ("ride" + (row.suffixes or (".json",))[0])


def refusal(path: Path) -> str:
    with pytest.raises(UnreadableInput) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@all_text
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be-sig"])
def test_a_mark_and_utf_16_are_no_trouble(row: Format, encoding: str, tmp_path: Path) -> None:
    text = SAMPLES[row.name].decode().replace('encoding="UTF-8"', 'encoding="UTF-16"')
    if encoding == "utf-8-sig":
        text = SAMPLES[row.name].decode()
    path = path_of(row, tmp_path)
    big = "\ufeff".encode("utf-16-be") + text.encode("utf-16-be")
    path.write_bytes(big if encoding == "utf-16-be-sig" else text.encode(encoding))
    np.testing.assert_array_equal(read(path).positions, PLACES)


@all_text
def test_blank_lines_before_the_first_are_no_trouble(row: Format, tmp_path: Path) -> None:
    path = path_of(row, tmp_path)
    path.write_bytes(b"\r\n \n" + SAMPLES[row.name])
    np.testing.assert_array_equal(read(path).positions, PLACES)


@all_text
def test_lines_of_another_kind_after_the_end_are_no_trouble_or_refused(
    row: Format, tmp_path: Path
) -> None:
    path = path_of(row, tmp_path)
    path.write_bytes(SAMPLES[row.name] + b"\n2024-05-01 08:00:00 INFO saved\n")
    try:
        recording = read(path)
    except UnreadableInput as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine
    else:
        np.testing.assert_array_equal(recording.positions[: len(PLACES)], PLACES)


@all_formats
def test_a_log_is_refused(row: Format, tmp_path: Path) -> None:
    path = path_of(row, tmp_path)
    path.write_bytes(b"2024-05-01 08:00:00,123 INFO recorder started\n" * 50)
    refusal(path)


@all_formats
def test_a_directory_is_refused(row: Format, tmp_path: Path) -> None:
    path = path_of(row, tmp_path)
    path.mkdir()
    assert "got a directory" in refusal(path)


@all_formats
@pytest.mark.skipif(sys.platform == "win32", reason="pipes with a name are POSIX")
def test_a_pipe_is_refused_at_once(row: Format, tmp_path: Path) -> None:
    path = path_of(row, tmp_path)
    os.mkfifo(path)
    assert "got a pipe" in refusal(path)


def test_a_file_of_2_gib_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ride.gpx"
    with path.open("wb") as stream:  # sparse: it takes no room
        stream.truncate(2**31)
    monkeypatch.setattr(source, "_read", lambda *_: pytest.fail("it was read"))
    assert "at most 2,000 MB" in refusal(path)
