"""The folder of an experiment: what is kept of an interrupted run, and whose files are replaced."""

import json
from pathlib import Path

import pytest

from trailveil.errors import UnwritableOutput
from trailveil.studies.experiments import folder as module
from trailveil.studies.experiments.folder import Folder, code_digest, opened, table

POINT = {"scale": 2.5, "curve": {"mechanism": "sdp", "adversary": 1.0}}
VALUES = {"interval": 3.6069413628883314e-25}


def kept(path: Path) -> Folder:
    folder = opened(path, "figure")
    folder.keep(POINT, VALUES)
    return folder


def test_a_point_is_kept_for_the_next_run(tmp_path: Path) -> None:
    kept(tmp_path / "new" / "folder")
    again = opened(tmp_path / "new" / "folder", "figure")
    assert again.find(POINT) == VALUES
    assert again.find({**POINT, "scale": 2.6}) is None
    assert opened(tmp_path / "new" / "folder", "other").find(POINT) is None


def test_a_torn_line_costs_its_point_and_no_other(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    folder.keep({"scale": 3.0}, VALUES)
    whole = folder.record.read_bytes()
    folder.record.write_bytes(whole[:-9])
    again = opened(tmp_path, "figure")
    assert again.find(POINT) == VALUES
    assert again.find({"scale": 3.0}) is None
    again.keep({"scale": 3.0}, VALUES)
    assert folder.record.read_bytes() == whole


def test_other_code_computes_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path).write("a.csv", b"1\n", overwrite=False)
    monkeypatch.setattr(module, "code_digest", lambda: "other")
    later = opened(tmp_path, "figure")
    assert later.find(POINT) is None
    later.write("a.csv", b"2\n", overwrite=False)  # still known as its own
    assert (tmp_path / "a.csv").read_bytes() == b"2\n"


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"point": {}, "values": {}}',
        json.dumps({"code": code_digest(), "point": 3, "values": {"x": 1.0}}).encode(),
        json.dumps({"code": code_digest(), "point": {}, "values": {"x": "1"}}).encode(),
        json.dumps({"code": code_digest(), "point": {}, "values": {"x": float("nan")}}).encode(),
        b'{"wrote": "x"}',
    ],
)
def test_lines_that_are_no_points_are_dropped(tmp_path: Path, line: bytes) -> None:
    folder = kept(tmp_path)
    whole = folder.record.read_bytes()
    folder.record.write_bytes(line + b"\n" + whole)
    again = opened(tmp_path, "figure")
    assert again.kept == folder.kept
    assert again.record.read_bytes() == whole


def test_only_its_own_files_are_replaced(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    folder.write("a.csv", b"1\n", overwrite=False)
    folder = opened(tmp_path, "figure")
    folder.write("a.csv", b"2\n", overwrite=False)
    folder.check_free(["a.csv", "b.csv"], overwrite=False)
    (tmp_path / "a.csv").write_bytes(b"mine\n")
    for overwrite_a in (folder.check_free, opened(tmp_path, "figure").check_free):
        with pytest.raises(UnwritableOutput, match=r"another 'a\.csv'.*--overwrite"):
            overwrite_a(["b.csv", "a.csv"], overwrite=False)
    with pytest.raises(UnwritableOutput):
        folder.write("a.csv", b"3\n", overwrite=False)
    assert (tmp_path / "a.csv").read_bytes() == b"mine\n"
    folder.write("a.csv", b"3\n", overwrite=True)
    assert (tmp_path / "a.csv").read_bytes() == b"3\n"


def test_a_file_that_is_as_it_should_be_is_left_alone(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    folder.write("a.csv", b"1\n", overwrite=False)
    before = (tmp_path / "a.csv").stat().st_mtime_ns, folder.record.read_bytes()
    opened(tmp_path, "figure").write("a.csv", b"1\n", overwrite=False)
    assert before == ((tmp_path / "a.csv").stat().st_mtime_ns, folder.record.read_bytes())


def test_a_run_that_stops_between_record_and_file_owns_what_it_makes_next(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    folder.write("a.csv", b"1\n", overwrite=False)
    (tmp_path / "a.csv").unlink()
    opened(tmp_path, "figure").write("a.csv", b"2\n", overwrite=False)
    assert (tmp_path / "a.csv").read_bytes() == b"2\n"


def test_a_folder_that_cannot_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnwritableOutput, match="--out must be a folder"):
        opened(tmp_path / "file", "figure")
    with pytest.raises(UnwritableOutput, match="--out must be a folder"):
        opened(tmp_path / "file" / "below", "figure")
    (tmp_path / "figure.run.jsonl").mkdir()
    with pytest.raises(UnwritableOutput, match="must be a folder that can be made and read"):
        opened(tmp_path, "figure")


def test_a_link_to_elsewhere_is_not_followed(tmp_path: Path) -> None:
    folder = kept(tmp_path)
    (tmp_path / "elsewhere").write_bytes(b"1\n")
    (tmp_path / "a.csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnwritableOutput):
        folder.write("a.csv", b"1\n", overwrite=False)
    folder.write("a.csv", b"2\n", overwrite=True)
    assert (tmp_path / "elsewhere").read_bytes() == b"1\n"
    assert not (tmp_path / "a.csv").is_symlink()


def test_tables_are_plain_csv() -> None:
    assert table([["a", "b"], [1.5, 'say "x, y"']]) == b'a,b\n1.5,"say ""x, y"""\n'
