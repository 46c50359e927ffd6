"""Prior files: whole or not at all, and never over another without being told."""

import os
from pathlib import Path

import pytest

from trailveil.errors import InvalidValue, UnreadableInput, UnwritableOutput
from trailveil.kernels import IntegratedOU, White
from trailveil.prior_file import prior_named, read_prior, write_prior
from trailveil.priors import BUILT_IN, PriorSpec, to_json

SPEC = PriorSpec("mine", IntegratedOU(3.0, 60.0) + White(2.0), "metres", None)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write_prior(SPEC, path)
    found = read_prior(path)
    assert (found.kernel, found.unit, found.fitted_on) == (SPEC.kernel, "metres", None)
    assert found.name.endswith("mine.json")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["mine.json"]
    assert path.read_text() == to_json(SPEC)


def test_nothing_is_replaced_without_being_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text("older")
    with pytest.raises(UnwritableOutput, match=r"must not exist yet.*pass --overwrite"):
        write_prior(SPEC, path)
    assert path.read_text() == "older"
    write_prior(SPEC, path, overwrite=True)
    assert path.read_text() == to_json(SPEC)


def test_a_dangling_link_counts_as_existing(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(UnwritableOutput, match="must not exist yet"):
        write_prior(SPEC, path)
    assert not (tmp_path / "elsewhere.json").exists()


def test_a_file_that_appears_in_the_meantime_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.json"
    original = os.link

    def late(source: Path, target: Path) -> None:
        path.write_text("theirs")
        original(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UnwritableOutput, match="must not exist yet"):
        write_prior(SPEC, path)
    assert path.read_text() == "theirs"
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["mine.json"]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(UnwritableOutput, match="No space left on device"):
        write_prior(SPEC, tmp_path / "mine.json")
    assert [p for p in tmp_path.iterdir() if p.is_file()] == []


@pytest.mark.parametrize("name", ["absent/mine.json", "file/mine.json"])
def test_a_place_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnwritableOutput, match="must be a file that can be written"):
        write_prior(SPEC, tmp_path / name)


def test_names_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, spec in BUILT_IN.items():
        assert prior_named(name) is spec
    write_prior(SPEC, "walk")  # a file of that name needs its folder
    assert prior_named("walk") is BUILT_IN["walk"]
    assert prior_named("./walk").kernel == SPEC.kernel
    with pytest.raises(InvalidValue, match="one of default, walk, bike, drive or a file"):
        prior_named("swim")


def test_what_is_no_prior_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(UnreadableInput, match="UTF-8"):
        read_prior(path)
    path.write_text('{"lat": 12.345678}')
    with pytest.raises(UnreadableInput, match="must be an object with") as caught:
        read_prior(path)
    assert "12.3" not in str(caught.value)
    with pytest.raises(UnreadableInput, match="got a directory"):
        prior_named(str(tmp_path))
