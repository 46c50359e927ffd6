"""Fields of fixes and names of tracks that were asked for, as they come out of a file."""

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trailveil.traces.fields import FIELDS, NAME, FieldValues, plain_name, plausible

_NONE = float("nan")


class Values:
    """Collects numbers by the name of their field; without a name it holds nothing."""

    def __init__(self, field_names: Sequence[str] = ()) -> None:
        self._held = {name: array("d") for name in field_names if name in FIELDS}
        self._names: dict[int, str] | None = {} if NAME in field_names else None

    def begin(self) -> None:
        """The next fix: as yet it states nothing."""
        for values in self._held.values():
            values.append(_NONE)

    def put(self, name: str, value: float) -> None:
        """What the latest fix states; of two numbers the first counts."""
        values = self._held[name]
        if values[-1] != values[-1]:
            values[-1] = value

    def extend(self, fields: Sequence[tuple[str, NDArray[np.float64]]], count: int) -> None:
        """The values (count,) of further fixes at once, NaN where they state none."""
        stated = dict(fields)
        for name, values in self._held.items():
            more = np.asarray(stated.get(name, np.full(count, _NONE)), dtype=np.float64)
            values.frombytes(more.tobytes())

    def finished(self) -> FieldValues:
        """The fields that some fix states, NaN for what cannot be."""
        fields = ((name, plausible(name, values)) for name, values in self._held.items())
        return tuple((name, values) for name, values in fields if not np.isnan(values).all())

    def call(self, track: int, name: str) -> None:
        """What a track is called, by its number, where that was asked for; of two the first."""
        if self._names is not None and (line := plain_name(name)):
            self._names.setdefault(track, line)

    def names(self, tracks: int) -> tuple[str, ...]:
        """What so many tracks are called, "" for none; empty where none has a name."""
        names = self._names or {}
        return tuple(names.get(number, "") for number in range(tracks)) if names else ()
