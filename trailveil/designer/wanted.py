"""Whether a design is still wanted: it takes seconds, and a person may have asked for another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)


class Unwanted(Exception):
    """A design that is given up."""


@contextmanager
def only_while(wanted: Callable[[], bool]) -> Iterator[None]:
    """Give up a design in this context once it is not wanted: raises Unwanted from within it."""
    token = _WANTED.set(wanted)
    try:
        yield
    finally:
        _WANTED.reset(token)


def check_wanted() -> None:
    """Raise Unwanted where a design is to be given up. Called between the steps of its search."""
    if not _WANTED.get()():
        raise Unwanted
