"""What a release promises, checked from its private report alone, in exact arithmetic.

Beside trailveil.privacy.checker, which proves designs, it needs Python's standard library alone:
that the stated figures follow from what is proved, and that a cut leaves what it must. Figures of a
report are rounded numbers: each may be better than what is proved by 1e-9 of itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from math import erf, erfc, exp, inf, isclose, log
from typing import Any

from trailveil.privacy.checker import check
from trailveil.privacy.exact import ExactMovement

_ROUNDING = 1 + Fraction(1, 10**9)
# Distances grow in the frame of a release by at most this (trailveil.traces.projection proves it).
_SCALE = 1 + Fraction(1, 1000)
# The square of the circle that holds 68 %, in standard deviations: -2 log(1 - 0.68), rounded up.
_CIRCLE = -2 * Fraction(Decimal("0.32").ln(Context(prec=50))) * (1 + Fraction(1, 10**40))
_MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_WORDS = {"format", "name"}
# The numbers of what was asked for.
_STATED = (
    *("radius_m", "epsilon", "order", "leave_m", "uncertain_s", "steady_s", "time_constant_s"),
    *("floor_m_s", "floor_middle_m_s"),
)
# The least pace of each activity (m/s), at an end and in the middle of a recording, as people have
# been seen to move (docs/activities.md): stated a second time, as no table of the designer is used.
FLOORS = {"walk": (0.92, 0.49), "run": (0.92, 0.49), "ride": (1.4, 1.2), "drive": (3.6, 2.5)}
# What adversaries are called: who has a cut track, and against whom noise is, with what they know.
HAS_THE_REST = "someone who has the rest of your track and a map"
NAMES = {
    "someone who knows your path": "path",
    "someone who knows one true place": "place",
    "a stranger": "",
}
UNCHECKED = (
    "the sentences of warnings and of what is not protected",
    "that the target is what you asked for",
    "labels, local times, whether a part was chosen by its place, and with how many it is reckoned",
    "the cleaning, the prior, the frame and the components, as they are printed",
    "the ledger, stops, other mechanisms, and how much better a design could be",
)
"""What no check is made of, of any report."""
# The figures of the whole.
# The chance with which odds move by more than their factor, and those that a gap has.
_CHANCE, _DELTAS = 0.01, ("0.01", "1e-05")
# Metres: who knew a place no better than this is said to have had no idea of it.
_NO_IDEA = 50_000
# Nanoseconds from which on a part is a stay: the way there and the way on are two.
_STAY = 180 * 10**9


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was checked: what should hold, and whether it does."""

    what: str
    holds: bool


def promises(report: dict[str, Any]) -> Iterator[Check]:
    """Check a private report, as `trailveil protect --json` prints it. Damage is what fails."""
    try:
        yield from _checked(report)
    except _MALFORMED as error:
        yield Check(f"the report is whole (got {type(error).__name__} where it was read)", False)


def _checked(report: dict[str, Any]) -> Iterator[Check]:
    parts, designs, method = report["secrets"], report["designs"], report["mechanism"]["name"]
    yield Check("the report is of a cut, of noise, or both", method in ("cut", "noise", "both"))
    count = report["mechanism"]["parts"]
    yield Check(f"it names all {count} protected parts", len(parts) == count > 0)
    due = 0 if method == "cut" else len(parts)
    yield Check("there is a design for each part with noise", len(designs) == due)
    if report["places"]:
        yield Check("no named places (what is promised of them has no proof here)", False)
    yield from _stated(report)
    for number, part in enumerate(parts, 1):
        name = f"part {number}"
        target = {key: _number(report["target"][key]) for key in _STATED}
        proved = []
        if method != "noise":
            fraction = _left_by_cut(part, target)
            yield Check(
                f"{name}: the cut leaves {float(fraction) ** 0.5:.0f} m per coordinate",
                fraction > 0,
            )
            proved.append((1 / fraction, Fraction(0)))
        if method != "cut":
            design = designs[number - 1]
            yield from _design(name, design, part, part["exposures"][len(proved) :], target)
            proved += [
                (_number(design["bound"]), _known(adversary, design["sides"]))
                for adversary in design["adversaries"]
            ]
        yield from _figures(name, part, target, proved)
        shown = all(_is_shown(part[f"{end}_ns"], part[f"{end}_utc"]) for end in ("begin", "end"))
        yield Check(f"{name}: {part['begin_utc']} to {part['end_utc']} is where it lies", shown)
    yield from _worst(parts, report["worst"], cut=method == "cut")


def _stated(report: dict[str, Any]) -> Iterator[Check]:
    """Whether what is said of the whole is what the program says of such parts."""
    parts, method, target = report["secrets"], report["mechanism"]["name"], report["target"]
    for number, part in enumerate(parts, 1):
        designs = report["designs"]
        called = [exposure["adversary"] for exposure in part["exposures"]]
        has_the_rest = called[:1] == [HAS_THE_REST]
        known = designs[number - 1]["adversaries"] if method != "cut" else []
        same = has_the_rest == (method != "noise")
        same &= [NAMES.get(name) for name in called[has_the_rest:]] == [_knows(it) for it in known]
        yield Check(f"part {number}: adversaries are called by what they know", same)
        # Noise has a cut only where one was asked for; no promise rests on it.
        least, seconds = target["withhold"], _number(part["cut_s"])
        cut = (seconds is None) == (method == "noise" and least is None)
        cut = cut and (seconds is None or seconds >= (least or 0))
        yield Check(f"part {number}: it has a cut where the mechanism has one", cut)
        kind = "stay" if part["end_ns"] > part["begin_ns"] else "time"
        yield Check(f"part {number}: it is a {part['kind']}", part["kind"] == kind)
        sides = part["sides"] in (1, 2) and isinstance(part["sides"], int)
        yield Check(f"part {number}: it has one side or two", sides)
    names = list(
        dict.fromkeys(exposure["adversary"] for part in parts for exposure in part["exposures"])
    )
    same = report["adversaries"] == names
    yield Check("the listed adversaries are those of the parts", same)
    floors = target["floor_m_s"], target["floor_middle_m_s"]
    able: set[str | None] = {name for name, pace in FLOORS.items() if pace == floors}
    yield Check(
        f"your pace is that of the activity ({target['activity']})",
        target["activity"] in (able or {None}),
    )


def _knows(adversary: dict[str, Any]) -> str:
    """What an adversary of a design knows, as `NAMES` has it."""
    return next((x for x in ("path", "place") if adversary[x] is not None), "")


def _is_shown(moment: int, words: str) -> bool:
    """Whether nanoseconds since 1970 are in the second that a report names."""
    second = datetime.strptime(words, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    return (second - datetime.fromtimestamp(0, UTC)) // timedelta(seconds=1) == moment // 10**9


def _worst(parts: list[dict[str, Any]], worst: dict[str, Any], *, cut: bool) -> Iterator[Check]:
    """Whether figures follow from mu, and those of the whole are of the place that loses most.

    Cuts of what may be one place, as both ends may, lose together.
    """
    together = [part for part in parts if cut and part["reckoned_with"] > 1]
    places = [[part] for part in parts] + ([together] if together else [])
    sums = [
        (
            float(sum(_number(part["mu"]) ** 2 for part in place)) ** 0.5,
            float(sum(_number(part["circle_68_m"]) ** -2 for part in place)) ** -0.5,
        )
        for place in places
        if all(part["circle_68_m"] is not None for part in place)
    ]
    mu, circle = max(sums, default=(0.0, inf))
    stated = float(_number(worst["epsilon"]))
    order = max((float(_number(part["order"])) for part in parts), default=0.0)
    holds = order / 2 * mu**2 <= stated * float(_ROUNDING)
    yield Check(f"the worst epsilon is {stated:.4g}", bool(holds))
    figures = {"mu": mu, "circle_68_m": circle, "order": order}
    same = bool(parts) and all(
        isclose(float(_number(worst[key])), due, rel_tol=1e-9) for key, due in figures.items()
    )
    same = same and all(meanings(worst, mu, order).values())
    yield Check("the figures of the whole are those of its worst place", same)
    for name, figures in ((f"part {i}", part) for i, part in enumerate(parts, 1)):
        mu, order, epsilon = (_number(figures[key]) for key in ("mu", "order", "epsilon"))
        follows = abs(order / 2 * mu**2 - epsilon) <= epsilon / 10**9
        yield Check(f"{name}: mu gives its epsilon", follows)
        for what, holds in meanings(figures, float(mu), float(order)).items():
            yield Check(f"{name}: mu gives its {what}", holds)
    for number, part in enumerate(parts, 1):
        place = together if part in together else [part]
        due = float(sum(_number(each["circle_68_m"]) ** -2 for each in place)) ** -0.5
        same = isclose(float(_number(part["circle_68_joint_m"])), due, rel_tol=1e-9)
        yield Check(f"part {number}: its circle is that of its place", same)
    holds = bool(parts)
    for part in parts:
        strangers = [
            exposure for exposure in part["exposures"] if exposure["circle_68_before_m"] is None
        ]
        least = min(_number(stranger["circle_68_m"]) for stranger in strangers)
        holds = holds and _number(part["circle_68_m"]) <= least * _ROUNDING
    yield Check("the circles of the parts are those of strangers", holds)


def meanings(figures: dict[str, Any], mu: float, order: float) -> dict[str, bool]:
    """Whether odds, advantage and the paper's gap are those of mu, at an order."""
    # JSON has no infinity: odds beyond the largest number may be none.
    odds = figures["odds_factor_99"]
    odds = inf if odds in (None, inf) else float(_number(odds))
    gap = {delta: float(_number(figures["paper_gap"][delta])) for delta in _DELTAS}
    due = {delta: order / 2 * mu**2 - log(float(delta)) / (order - 1) for delta in _DELTAS}
    gained = erf(mu / 8**0.5)
    return {
        "odds": isclose(odds, _odds(mu), rel_tol=1e-9),
        "advantage": isclose(_number(figures["advantage"]), gained, rel_tol=1e-9, abs_tol=1e-12),
        "gap": all(isclose(gap[delta], due[delta], rel_tol=1e-9) for delta in _DELTAS),
    }


def _odds(mu: float) -> float:
    """The factor beyond which odds move, either way, with _CHANCE: N(+-mu^2 / 2, mu^2) of its log.

    By halving: the chance falls as the factor grows.
    """
    low, high = 0.0, mu**2 / 2 + 10 * mu
    for _ in range(200):
        middle = (low + high) / 2
        beyond = sum(erfc((middle + sign * mu**2 / 2) / mu / 2**0.5) / 2 for sign in (-1, 1))
        low, high = (middle, high) if beyond > _CHANCE else (low, middle)
    return exp(high) if high < 709.78 else inf


def _design(
    name: str,
    design: dict[str, Any],
    part: dict[str, Any],
    stated: list[dict[str, Any]],
    target: dict[str, Any],
) -> Iterator[Check]:
    """Whether a design holds, and is one against everybody that the report names."""
    _check_numbers(design)
    wrong = "; ".join(check(design))
    yield Check(f"{name}: the proof of its noise holds{wrong and f' ({wrong})'}", not wrong)
    against = design["adversaries"]
    same = [adversary["name"] for adversary in against] == [
        exposure["adversary"] for exposure in stated
    ]
    words = "; ".join(_in_words(adversary) for adversary in against)
    yield Check(f"{name}: the noise is made against {words}", same)
    window = Fraction(_number(part["end_ns"]) - _number(part["begin_ns"]), 10**9)
    window += 2 * target["uncertain_s"]
    proved = [_number(adversary["seconds"]) for adversary in against if "smoothness" in adversary]
    if proved:
        what = f"{name}: the noise is proved for its window of {float(window):.0f} s"
        yield Check(what, min(proved) >= window)
    slow = [
        adversary
        for adversary in against
        if adversary["place"] is None and adversary["path"] is None
    ]
    holds = bool(slow) and not any("smoothness" in adversary for adversary in slow)
    holds = holds and all(
        _number(adversary["speed"]) <= target["floor_m_s"]
        and _number(adversary["time_constant"]) <= target["time_constant_s"]
        and _number(adversary["steady"]) >= target["steady_s"] - target["uncertain_s"]
        for adversary in slow
    )
    yield Check(f"{name}: of your pace no more is assumed than was asked for", holds)


def _figures(
    name: str,
    part: dict[str, Any],
    target: dict[str, Any],
    proved: list[tuple[Fraction, Fraction]],
) -> Iterator[Check]:
    """Whether epsilon, and the metres of each adversary, are no better than is proved.

    proved: of each adversary the most it gains and knew before, 1 / m^2.
    """
    order = target["order"]
    unit = order / 2 * (target["radius_m"] * _SCALE) ** 2
    stated, epsilon = _number(part["epsilon"]), unit * max(loss for loss, _ in proved)
    what = f"{name}: epsilon {float(stated):.4g} at order {float(order):g} follows"
    yield Check(what, 0 < epsilon <= stated * _ROUNDING and _number(part["order"]) == order)
    if target["leave_m"] is None:
        asked = f"{name}: it is at most what was asked for, {float(target['epsilon']):g}"
        yield Check(asked, stated <= target["epsilon"] * _ROUNDING)
    yield Check(f"{name}: all adversaries are proved of", len(proved) == len(part["exposures"]))
    for exposure, (loss, known) in zip(part["exposures"], proved, strict=False):
        circle = _number(exposure["circle_68_m"])
        holds = unit * loss <= _number(exposure["epsilon"]) * _ROUNDING
        holds = holds and circle**2 * (loss + known) <= _CIRCLE * _ROUNDING
        before = exposure["circle_68_before_m"]
        due = float(_CIRCLE / known) ** 0.5 if known else inf
        known_before = inf if before is None else float(_number(before))
        holds = holds and isclose(known_before, due if due < _NO_IDEA else inf, rel_tol=1e-9)
        if target["leave_m"] is not None:
            holds = holds and target["leave_m"] <= circle * _ROUNDING
        yield Check(f"{name}: {exposure['adversary']} is left with {float(circle):.0f} m", holds)


def _left_by_cut(part: dict[str, Any], target: dict[str, Any]) -> Fraction:
    """Square metres per coordinate, or a little less, that a cut leaves of the place."""
    seconds = _number(part["cut_s"]) - target["uncertain_s"]
    sides = _number(part["sides"])
    if seconds <= 0:
        raise ValueError("a cut must be longer than what is uncertain")
    passed = sides == 2 and _number(part["end_ns"]) - _number(part["begin_ns"]) < _STAY
    floor = target["floor_middle_m_s" if passed else "floor_m_s"]
    stated = {"speed": floor, "time_constant": target["time_constant_s"]}
    return max(ExactMovement(stated, sides).given_path(seconds, above=False), Fraction(0))


def _known(adversary: dict[str, Any], sides: int) -> Fraction:
    """The most that an adversary knows without the release, 1 / m^2."""
    movement, steady = ExactMovement(adversary, sides), _number(adversary["steady"])
    if adversary["path"] is not None:
        return 1 / movement.given_path(_number(adversary["path"]) - steady, above=False)
    if adversary["place"] is not None:
        accuracy = Fraction(adversary["accuracy"])
        return 1 / movement.given_place(_number(adversary["place"]) - steady, accuracy, above=False)
    return movement.known


def _in_words(adversary: dict[str, Any]) -> str:
    """An adversary as its proof has it."""
    knows = ""
    if adversary["place"] is not None:
        knows = f" who knows one place from {adversary['place']} s on to {adversary['accuracy']} m"
    if adversary["path"] is not None:
        knows = f" who knows the path beyond {adversary['path']} s"
    if "smoothness" in adversary:
        mean = "a mean, not known" if adversary["levels"] else "a known mean"
        shape = f"Matern {adversary['smoothness']}/2, {adversary['std']} m around {mean}"
        return f"somebody{knows} ({shape})"
    return f"somebody{knows} (at least {adversary['speed']} m/s beyond {adversary['steady']} s)"


def _number(value: Any) -> Any:
    """A number of JSON as a fraction; None as it is. Raises TypeError for others."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a number must be a number")
    return Fraction(value)


def _check_numbers(value: Any, name: str = "") -> None:
    """Raise TypeError for a design with words in place of numbers: fractions read these, too."""
    if isinstance(value, dict):
        for key, each in value.items():
            _check_numbers(each, key)
    elif isinstance(value, list):
        for each in value:
            _check_numbers(each, name)
    elif name not in _WORDS or not isinstance(value, str):
        _number(value)
