"""Where portions are run: in this process, in others of this machine, or on a cluster of Dask."""

import os
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from trailveil.errors import InvalidValue, Unavailable, installing
from trailveil.gp.threads import keep_one_thread
from trailveil.studies.comparing.running import (
    Comparison,
    Done,
    Engine,
    Portion,
    here,
    run_portion,
)
from trailveil.studies.datasets.workers import processors


@contextmanager
def engine_of(workers: int, scheduler: str | None) -> Iterator[Engine]:
    """So many processes, 0 for all processors; or those of a scheduler of Dask."""
    if scheduler is not None:
        yield partial(_on_cluster, scheduler)
    elif workers == 1:
        yield here
    else:
        yield partial(_in_processes, workers or processors())


_HELD: list[Comparison] = []


def _in_processes(
    count: int, comparison: Comparison, waiting: Sequence[Portion]
) -> Iterator[tuple[Portion, Done]]:
    if not waiting:
        return
    _check_portable(comparison)
    kind = get_context("spawn")
    theirs, ours = kind.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, kind, _begin, (theirs, comparison))
    try:
        futures = {pool.submit(_run, portion): portion for portion in waiting}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise Unavailable(
            "workers must live as long as a portion takes, got one that died: give them more "
            "memory (fewer workers), and start again; what is done is kept"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()


def _check_portable(comparison: Comparison) -> None:
    """Refuse what other processes cannot be sent."""
    for entrant in (*comparison.mechanisms, *comparison.attacks, *comparison.metrics):
        try:
            pickle.dumps(entrant)
        except (pickle.PicklingError, AttributeError, TypeError):
            raise InvalidValue(
                f"functions of your own must stand at the top of a file to run on several workers, "
                f"got {entrant.name!r} elsewhere: move it, or state workers=1"
            ) from None


def _begin(connection: Connection, comparison: Comparison) -> None:
    """Begin a worker, which ends when the process that it works for does."""
    keep_one_thread()
    _HELD[:] = [comparison]

    def wait() -> None:
        connection.poll(None)
        os._exit(1)

    Thread(target=wait, daemon=True).start()


def _run(portion: Portion) -> Done:
    return run_portion(_HELD[0], portion)


def _on_cluster(
    address: str, comparison: Comparison, waiting: Sequence[Portion]
) -> Iterator[tuple[Portion, Done]]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise Unavailable(
            f"a cluster must have Dask, got none; say: {installing('batch')}"
        ) from None
    _check_portable(comparison)
    with distributed.Client(address) as client:
        held = client.scatter(comparison, broadcast=True)
        futures = {
            client.submit(run_portion, held, portion, pure=False): portion for portion in waiting
        }
        for future in distributed.as_completed(list(futures)):
            yield futures[future], future.result()
