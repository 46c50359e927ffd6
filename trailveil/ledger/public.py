"""What was published of somebody by other means: positions at times, which later releases count.

An entry has times, and how well each position is known; no position. It is no release.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.randomness import derive
from trailveil.ledger import Book, Entry, Ledger, Mark
from trailveil.ledger.identity import ME
from trailveil.ledger.places import EVERYTHING
from trailveil.ledger.recorded import from_bytes, to_bytes
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.traces.trace import NANOSECONDS

if TYPE_CHECKING:  # the ledger is shown without what designs releases
    from trailveil.release.places import Place
    from trailveil.release.public import Position

PUBLIC = "[public already]"
"""The series of such entries: no column of readings has that name."""
_DAY = 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Imported:
    """Positions that are public. times: (n,) nanoseconds. positions: (n, 2) degrees.

    accuracy: metres around each within which the true one is 68 times in 100; 0 where exact.
    """

    times: NDArray[np.int64]
    positions: NDArray[np.float64]
    accuracy: float = 0.0

    def __post_init__(self) -> None:
        """Check that there is something, and how accurate it is."""
        if not len(self.times) or not 0 <= self.accuracy < 1e6:
            raise InvalidValue(
                "what is public must be positions at times, known to 0 m or more, got none or "
                "another accuracy"
            )


def add_public(
    ledger: Ledger, imported: Imported, *, subject: str = ME, places: "Sequence[Place]" = ()
) -> bool:
    """Count what is public; whether it was not counted before.

    places: those with names of which it tells, as of `public_places`.
    """
    times = np.sort(imported.times)
    # No position goes into the hash: a single one could be guessed by whoever has the key.
    about = [repr(imported.accuracy).encode(), *(place.ident for place in places)]
    request = derive(ledger.key, [b"public", times.astype("<i8").tobytes(), *about])
    deviation = np.array([imported.accuracy / CIRCLE_68])
    begin, end = int(times[0]), int(times[-1])
    body = {
        "mechanism": "public already",
        "noise_trace": 0.0,
        "epsilon": 0.0,
        "positions": len(times),
        "accuracy_m": imported.accuracy,
    }
    blob = to_bytes({"times": times, "deviation": deviation})
    with ledger.open() as book:
        rows = book.overlapping(subject, PUBLIC, begin, end)
        if any(row.request == request for row in rows):
            return False
        marks = tuple(_mark(place, imported, float(deviation[0])) for place in places)
        book.add(Entry(subject, PUBLIC, begin, end, request, 0.0, body, blob, marks))
    return True


def public_places(places: "Iterable[Place]", imported: Imported) -> "list[Place]":
    """The places with names at which positions are public."""
    return [place for place in places if not place.gone and _at(place, imported).any()]


def _at(place: "Place", imported: Imported) -> NDArray[np.bool_]:
    """Which positions (n,) may be at a place."""
    from trailveil.traces.visits import distances

    middle = np.array([place.circle.latitude, place.circle.longitude])
    many = np.broadcast_to(middle, imported.positions.shape)
    away = distances(*imported.positions.T, *many.T)
    return np.asarray(away <= place.wide.metres + imported.accuracy)


def _mark(place: "Place", imported: Imported, deviation: float) -> Mark:
    """What positions tell of a place: as of a cut that leaves so much, and no visit."""
    count = int(_at(place, imported).sum())
    told = EVERYTHING if deviation == 0 else min(EVERYTHING, count / deviation**2)
    return Mark(place.ident, place.ident, np.array([told, 0.0]))


def public_around(book: Book, subject: str, begin: int, end: int) -> "tuple[Position, ...]":
    """What is public from a day before some time to a day after (ns): in order of time.

    No cut is longer than that.
    """
    from trailveil.release.public import Position

    positions = []
    for row in book.overlapping(subject, PUBLIC, begin - _DAY, end + _DAY):
        arrays = from_bytes(book.blob(row.number))[0]
        times, deviation = arrays["times"], float(arrays["deviation"][0])
        near = times[(times >= begin - _DAY) & (times <= end + _DAY)]
        positions += [Position(when, deviation) for when in near.tolist()]
    return tuple(sorted(positions))


def count_public(book: Book, subject: str) -> int:
    """How many entries of what is public count."""
    return sum(row.series == PUBLIC for row in book.standing(subject))


def in_words(positions: int, accuracy: float) -> str:
    """How much is public, and how well it is known."""
    many = f"{positions:,} position{'s' * (positions != 1)}"
    return f"{many}, {'exact' if accuracy == 0 else f'within {accuracy:g} m 68 times in 100'}"
