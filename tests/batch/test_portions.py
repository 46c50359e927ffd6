"""Short traces go to workers in portions: in order, bounded, and none suffers for another."""

from collections.abc import Callable
from typing import Any

import pytest

from trailveil.batch.cluster import _outcomes
from trailveil.batch.working import Failed, Outcome, Task

distributed = pytest.importorskip("distributed")


class Workers:
    """Stands for a client of Dask. seconds: of each trace. deadly: what no worker survives."""

    def __init__(self, seconds: float, deadly: int | None = None) -> None:
        self.seconds, self.deadly = seconds, deadly
        self.portions: list[int] = []

    def submit(self, work: object, tasks: list[int], *, pure: bool) -> "Workers.Portion":
        self.portions.append(len(tasks))
        return Workers.Portion(self, tasks)

    class Portion:
        def __init__(self, workers: "Workers", tasks: list[int]) -> None:
            self.workers, self.tasks = workers, tasks

        def done(self) -> bool:
            return True

        def result(self) -> tuple[list[Outcome], float]:
            if self.workers.deadly in self.tasks:
                raise distributed.KilledWorker("work", None, 3)
            outcomes: list[Outcome] = [Failed(number, "kind", "line") for number in self.numbers]
            return outcomes, self.workers.seconds * len(self.tasks)

        @property
        def numbers(self) -> list[int]:
            return [getattr(task, "number", -1) for task in self.tasks]


class Numbered(int):
    """A task of which only its number matters."""

    @property
    def number(self) -> int:
        return int(self)


def taking(count: int) -> tuple[Callable[[], Task | None], list[int]]:
    taken: list[int] = []

    def take() -> Any:
        if len(taken) == count:
            return None
        taken.append(len(taken))
        return Numbered(taken[-1])

    return take, taken


def outcomes(workers: Workers, count: int) -> tuple[list[Failed], int]:
    """All outcomes, and the most traces that were under way."""
    take, taken = taking(count)
    faileds: list[Failed] = []
    most = 0
    for group in _outcomes(workers, 2, take):
        most = max(most, len(taken) - len(faileds))
        faileds += [outcome for outcome in group if isinstance(outcome, Failed)]
    return faileds, most


@pytest.mark.parametrize(
    ("seconds", "largest", "most"), [(0.005, 32, 192), (0.1, 2, 16), (1.2, 1, 16), (0.0, 32, 192)]
)
def test_portions_are_as_large_as_traces_are_short(seconds: float, largest: int, most: int) -> None:
    workers = Workers(seconds)
    faileds, under_way = outcomes(workers, 1000)
    assert [failed.number for failed in faileds] == list(range(1000))
    assert max(workers.portions) == largest
    assert sum(workers.portions) == 1000
    assert workers.portions[0] == 1
    # A portion that was begun is filled.
    assert under_way < most + largest


@pytest.mark.parametrize("deadly", [0, 500, 999])
def test_a_trace_that_kills_its_workers_takes_no_other_with_it(deadly: int) -> None:
    workers = Workers(0.005, deadly)
    faileds, _ = outcomes(workers, 1000)
    assert [failed.number for failed in faileds] == list(range(1000))
    assert [failed.number for failed in faileds if failed.kind == "KilledWorker"] == [deadly]
    again = sum(workers.portions) - 1000
    assert (again == 0) == (deadly == 0)
    assert again <= 32
