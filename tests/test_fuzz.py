"""Mutated files lead to a result or to one line; the driver finds what does not (tests.fuzz)."""

import io
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.driver import Campaign, run, table
from tests.fuzz.inputs import MUTATIONS, READ, STRUCTURED, made
from tests.fuzz.planted import FAULTS
from tests.fuzz.structured import lines
from tests.fuzz.worker import FAULT
from tests.leaks import GRID
from tests.novel import read, write
from tests.traces.formats.traces import TRACE
from trailveil.checks.scan.allowed import TAKERS
from trailveil.errors import UnreadableInput
from trailveil.traces.formats.table import FORMATS

ROOT = Path(__file__).parents[1]
EXPECTED = {
    "lookup": "KeyError",
    "hang": "took more than 2 s",
    "hog": "took more than 100 MiB",
    "warning": "RuntimeWarning",
    "told": "a message with a position",
    "traceback": "not printable, or more than one line",
    "killed": "ended with -9",
    "deaf": "hung",
}


@pytest.mark.slow
@pytest.mark.parametrize(("group", "inputs"), [("readers", 1_500), ("protect", 30)])
def test_nothing_but_a_refusal_comes_of_mutated_files(group: str, inputs: int, full: bool) -> None:
    found = run(Campaign(group, inputs * (2 if full else 1), seed=1))
    assert [f"{fault.number}: {fault.kind}: {fault.what}" for fault in found.faults] == []
    kinds = {kind for _, kind in found.tallies}
    assert group == "protect" or kinds == {*READ}
    accepted = sum(tally.words.get("accepted", 0) for tally in found.tallies.values())
    assert inputs / 10 < accepted < inputs * 1.8  # mutated neither beyond all reading nor hardly


@pytest.mark.slow
def test_every_kind_of_fault_is_found() -> None:
    """Among sound inputs, which go on after each, in two processes.

    Two seconds of the processor are four times what the slowest other fault takes on a busy
    machine, and eight of the clock as much again for who waits.
    """
    campaign = Campaign(
        *("planted", len(FAULTS) + 2, 0, 2, 2.0, 100.0), module="tests.fuzz.planted", patience=8.0
    )
    found = run(campaign)
    assert sorted(one.number for one in found.faults) == [
        number for number in range(len(FAULTS) + 2) if FAULTS[number % len(FAULTS)] != "sound"
    ]
    for fault in found.faults:
        assert EXPECTED[FAULTS[fault.number % len(FAULTS)]] in fault.what
    assert sum(tally.inputs for tally in found.tallies.values()) == len(FAULTS) + 2
    assert all(one.word == FAULT for one in found.faults)
    assert "| planted: sound | 2 | 2 | 0 | 0 |" in table(found)


def test_a_number_and_a_seed_make_the_same_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = (*(("readers", n) for n in range(len(READ))), ("protect", 3), ("all", 40))
    one, same, other = (
        [made(group, seed, number, None) for group, number in numbers] for seed in (5, 5, 6)
    )
    assert one == same
    assert sum(a != b for a, b in zip(one, other, strict=True)) > len(numbers) / 2


def test_every_structure_is_mutated_as_one_and_taken_apart_by_the_scan() -> None:
    """What is known of a structure is of one that there is; of any other there are lines."""
    assert {row.structure for row in FORMATS} >= {*STRUCTURED} | {*TAKERS}
    assert {row.name for row in FORMATS} == {*MUTATIONS}


def test_a_text_of_any_structure_is_mutated_neither_beyond_reading_nor_hardly() -> None:
    stream, rng, accepted = io.BytesIO(), Random(5), 0
    write(TRACE, GRID, stream)
    for _ in range(200):
        changed = lines(rng, stream.getvalue())
        try:
            read(changed, "x")
        except UnreadableInput:
            continue
        accepted += changed != stream.getvalue()
    assert 20 < accepted < 199


def test_the_command_tells_and_replays() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--made", "--target", "readers"]
    done = subprocess.run(
        [*command, "--replay", "3"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[0].startswith("read: KML; ")
    assert done.stdout.splitlines()[1] in {"accepted", "refused"}
