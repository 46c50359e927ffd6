"""A trace in one dimension: readings of one quantity, such as a temperature, with its unit.

Positions on a globe and values in a unit share times and nothing else (`TimeSeries`). What a
release needs of either is small: `times`; whole steps on a lattice (`Frame.to_lattice` of a trace,
in micrometres; `Readings.steps` here, in decimals of the unit), on which true values and noise are
added exactly; and a way to write them.

As with traces, nothing shows a value when printed.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.traces.trace import Seen, seconds_since_the_first

_MOST_DECIMALS = 12
_MOST_STEPS = 2.0**53  # so that values, in float64, tell each step from the next


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordedReadings:
    """What was recorded, in file order, before any cleaning.

    times: (n,) datetime64[ns], UTC where a zone was given; NaT where there is no readable time.
    naive: (n,) True where the time had no zone, so that `times` is then wall-clock time.
    values: (n,) in `unit`, NaN where unreadable. column: what the table calls them.

    Raises InvalidValue where the shapes do not fit together, or no unit is stated.
    """

    times: NDArray[np.datetime64]
    naive: NDArray[np.bool_]
    values: NDArray[np.float64]
    unit: str
    seen: Seen = field(default_factory=Seen)
    column: str = "value"

    def __post_init__(self) -> None:
        _hold(self, times="datetime64[ns]", naive=np.bool_, values=np.float64)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        return f"RecordedReadings({len(self)} in {self.unit})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Readings:
    """Cleaned readings: strictly increasing times, finite values.

    times: (n,) int64, nanoseconds since 1970-01-01 UTC. values: (n,) in `unit`. column: what their
    table called them. seconds: (n,) since the first reading.

    The arrays are copies and read-only. Raises InvalidValue where any of this does not hold.
    """

    times: NDArray[np.int64]
    values: NDArray[np.float64]
    unit: str
    column: str = "value"
    seconds: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        _hold(self, times=np.int64, values=np.float64)
        object.__setattr__(self, "seconds", seconds_since_the_first(self.times))
        if not (self.times[1:] > self.times[:-1]).all():
            raise InvalidValue("times must strictly increase, got others: clean the readings first")
        if not np.isfinite(self.values).all():
            raise InvalidValue("values must be finite, got others: clean the readings first")

    def __len__(self) -> int:
        return len(self.times)

    @property
    def duration(self) -> float:
        """Seconds from the first time to the last, 0 where there are fewer than two."""
        return float(self.seconds[-1]) if len(self) else 0.0

    def __repr__(self) -> str:
        return f"Readings({len(self)} in {self.unit}, {self.duration:.0f} s)"

    def only(self, mask: NDArray[np.bool_]) -> "Readings":
        """The readings where `mask`, (n,) of bool, is True. IndexError for another shape."""
        return Readings(self.times[mask], self.values[mask], self.unit, self.column)

    def steps(self, decimals: int) -> NDArray[np.int64]:
        """(n,) whole steps of 10^-decimals of the unit, the nearest; halves go up.

        Raises InvalidValue for decimals outside of 0..12, or so many that float64 cannot tell the
        values apart.
        """
        check_decimals(decimals)
        scaled = self.values * 10.0**decimals
        if len(self) and np.abs(scaled).max() > _MOST_STEPS:
            raise InvalidValue(
                f"values must have at most 15 digits with {decimals} decimals, got more: take "
                "fewer decimals"
            )
        return np.floor(scaled + 0.5).astype(np.int64)


def check_decimals(decimals: int) -> None:
    """Raises InvalidValue for decimals outside of 0..12."""
    if not 0 <= decimals <= _MOST_DECIMALS:
        raise InvalidValue(f"decimals must be 0 to {_MOST_DECIMALS}, got {decimals}: choose fewer")


def _hold(owner: Readings | RecordedReadings, **kinds: Any) -> None:
    """Store read-only copies of arrays of one length in a frozen value, and check its unit."""
    shape = np.shape(owner.times)
    for name, kind in kinds.items():
        given = np.asarray(getattr(owner, name))
        if len(shape) != 1 or given.shape != shape:
            raise InvalidValue(
                f"{name} must be one for each time, got shapes {given.shape} and {shape}: give "
                "arrays of one dimension and one length"
            )
        if kind is np.int64 and given.size and given.dtype.kind not in "iu":
            raise InvalidValue(
                f"{name} must be integers, got {given.dtype}: convert them exactly first"
            )
        array = np.array(given, dtype=kind)
        array.flags.writeable = False
        object.__setattr__(owner, name, array)
    if not owner.unit.strip() or not owner.unit.isprintable():
        raise InvalidValue("a unit must be stated, got none: such as degC")
