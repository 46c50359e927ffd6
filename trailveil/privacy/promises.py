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
    wanted = 0 if method == "cut" else len(parts)
    yield Check("there is a design for each part with noise", len(designs) == wanted)
    if report["places"]:
        yield Check("no named places (what is promised of them has no proof here)", False)
    for number, part in enumerate(parts, 1):
        name = f"part {number}"
        target = {key: _number(report["target"][key]) for key in _STATED}
        proved = []
        if method != "noise":
            left = _left_by_cut(part, target)
            yield Check(
                f"{name}: the cut leaves {float(left) ** 0.5:.0f} m per coordinate", left > 0
            )
            proved.append((1 / left, Fraction(0)))
        if method != "cut":
            design = designs[number - 1]
            yield from _design(name, design, part, part["exposures"][len(proved) :], target)
            proved += [
                (_number(design["bound"]), _known(one, design["sides"]))
                for one in design["adversaries"]
            ]
        yield from _figures(name, part, target, proved)
        shown = all(_is_shown(part[f"{end}_ns"], part[f"{end}_utc"]) for end in ("begin", "end"))
        yield Check(f"{name}: {part['begin_utc']} to {part['end_utc']} is where it lies", shown)
    yield from _worst(parts, report["worst"])


def _is_shown(moment: int, words: str) -> bool:
    """Whether nanoseconds since 1970 are in the second that a report names."""
    second = datetime.strptime(words, "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=UTC)
    return (second - datetime.fromtimestamp(0, UTC)) // timedelta(seconds=1) == moment // 10**9


def _worst(parts: list[dict[str, Any]], worst: dict[str, Any]) -> Iterator[Check]:
    """Whether the figures of the whole are those of its worst part, and follow from mu."""
    stated = _number(worst["epsilon"])
    most = max((_number(part["epsilon"]) for part in parts), default=Fraction(0))
    yield Check(f"the worst epsilon is {float(stated):.4g}", most <= stated * _ROUNDING)
    named = [("the whole", worst), *((f"part {i}", part) for i, part in enumerate(parts, 1))]
    for name, one in named:
        mu, order, epsilon = (_number(one[key]) for key in ("mu", "order", "epsilon"))
        follows = abs(order / 2 * mu**2 - epsilon) <= epsilon / 10**9
        yield Check(f"{name}: mu gives its epsilon", follows)
    holds = bool(parts)
    for part in parts:
        strangers = [one for one in part["exposures"] if one["circle_68_before_m"] is None]
        least = min(_number(one["circle_68_m"]) for one in strangers)
        holds = holds and _number(part["circle_68_m"]) <= least * _ROUNDING
    circles = [_number(part["circle_68_m"]) for part in parts]
    holds = holds and _number(worst["circle_68_m"]) <= max(circles) * _ROUNDING
    yield Check("the circles of the parts and of the whole are those of strangers", holds)


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
    same = [one["name"] for one in against] == [one["adversary"] for one in stated]
    words = "; ".join(_in_words(one) for one in against)
    yield Check(f"{name}: the noise is made against {words}", same)
    window = Fraction(_number(part["end_ns"]) - _number(part["begin_ns"]), 10**9)
    window += 2 * target["uncertain_s"]
    proved = [_number(one["seconds"]) for one in against if "smoothness" in one]
    if proved:
        what = f"{name}: the noise is proved for its window of {float(window):.0f} s"
        yield Check(what, min(proved) >= window)
    slow = [one for one in against if one["place"] is None and one["path"] is None]
    holds = bool(slow) and not any("smoothness" in one for one in slow)
    holds = holds and all(
        _number(one["speed"]) <= target["floor_m_s"]
        and _number(one["time_constant"]) <= target["time_constant_s"]
        and _number(one["steady"]) >= target["steady_s"] - target["uncertain_s"]
        for one in slow
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
    for one, (loss, known) in zip(part["exposures"], proved, strict=False):
        circle = _number(one["circle_68_m"])
        holds = unit * loss <= _number(one["epsilon"]) * _ROUNDING
        holds = holds and circle**2 * (loss + known) <= _CIRCLE * _ROUNDING
        if target["leave_m"] is not None:
            holds = holds and target["leave_m"] <= circle * _ROUNDING
        yield Check(f"{name}: {one['adversary']} is left with {float(circle):.0f} m", holds)


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


def _known(one: dict[str, Any], sides: int) -> Fraction:
    """The most that an adversary knows without the release, 1 / m^2."""
    movement, steady = ExactMovement(one, sides), _number(one["steady"])
    if one["path"] is not None:
        return 1 / movement.given_path(_number(one["path"]) - steady, above=False)
    if one["place"] is not None:
        accuracy = Fraction(one["accuracy"])
        return 1 / movement.given_place(_number(one["place"]) - steady, accuracy, above=False)
    return movement.known


def _in_words(one: dict[str, Any]) -> str:
    """An adversary as its proof has it."""
    knows = ""
    if one["place"] is not None:
        knows = f" who knows one place from {one['place']} s on to {one['accuracy']} m"
    if one["path"] is not None:
        knows = f" who knows the path beyond {one['path']} s"
    if "smoothness" in one:
        mean = "a mean, not known" if one["levels"] else "a known mean"
        return f"somebody{knows} (Matern {one['smoothness']}/2, {one['std']} m around {mean})"
    return f"somebody{knows} (at least {one['speed']} m/s beyond {one['steady']} s)"


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
