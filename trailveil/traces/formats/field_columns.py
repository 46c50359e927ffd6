"""Which column or property is which field that may be kept, and in what unit, by its name.

"Altitude (ft)", "gpsElevation", "speed_km_h" and "Herzfrequenz" are known. A name without a unit
means the one that is usual, but for a speed, which is written in m/s as often as in km/h: without
its unit it is not guessed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trailveil.traces.fields import FIELDS
from trailveil.traces.formats.collect import number
from trailveil.traces.formats.columns import words_of

_NAMES: Final = {
    **dict.fromkeys(("elevation", "ele", "altitude", "alt", "hohe", "hoehe"), "elevation"),
    **dict.fromkeys(("speed", "velocity", "geschwindigkeit", "vitesse"), "speed"),
    **dict.fromkeys(("course", "heading", "bearing", "kurs"), "course"),
    **dict.fromkeys(("heartrate", "hr", "heart", "pulse", "herzfrequenz", "puls"), "heart_rate"),
    **dict.fromkeys(("cadence", "cad", "trittfrequenz"), "cadence"),
    **dict.fromkeys(("power", "leistung"), "power"),
    **dict.fromkeys(("temperature", "temp", "atemp", "temperatur"), "temperature"),
}
_BEFORE: Final = {"gps", "location", "position", "enhanced"}
_DEGREES: Final = dict.fromkeys(("", "deg", "degree", "degrees"), (1.0, 0.0))
_PER_MINUTE: Final = dict.fromkeys(("", "bpm", "rpm", "spm", "min"), (1.0, 0.0))
_CELSIUS: Final = dict.fromkeys(("", "c", "degc", "celsius"), (1.0, 0.0))
_FAHRENHEIT: Final = dict.fromkeys(("f", "degf", "fahrenheit"), (5 / 9, -160 / 9))
# Of each field, the units that a name may state: a value of them times the first plus the second.
_UNITS: Final = {
    "elevation": {
        **dict.fromkeys(("", "m", "meter", "meters", "metres"), (1.0, 0.0)),
        **dict.fromkeys(("ft", "feet"), (0.3048, 0.0)),
    },
    "speed": {
        **dict.fromkeys(("ms", "mps", "meterspersecond", "metrespersecond"), (1.0, 0.0)),
        **dict.fromkeys(("kmh", "kph", "kmph"), (1 / 3.6, 0.0)),
        **dict.fromkeys(("kn", "kt", "knots"), (1852 / 3600, 0.0)),
        "mph": (0.44704, 0.0),
    },
    "course": _DEGREES,
    "heart_rate": _PER_MINUTE,
    "cadence": _PER_MINUTE,
    "power": dict.fromkeys(("", "w", "watt", "watts"), (1.0, 0.0)),
    "temperature": {**_CELSIUS, **_FAHRENHEIT},
}
_COMMA: Final = re.compile(r"[+-]?\d+,\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class FieldColumn:
    """A column of a field: its index, and what its unit is times and plus in that of the field."""

    field: str
    index: int
    scale: float
    offset: float

    def value(self, cell: Any) -> float:
        """A number, or one as text, in the unit of the field; NaN for anything else."""
        if isinstance(cell, str):
            cell = cell.strip()
            stated = number(cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell)
        elif isinstance(cell, int | float) and not isinstance(cell, bool) and abs(cell) < 1e9:
            stated = float(cell)
        else:
            return float("nan")
        return stated * self.scale + self.offset

    def values(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers (n,) in the unit of the field."""
        return numbers * self.scale + self.offset


def field_columns(names: Sequence[object], field_names: Sequence[str]) -> tuple[FieldColumn, ...]:
    """The columns of the fields that are wanted, at most one of each: the first."""
    columns: dict[str, FieldColumn] = {}
    for index, name in enumerate(names if field_names else ()):
        known = _known(words_of(name), field_names)
        if known is not None and known[0] not in columns:
            field, (scale, offset) = known
            columns[field] = FieldColumn(field, index, scale, offset)
    return tuple(columns[name] for name in FIELDS if name in columns)


def _known(words: list[str], field_names: Sequence[str]) -> tuple[str, tuple[float, float]] | None:
    """The field and the unit that words say."""
    parts = words[1:] if len(words) > 1 and words[0] in _BEFORE else words
    for cut in (1, 2):
        field = _NAMES.get("".join(parts[:cut]))
        unit = "".join(parts[cut:])
        if field in field_names and field is not None and unit in _UNITS[field]:
            return field, _UNITS[field][unit]
    return None
