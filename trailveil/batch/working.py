"""What a worker does with a trace: read it, design its noise, draw it, put its file aside.

It needs no ledger and no state folder: what they hold that matters comes with the task. Whatever
goes wrong is an outcome of its trace, in one line.
"""

import hashlib
import io
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from trailveil.batch.inputs import Trip
from trailveil.batch.rules import Rules
from trailveil.batch.tables import read_part
from trailveil.errors import Refused, TrailveilError
from trailveil.files.output import filled, made_durable
from trailveil.files.source import named, stamp_of
from trailveil.gp.randomness import derive
from trailveil.gp.threads import one_thread
from trailveil.ledger import Ledger
from trailveil.ledger.commit import drawn, identified
from trailveil.ledger.counting import Countable, countable
from trailveil.ledger.recorded import Visit, near_in_time
from trailveil.release.cutting import withheld
from trailveil.release.design_cache import DesignCache
from trailveil.release.places import Place, visited
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method
from trailveil.report.parts import prior_in_full
from trailveil.traces.formats import read
from trailveil.traces.loading import cleaned
from trailveil.traces.trace import Trace

DISK_WAITS = 16
"""Files that are on their way to the disk at once: it writes many in the time that one takes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Task:
    """One trace to protect, and all that this takes; printing it shows nothing.

    aside: the folder where its file waits to be counted. places, visits: of the person, as the
    ledger knows them now.
    """

    number: int
    item: Trip
    rules: Rules
    aside: Path
    key: bytes = field(repr=False)
    ledger: Ledger = field(repr=False)
    places: tuple[Place, ...] = ()
    visits: tuple[Visit, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ready:
    """A release that waits to be counted.

    aside: its file. source, output: the keyed digest of the input, the SHA-256 of the output.
    request: its keyed hash. about: what is promised of it, see `promised`.
    """

    number: int
    aside: Path
    source: bytes
    output: bytes
    request: bytes
    release: Countable
    about: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """A trace that was not protected. kind: the name of the error; line: what is said of it."""

    number: int
    kind: str
    line: str


Outcome = Ready | Failed

Take = Callable[[], Task | None]
"""The next task; None where there is none, or none until an outcome before it is settled."""

Engine = Callable[[Take], Iterator[list[Outcome]]]
"""Outcomes in order, in groups: what is handed out together may be settled together."""

# A group is handed out after so many seconds, or so many outcomes.
_SECONDS, MOST = 0.5, 64


def here(take: Take) -> Iterator[list[Outcome]]:
    """One trace after the other, in this process."""
    while group := work_all(_for_a_while(take))[0]:
        yield group


def _for_a_while(take: Take) -> Iterator[Task]:
    until = time.monotonic() + _SECONDS
    for _ in range(MOST):
        task = take()
        if task is None:
            return
        yield task
        if time.monotonic() >= until:
            return


def work_all(tasks: Iterable[Task]) -> tuple[list[Outcome], float]:
    """Some traces, one after the other, and the seconds that they took.

    While some are under way, the files of those before go to the disk.
    """
    begun = time.monotonic()
    pairs: list[tuple[Task, Outcome, Future[None] | None]] = []
    with one_thread(), ThreadPoolExecutor(DISK_WAITS) as disk:
        for task in tasks:
            outcome, wait = _guarded(task, partial(_work, task)), None
            if isinstance(outcome, Ready):
                wait = disk.submit(made_durable, outcome.aside)
            pairs.append((task, outcome, wait))
    outcomes = [_guarded(task, partial(_once_durable, ended, wait)) for task, ended, wait in pairs]
    return outcomes, time.monotonic() - begun


def _once_durable(outcome: Outcome, wait: "Future[None] | None") -> Outcome:
    if wait is not None:
        wait.result()
    return outcome


def _guarded(task: Task, act: Callable[[], Outcome]) -> Outcome:
    """What became of a trace, whatever goes wrong."""
    try:
        return act()
    except TrailveilError as error:
        return Failed(task.number, *why_of(error))
    except MemoryError:
        line = "the computation must fit in memory, got more than the worker has: shorten it"
        return Failed(task.number, "MemoryError", line)
    except Exception as error:  # noqa: BLE001  # a mistake of ours stops no other trace
        kind = _kind_of(error)
        line = f"this must not happen, got {kind}: please report it"
        return Failed(task.number, kind, line)


def why_of(error: TrailveilError) -> tuple[str, str]:
    """The kind of an error, and what is said of it in one line."""
    return _kind_of(error), " ".join(error.public.split())


def _kind_of(error: Exception) -> str:
    """The name of its class, or of the public one that a private one is of."""
    names = (kind.__name__ for kind in type(error).__mro__)
    return next(name for name in names if not name.startswith("_"))


@lru_cache(maxsize=4)  # of a table of many traces, asked for again and again
def _digest_of(path: Path, stamp: tuple[int, ...]) -> bytes:
    return sha256_of(path)


def sha256_of(path: Path) -> bytes:
    """The SHA-256 of a file, nothing where there is none that can be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return b""


def _work(task: Task) -> Ready:
    source, rules, key = task.item.source, task.rules, task.key
    before = stamp_of(source)
    trace = _trace_of(task.item, rules)
    digest = _digest_of(source, before)
    if stamp_of(source) != before:
        raise Refused(
            f"input must stay as it is while it is read, got a change: {named(source)}; try again"
        )
    begin, end = int(trace.times[0]), int(trace.times[-1])
    known = near_in_time(task.visits, task.places, begin, end)
    places = visited(trace, task.places, key, known)
    request = requested(trace, rules.chosen, rules.request, places)
    cache = DesignCache.of(task.ledger.folder, task.ledger.key)
    plan = protect(trace, request, places=places, cache=cache)
    known_by = identified(task.ledger, plan.trace, plan.identity, key)
    *_, write = drawn(plan, known_by.seed, rules.retiming)
    # Another worker may be at the same trace, where this one was taken for lost.
    aside = task.aside / f"{task.number}-{secrets.token_hex(8)}.part"
    whole_output = io.BytesIO()
    write(whole_output, task.item.output.suffix)
    filled(aside, whole_output.getbuffer())
    return Ready(
        task.number,
        aside,
        # Bound to the digest of the places, each guess of which takes long.
        derive(task.ledger.key, [b"input of a batch", digest, known_by.prints]),
        hashlib.sha256(whole_output.getbuffer()).digest(),
        known_by.request,
        countable(plan, known_by.prints, output=task.item.output.name).sent,
        promised(plan, len(trace)) | {"stamp": before},
    )


def promised(plan: Plan, fixes: int) -> dict[str, Any]:
    """What is promised of a release, and what it costs; no time, and nothing of a place."""
    request = plan.request
    variances, rows = plan.mechanism.variances, plan.mechanism.rows
    whole = request.method is Method.EVERYWHERE or not plan.findings
    epsilon = max((finding.guarantee.epsilon for finding in plan.findings), default=request.epsilon)
    return {
        "fixes": fixes,
        "released": int(rows.size),
        "epsilon": request.epsilon if whole else epsilon,
        "radius_m": request.radius,
        "order": request.order,
        "withheld_min": round(withheld(plan.trace.seconds, rows) / 60, 1),
        "rms_m": float(np.sqrt(2) * np.sqrt(np.sum(variances) / max(rows.size, 1))),
        "largest_rms_m": float(np.sqrt(2) * np.sqrt(np.max(variances, initial=0.0))),
        "mechanism": request.method.value,
        "prior": prior_in_full(request.kernel),
    }


def _trace_of(item: Trip, rules: Rules) -> Trace:
    """A cleaned trace from a file, or from rows of a table."""
    keep, most = rules.keep, rules.most
    if item.part is None:
        recording = read(item.source, keep, most=most)
    else:
        recording = read_part(item.source, item.part, keep, most)
    zone, every = rules.zone, rules.every
    trace = cleaned(recording, item.source, assume_utc=rules.assume_utc, zone=zone, every=every)
    return trace[0]
