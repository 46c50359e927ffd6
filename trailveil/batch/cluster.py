"""The workers of a cluster of Dask that is there already: how it guards itself is its own affair.

See docs/scaling.md.
"""

import contextlib
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

from trailveil.batch.processes import Done, alone, lost, outcomes_of
from trailveil.batch.working import Engine, Task, work_all
from trailveil.errors import Unavailable


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
