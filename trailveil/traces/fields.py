"""Fields of fixes that may be kept beside times and places: their names, units and bounds.

They are numbers, but for what a track is called and what it is of. None of them is read unless it
is asked for by name, and what is read leaves as whole steps of a few decimals: the noise of floats
would tell one device or file from another. Nothing in them is protected.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue, Refused, each_of_kind

FieldValues = tuple[tuple[str, NDArray[np.float64]], ...]
"""Fields by name, each (n,), in its unit, NaN where a fix does not state it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A field: its unit, the decimals that leave, and the values that can be (inclusive).

    column: its name in tables that are written. tells: what it gives away, as a sentence for
    people.
    """

    unit: str
    decimals: int
    least: float
    most: float
    column: str
    tells: str


FIELDS: Final[Mapping[str, Kept]] = {
    "elevation": Kept(
        *("m", 1, -1000.0, 50_000.0, "elevation_m"),
        "where fixes are moved, its profile is found on a map and gives the true path back; at a "
        "place that is released exactly it tells what a map tells",
    ),
    "speed": Kept(
        *("m/s", 2, 0.0, 1000.0, "speed_m_s"),
        "it tells how far it was from one fix to the next, and when and where one stood still",
    ),
    "course": Kept(
        *("degrees", 1, 0.0, 360.0, "course_deg"),
        "it tells each bend of the true path, which a map of the streets gives the place of",
    ),
    "heart_rate": Kept(
        *("1/min", 0, 1.0, 255.0, "heart_rate"),
        "it is about health; it rises at each climb, falls where one stood still, and is the same "
        "in every other copy of this recording",
    ),
    "cadence": Kept(
        *("1/min", 0, 0.0, 254.0, "cadence"),
        "it is zero where one stood still or rolled, and nearly a speed where one walked or ran",
    ),
    "power": Kept(
        *("W", 0, 0.0, 10_000.0, "power_w"),
        "it tells climbs and stops, and with a weight nearly the speed",
    ),
    "temperature": Kept(
        *("degC", 1, -100.0, 100.0, "temperature_c"),
        "it tells when one was indoors, and with weather records about when and where it was",
    ),
}
"""Every field that may be kept, by name. A distance is none: over a part in which it is left out,
the difference of two distances is the length of the way in it."""

NAME: Final = "name"
"""What a track is called: the only free text that may be kept."""

LONGEST_NAME: Final = 100
"""Characters of a name; what is longer is cut."""

FREE_TEXT = "free text can name places and people"
PLACES = "they are places that no noise was made for"
NEVER: Final[Mapping[str, str]] = {
    "comments": FREE_TEXT,
    "links": "what they lead to can tell places and people",
    "authors": "they say who it was",
    "devices": "they tell whose recordings belong together",
    "bounds": "they are the true places of the outermost fixes",
    "waypoints": PLACES,
    "routes": PLACES,
    "extensions": "they can hold anything; ask for the fields in them by name",
}
"""What is never released, and why, each reason with its subject."""


TYPE: Final = "type"
"""What a track is of, in one of the words of `trailveil.traces.activities` and in no other."""

ALL: Final = (*FIELDS, TYPE)
"""What `all` stands for: a name is free text, and kept on request alone."""

KEEPABLE: Final = (*ALL, NAME)
"""All that may be kept, by name."""


def check_fields(names: Iterable[str]) -> tuple[str, ...]:
    """Names of fields, each once, in the order of KEEPABLE.

    Raises Refused for one that is never released, InvalidValue for one that there is not.
    """
    known = each_of_kind("what is kept", names, str)
    for name in known:
        if name in NEVER:
            raise Refused(
                f"what is kept must be one of {', '.join(KEEPABLE)}, got {name}, never released: "
                f"{NEVER[name]}; add what others may know to the released file yourself"
            )
        if name not in KEEPABLE:
            raise InvalidValue(f"what is kept must be one of {', '.join(KEEPABLE)}, got another")
    return tuple(name for name in KEEPABLE if name in known)


def plain_name(text: str) -> str:
    """A name in one line of at most LONGEST_NAME characters, all of them printable."""
    line = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    return line[:LONGEST_NAME].strip()


def plausible(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Values of a field (n,), NaN for those that cannot be: infinite, or out of its bounds."""
    field, numbers = FIELDS[name], np.array(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        numbers[~((numbers >= field.least) & (numbers <= field.most))] = np.nan
    return numbers


def as_text(name: str, values: NDArray[np.float64]) -> list[str]:
    """Values of a field (n,) as they leave: rounded to its decimals, "" for none."""
    decimals = FIELDS[name].decimals
    scale = 10**decimals
    with np.errstate(invalid="ignore"):
        steps = np.floor(plausible(name, values) * scale + 0.5)
    return ["" if np.isnan(step) else decimal(int(step), decimals) for step in steps.tolist()]


def decimal(step: int, decimals: int) -> str:
    """Whole steps of 10^-decimals as a decimal number, without floating point."""
    whole, part = divmod(abs(step), 10**decimals)
    fraction = f".{part:0{decimals}d}" if decimals else ""
    return f"{'-' if step < 0 else ''}{whole}{fraction}"
