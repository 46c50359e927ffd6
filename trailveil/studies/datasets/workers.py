"""The same function on many items, on all processors where that is worth it, and watched."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeAlias, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Watch: TypeAlias = Callable[[Iterable[Any], int, str], Iterator[Any]]
"""Passes on what it is given, of so many items under a label: a progress bar, say."""

_WORTH = 64  # items; below, starting processes takes longer


def unwatched(items: Iterable[Any], count: int, label: str) -> Iterator[Any]:
    """The items, and nothing shown."""
    del count, label
    yield from items


def mapped(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    label: str,
    watch: Watch = unwatched,
    workers: int | None = None,
) -> list[Result]:
    """function of each item, in order. workers: processes; None: one for each processor.

    The function and all it is given must be picklable. What it raises is raised here.
    """
    count = workers or processors()
    if count == 1 or len(items) < _WORTH:
        return list(watch(map(function, items), len(items), label))
    chunk = max(1, min(16, len(items) // (4 * count)))
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        return list(watch(pool.map(function, items, chunksize=chunk), len(items), label))


def processors() -> int:
    """The processors this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
