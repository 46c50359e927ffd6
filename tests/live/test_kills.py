"""Real processes, killed at random moments: no moment has two draws, and nothing else is told."""

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.conftest import Sweep
from tests.live.days import AT, HOME, due, fixes
from tests.places import trace_of
from tests.rides import BEGIN, PATIENCE, ROOT, ride
from trailveil.ledger import open_ledger
from trailveil.ledger.places import save_places
from trailveil.live.margins import Margins
from trailveil.release.request import Request
from trailveil.traces.formats.grid import degrees
from trailveil.traces.formats.moments import format_moments
from trailveil.traces.trace import Trace

# In continuous integration fewer: see `sweep`.
KILLS, KILLS_IN_SHORT, KILLS_OF_CUTS, CUTS_IN_SHORT = 50, 10, 12, 6
WORDS = [sys.executable, "-m", "trailveil", "live", "--columns", "time,lat,lon"]
SIMPLE = ["--everywhere", "--slow-for", "0"]


def lines(trace: Trace) -> list[str]:
    moments = format_moments(trace.times)
    places = trace.positions.tolist()
    return [f"{t},{degrees(a)},{degrees(b)}\n" for t, (a, b) in zip(moments, places, strict=True)]


def started(state: Path, output: Path, words: list[str]) -> subprocess.Popen[str]:
    env = {**os.environ, "XDG_STATE_HOME": str(state), "PYTHONPATH": str(ROOT)}
    with output.open("w") as out:
        return subprocess.Popen(
            [*WORDS, *words], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL,
            env=env, text=True,
        )  # fmt: skip


def fed(process: subprocess.Popen[str], whole: list[str], output: Path, rng: Random) -> None:
    """Feed lines, then kill the process, whatever it is about to do.

    One time in five anywhere from its start on, else within half a second from its first line on.
    """
    if process.stdin is None:
        raise OSError
    late = rng.random() < 0.8
    ends = time.monotonic() + (PATIENCE if late else rng.uniform(0.0, 1.5))
    with contextlib.suppress(OSError):
        for line in whole:
            process.stdin.write(line)
            process.stdin.flush()
            time.sleep(0.001)
            if late and output.stat().st_size:
                late, ends = False, time.monotonic() + rng.uniform(0.0, 0.5)
            if time.monotonic() > ends:
                break
    process.kill()
    process.wait(PATIENCE)
    with contextlib.suppress(OSError):
        process.stdin.close()


def saved(state: Path) -> dict[str, int]:
    path = state / "trailveil" / "streams" / "live.json"
    if not path.exists():
        return {"through": -(2**63)}
    whole: dict[str, int] = json.loads(path.read_bytes().rpartition(b"\n")[0])
    return whole


def check_private(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


@pytest.mark.slow
def test_killed_at_random_moments_it_goes_on_with_the_same_noise(
    tmp_path: Path, sweep: Sweep
) -> None:
    rng, whole, state = Random(24), lines(ride(20_000, 1.0)), tmp_path / "state"
    printed: dict[str, str] = {}
    position, kills, began = 0, 0, False
    most = len(sweep(range(KILLS), KILLS_IN_SHORT))
    while kills < most:
        output = tmp_path / "out.csv"
        process = started(state, output, SIMPLE)
        # The source repeats what it is not sure of, and goes on.
        fed(process, whole[max(0, position - 5) :], output, rng)
        kills += 1
        if not began and saved(state)["through"] > 0:
            began = True
            shutil.copytree(state, tmp_path / "copy")
        check_private(state / "trailveil")
        for line in output.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue  # cut off in the middle: it is no line
            moment = line.split(",")[0]
            assert moment not in printed
            printed[moment] = line
            seconds = int(np.datetime64(moment[:-1], "s").astype(np.int64))
            assert seconds * 10**9 <= saved(state)["through"]
            position = max(position, seconds - BEGIN + 1)
        position = max(position, (saved(state)["through"] // 10**9) - BEGIN - 8)
    # The same stream, without any restart: all that was printed is of this one noise.
    process = started(tmp_path / "copy", tmp_path / "whole.csv", SIMPLE)
    process.communicate("".join(whole[: position + 20]), PATIENCE)
    unbroken = (tmp_path / "whole.csv").read_text().splitlines(keepends=True)
    smooth = {line.split(",")[0]: line for line in unbroken}
    after = [moment for moment in printed if moment in smooth]
    assert len(after) > 200
    assert [printed[moment] for moment in after] == [smooth[moment] for moment in after]


@pytest.mark.slow
def test_killed_at_random_moments_a_cut_stays_a_cut(tmp_path: Path, sweep: Sweep) -> None:
    rng, state, times = Random(25), tmp_path / "state", np.arange(40_000)
    ledger = open_ledger(state / "trailveil")
    save_places(ledger, [HOME])
    trace = trace_of(times, np.stack([3000 * np.sin(times / 500), 9.0 * np.cos(times)], axis=1), AT)
    whole, printed, position = lines(trace), list[str](), 0
    for _ in sweep(range(KILLS_OF_CUTS), CUTS_IN_SHORT):
        output = tmp_path / "out.csv"
        process = started(state, output, ["--activity", "drive"])
        fed(process, whole[max(0, position - 5) :], output, rng)
        left = output.read_text().splitlines(keepends=True)
        printed += [line for line in left if line.endswith("\n")]
        if printed:
            last = int(np.datetime64(printed[-1][:19], "s").astype(np.int64))
            assert last * 10**9 <= saved(state)["through"]
            position = last - BEGIN
        check_private(state / "trailveil")
    assert len(set(printed)) == len(printed) > 300
    assert printed == sorted(printed)
    # Of the whole recording, nothing that the rule keeps back; and nothing but what was recorded.
    margins = Margins.of(Request((), floor=3.6, middle=2.5), HOME.variance, 0.0, None)
    free = due(trace, HOME.wide, margins, 0, 0)
    assert set(printed) <= {line for line, may in zip(whole, free, strict=True) if may}


def test_told_to_end_it_ends_in_order(tmp_path: Path) -> None:
    state, output, whole = tmp_path / "state", tmp_path / "out.csv", fixes(ride(30, 1.0))
    process = started(state, output, SIMPLE)
    if process.stdin is None:
        raise OSError
    process.stdin.write("".join(lines(ride(30, 1.0))))
    process.stdin.flush()
    ends = time.monotonic() + PATIENCE
    while len(output.read_text().splitlines()) < 30 and time.monotonic() < ends:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    with contextlib.suppress(OSError):
        process.stdin.close()
    assert len(output.read_text().splitlines()) == 30  # each was flushed at once
    assert saved(state)["through"] == whole[-1].time
    with open_ledger(state / "trailveil").open() as book:
        assert [row.end for row in book.standing("me")] == [whole[-1].time]
