"""Who does the work: this process, or workers of Dask; outcomes come in the order of the tasks."""

import time
from collections.abc import Callable, Iterator

from trailveil.batch.working import Outcome, Task, work
from trailveil.threads import one_thread

Take = Callable[[], Task | None]
"""The next task; None where there is none, or none until an outcome before it is settled."""

Engine = Callable[[Take], Iterator[list[Outcome]]]
"""Outcomes in order, in groups: what is handed out together may be settled together."""

# A group is handed out after so many seconds, or so many outcomes.
_SECONDS, MOST = 0.5, 64


def here(take: Take) -> Iterator[list[Outcome]]:
    """One trace after the other, in this process."""
    task = take()
    while task is not None:
        group: list[Outcome] = []
        until = time.monotonic() + _SECONDS
        with one_thread():  # for them all: it takes milliseconds
            while task is not None and (
                not group or (len(group) < MOST and time.monotonic() < until)
            ):
                group.append(work(task))
                task = take()
        yield group
        task = take() if task is None else task
