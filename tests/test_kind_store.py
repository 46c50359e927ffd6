"""Designs that are kept: used again where they are as they were, and never otherwise."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.kinds import BEGIN, planned, recording
from trailveil import kind_store
from trailveil.adversaries import Named
from trailveil.errors import Refused
from trailveil.kind_designs import OfKind, designed_for, stored
from trailveil.kind_store import Kept, design_of, forget
from trailveil.kinds import DesignFor, Kind, kind_of
from trailveil.randomness import derive
from trailveil.release import DEFAULT_KERNEL, Request

KEY = bytes(range(32))


def a_kind(epsilon: float = 1.0) -> Kind:
    trace, part = recording(700, 60, 700)
    target = Request((part,), epsilon=epsilon, who=(Named.PLAIN,)).target
    found = kind_of(trace.times, BEGIN, part.end, DEFAULT_KERNEL, target, DesignFor.KIND)
    assert found is not None
    return found


KIND = a_kind()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Kind]:
    """The kinds that noise is sought for, in a process that knows none."""
    found: list[Kind] = []

    def counted(kind: Kind) -> OfKind:
        found.append(kind)
        return designed_for(kind)

    monkeypatch.setattr(kind_store, "designed_for", counted)
    forget()
    return found


def files(kept: Kept) -> list[Path]:
    return sorted(kept.folder.iterdir())


def test_a_kind_is_designed_once(tmp_path: Path, made: list[Kind]) -> None:
    kept = Kept(tmp_path / "designs", KEY)
    first = design_of(KIND, kept)
    assert design_of(KIND, kept) is first
    forget()
    again = design_of(KIND, kept)
    assert made == [KIND]
    assert first is not None
    assert again is not None
    assert np.array_equal(again.columns, first.columns)
    assert again.left == first.left
    assert design_of(a_kind(2.0), kept) is not again
    assert len(made) == 2
    assert len(files(kept)) == 2


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of a file system")
def test_what_is_kept_is_for_its_owner_alone(tmp_path: Path, made: list[Kind]) -> None:
    del made
    kept = Kept(tmp_path / "designs", KEY)
    design_of(KIND, kept)
    (path,) = files(kept)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.folder.stat().st_mode) == 0o700
    assert KEY.hex() not in repr(kept)
    assert path != Kept(kept.folder, bytes(32)).path(KIND)


def resealed(design: OfKind, key: bytes = KEY) -> bytes:
    data = stored(design)
    return derive(key, [b"design of a kind", KIND.name.encode(), data]) + data


def test_what_was_changed_is_not_used(tmp_path: Path, made: list[Kind]) -> None:
    kept = Kept(tmp_path / "designs", KEY)
    good = design_of(KIND, kept)
    assert good is not None
    (path,) = files(kept)
    whole = path.read_bytes()
    weaker = replace(good, columns=0.9 * good.columns)
    shifted = replace(good, columns=np.roll(good.columns, 1, axis=0))
    shorter = replace(good, columns=good.columns[1:])
    for other in (
        b"",
        whole[:-1],
        whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
        b"\0" * len(whole),
        resealed(weaker),
        resealed(shifted),
        resealed(shorter),
        # What nobody judges again is as it was where only the owner could have written it.
        resealed(replace(good, told=0.0), bytes(32)),
        resealed(replace(good, left=good.left[:0])),
        resealed(replace(good, first=good.first + 1)),
        derive(KEY, [b"design of a kind", KIND.name.encode(), b"{}"]) + b"{}",
    ):
        path.write_bytes(other)
        made.clear()
        forget()
        found = design_of(KIND, kept)
        assert made == [KIND]
        assert found is not None
        assert np.array_equal(found.columns, good.columns)
        assert path.read_bytes() == whole


def test_a_design_for_another_kind_is_not_used(tmp_path: Path, made: list[Kind]) -> None:
    kept, other = Kept(tmp_path / "designs", KEY), a_kind(0.5)
    design_of(other, kept)
    kept.path(other).rename(kept.path(KIND))
    found = design_of(KIND, kept)
    assert made == [other, KIND]
    assert found is not None
    assert np.array_equal(found.columns, designed_for(KIND).columns)


def test_where_nothing_can_be_kept_it_is_designed(tmp_path: Path, made: list[Kind]) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert design_of(KIND, Kept(tmp_path / "file", KEY)) is not None
    assert made == [KIND]
    forget()
    assert design_of(KIND) is not None
    assert len(made) == 2


def test_only_so_many_are_known(monkeypatch: pytest.MonkeyPatch, made: list[Kind]) -> None:
    monkeypatch.setattr(kind_store, "_MOST", 1)
    design_of(KIND)
    design_of(a_kind(2.0))
    design_of(KIND)
    assert len(made) == 3


def test_where_there_is_no_noise_for_a_kind_it_is_looked_for_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: list[Kind]
) -> None:
    def refused(kind: Kind) -> OfKind:
        made.append(kind)
        raise Refused("noise must be able to hide so much, got too much")

    monkeypatch.setattr(kind_store, "designed_for", refused)
    kept = Kept(tmp_path / "designs", KEY)
    trace, part = recording(700, 60, 700)
    for _ in range(2):
        assert design_of(KIND, kept) is None
        assert planned(trace, part, who=(Named.PLAIN,), design_for=DesignFor.KIND).of_kind is None
    assert made == [KIND]
    assert not files(kept)


def test_the_older_half_goes_where_much_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: list[Kind]
) -> None:
    monkeypatch.setattr(kind_store, "_MOST_FILES", 4)
    kept = Kept(tmp_path / "designs", KEY)
    kept.folder.mkdir()
    for number in range(4):
        (kept.folder / f"{number}.design").write_bytes(b"")
        os.utime(kept.folder / f"{number}.design", (number, number))
    design_of(KIND, kept)
    assert {one.name for one in files(kept)} == {"2.design", "3.design", kept.path(KIND).name}
    assert made == [KIND]
