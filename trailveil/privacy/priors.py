"""Priors by name, and priors as text: what they are, and what they were fitted on.

A prior file is a JSON object

    {"format": "trailveil-prior", "version": 1, "unit": "metres",
     "terms": [{"kernel": "integrated-ou", "std": 3.0, "time_constant": 60.0}, ...],
     "fitted_on": null or {...}}

whose kernel is the sum of its terms, each by its name in KERNELS with the fields of that class. It
says how much it was fitted on, never where or when. Whatever is not understood is refused: a prior
that is half read would give a guarantee under another one.

Where the numbers of the built-in priors come from: docs/priors.md.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Final

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import once
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)

FORMAT: Final = "trailveil-prior"
VERSION: Final = 1

KERNELS: Final[Mapping[str, type[Kernel]]] = {
    "integrated-ou": IntegratedOU,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "rbf": RBF,
    "periodic": Periodic,
    "constant": Constant,
    "white": White,
}
"""The kernels that a prior file may name."""

_LARGEST: Final = 1e300

LEVEL_STD: Final = 100_000.0
"""Metres: where on the map a trace lies is left open, which is the idea of a conditional prior."""


@dataclass(frozen=True, slots=True)
class FittedOn:
    """What a prior was fitted on, in numbers: never a position, a time or a name.

    files: recordings, or labelled parts of them, that gave a window. windows, fixes: how many.
    seconds: together. how: "median" over windows or "pooled".
    spread: of each parameter, for "median" its quartiles over the windows; for "pooled" the
    estimate less its standard error, the estimate, and with it added (thrice the same at a bound).
    at_bounds: fits in which the parameter ended at a bound. unfinished: fits that did not converge;
    there is one fit for each window, or one in all for "pooled".
    """

    files: int
    windows: int
    fixes: int
    seconds: float
    how: str
    spread: Mapping[str, tuple[float, float, float]]
    at_bounds: Mapping[str, int]
    unfinished: int


@dataclass(frozen=True, slots=True)
class PriorSpec:
    """A prior before it meets the times of a trace: its name, its kernel, and what it rests on.

    kernel: measurement noise and level included, in `unit` and seconds. fitted_on: None where the
    parameters were stated and not fitted.
    """

    name: str
    kernel: Kernel
    unit: str
    fitted_on: FittedOn | None


def _moving(std: float, time_constant: float, noise_std: float) -> Kernel:
    return IntegratedOU(std, time_constant) + Constant(LEVEL_STD) + White(noise_std)


# What `trailveil fit --labels MODE` writes; see docs/priors.md.
_FITTED: Final[Mapping[str, FittedOn]] = {
    "walk": FittedOn(
        files=70,
        windows=117,
        fixes=10_651,
        seconds=59_741.0,
        how="median",
        spread={
            "std": (0.9606, 1.209, 1.797),
            "time_constant": (10.18, 18.65, 36.29),
            "noise_std": (1.0, 1.215, 2.024),
        },
        at_bounds={"noise_std": 48, "time_constant": 2},
        unfinished=0,
    ),
    "bike": FittedOn(
        files=48,
        windows=71,
        fixes=6_376,
        seconds=36_015.0,
        how="median",
        spread={
            "std": (2.189, 2.428, 2.614),
            "time_constant": (23.04, 53.23, 89.26),
            "noise_std": (1.184, 1.672, 2.581),
        },
        at_bounds={"noise_std": 13},
        unfinished=0,
    ),
    "drive": FittedOn(
        files=47,
        windows=78,
        fixes=6_347,
        seconds=40_003.0,
        how="median",
        spread={
            "std": (4.494, 6.107, 8.064),
            "time_constant": (46.74, 78.40, 145.5),
            "noise_std": (1.0, 1.0, 1.155),
        },
        at_bounds={"noise_std": 56},
        unfinished=0,
    ),
}


def _built_in() -> dict[str, PriorSpec]:
    specs = {"default": PriorSpec("default", _moving(3.0, 60.0, 2.0), "metres", None)}
    for name, basis in _FITTED.items():
        std, time_constant, noise = (
            basis.spread[key][1] for key in ("std", "time_constant", "noise_std")
        )
        specs[name] = PriorSpec(name, _moving(std, time_constant, noise), "metres", basis)
    return specs


BUILT_IN: Final[Mapping[str, PriorSpec]] = _built_in()
"""By the names of the command line."""


def to_json(spec: PriorSpec) -> str:
    """A prior as the text of a prior file; the name is that of the file, and not in it.

    Raises InvalidValue for a kernel that is no sum of the kernels of KERNELS.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "unit": spec.unit,
        "terms": [_term(kernel) for kernel in spec.kernel.terms()],
        "fitted_on": None if spec.fitted_on is None else asdict(spec.fitted_on),
    }
    return json.dumps(content, indent=2) + "\n"


def from_json(text: str, where: str) -> PriorSpec:
    """The prior that a text states, called `where`. Raises UnreadableInput for anything else."""
    try:
        content = json.loads(text, parse_constant=_no_number, object_pairs_hook=once)
        return _spec(content, where)
    except InvalidValue as error:
        raise UnreadableInput(f"{error}: {where}") from None
    except RecursionError:
        raise UnreadableInput(
            f"a prior file must not be nested deeply, got one that is: {where}"
        ) from None
    except json.JSONDecodeError as error:
        raise UnreadableInput(
            f"a prior file must be JSON, got '{error.msg}' in line {error.lineno}: {where}; make "
            "one with trailveil fit"
        ) from None
    except ValueError:  # a whole number of thousands of digits
        raise UnreadableInput(
            f"a prior file must hold numbers of sensible length: {where}"
        ) from None


def _term(kernel: Kernel) -> dict[str, Any]:
    for name, known in KERNELS.items():
        if type(kernel) is known:
            return {"kernel": name} | {key: getattr(kernel, key) for key in _parameters(known)}
    raise InvalidValue(
        f"a prior file must hold a sum of {', '.join(KERNELS)}, got a {type(kernel).__name__}"
    )


def _parameters(kernel: type[Kernel]) -> dict[str, Any]:
    """The parameters of a kernel class, and the default of each, MISSING for none."""
    parameters = fields(kernel)  # type: ignore[arg-type]  # every final kernel is a dataclass
    return {field.name: field.default for field in parameters}


def _spec(content: Any, where: str) -> PriorSpec:
    top = _object(content, {"format", "version", "unit", "terms", "fitted_on"}, "a prior file")
    version = top["version"]
    if top["format"] != FORMAT or isinstance(version, bool) or version != VERSION:
        raise InvalidValue(
            f"a prior file must be of format {FORMAT}, version {VERSION}, got another: update "
            "trailveil, or make one with trailveil fit"
        )
    if not (isinstance(top["terms"], list) and top["terms"] and isinstance(top["unit"], str)):
        raise InvalidValue("a prior file must have a unit and one term or more, got others")
    first, *others = (_kernel(term) for term in top["terms"])
    kernel = first
    for other in others:
        kernel = kernel + other
    basis = None if top["fitted_on"] is None else _fitted_on(top["fitted_on"])
    return PriorSpec(where, kernel, top["unit"], basis)


def _kernel(term: Any) -> Kernel:
    known = KERNELS.get(str(term.get("kernel"))) if isinstance(term, dict) else None
    if known is None:
        raise InvalidValue(f"each term must name a kernel among {', '.join(KERNELS)}, got another")
    defaults = _parameters(known)
    names = set(defaults)
    needed = {name for name, default in defaults.items() if default is MISSING}
    values = {name: value for name, value in term.items() if name != "kernel"}
    if not needed <= set(values) <= names:
        raise InvalidValue(
            f"{term['kernel']} must have {', '.join(sorted(names))}, got other parameters"
        )
    return known(**{name: _number(value, name) for name, value in values.items()})


def _fitted_on(content: Any) -> FittedOn:
    names = {f.name for f in fields(FittedOn)}
    entries = _object(content, names, "fitted_on")
    counts = {
        name: _count(entries[name], name) for name in ("files", "windows", "fixes", "unfinished")
    }
    if not isinstance(entries["how"], str):
        raise InvalidValue("how a prior was fitted must be text, got something else")
    ranges, bounds = (_object(entries[name], None, name) for name in ("spread", "at_bounds"))
    spread = {}
    for name, values in ranges.items():
        if not isinstance(values, list) or len(values) != 3:
            raise InvalidValue("spread must be three numbers each, got something else")
        low, middle, high = (_number(value, name) for value in values)
        spread[name] = (low, middle, high)
    return FittedOn(
        seconds=_number(entries["seconds"], "seconds"),
        how=entries["how"],
        spread=spread,
        at_bounds={name: _count(value, name) for name, value in bounds.items()},
        **counts,
    )


def _object(content: Any, names: set[str] | None, what: str) -> dict[str, Any]:
    if not isinstance(content, dict) or (names is not None and set(content) != names):
        expected = "an object" if names is None else f"an object with {', '.join(sorted(names))}"
        raise InvalidValue(f"{what} must be {expected}, got something else")
    return content


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        raise InvalidValue(f"{name} must be a finite number, got something else")
    return float(value)


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidValue(f"{name} must be a whole number, got something else")
    return value


def _no_number(text: str) -> float:
    raise InvalidValue(f"numbers must be finite, got {text}")
