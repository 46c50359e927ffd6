"""Shares inputs among processes, looks after these, and counts what came of each input."""

import json
import os
import selectors
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.fuzz.worker import FAULT

ROOT = Path(__file__).parents[2]
_TO_BEGIN = 120.0  # seconds of the clock, on a busy machine
_IDLE = 0.1  # seconds of the processor: with less, a process waits for something
_ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"),
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "PROJ_NETWORK": "OFF",
}


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is run: inputs of a group, from a seed, and the bounds of each.

    module: where `made`, `run` and `warm` are. real: the folder of real recordings, if any.
    seconds: of the processor, for one input. patience: seconds of the clock, besides.
    """

    group: str
    inputs: int
    seed: int = 0
    workers: int = 1
    seconds: float = 10.0
    mib: float = 256.0
    real: Path | None = None
    module: str = "tests.fuzz.targets"
    begin: int = 0
    patience: float = 120.0


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an input. seconds: of it alone; peak: KiB beyond what there was before."""

    number: int
    target: str
    kind: str
    word: str
    seconds: float
    peak: int
    what: str = ""


@dataclass(slots=True)
class Tally:
    """Counts of the inputs of one target and kind."""

    inputs: int = 0
    words: dict[str, int] = field(default_factory=dict)
    slowest: float = 0.0
    peak: int = 0
    total: float = 0.0

    def add(self, result: Result) -> None:
        """Count one more."""
        self.inputs += 1
        self.words[result.word] = self.words.get(result.word, 0) + 1
        self.slowest, self.peak = max(self.slowest, result.seconds), max(self.peak, result.peak)
        self.total += result.seconds


@dataclass(slots=True)
class Found:
    """What a campaign found: tallies by target and kind, and every fault."""

    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    faults: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Count one more."""
        self.tallies.setdefault((result.target, result.kind), Tally()).add(result)
        if result.word == FAULT:
            self.faults.append(result)


def run(campaign: Campaign, told: Callable[[Result], None] = lambda _: None) -> Found:
    """Run a campaign to its end. told: called with each result, from one thread at a time."""
    found, lock = Found(), threading.Lock()

    def share(first: int) -> None:
        for result in _results(campaign, first):
            with lock:
                found.add(result)
                told(result)

    threads = [threading.Thread(target=share, args=(i,)) for i in range(campaign.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.faults.sort(key=lambda one: one.number)
    return found


def _results(campaign: Campaign, first: int) -> Iterator[Result]:
    """The results of one share; a process that dies or hangs is the fault of its input."""
    step, end = campaign.workers, campaign.begin + campaign.inputs
    number = campaign.begin + first
    while number < end:
        with _started(campaign, number, step, end) as process:
            for line in _lines(process, campaign.seconds, campaign.patience):
                if line:
                    yield Result(*json.loads(line))
                    number += step
            hung = process.poll() is None and number < end
            process.kill()
        if number < end:
            what = "hung" if hung else f"ended with {process.returncode}"
            yield Result(number, "process", "lost", FAULT, campaign.seconds, 0, what)
            number += step


def _started(campaign: Campaign, number: int, step: int, end: int) -> subprocess.Popen[bytes]:
    words = [campaign.group, campaign.seed, number, step, end, campaign.seconds, campaign.mib]
    real = [] if campaign.real is None else [str(campaign.real)]
    command = [sys.executable, "-m", "tests.fuzz.worker", campaign.module, *map(str, words), *real]
    environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE)


def _lines(process: subprocess.Popen[bytes], seconds: float, patience: float) -> Iterator[bytes]:
    """Lines as they come, until the process ends, or says nothing though it could.

    It could where for so many seconds of the clock it did nothing, and where it took twice the
    seconds of the processor that it ends an input after: a busy machine makes it say things late.
    """
    stream: IO[bytes] | None = process.stdout
    if stream is None:
        return
    held, wait, most = b"", max(seconds + patience, _TO_BEGIN), _TO_BEGIN
    spoke = seen = _busy(process.pid)
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while True:
            if not selector.select(wait):
                before, seen = seen, _busy(process.pid)
                if seen - before < _IDLE or seen - spoke > most:
                    return
                continue
            spoke = seen = _busy(process.pid)
            wait, most = seconds + patience, 2 * seconds
            data = os.read(stream.fileno(), 65_536)
            if not data:
                process.wait()
                return
            *lines, held = (held + data).split(b"\n")
            yield from lines


def table(found: Found) -> str:
    """A table in Markdown: a row for each target and kind, and one for all."""
    head = ("target", "inputs", "accepted", "refused", "faults", "typical", "slowest", "peak")
    rows = [head, ("---", *["---:"] * 7)]
    whole = Tally()
    for (target, kind), tally in sorted(found.tallies.items()):
        rows.append((f"{target}: {kind}", *_cells(tally)))
        whole.inputs += tally.inputs
        whole.total += tally.total
        whole.slowest, whole.peak = max(whole.slowest, tally.slowest), max(whole.peak, tally.peak)
        for word, count in tally.words.items():
            whole.words[word] = whole.words.get(word, 0) + count
    rows.append(("all", *_cells(whole)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(tally: Tally) -> tuple[str, ...]:
    accepted, faults = (tally.words.get(word, 0) for word in ("accepted", FAULT))
    return (
        f"{tally.inputs:,}",
        f"{accepted:,}",
        f"{tally.inputs - accepted - faults:,}",
        f"{faults:,}",
        f"{1000 * tally.total / max(1, tally.inputs):.1f} ms",
        f"{tally.slowest:.2f} s",
        f"{tally.peak / 1024:.0f} MiB",
    )


def _busy(pid: int) -> float:
    """Seconds of the processor that a process took; 0 where the system does not say."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
