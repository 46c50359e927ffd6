"""What is to be compared, from one small file of settings.

seed = 1
draws = 1                                # releases of each recording
data = ["people", "geolife"]
mechanisms = ["cut", "planar-laplace", "strong-laplace"]
attacks = ["posterior", "stays"]         # default: all but SLOW
metrics = ["moved", "frechet"]           # default: all

[data-of.geolife]                        # parameters, by name
folder = "Geolife Trajectories 1.3"
[mechanism.strong-laplace]
kind = "planar-laplace"                  # another name for one of the tables
epsilon = 0.001
"""

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any

from trailveil.errors import InvalidValue, UnreadableInput, check_kind
from trailveil.files.source import SMALL, load, named
from trailveil.studies.comparing.fingerprint import fingerprint
from trailveil.studies.comparing.tables import ATTACKS, DATA, MECHANISMS, METRICS, SLOW

_TABLES: dict[str, tuple[str, Mapping[str, Callable[..., Any]]]] = {
    "data": ("data-of", DATA),
    "mechanisms": ("mechanism", MECHANISMS),
    "attacks": ("attack", ATTACKS),
    "metrics": ("metric", METRICS),
}
_PATHS = {"folder", "file"}


@dataclass(frozen=True, slots=True)
class Entrant:
    """One of what is compared: its name, the function behind it, and its parameters."""

    name: str
    function: Callable[..., Any]
    parameters: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *given: Any) -> Any:
        """The function of these, with its parameters."""
        return self.function(*given, **dict(self.parameters))

    @property
    def identity(self) -> str:
        """A text that changes when a parameter, the function or a value that it names does."""
        return f"{self.name} {fingerprint(self.function)} {self.parameters!r}"


@dataclass(frozen=True, slots=True)
class Settings:
    """A comparison: data sets, mechanisms, attacks and metrics by their names, and a seed.

    draws: releases of each recording. parameters: by the kind of table and the name. Raises
    InvalidValue for a name or a parameter that is none.
    """

    data: tuple[str, ...]
    mechanisms: tuple[str, ...] = tuple(MECHANISMS)
    attacks: tuple[str, ...] = tuple(name for name in ATTACKS if name not in SLOW)
    metrics: tuple[str, ...] = tuple(METRICS)
    seed: int = 1
    draws: int = 1
    parameters: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)

    def entrants(
        self, kind: str, added: Mapping[str, Callable[..., Any]] | None = None
    ) -> tuple[Entrant, ...]:
        """Those of a kind (data, mechanisms, attacks, metrics), each with its parameters.

        added: functions besides those of the tables.
        """
        check_kind(kind, added or {}, Mapping, "functions by name")
        for name, own in (added or {}).items():
            if not callable(own):
                raise InvalidValue(f"{name} must be a function, got {type(own).__name__}")
            if name in _TABLES[kind][1]:
                raise InvalidValue(
                    f"{kind} of your own must have names of their own, got {name!r}: rename it"
                )
        known = {**_TABLES[kind][1], **(added or {})}
        names = dict.fromkeys([*getattr(self, kind), *(added or {})])
        return tuple(self._entrant(kind, name, known) for name in names)

    def _entrant(self, kind: str, name: str, known: Mapping[str, Callable[..., Any]]) -> Entrant:
        stated = dict(self.parameters.get((kind, name), {}))
        function = known.get(str(stated.pop("kind", name)))
        if function is None:
            raise InvalidValue(
                f"{kind} must be of {', '.join(known)}, got {name!r}: state its kind in "
                f"[{_TABLES[kind][0]}.{name}], or choose another"
            )
        takes = {
            parameter.name: parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
        wrong = [parameter for parameter in stated if parameter not in takes]
        if wrong:
            raise InvalidValue(
                f"parameters of {name} must be of {', '.join(takes) or 'none'}, got {wrong[0]!r}"
            )
        for parameter in takes.values():
            if parameter.name in stated:
                _check_parameter(name, parameter, stated[parameter.name])
            elif parameter.default is inspect.Parameter.empty:
                raise InvalidValue(
                    f"{name} must have {parameter.name}, got none: state it in "
                    f"[{_TABLES[kind][0]}.{name}]"
                )
        return Entrant(name, function, tuple(sorted(stated.items())))


def _check_parameter(name: str, parameter: inspect.Parameter, value: Any) -> None:
    """Raise InvalidValue for a value of another kind than a function says it takes."""
    kinds: dict[type, tuple[type, str]] = {
        int: (Integral, "a whole number"),
        float: (Real, "a number"),
        str: (str, "text"),
    }
    if parameter.annotation in kinds:
        kind, what = kinds[parameter.annotation]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidValue(f"{parameter.name} of {name} must be {what}, got {value!r:.60}")


def read_settings(path: str | PathLike[str]) -> Settings:
    """The settings in a TOML file; folders and files in it are relative to it.

    Raises UnreadableInput for what is no TOML, InvalidValue for a setting that is none.
    """
    try:
        stated = tomllib.loads(load(path, SMALL).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UnreadableInput(
            f"settings must be TOML, got a file that is not: {named(path)}: {error}"
        ) from None
    return settings_of(stated, Path(path).parent)


def settings_of(stated: Mapping[str, Any], beside: Path = Path()) -> Settings:
    """The settings of a table as the file has it. beside: what paths are relative to."""
    takes = {"seed", "draws", *_TABLES, *(section for section, _ in _TABLES.values())}
    if wrong := [name for name in stated if name not in takes]:
        raise InvalidValue(f"settings must be of {', '.join(sorted(takes))}, got {wrong[0]!r}")
    names = {kind: _names(kind, stated[kind]) for kind in _TABLES if kind in stated}
    if not names.get("data"):
        raise InvalidValue(f"data must name data sets, of {', '.join(DATA)}, got none")
    parameters = dict(_parameters(stated, beside))
    default = Settings(names["data"])
    whole = Settings(
        names["data"],
        names.get("mechanisms", default.mechanisms),
        names.get("attacks", default.attacks),
        names.get("metrics", default.metrics),
        _number("seed", stated.get("seed", default.seed)),
        _number("draws", stated.get("draws", default.draws)),
        parameters,
    )
    for kind, name in parameters:
        if name not in getattr(whole, kind):
            raise InvalidValue(f"{kind} must name all that have parameters, got none of {name!r}")
    return whole


def _names(name: str, stated: Any) -> tuple[str, ...]:
    if not isinstance(stated, Sequence) or not all(isinstance(each, str) for each in stated):
        raise InvalidValue(f"{name} must be a list of names, got {stated!r:.60}")
    return tuple(dict.fromkeys([stated] if isinstance(stated, str) else stated))


def _number(name: str, stated: Any) -> int:
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < (name == "draws"):
        raise InvalidValue(f"{name} must be a whole number from {int(name == 'draws')} on")
    return stated


def _parameters(
    stated: Mapping[str, Any], beside: Path
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for kind, (section, _) in _TABLES.items():
        sections = stated.get(section, {})
        if not isinstance(sections, dict) or not all(
            isinstance(x, dict) for x in sections.values()
        ):
            raise InvalidValue(f"parameters must stand in a table such as [{section}.NAME]")
        for name, values in sections.items():
            yield (
                (kind, name),
                {
                    key: str(beside / value)
                    if key in _PATHS and kind == "data" and isinstance(value, str)
                    else value
                    for key, value in values.items()
                },
            )
