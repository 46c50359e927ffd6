"""The report of a release in plain words. It holds no true position and no drawn noise."""

from typing import Any


def text(found: dict[str, Any]) -> str:
    """The object of `record` as lines."""
    return "\n".join([*_head(found), *_secrets(found), *_cost(found), *_limits(found)])


def _head(found: dict[str, Any]) -> list[str]:
    target = found["target"]
    return [
        f"Protected: {found['output']}",
        *(f"  {sentence}" for sentence in found["recording"]["cleaning_in_words"]),
        f"  Promise: two places within {target['radius_m']:g} m of each other cannot be told apart "
        "at a "
        "protected time,",
        f"  up to epsilon {target['epsilon']:g} (Renyi order {target['order']:g}).",
        "  Against whom:",
        *(f"    - who {who}" for who in found["adversaries"]),
    ]


def _secrets(found: dict[str, Any]) -> list[str]:
    lines = ["", "What is protected, and what is left to learn"]
    for number, secret in enumerate(found["secrets"], start=1):
        lines += [f"  {number}. {_title(secret)}", *(f"     {line}" for line in _meaning(secret))]
    return lines


def _title(secret: dict[str, Any]) -> str:
    kind = "one place throughout a stay" if secret["kind"] == "stay" else "the place at one time"
    if "label" not in secret:
        return kind
    when = f"{secret['begin_utc']} to {secret['end_utc']}"
    local = f"{secret['begin_local']} to {secret['end_local']}"
    if secret["begin_utc"] == secret["end_utc"]:
        when, local = secret["begin_utc"], secret["begin_local"]
    same = secret["begin_utc"] == secret["begin_local"]
    shown = when if same else f"{when} ({local})"
    held = f", {secret['withheld']} of them withheld" if secret["withheld"] else ""
    return f"{secret['label']}: {kind}, {shown}, {_count(secret['fixes'], 'fix', 'fixes')}{held}"


def _meaning(secret: dict[str, Any]) -> list[str]:
    left = secret["circle_68_m"]
    circle = "nothing at all is learnt"
    if left is not None:
        circle = (
            f"a circle of {_metres(left)} holds the place with 68 % chance, no smaller one does"
        )
    lines = [
        f"epsilon {secret['epsilon']:.4g}: with 99 % chance the odds between two such places move "
        "by less "
        f"than a factor of {secret['odds_factor_99']:.3g};",
        f"the best guess between them is right {100 * (0.5 + secret['advantage'] / 2):.0f} times "
        "in 100, "
        "not 50",
        f"to somebody with no idea of the place: {circle}",
    ]
    after = secret["after_learning_a_true_place"]
    if after:
        parts = [
            f"{_minutes(one['seconds_away'])} away {_metres(one['circle_68_m'])}" for one in after
        ]
        lines.append(
            f"but who learns one true position is left with a circle of: {', '.join(parts)}"
        )
    return lines


def _cost(found: dict[str, Any]) -> list[str]:
    noise = found["mechanism"]
    held = noise["withheld_fixes"]
    return [
        "",
        "What it cost",
        f"  {_count(noise['released_fixes'], 'fix', 'fixes')} released, {held} withheld",
        f"  moved by {_metres(noise['rms_m'])} rms over the trace, "
        f"{_metres(noise['largest_rms_m'])} rms "
        "where most,",
        f"  there at most {_metres(noise['largest_99_m'])} in 99 of 100 draws",
    ]


def _limits(found: dict[str, Any]) -> list[str]:
    return [
        "",
        "What is not protected",
        *(f"  - {line}" for line in found["not_protected"]),
        "",
        "Before you publish",
        *(f"  ! {line}" for line in found["warnings"]),
    ]


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _metres(value: float) -> str:
    return f"{value / 1000:,.1f} km" if value >= 10_000 else f"{value:,.0f} m"


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} min"
