"""Rows of a table become a recording: what tables of text, of Parquet and in memory share."""

from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import compress, groupby, repeat
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.collect import MOST_POINTS, Values, nothing, too_many
from trailveil.traces.formats.columns import Columns
from trailveil.traces.formats.moments import Stamps
from trailveil.traces.formats.people import People
from trailveil.traces.trace import Recording, Seen

_MOST_SEGMENTS = 100_000

Cell = Hashable
"""Of a column that names segments, tracks or people."""


class RowCollector:
    """Collects the rows of a table in their order.

    A row that states neither latitude nor longitude is no fix, and counted. Segments and tracks are
    those that are named, else one. Two people in one table would be mixed up: they are refused.
    values: takes the fields in `field_names` of the latest row, or of rows that are added at once.
    people: takes what other columns say of the same rows, in case they name people.
    """

    def __init__(
        self,
        columns: Columns,
        where: str,
        field_names: Sequence[str] = (),
        most: int = MOST_POINTS,
    ) -> None:
        self.values: Final = Values(field_names)
        self.people: Final = People()
        self._most: Final = most
        self._columns: Final = columns
        self._where: Final = where
        self.stamps: Final = Stamps(per_second=columns.per_second, utc=columns.utc)
        self._positions = array("d")
        self._segments = array("q")
        self._numbers: dict[tuple[Cell, Cell], int] = {}
        self._tracks: dict[Cell, int] = {}
        self._owners: list[int] = []
        self._person: Cell = None
        self._without_position = 0
        self.other_records = 0

    def position(self, latitude: float, longitude: float) -> None:
        """Where a fix is, in degrees, NaN where unreadable; its time goes to `stamps`.

        Raises UnreadableInput for more fixes than are read.
        """
        if len(self._positions) >= 2 * self._most:
            raise too_many(self._where, self._most)
        self._positions.extend((latitude, longitude))

    def positions(self, places: NDArray[np.float64]) -> None:
        """As many fixes at once, (n, 2) in degrees. Raises as `position` does."""
        if len(self._positions) + places.size > 2 * self._most:
            raise too_many(self._where, self._most)
        self._positions.frombytes(np.ascontiguousarray(places, dtype=np.float64).tobytes())

    def without_position(self, count: int = 1) -> None:
        """Count rows that state no position."""
        self._without_position += count

    def keys(self, track: Cell, segment: Cell, person: Cell, count: int = 1) -> None:
        """What so many rows say of track, segment and person; None where they say nothing."""
        if person is not None:
            self._check(person)
        key = (track, segment)
        number = self._numbers.get(key)
        if number is None:
            if len(self._numbers) >= _MOST_SEGMENTS:
                raise UnreadableInput(
                    f"input must have at most {_MOST_SEGMENTS} segments, got more: {self._where}; "
                    "the column that names them may be of something else"
                )
            number = self._numbers[key] = len(self._numbers)
            self._owners.append(self._tracks.setdefault(track, len(self._tracks)))
        self._segments.extend(array("q", [number]) * count)

    def name(self, text: str) -> None:
        """What the track of the latest row is called; of two names the first counts."""
        self.values.call(self._owners[self._segments[-1]], text)

    def recording(self, **more: int) -> Recording:
        """What was collected, with further counts of `trailveil.traces.trace.Seen`.

        Raises UnreadableInput where that is nothing, or cannot be read.
        """
        times, naive = self.stamps.finished(self._where)
        counts = {
            **self.stamps.counts,
            "without_position": self._without_position,
            "other_records": self.other_records,
            **more,
        }
        if not len(times):
            raise UnreadableInput(nothing(counts, self._where))
        positions = np.array(self._positions).reshape(-1, 2)
        self.people.check(times.view(np.int64), positions, self._where)
        return Recording(
            times,
            naive,
            positions,
            np.array(self._segments, dtype=np.intp),
            tuple(self._owners),
            Seen(**{"other_fields": self._columns.others, **counts}),
            self.values.finished(),
            self.values.names(len(self._tracks)),
        )

    def _check(self, person: Cell) -> None:
        if self._person is None:
            self._person = person
        elif person != self._person:
            raise several(self._where)


def several(where: str) -> UnreadableInput:
    """The refusal of fixes of two people, or two devices, which would be mixed up."""
    return UnreadableInput(
        "a recording must be of one person and one device, got several (a column such as "
        f"user_id says so): {where}; make a file for each"
    )


def add_arrays(
    rows: RowCollector,
    positions: NDArray[np.float64],
    times: NDArray[Any],
    keys: tuple[Iterable[Cell] | None, Iterable[Cell] | None, Iterable[Cell] | None],
    *,
    naive: bool,
    fields: Sequence[tuple[str, NDArray[np.float64]]] = (),
    others: Mapping[Any, Iterable[Any]] = MappingProxyType({}),
) -> None:
    """Add rows of columns in memory: positions (n, 2) in degrees, times (n,) of any kind.

    times: datetime64 (`naive` says that they have no zone), numbers, or text. keys: for track,
    segment and person what each row says, None where none says anything. fields: (n,) each, of
    those that are wanted. others: what columns say that may name people, by their names.
    """
    stated = ~(np.isnan(positions[:, 0]) & np.isnan(positions[:, 1]))
    rows.without_position(int((~stated).sum()))
    rows.positions(positions[stated])
    rows.values.extend([(name, values[stated]) for name, values in fields], int(stated.sum()))
    cells_of = {name: compress(cells, stated) for name, cells in others.items()}
    rows.people.rows(cells_of, int(stated.sum()))
    chosen = times[stated]
    if chosen.dtype.kind == "M":
        rows.stamps.moments(chosen, naive=naive)
    elif chosen.dtype.kind in "iu":
        rows.stamps.whole(chosen)
    elif chosen.dtype.kind == "f":
        rows.stamps.numbers(chosen.tolist())
    else:
        for value in chosen.tolist():
            rows.stamps.text("" if value is None else str(value))
    if all(key is None for key in keys):
        rows.keys(None, None, None, count=int(stated.sum()))
        return
    each = (repeat(None, len(stated)) if key is None else key for key in keys)
    for (track, segment, person), group in groupby(compress(zip(*each, strict=True), stated)):
        rows.keys(track, segment, person, count=sum(1 for _ in group))
