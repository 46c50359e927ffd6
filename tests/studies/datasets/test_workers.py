"""Many items on one or more processes: same results, same order, every step watched."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from trailveil.errors import InvalidValue
from trailveil.studies.datasets.workers import mapped


def halved(number: int) -> float:
    if number < 0:
        raise InvalidValue("a number must not be negative")
    return number / 2


@pytest.mark.parametrize("workers", [1, 2])
def test_order_is_kept_and_each_result_watched(workers: int) -> None:
    calls: list[Any] = []

    def watch(items: Iterable[Any], count: int, label: str) -> Iterator[Any]:
        calls.append((count, label))
        for item in items:
            calls.append(item)
            yield item

    expected = [number / 2 for number in range(130)]
    assert mapped(halved, range(130), label="Halving", watch=watch, workers=workers) == expected
    assert calls == [(130, "Halving"), *expected]


@pytest.mark.parametrize("workers", [1, 2])
def test_errors_come_back(workers: int) -> None:
    with pytest.raises(InvalidValue, match="must not be negative"):
        mapped(halved, range(-1, 100), label="", workers=workers)


def test_nothing_is_mapped_to_nothing() -> None:
    assert mapped(halved, [], label="") == []
