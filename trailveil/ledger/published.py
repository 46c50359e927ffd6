"""A release as it was counted and drawn: what is told of it to whatever is written beside it."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, TypeVar

from trailveil.errors import InvalidValue
from trailveil.files.output import Put, staged
from trailveil.ledger.accounting import Account
from trailveil.traces.readings import Readings, Timed
from trailveil.traces.trace import Trace

T = TypeVar("T", Trace, Readings)


@dataclass(frozen=True, slots=True)
class Published:
    """A release as it was counted.

    further: whether the recording, or a part of it, was released before with other noise. account:
    what it tells with all before it; None where it was released just so before, and for readings.
    drawn: the released fixes or readings, before their times are changed; released: as they leave.
    """

    further: bool
    account: Account | None = None
    drawn: Timed | None = field(default=None, repr=False, compare=False)
    released: Timed | None = field(default=None, repr=False, compare=False)

    @property
    def traces(self) -> tuple[Trace, Trace]:
        """What was drawn, and what leaves. Raises InvalidValue where it is no trace."""
        return _both(self, Trace)

    @property
    def readings(self) -> tuple[Readings, Readings]:
        """What was drawn, and what leaves. Raises InvalidValue where they are no readings."""
        return _both(self, Readings)


def _both(done: Published, kind: type[T]) -> tuple[T, T]:
    if not (isinstance(done.drawn, kind) and isinstance(done.released, kind)):
        raise InvalidValue(f"a release must be drawn to be shown, got no {kind.__name__}")
    return done.drawn, done.released


Drawn = tuple[Timed, Timed, Callable[[BinaryIO, str], None]]
"""What was drawn: before its times are changed, and as it leaves; what writes that, by suffix."""


@dataclass(slots=True, eq=False, repr=False)
class Receipt:
    """A release that is counted and drawn, and whose file is about to appear.

    write: writes it in the format of a suffix. appeared: whether a file of it may be there: then
    it counts for ever.
    """

    published: Published
    write: Callable[[BinaryIO, str], None]
    appeared: bool = False

    def staged(self, output: Path, *, overwrite: bool) -> contextlib.AbstractContextManager[Put]:
        """Write the release beside its place: see `trailveil.files.output.staged`."""
        return staged(output, lambda out: self.write(out, output.suffix), overwrite=overwrite)

    def put(self, *puts: Put) -> None:
        """Let staged files appear, that of the release first."""
        self.appeared = True
        for put in puts:
            put()
