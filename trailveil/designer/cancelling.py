"""Cancelling a design: it takes seconds, and a person may have asked for another meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CONTINUES: ContextVar[Callable[[], bool]] = ContextVar("continues", default=lambda: True)


class Cancelled(Exception):
    """A design that is given up."""


@contextmanager
def cancelled_unless(continues: Callable[[], bool]) -> Iterator[None]:
    """Within, a design in this context is given up once `continues` is False, by Cancelled."""
    token = _CONTINUES.set(continues)
    try:
        yield
    finally:
        _CONTINUES.reset(token)


def check_cancelled() -> None:
    """Raise Cancelled where a design is to be given up. Called between the steps of its search."""
    if not _CONTINUES.get()():
        raise Cancelled
