"""Workers of Dask: some processes of this machine, or a cluster that is there already.

Of this machine, each worker is a process with one thread, the linear algebra included. They talk on
the loopback only and by TLS with keys of this run, so that nobody else on the machine can ask them
for anything; nothing is spilled to a disk. What a cluster that is there does of this is its own
affair: see docs/scaling.md.
"""

import contextlib
import logging
import tempfile
from collections import deque
from collections.abc import Iterator
from typing import Any

from trailveil.batch.working import MOST, Engine, Failed, Outcome, Take, Task, work_all
from trailveil.errors import Unavailable

# Traces under way for each worker: enough that none waits, however the times of traces differ.
# Short ones are handed out together, since handing out costs some milliseconds: as many as take so
# many seconds, and so many portions of them.
_AHEAD, _TOGETHER, _SECONDS, _PORTIONS = 8, 32, 0.25, 3
# Where their pages are served, which cannot be left out: without any, and for this machine alone.
_NOBODY = "127.0.0.1:0"
_CONFIG = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.admin.large-graph-warning-threshold": "1GB",
    # Without Dask's MALLOC_TRIM_THRESHOLD_, which gives memory back at every turn, and without its
    # sampling of what runs: the two together cost a design half as much time again.
    "distributed.nanny.pre-spawn-environ": {
        "OPENBLAS_NUM_THREADS": 1,
        "OMP_NUM_THREADS": 1,
        "MKL_NUM_THREADS": 1,
    },
    "distributed.worker.profile.enabled": False,
}


@contextlib.contextmanager
def workers_here(count: int) -> Iterator[Engine]:
    """So many worker processes of this machine. Raises Unavailable without Dask."""
    dask, distributed = _dask()
    with contextlib.ExitStack() as held:
        scratch = held.enter_context(tempfile.TemporaryDirectory(prefix="trailveil-"))
        held.enter_context(dask.config.set(_CONFIG))
        try:
            cluster = distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=_NOBODY,
                worker_dashboard_address=_NOBODY,
                security=distributed.Security.temporary(),
                silence_logs=logging.CRITICAL,
                local_directory=scratch,
            )
            client = held.enter_context(distributed.Client(held.enter_context(cluster)))
        except (OSError, RuntimeError) as error:
            raise Unavailable(
                "worker processes must start, got none: use --workers 1, or look whether this "
                "machine lets processes talk on 127.0.0.1"
            ) from error
        yield lambda take: _outcomes(client, count, take)


@contextlib.contextmanager
def cluster_at(address: str) -> Iterator[Engine]:
    """The workers of a scheduler. Raises Unavailable where it does not answer, or without Dask."""
    dask, distributed = _dask()
    with contextlib.ExitStack() as held:
        held.enter_context(dask.config.set(_CONFIG))
        patience = dask.config.get("distributed.comm.timeouts.connect")
        held.enter_context(_quiet())
        try:
            client = held.enter_context(distributed.Client(address, timeout=patience))
            client.wait_for_workers(1, timeout=patience)
        except (OSError, ValueError, TypeError) as error:
            raise _unreachable(address) from error
        threads = sum(client.nthreads().values())
        yield lambda take: _outcomes(client, threads, take, address)


def _outcomes(client: Any, workers: int, take: Take, address: str = "") -> Iterator[list[Outcome]]:
    """Outcomes in the order of the tasks, of which only so many are under way."""
    under_way: deque[tuple[list[Task], Any]] = deque()
    size, more = 1, True
    while True:
        while more and sum(len(one) for one, _ in under_way) < workers * max(
            _AHEAD, _PORTIONS * size
        ):
            tasks = _taken(take, size)
            more = len(tasks) == size
            if tasks:
                under_way.append((tasks, client.submit(work_all, tasks, pure=False)))
        if not under_way:
            return
        group: list[Outcome] = []
        while under_way and (not group or (under_way[0][1].done() and len(group) < MOST)):
            tasks, future = under_way.popleft()
            found, seconds = _outcome(client, tasks, future, address)
            group += found
            wanted = int(_SECONDS * len(tasks) / max(seconds, 1e-6))
            size = max(1, min(wanted, 2 * size, _TOGETHER))
        yield group
        more = True


def _taken(take: Take, most: int) -> list[Task]:
    """The next tasks, as far as there are any now."""
    tasks: list[Task] = []
    while len(tasks) < most and (task := take()) is not None:
        tasks.append(task)
    return tasks


def _outcome(
    client: Any, tasks: list[Task], future: Any, address: str
) -> tuple[list[Outcome], float]:
    """What came of some tasks, and how long it took.

    Where workers were lost with them several times, each is tried alone; that of one is its
    failure.
    """
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        found: tuple[list[Outcome], float] = future.result()
    except KilledWorker:
        if len(tasks) > 1:
            alone = [([task], client.submit(work_all, [task], pure=False)) for task in tasks]
            each = [_outcome(client, *one, address) for one in alone]
            return [outcome for outcomes, _ in each for outcome in outcomes], sum(
                one for _, one in each
            )
        line = (
            "a worker must live as long as its trace takes, got several that died of this one: "
            "give them more memory (fewer --workers), or shorten the recording"
        )
        return [Failed(tasks[0].number, "KilledWorker", line)], _SECONDS
    except (CancelledError, OSError) as error:
        raise _unreachable(address) from error
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What Dask has to say of a lost connection is said by our own error."""
    known = logging.root.manager.loggerDict  # each of them has a level of its own
    names = [one for one in known if one.split(".")[0] in {"distributed", "tornado"}]
    loggers = [logging.getLogger(name) for name in names]
    before = [one.level for one in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _unreachable(address: str) -> Unavailable:
    return Unavailable(
        "the scheduler and a worker must answer, got no answer"
        f"{f' from {address}' if address else ''}: start it (dask scheduler) and workers (dask "
        "worker), and give the same command again: what is done is kept"
    )


def _dask() -> tuple[Any, Any]:
    try:
        import cryptography  # noqa: F401  # which Dask makes the keys of its connections with
        import dask
        import distributed
    except ImportError:
        raise Unavailable(
            "several workers must have the package distributed, which is not installed: pip "
            "install 'trailveil[batch]', or use --workers 1"
        ) from None
    return dask, distributed
