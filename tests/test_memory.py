"""What was released is remembered, recognised in any part or copy, and never silently forgotten."""

import json
import os
import stat
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.rides import ride
from trailveil import memory as module
from trailveil.errors import Refused, UnwritableOutput
from trailveil.keys import name_of
from trailveil.memory import Entry, Memory, open_memory, user_memory
from trailveil.randomness import SEED_BYTES
from trailveil.readings import Readings
from trailveil.trace import NANOSECONDS, Trace

TRACE = ride(200, 5.0)
ENTRY = Entry(bytes(range(32)), 1234.5)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return open_memory(tmp_path / "state")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def moved(trace: Trace, positions: np.ndarray) -> Trace:
    return replace(trace, positions=positions)


def part(trace: Trace, rows: slice) -> Trace:
    mask = np.zeros(len(trace), dtype=np.bool_)
    mask[rows] = True
    return trace.only(mask)


def test_a_release_is_remembered_by_the_next_run(memory: Memory) -> None:
    assert memory.earlier(TRACE) == []
    memory.remember(TRACE, ENTRY)
    assert open_memory(memory.folder).earlier(TRACE) == [ENTRY]


def test_the_same_release_twice_is_one_and_others_are_kept(memory: Memory) -> None:
    other = replace(ENTRY, noise_trace=2000.0)
    for entry in (ENTRY, ENTRY, other, ENTRY):
        memory.remember(TRACE, entry)
    assert sorted(one.noise_trace for one in memory.earlier(TRACE)) == [1234.5, 2000.0]


def test_what_never_appeared_is_forgotten(memory: Memory) -> None:
    record = memory.remember(TRACE, ENTRY)
    memory.forget(record)
    memory.forget(record)
    assert memory.earlier(TRACE) == []


COPIES = {
    "the first minutes": part(TRACE, slice(0, 30)),
    "the last minutes": part(TRACE, slice(150, None)),
    "two fixes of it": part(TRACE, slice(90, 92)),
    "every seventh fix": part(TRACE, slice(None, None, 7)),
    "five decimals": moved(TRACE, np.round(TRACE.positions, 5)),
    "four decimals": moved(TRACE, np.round(TRACE.positions, 4)),
    "cut to five decimals": moved(TRACE, np.floor(TRACE.positions * 1e5) / 1e5),
    "single precision": moved(TRACE, TRACE.positions.astype(np.float32).astype(np.float64)),
    "other segments": replace(TRACE, segments=np.arange(200) // 100, tracks=(0, 0)),
    "half a second later": replace(TRACE, times=TRACE.times + NANOSECONDS // 2),
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_part_or_a_copy_is_recognised(memory: Memory, copy: str) -> None:
    memory.remember(TRACE, ENTRY)
    assert memory.earlier(COPIES[copy]) == [ENTRY]
    other = open_memory(memory.folder.parent / "other")
    other.remember(COPIES[copy], ENTRY)
    assert other.earlier(TRACE) == [ENTRY]


@pytest.mark.parametrize(
    "other",
    [
        ride(200, 5.0, at=(48.137, 12.575)),
        ride(200, 5.0, at=(48.138, 11.575), seed=2),
        replace(TRACE, times=TRACE.times + 3600 * NANOSECONDS),
    ],
    ids=["elsewhere at the same times", "another person nearby", "later at the same places"],
)
def test_another_recording_is_not_recognised(memory: Memory, other: Trace) -> None:
    memory.remember(TRACE, ENTRY)
    assert memory.earlier(other) == []


def test_the_next_file_of_a_tour_may_begin_where_the_last_one_ends(memory: Memory) -> None:
    memory.remember(part(TRACE, slice(0, 101)), ENTRY)
    assert memory.earlier(part(TRACE, slice(100, None))) == []


def test_a_minute_of_a_whole_day_is_recognised(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SKETCH", 2000)
    day = ride(4000, 1.0)
    memory.remember(day, ENTRY)
    assert all(memory.earlier(part(day, slice(i, i + 60))) for i in range(0, 4000, 400))


def test_nothing_of_the_recording_is_kept_in_clear(memory: Memory) -> None:
    memory.remember(TRACE, ENTRY)
    (record,) = (memory.folder / "releases").iterdir()
    kept = json.loads(record.read_bytes())
    assert set(kept) == {"version", "key", "request", "noise_trace", "fixes"}
    data = record.read_bytes()
    assert memory.key.hex().encode() not in data
    for number in (*TRACE.times, *TRACE.positions.ravel()):
        assert str(int(number)).encode() not in data or int(number) < 1000
    other = open_memory(memory.folder.parent / "other")
    other.remember(TRACE, ENTRY)
    (record,) = (other.folder / "releases").iterdir()
    assert json.loads(record.read_bytes())["fixes"] != kept["fixes"]  # another key, other hashes


def test_only_the_user_can_read_it(memory: Memory) -> None:
    before = os.umask(0)
    try:
        memory = open_memory(memory.folder.parent / "open")
        memory.remember(TRACE, ENTRY)
    finally:
        os.umask(before)
    assert mode(memory.folder) == mode(memory.folder / "releases") == 0o700
    files = [one for one in memory.folder.rglob("*") if one.is_file()]
    assert len(files) == 3
    assert {mode(one) for one in files} == {0o600}


def test_the_key_is_made_once_and_not_shown(memory: Memory) -> None:
    assert len(memory.key) == SEED_BYTES
    assert open_memory(memory.folder).key == memory.key
    assert open_memory(memory.folder.parent / "other").key != memory.key
    assert memory.key.hex() not in repr(memory)
    assert repr(memory.key) not in repr(memory)


def test_requests_and_seeds_hang_on_everything(memory: Memory) -> None:
    parts = [[b"times", b"places", design] for design in (b"a", b"b")]
    found = [memory.request_id(one) for one in parts]
    assert len({*found, *(memory.seed(one) for one in found)}) == 4
    other = open_memory(memory.folder.parent / "other")
    assert other.request_id(parts[0]) != found[0]
    assert other.seed(found[0]) != memory.seed(found[0])


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_damaged_key_is_not_used(memory: Memory, length: int) -> None:
    (memory.folder / "key").write_bytes(bytes(length))
    with pytest.raises(Refused, match=f"must be 32 bytes, got {length}: .*key; restore it"):
        open_memory(memory.folder)


@pytest.mark.parametrize("access", [0o644, 0o640, 0o602])
def test_an_open_key_is_not_used(memory: Memory, access: int) -> None:
    (memory.folder / "key").chmod(access)
    with pytest.raises(Refused, match="chmod 600 it"):
        open_memory(memory.folder)


def test_a_lost_key_does_not_make_releases_unknown(memory: Memory) -> None:
    memory.remember(TRACE, ENTRY)
    (memory.folder / "key").unlink()
    with pytest.raises(Refused, match="must be there, got none"):
        open_memory(memory.folder)
    (memory.folder / "key").write_bytes(bytes(32))
    (memory.folder / "key").chmod(0o600)
    with pytest.raises(Refused, match="another version or key"):
        open_memory(memory.folder).earlier(TRACE)


GOOD = {"version": 1, "key": "", "request": "00", "noise_trace": 1.0, "fixes": ""}
DAMAGED = {
    "empty": b"",
    "cut": b'{"version": 1',
    "no object": b"[1]",
    "deep": b"[" * 100_000,
    "not text": b"\xff\xfe\x00",
    **{
        f"{name} {value!r}": json.dumps(GOOD | {name: value}).encode()
        for name, value in product(GOOD, [None, "\u00fc", -1, [2]])
    },
    "odd length": json.dumps(GOOD | {"fixes": "AAAA"}).encode(),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_record_is_not_passed_over(memory: Memory, name: str) -> None:
    memory.remember(TRACE, ENTRY)
    data = DAMAGED[name]
    if b'"key": ""' in data:
        data = data.replace(b'"key": ""', f'"key": "{name_of(memory.key).hex()}"'.encode())
    path = memory.folder / "releases" / "damaged.json"
    path.write_bytes(data)
    with pytest.raises(
        Refused, match=r"must be readable, got one.*damaged\.json; restore"
    ) as caught:
        memory.earlier(TRACE)
    assert "\n" not in str(caught.value)


def test_other_files_are_left_alone(memory: Memory) -> None:
    memory.remember(TRACE, ENTRY)
    (memory.folder / "releases" / "README").write_bytes(b"hello")
    (memory.folder / "releases" / ".trailveil-00.part").write_bytes(b"")
    assert memory.earlier(TRACE) == [ENTRY]


def obstacles(folder: Path) -> dict[str, Path]:
    """State folders that cannot be used, by what is in the way."""
    (folder / "file").write_bytes(b"")
    for name in ("releases-is-a-file", "key-is-a-folder", "lock-is-a-folder"):
        (folder / name).mkdir()
    (folder / "releases-is-a-file" / "releases").write_bytes(b"")
    (folder / "key-is-a-folder" / "key").mkdir()
    (folder / "lock-is-a-folder" / "lock").mkdir()
    (folder / "dangling").symlink_to(folder / "none" / "none")
    return {
        "a file": folder / "file",
        "below a file": folder / "file" / "state",
        "releases": folder / "releases-is-a-file",
        "key": folder / "key-is-a-folder",
        "lock": folder / "lock-is-a-folder",
        "dangling": folder / "dangling",
        "no file system": Path("/proc/trailveil"),
        "too long": folder / ("x" * 300),
    }


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    for what, folder in obstacles(tmp_path).items():
        with pytest.raises(UnwritableOutput, match="the state folder must be usable") as caught:
            open_memory(folder).earlier(TRACE)
        assert "\n" not in str(caught.value), what


def test_releases_that_cannot_be_listed_are_no_empty_memory(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember(TRACE, ENTRY)

    def denied(_: Path) -> list[str]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", denied)
    with pytest.raises(UnwritableOutput, match="got the error 'Permission denied'"):
        memory.earlier(TRACE)


def test_where_it_is(user_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_memory().folder == user_folders / "state" / "trailveil"
    for relative in ("", "relative/state"):
        monkeypatch.setenv("XDG_STATE_HOME", relative)
        monkeypatch.setenv("LOCALAPPDATA", relative)
        assert user_memory().folder == user_folders / ".local" / "state" / "trailveil"


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("LOCALAPPDATA")
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(Refused, match="got no home; set XDG_STATE_HOME"):
        user_memory()


def test_two_rooms_are_two_recordings_and_a_copy_of_one_is_one(memory: Memory) -> None:
    """They are as warm, to a tenth, now and then; a copy to fewer decimals is so nearly always."""
    random = np.random.default_rng(1)
    times = np.arange(500, dtype=np.int64) * 900 * NANOSECONDS
    rooms = [Readings(times, 20 + random.normal(0, 1, 500), "degC") for _ in range(2)]
    memory.remember(rooms[0], ENTRY)
    assert memory.earlier(rooms[0]) == [ENTRY]
    assert memory.earlier(rooms[1]) == []
    both = Readings(  # the last fifth of one, and what came after it
        np.append(times[400:], times[400:] + 500 * 900 * NANOSECONDS),
        np.append(rooms[0].values[400:], rooms[1].values[400:]),
        "degC",
    )
    assert memory.earlier(both) == [ENTRY]
    part = Readings(times[100:130], np.round(rooms[0].values[100:130], 3), "degC")
    assert memory.earlier(part) == [ENTRY]
