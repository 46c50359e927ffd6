"""Traces go to workers in portions: in order, bounded, and none suffers for another."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from types import SimpleNamespace
from typing import Any

import pytest

from trailveil.batch import workers
from trailveil.batch.workers import Done, alone, lost, outcomes_of, workers_here
from trailveil.batch.working import Failed, Outcome, Task


class Numbered(int):
    """A task of which only its number matters: no worker knows what to do with it."""

    @property
    def number(self) -> int:
        return int(self)


class Deadly(Numbered):
    """One that ends whoever unpacks it."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


class Imagined:
    """Two workers. seconds: of each trace. deadly: what none survives, once it is alone."""

    count = 2

    def __init__(self, seconds: float, deadly: int | None = None) -> None:
        self.seconds, self.deadly = seconds, deadly
        self.portions: list[int] = []

    def submit(self, tasks: list[Task]) -> Any:
        self.portions.append(len(tasks))
        return SimpleNamespace(done=lambda: True)

    def result(self, tasks: list[Task], future: Any) -> Done:
        numbers = [task.number for task in tasks]
        if self.deadly in numbers:
            return alone(self, tasks) if len(tasks) > 1 else ([lost(tasks[0])], self.seconds)
        outcomes: list[Outcome] = [Failed(number, "kind", "line") for number in numbers]
        return outcomes, self.seconds * len(tasks)


def taking(count: int) -> tuple[Callable[[], Task | None], list[int]]:
    taken: list[int] = []

    def take() -> Any:
        if len(taken) == count:
            return None
        taken.append(len(taken))
        return Numbered(taken[-1])

    return take, taken


def outcomes(workers: Imagined, count: int) -> tuple[list[Failed], int]:
    """All outcomes, and the most traces that were under way."""
    take, taken = taking(count)
    faileds: list[Failed] = []
    most = 0
    for group in outcomes_of(workers, take):
        most = max(most, len(taken) - len(faileds))
        faileds += [outcome for outcome in group if isinstance(outcome, Failed)]
    return faileds, most


@pytest.mark.parametrize(
    ("seconds", "largest", "most"), [(0.005, 32, 192), (0.1, 2, 16), (1.2, 1, 16), (0.0, 32, 192)]
)
def test_portions_are_as_large_as_traces_are_short(seconds: float, largest: int, most: int) -> None:
    workers = Imagined(seconds)
    faileds, under_way = outcomes(workers, 1000)
    assert [failed.number for failed in faileds] == list(range(1000))
    assert max(workers.portions) == largest
    assert sum(workers.portions) == 1000
    assert workers.portions[0] == 1
    # A portion that was begun is filled.
    assert under_way < most + largest


@pytest.mark.parametrize("deadly", [0, 500, 999])
def test_a_trace_that_kills_its_workers_takes_no_other_with_it(deadly: int) -> None:
    workers = Imagined(0.005, deadly)
    faileds, _ = outcomes(workers, 1000)
    assert [failed.number for failed in faileds] == list(range(1000))
    assert [failed.number for failed in faileds if failed.kind == "KilledWorker"] == [deadly]
    again = sum(workers.portions) - 1000
    assert (again == 0) == (deadly == 0)
    assert again <= 32


def of_24(engine: Any) -> list[Any]:
    """What comes of 24 tasks, of which trace 7 ends its worker."""
    tasks: list[Any] = [Deadly(i) if i == 7 else Numbered(i) for i in range(24)]
    waiting = iter(tasks)
    return [each for group in engine(lambda: next(waiting, None)) for each in group]


def check_of_24(outcomes: list[Any]) -> None:
    assert [outcome.number for outcome in outcomes] == list(range(24))
    assert [outcome.number for outcome in outcomes if outcome.kind == "KilledWorker"] == [7]
    assert {outcome.kind for outcome in outcomes} == {"KilledWorker", "AttributeError"}


def test_a_process_that_dies_of_a_trace_takes_no_other_with_it() -> None:
    """Real processes, of which the one that gets trace 7 ends, whenever it does."""
    with workers_here(2) as engine:
        outcomes = of_24(engine)
    check_of_24(outcomes)


def test_a_worker_that_its_pool_does_not_end_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one that begins while another dies: the pool waits for it without having ended it."""
    monkeypatch.setattr(BaseProcess, "terminate", lambda process: None)
    told_to_end = "concurrent.futures.process._ExecutorManagerThread.get_n_children_alive"
    monkeypatch.setattr(told_to_end, lambda thread: 0)
    with workers_here(2) as engine:
        outcomes = of_24(engine)
    check_of_24(outcomes)


class Forgetful(ProcessPoolExecutor):
    """A pool that forgets the first that is handed out, and breaks."""

    def submit(self, work: Any, /, *arguments: Any, **named: Any) -> Any:
        if not FORGOTTEN:
            FORGOTTEN.append(Future())
            return FORGOTTEN[0]
        if len(FORGOTTEN) == 1:
            FORGOTTEN.append(Future())
            raise BrokenProcessPool
        return super().submit(work, *arguments, **named)


FORGOTTEN: list[Any] = []


def test_what_a_broken_pool_forgot_is_handed_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ProcessPoolExecutor", Forgetful)
    monkeypatch.setattr(workers, "_PATIENCE", 0.01)
    FORGOTTEN.clear()
    with workers_here(2) as engine:
        outcomes = of_24(engine)
    check_of_24(outcomes)
    assert len(FORGOTTEN) == 2
