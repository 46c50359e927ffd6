"""What a scan found: kinds of leaks, where in the released file, how many; values kept apart."""

from dataclasses import dataclass, field
from enum import StrEnum


class LeakKind(StrEnum):
    """What leaked, in words that need no more."""

    UNMOVED = "protected fixes where they were recorded"
    NEARLY = "protected fixes within 1 m of where they were recorded"
    HALF_MOVED = "protected fixes of which one coordinate is as recorded"
    PLACE = "coordinates of a protected fix"
    RETURN = "fixes within 50 m of a protected place, moved by less than 25 m"
    COORDINATE = "coordinates of the original"
    TEXT = "text of the original"
    NUMBER = "numbers of the original"
    FIELD = "what no release has: a field, a name, a comment"
    STRAY = "positions, times or segment numbers that belong to no fix"
    FINE = "coordinates finer than the public grid of 1e-6 degree"
    UNCOMPARED = "fixes at times that the original does not have"


@dataclass(frozen=True, slots=True)
class Leak:
    """One kind of leak at one place of the released file.

    where: in words that tell nothing of the leak itself. count: how many. leaked: some of the
    values, for the owner alone; they are not printed with the rest.
    """

    kind: LeakKind
    where: str
    count: int
    leaked: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Moved:
    """How many fixes were compared with the original, and how many were hardly moved.

    unmoved: at the same coordinates of the grid; below_1, below_10: by less than so many metres,
    those unmoved among them.
    """

    compared: int = 0
    unmoved: int = 0
    below_1: int = 0
    below_10: int = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """All that was found. leaks: each of them fails; notes: what is worth knowing.

    recorded, released: fixes of the two files. protected: fixes of the original that had to be.
    every, of_protected: how far fixes are moved, of all that were compared and of the protected.
    """

    leaks: tuple[Leak, ...]
    notes: tuple[str, ...]
    recorded: int
    released: int
    protected: int
    every: Moved
    of_protected: Moved

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.leaks
