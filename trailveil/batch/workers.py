"""Worker processes of this machine, or of a cluster of Dask, and how traces are handed out to them.

Each is a process with one thread, the linear algebra included. They end with this one, however it
ends. One that dies takes those of its pool with it: then there is a new pool, and the traces that
were under way are tried one by one. How a cluster guards itself is its own affair: docs/scaling.md.
"""

import contextlib
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Protocol
from weakref import finalize

from trailveil.batch.working import MOST, Engine, Failed, Outcome, Take, Task, work_all
from trailveil.errors import Unavailable
from trailveil.gp.threads import keep_one_thread

# Traces under way for each worker: enough that none waits, however the times of traces differ.
# Short ones are handed out together, since handing out costs some milliseconds: as many as take so
# many seconds, and so many portions of them.
_AHEAD, _TOGETHER, _SECONDS, _PORTIONS = 8, 32, 0.25, 3
# Seconds after which what is ready is settled, and between looks at whether more is.
_SETTLED, _LOOKS = 0.5, 0.005
# Seconds between looks at whether a pool that is waited for is broken.
_PATIENCE = 5.0
# How often a trace is tried whose worker was lost: once with others, the rest alone.
_TRIES = 4

# What workers use, loaded once for all of them. It starts no thread.
_LOADED = ["trailveil.batch.working", "pyproj"]
_OF_NOISE = ["trailveil.designer.joint_tracks", "trailveil.designer.table", "scipy.special"]

Done = tuple[list[Outcome], float]
"""What `work_all` returns: outcomes, and seconds."""


class Workers(Protocol):
    """The processes that do the work: `count` of them."""

    @property
    def count(self) -> int:
        """How many there are."""

    def submit(self, tasks: list[Task]) -> Any:
        """Hand out a portion; its future."""

    def result(self, tasks: list[Task], future: Any) -> Done:
        """What came of a portion, whatever becomes of workers."""


@contextlib.contextmanager
def workers_here(count: int, *, noise: bool = True) -> Iterator[Engine]:
    """So many worker processes of this machine. Raises Unavailable where none can start.

    noise: whether they will need what noise takes.
    """
    kind = _context([*_LOADED, *(_OF_NOISE if noise else ())])
    try:
        processes = Processes(count, kind)
    except (OSError, NotImplementedError) as error:
        raise Unavailable("worker processes must start, got none: use --workers 1") from error
    try:
        yield partial(outcomes_of, processes)
    finally:
        processes.end()


def _context(loaded: list[str]) -> Any:
    """How workers start: copies of one small process that has loaded what all need, if possible."""
    if sys.platform != "linux":  # elsewhere, libraries of the system do not survive a copy
        return get_context("spawn")
    kind = get_context("forkserver")
    kind.set_forkserver_preload(loaded)
    return kind


def _begin(connection: Connection) -> None:
    """Begin a worker, which ends when nobody can write to it any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # is for the process that they work for
    keep_one_thread()

    def wait() -> None:
        connection.poll(None)
        os._exit(1)

    Thread(target=wait, daemon=True).start()


class Processes:
    """Workers of this machine, in a pool that is replaced where one of them dies."""

    def __init__(self, count: int, kind: Any) -> None:
        self.count, self._kind = count, kind
        self._pool, self._end_workers = self._new()

    def _new(self) -> tuple[ProcessPoolExecutor, finalize]:  # type: ignore[type-arg]  # of any pool
        """A pool, and what ends its workers: once, whichever thread is the first to call it."""
        theirs, ours = self._kind.Pipe(duplex=False)
        pool = ProcessPoolExecutor(self.count, self._kind, _begin, (theirs,))
        return pool, finalize(pool, ours.close)

    def submit(self, tasks: list[Task]) -> Any:
        """Hand out a portion."""
        try:
            future = self._pool.submit(work_all, tasks)
        except BrokenProcessPool:
            self.end()
            self._pool, self._end_workers = self._new()
            future = self._pool.submit(work_all, tasks)
        future.add_done_callback(partial(_end_broken, self._end_workers))
        return future

    def result(self, tasks: list[Task], future: Any) -> Done:
        """What came of a portion; where a worker was lost, of each of its traces alone."""
        for _ in range(_TRIES):
            try:
                done = self._waited(future)
            except BrokenProcessPool:
                if len(tasks) > 1:
                    return alone(self, tasks)
                future = self.submit(tasks)
            else:
                return done
        return [lost(tasks[0])], _SECONDS

    def _waited(self, future: Any) -> Done:
        """What came of a portion. Raises BrokenProcessPool where nothing will."""
        while True:
            with contextlib.suppress(TimeoutError):
                done: Done = future.result(_PATIENCE)
                return done
            # What was handed out as a worker died may be forgotten; a pool that is broken says so.
            self._pool.submit(os.getpid)

    def end(self) -> None:
        """End all processes of the pool, and wait until they have.

        One that began as another died, the pool waits for and does not end: its pipe does.
        """
        self._end_workers()
        self._pool.shutdown(cancel_futures=True)


def _end_broken(end_workers: Callable[[], object], future: Any) -> None:
    """End the workers of a pool that broke: it waits for all, and keeps its lock meanwhile."""
    if not future.cancelled() and isinstance(future.exception(), BrokenProcessPool):
        end_workers()


def alone(workers: Workers, tasks: list[Task]) -> Done:
    """What came of each task of a portion, one by one."""
    each = [workers.result([task], workers.submit([task])) for task in tasks]
    return [outcome for outcomes, _ in each for outcome in outcomes], sum(took for _, took in each)


def lost(task: Task) -> Failed:
    """The outcome of a trace that no worker survives."""
    line = (
        "a worker must live as long as its trace takes, got several that died of this one: "
        "give them more memory (fewer --workers), or shorten the recording"
    )
    return Failed(task.number, "KilledWorker", line)


def outcomes_of(workers: Workers, take: Take) -> Iterator[list[Outcome]]:
    """Outcomes in the order of the tasks, of which only so many are under way."""
    under_way: deque[tuple[list[Task], Any]] = deque()
    size, more = 1, True
    while True:
        while more and sum(len(tasks) for tasks, _ in under_way) < workers.count * max(
            _AHEAD, _PORTIONS * size
        ):
            tasks = _taken(take, size)
            more = len(tasks) == size
            if tasks:
                under_way.append((tasks, workers.submit(tasks)))
        if not under_way:
            return
        group: list[Outcome] = []
        until = time.monotonic() + _SETTLED
        while under_way and len(group) < MOST:
            tasks, future = under_way[0]
            # What is settled together takes less; but nobody waits for more work meanwhile, and
            # what is done does not wait for what takes long.
            while group and len(under_way) > workers.count and more and not future.done():
                if time.monotonic() > until:
                    break
                time.sleep(_LOOKS)
            if group and not future.done():
                break
            under_way.popleft()
            outcomes, seconds = workers.result(tasks, future)
            group += outcomes
            fitting = int(_SECONDS * len(tasks) / max(seconds, 1e-6))
            size = max(1, min(fitting, 2 * size, _TOGETHER))
        yield group
        more = True


def _taken(take: Take, most: int) -> list[Task]:
    """The next tasks, as far as there are any now."""
    tasks: list[Task] = []
    while len(tasks) < most and (task := take()) is not None:
        tasks.append(task)
    return tasks


@contextlib.contextmanager
def cluster_at(address: str) -> Iterator[Engine]:
    """The workers of a scheduler. Raises Unavailable where it does not answer, or without Dask."""
    dask, distributed = _dask()
    with contextlib.ExitStack() as held:
        held.enter_context(
            dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"})
        )
        patience = dask.config.get("distributed.comm.timeouts.connect")
        held.enter_context(_quiet())
        try:
            client = held.enter_context(distributed.Client(address, timeout=patience))
            client.wait_for_workers(1, timeout=patience)
        except (OSError, ValueError, TypeError) as error:
            raise _unreachable(address) from error
        yield partial(outcomes_of, Cluster(client, address))


class Cluster:
    """The workers of a scheduler; it tries a portion several times where workers are lost."""

    def __init__(self, client: Any, address: str) -> None:
        self._client, self._address = client, address
        self.count = sum(client.nthreads().values())

    def submit(self, tasks: list[Task]) -> Any:
        """Hand out a portion."""
        return self._client.submit(work_all, tasks, pure=False)

    def result(self, tasks: list[Task], future: Any) -> Done:
        """What came of a portion; where workers were lost with it, of each trace alone."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker

        try:
            done: Done = future.result()
        except KilledWorker:
            return alone(self, tasks) if len(tasks) > 1 else ([lost(tasks[0])], 0.0)
        except (CancelledError, OSError) as error:
            raise _unreachable(self._address) from error
        return done


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What Dask has to say of a lost connection is said by our own error."""
    known = logging.root.manager.loggerDict  # each of them has a level of its own
    names = [name for name in known if name.split(".")[0] in {"distributed", "tornado"}]
    loggers = [logging.getLogger(name) for name in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _unreachable(address: str) -> Unavailable:
    return Unavailable(
        f"the scheduler and a worker must answer, got no answer from {address}: start it (dask "
        "scheduler) and workers (dask worker), and give the same command again: what is done is "
        "kept"
    )


def _dask() -> tuple[Any, Any]:
    try:
        import dask
        import distributed
    except ImportError:
        raise Unavailable(
            "a cluster must be reached with the package distributed, which is not installed: pip "
            "install 'trailveil[batch]', or use --workers"
        ) from None
    return dask, distributed
