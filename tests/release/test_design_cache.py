"""Designs that are kept: used again where they are as they were, and never otherwise."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from tests.rides import ride
from trailveil.designer import table, window
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.table import noise_of, read
from trailveil.designer.window import window_noise
from trailveil.errors import NoRoom
from trailveil.files.output import write_atomically
from trailveil.ledger import user_ledger
from trailveil.release import design_cache
from trailveil.release.design_cache import DesignCache
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Stretch

KEY = bytes(range(32))
REQUEST = Request((), radius=150.0)
WHO = REQUEST.adversaries[:1]


@pytest.fixture(scope="module")
def good() -> WindowNoise:
    """What is found for the request of these tests."""
    table.forget()
    return noise_of(60.0, 1, WHO, REQUEST.bound)


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The lengths that noise is sought for, in a process that knows none."""
    sought_for: list[float] = []

    def counted(seconds: float, *others: object) -> WindowNoise:
        sought_for.append(seconds)
        return window_noise(seconds, *others)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(window, "window_noise", counted)
    table.forget()
    return sought_for


def sought(cache: DesignCache | None) -> WindowNoise:
    """As a new process would."""
    table.forget()
    return noise_of(60.0, 1, WHO, REQUEST.bound, cache)


def test_a_design_is_sought_once_and_is_the_same(
    tmp_path: Path, lengths: list[float], good: WindowNoise
) -> None:
    cache = DesignCache(tmp_path / "designs", KEY)
    for _ in range(2):
        again = sought(cache)
        assert np.array_equal(again.even, good.even)
        assert (again.proof, again.gap, again.knots) == (good.proof, good.gap, good.knots)
    assert lengths == [60.0]
    noise_of(60.0, 1, WHO, REQUEST.bound, cache)
    assert lengths == [60.0]
    noise_of(60.0, 1, WHO, 2 * REQUEST.bound, cache)
    assert len(lengths) == 2
    assert len(list(cache.folder.iterdir())) == 2


@pytest.mark.skipif(os.name != "posix", reason="needs permissions of a file system")
def test_what_is_kept_is_for_its_owner_alone(tmp_path: Path) -> None:
    cache = DesignCache(tmp_path / "designs", KEY)
    (tmp_path / "designs").mkdir(mode=0o777)
    cache.put("a", b"data")
    (path,) = cache.folder.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700
    assert KEY.hex() not in repr(cache)


def test_what_was_changed_or_copied_is_not_used(tmp_path: Path) -> None:
    cache = DesignCache(tmp_path / "designs", KEY)
    cache.put("a", b"data")
    (path,) = cache.folder.iterdir()
    whole = path.read_bytes()
    assert cache.get("a") == b"data"
    for other in (b"", whole[:-1], whole[:40] + bytes([whole[40] ^ 1]) + whole[41:], b"\0" * 99):
        path.write_bytes(other)
        assert cache.get("a") is None
    cache.put("a", b"data")
    assert path.read_bytes() == whole
    # Of another key, and of another request under the name of this one.
    other_key = DesignCache(cache.folder, bytes(32))
    assert other_key.get("a") is None
    other_key._path("a").write_bytes(whole)
    assert other_key.get("a") is None
    cache._path("b").write_bytes(whole)
    assert cache.get("b") is None


@pytest.mark.skipif(os.name != "posix", reason="needs links, pipes and permissions")
def test_files_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DesignCache(tmp_path / "designs", KEY)
    cache.put("a", b"data")
    (path,) = cache.folder.iterdir()
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert cache.get("a") is None
    path.unlink()
    os.mkfifo(path)
    assert cache.get("a") is None
    path.unlink()
    path.mkdir()
    assert cache.get("a") is None
    cache.put("a", b"data")  # a folder stands in the way
    path.rmdir()
    cache.put("a", b"data")
    monkeypatch.setattr(design_cache, "_LARGEST", 10)
    assert cache.get("a") is None
    aside = DesignCache(tmp_path / "link", KEY)
    aside.folder.symlink_to(tmp_path / "designs")
    path.unlink()
    aside.put("a", b"data")
    assert not list(cache.folder.iterdir())


def test_where_nothing_can_be_kept_it_is_designed(
    tmp_path: Path, lengths: list[float], good: WindowNoise, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(b"")
    for folder in ("file", "file/below", "absent/below"):
        assert np.array_equal(sought(DesignCache(tmp_path / folder, KEY)).even, good.even)

    def full(path: Path, write: object, **_: object) -> None:
        raise NoRoom(f"the disk must have room, got none: {path.name}")

    monkeypatch.setattr(design_cache, "write_atomically", full)
    assert np.array_equal(sought(DesignCache(tmp_path / "designs", KEY)).even, good.even)
    assert np.array_equal(sought(None).even, good.even)
    assert len(lengths) == 5


def test_of_two_that_keep_at_once_each_writes_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins and ends while the first one is writing."""
    cache = DesignCache(tmp_path / "designs", KEY)

    def slowly(path: Path, write: object, **options: bool) -> None:
        def twice(out: BinaryIO) -> None:
            monkeypatch.setattr(design_cache, "write_atomically", write_atomically)
            cache.put("a", b"data")
            assert cache.get("a") == b"data"
            write(out)  # type: ignore[operator]  # as write_atomically takes it

        write_atomically(path, twice, **options)  # type: ignore[arg-type]  # handed on

    monkeypatch.setattr(design_cache, "write_atomically", slowly)
    cache.put("a", b"data")
    assert cache.get("a") == b"data"
    assert len(list(cache.folder.iterdir())) == 1


def test_the_older_half_goes_where_much_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(design_cache, "_MOST_FILES", 4)
    cache = DesignCache(tmp_path / "designs", KEY)
    cache.folder.mkdir()
    for number in range(4):
        (cache.folder / f"{number}.design").write_bytes(b"")
        os.utime(cache.folder / f"{number}.design", (number, number))
    cache.put("a", b"data")
    assert {path.name for path in cache.folder.iterdir()} == {
        "2.design",
        "3.design",
        cache._path("a").name,
    }


def test_a_release_uses_what_its_ledger_keeps(lengths: list[float]) -> None:
    trace = ride(60)
    part = Stretch("the end", int(trace.times[-1]), int(trace.times[-1]))
    request = Request((part,), radius=150.0, method=Method.NOISE, who=())
    cache = DesignCache.of(user_ledger().folder, user_ledger().key)
    first = protect(trace, request, cache=cache)
    table.forget()
    second = protect(trace, request, cache=cache)
    assert len(lengths) == 1
    assert np.array_equal(first.mechanism.factor, second.mechanism.factor)
    assert first.designs[0].proof == second.designs[0].proof
    (path,) = cache.folder.iterdir()
    stored = cache.get(
        table.key_of(117.0, 1, request.adversaries, table.rounded_bound(request.bound))
    )
    assert stored is not None
    assert read(stored).proof == first.designs[0].proof
    assert path.parent.parent == user_ledger().folder
