"""A release by its options: what to protect, and how, in Python and on the command line."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypedDict, cast
from zoneinfo import ZoneInfo

from trailveil.errors import InvalidValue, check_kind, check_number, each_of_kind
from trailveil.files.source import named as file_named
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversaries import Named, named
from trailveil.release.request import NOISE_AGAINST, STEADY, Method, Request
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.loading import prior_in
from trailveil.traces.selection import Chosen
from trailveil.traces.stops import LASTS, WITHIN
from trailveil.traces.visits import Circle

_SWITCHES = {"ends", "stops", "returns", "everywhere"}
_NUMBERS = {"radius", "epsilon", "order", "uncertain", "steady"}
OF_NOISE = {
    "adversaries": ("adversary",),
    "prior": ("prior",),
    "steady": ("steady-for", "slow-for"),
}
"""What changes nothing of a cut, which hides whoever keeps to its pace from everybody.

With the options of the command line that state it.
"""


class Selection(TypedDict, total=False):
    """What to protect: both ends of the recording, and what is stated besides.

    ends: False leaves the two ends as recorded. at: times. between: stays, (begin, end) each. near:
    places, (latitude, longitude, metres) each. stops: whether every stay that is found is
    protected. returns: whether other visits to protected places are, True by default. tz: the zone
    of times of the clock, such as Europe/Berlin.
    """

    ends: bool
    at: Sequence[str]
    between: Sequence[tuple[str, str]]
    near: Sequence[tuple[float, float, float]]
    stops: bool
    returns: bool
    tz: str | None


class Options(Selection, total=False):
    """What to protect (`Selection`), and how.

    mechanism: cut, noise or both. everywhere: noise for every place at once. radius: metres.
    epsilon, order: of the Renyi divergence. leave: metres of the 68 % circle that is left, in place
    of epsilon. withhold: seconds around a part, at least, without a fix. activity: walk, run, ride,
    drive, or auto for what the recording says; floor: m/s, in its place. adversaries: names, as of
    --adversary. prior: a name, a file of `trailveil fit`, or a kernel with measurement noise
    (metres, seconds). uncertain, steady: seconds around a part of which nothing is assumed, by
    anybody and by a stranger. longest_stay: seconds that noise for every place is made for (8
    hours).
    """

    mechanism: str
    everywhere: bool
    radius: float
    epsilon: float
    order: float
    leave: float
    withhold: float
    activity: str
    floor: float
    adversaries: Sequence[str]
    prior: str | Kernel
    uncertain: int
    steady: int
    longest_stay: float


def chosen_of(options: Selection) -> Chosen:
    """What was chosen. Raises InvalidValue for what is of another kind."""
    pairs = _groups("between", options.get("between", ()), 2, str, "(begin, end)")
    circles = _groups("near", options.get("near", ()), 3, Real, "(latitude, longitude, metres)")
    return Chosen(
        each_of_kind("at", options.get("at", ()), str),
        cast(tuple[tuple[str, str], ...], pairs),
        zone_named(options.get("tz")),
        tuple(Circle(*place) for place in circles),
        (WITHIN, LASTS) if options.get("stops") else None,
        options.get("returns", True),
        options.get("ends", True),
    )


def _groups(
    name: str, stated: Any, size: int, kind: type, such: str
) -> tuple[tuple[Any, ...], ...]:
    """Groups of so many values of a kind; one alone is a list of one. InvalidValue for others."""
    listed = isinstance(stated, Iterable) and not isinstance(stated, str)
    several = tuple(stated) if listed else (stated,)
    if len(several) == size and isinstance(several[0], kind):
        several = (several,)
    for each in several:
        if not isinstance(each, Iterable) or [isinstance(x, kind) for x in each] != [True] * size:
            raise InvalidValue(f"{name} must be a list of {such}, got another form")
    return tuple(tuple(each) for each in several)


def request_of(options: Options) -> Request:
    """What is asked for, of no part yet. Raises InvalidValue for what cannot be."""
    check_options(options)
    activity, floor = options.get("activity"), options.get("floor")
    activity = None if activity == "auto" else activity
    if activity is not None and (activity not in ACTIVITIES or floor is not None):
        raise InvalidValue(
            f"activity must be one of {', '.join(ACTIVITIES)}, without a floor, got {activity!r}"
        )
    if options.get("leave") is not None and "epsilon" in options:
        raise InvalidValue("leave must come without epsilon, got both: state one of them")
    method = Method.EVERYWHERE if options.get("everywhere") else options.get("mechanism", "cut")
    if method not in list(Method):
        raise InvalidValue(f"mechanism must be cut, noise or both, got {method!r}")
    same: dict[str, Any] = {
        name: options[name]
        for name in (
            "radius",
            "epsilon",
            "order",
            "leave",
            "withhold",
            "uncertain",
            "steady",
            "longest_stay",
        )
        if name in options
    }
    if "steady" not in options and isinstance(uncertain := options.get("uncertain"), int):
        same["steady"] = max(STEADY, uncertain)
    if "adversaries" in options:
        same["who"] = _who(options["adversaries"])
    if "prior" in options:
        same["kernel"] = _kernel(options["prior"])
    if method != Method.EVERYWHERE and "longest_stay" in options:
        raise InvalidValue("longest_stay must come with everywhere, got it without: leave it out")
    if method == Method.CUT and (alone := [name for name in OF_NOISE if name in options]):
        raise InvalidValue(
            f"{alone[0]} must come with mechanism noise or both, got a cut: it hides whoever keeps "
            "to its pace, which activity or floor states"
        )
    pace = (floor, None) if activity is None else (ACTIVITIES[activity], MIDDLE[activity])
    return Request((), method=Method(method), floor=pace[0], middle=pace[1], **same)


def check_options(options: Mapping[str, Any], known: type = Options) -> None:
    """Raise InvalidValue for an option that is none: a mistyped one would protect less.

    known: `Selection` or `Options`.
    """
    names = sorted(known.__annotations__)
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            instead = f"did you mean {near[0]}?" if near else f"it may be {', '.join(names)}"
            raise InvalidValue(f"an option must be one that there is, got {name}: {instead}")
        if name in _NUMBERS:
            check_number(name, options[name])
        if name in _SWITCHES:
            check_kind(name, options[name], bool)


def _who(stated: Sequence[str]) -> tuple[Named, ...]:
    names = ("default", *NOISE_AGAINST)
    if isinstance(stated, str) or not set(stated) <= set(names):
        raise InvalidValue(f"adversaries must be a list of {', '.join(names)}, got {stated!r}")
    return named(stated)


def _kernel(prior: str | Kernel) -> Kernel:
    """That of a prior in metres, by its name, or in a file. Raises as reading one does."""
    if not isinstance(prior, Kernel | str):
        raise InvalidValue(f"prior must be a name, a file, or a kernel, got {type(prior).__name__}")
    kernel = prior if isinstance(prior, Kernel) else prior_in("metres", prior).kernel
    if not any(term.is_white() for term in kernel.terms()):
        where = f": {file_named(prior)}" if isinstance(prior, str) else ""
        raise InvalidValue(
            f"a prior must state a measurement noise (a White term), got none{where}"
        )
    return kernel


def zone_named(name: str | None) -> ZoneInfo | None:
    """The time zone of a name. Raises InvalidValue where there is none of it."""
    if name is not None:
        check_kind("tz", name, str, "such as Europe/Berlin or UTC")
    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidValue(
            f"tz must be a time zone such as Europe/Berlin or UTC, got {name!r}"
        ) from None
