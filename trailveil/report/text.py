"""The report of a release in plain words. It holds no true position and no drawn noise."""

from typing import Any

from trailveil.report.certificate import certificate_lines
from trailveil.report.ledger import ledger_lines, place_lines
from trailveil.report.parts import (
    Line,
    duration,
    ending,
    laid_out,
    listed,
    paragraph,
    times_in_words,
)
from trailveil.wording import said


def text(found: dict[str, Any]) -> str:
    """The object of `record` as lines."""
    return laid_out(in_sentences(found))


def in_sentences(found: dict[str, Any]) -> list[Line]:
    """The object of `record` in titles and sentences; the first is what it is about."""
    return [
        f"Protected: {found['output']}",
        *listed("", found["recording"]["cleaning_in_words"]),
        *promise(found),
        *certificate_lines(found),
        *_left_to_learn(found),
        *place_lines(found.get("places", [])),
        *ledger_lines(found.get("ledger")),
        *_cost(found["mechanism"], found["times"]),
        *_prices(found.get("prices", []), found["target"]["metres_a_minute"]),
        *ending(found),
    ]


def _left_to_learn(found: dict[str, Any]) -> list[Line]:
    if "everywhere" in found:
        lines = [_everywhere(one) for one in found["everywhere"]["left"]]
        return ["", "What is left to learn, where most can be", *listed("- ", lines)]
    return _secrets(found) if found["private"] else _worst(found)


def _everywhere(one: dict[str, Any]) -> str:
    """What one kind of adversary is left with."""
    before = one["circle_68_before_m"]
    known = "any idea of it" if before is None else f"and knew it to {_metres(before)} before"
    without = "without " if before is None else ""
    moving = f"somebody who moves at {said(one['speed_m_s'])} m/s"
    if one["stay_s"] > 0:
        moving += f" and is seen to stand still for {duration(one['stay_s'])}"
    return (
        f"who {one['knows']}, {without}{known}: the place to {_metres(one['circle_68_m'])} "
        f"(epsilon {said(one['epsilon'], 2)}), of {moving}"
    )


def promise(found: dict[str, Any]) -> list[Line]:
    """What is promised, and against whom, under a title."""
    target, worst = found["target"], found["worst"]
    right = 100 * (0.5 + worst["advantage"] / 2)
    when = "any time of the recording" if "everywhere" in found else "a protected time"
    asked = f"epsilon {said(target['epsilon'])} (Renyi order {said(target['order'])})"
    if target["ways"] is not None:
        ways = f"{target['ways']} way{'s' * (target['ways'] != 1)}"
        when = f"a place with a name, visited however often by up to {ways} to and from it"
    if target["leave_m"] is not None:
        return _promise_of_metres(found, right)
    return [
        "",
        "The promise",
        *paragraph(
            f"Of two places up to {said(target['radius_m'])} m apart, nobody of those below can "
            "tell "
            f"well which one it was at {when}: {asked}. What they thought the odds were, the "
            f"release changes by less than a factor of {said(worst['odds_factor_99'], 2)} in 99 of "
            "100 "
            f"cases; their best guess between the two is right {right:.0f} times in 100, where "
            "tossing a coin is right 50 "
            "times. Cases are over the ways people move and the noise drawn. Against who"
        ),
        *listed("- ", found["adversaries"]),
    ]


def _promise_of_metres(found: dict[str, Any], right: float) -> list[Line]:
    """What holds where metres were asked for, and the epsilon that comes of it."""
    target, worst = found["target"], found["worst"]
    return [
        "",
        "The promise",
        *paragraph(
            f"Nobody of those below can narrow a protected place down to less than "
            f"{said(target['leave_m'])} m around a point and be right with that in more than 68 of "
            "100 "
            f"cases. That makes epsilon {said(worst['epsilon'], 2)} (Renyi order "
            f"{said(target['order'])}) "
            f"for two places up to {said(target['radius_m'])} m apart: their best guess between "
            "the "
            f"two is right {right:.0f} times in 100, where tossing a coin is right 50 times. Cases "
            "are over the ways people move and the noise drawn. Against who"
        ),
        *listed("- ", found["adversaries"]),
    ]


def _secrets(found: dict[str, Any]) -> list[Line]:
    if not found["secrets"]:
        return []
    lines: list[Line] = [
        "",
        "What is protected, and what is left to learn (these times are for you alone)",
    ]
    for number, secret in enumerate(found["secrets"], start=1):
        lines += listed(f"{number}. ", [_title(secret)])
        lines += listed("   - ", _left(secret, found["target"]["epsilon"]))
    return lines


def _worst(found: dict[str, Any]) -> list[Line]:
    left = _circle(found["worst"]["circle_68_m"])
    return ["", "What is left to learn", *listed("", [f"At each protected time, {left}."])]


def _title(secret: dict[str, Any]) -> str:
    stay = secret["kind"] == "stay"
    kind = "one place throughout a stay" if stay else "the place at one time"
    utc, local = (
        f"{secret[f'begin_{zone}']} to {secret[f'end_{zone}']}" if stay else secret[f"begin_{zone}"]
        for zone in ("utc", "local")
    )
    when = utc if utc == local else f"{utc} ({local})"
    held = f", {secret['withheld']} of them withheld" if secret["withheld"] else ""
    return f"{secret['label']}: {kind}, {when}, {_count(secret['fixes'])}{held}"


def _left(secret: dict[str, Any], target: float) -> list[str]:
    better = f" (epsilon {said(secret['epsilon'], 2)})" if secret["epsilon"] < 0.99 * target else ""
    lines = [f"{_circle(secret['circle_68_m'])}{better}"]
    lines += [_of_adversary(one) for one in secret["left"][1:]]
    after = [
        f"{said(one['seconds_away'] / 60)} min away {_metres(one['circle_68_m'])}"
        for one in secret["after_learning_a_true_place"]
    ]
    if after:
        lines.append(f"who learns one true position besides: {', '.join(after)}")
    if (still := secret["circle_68_if_seen_still_m"]) is not None:
        lines.append(f"who sees that the person stood still, to {_metres(still)}")
    return lines


def _of_adversary(one: dict[str, Any]) -> str:
    """What one adversary who knows more is left with."""
    before = one["circle_68_before_m"]
    knew = "" if before is None else f", who knew it to {_metres(before)} before"
    left = "nothing of it" if one["circle_68_m"] is None else f"to {_metres(one['circle_68_m'])}"
    return f"who {one['adversary']}{knew}: {left} (epsilon {said(one['epsilon'], 2)})"


def _prices(prices: list[dict[str, Any]], rate: float) -> list[Line]:
    """What the ways to meet the target cost, side by side."""
    if not prices:
        return []
    names = {"noise": "noise alone", "withholding": "withholding alone", "both": "both"}
    lines = [
        f"{names[one['kind']]}: {one['minutes']:,.0f} min"
        + (
            f" ({one['minutes_withheld']:,.0f} withheld, {one['minutes_for_noise']:,.0f} for noise;"
            f" {duration(one['withheld_s_around'] or 0.0)} around each part)"
            if one["kind"] == "both"
            else ""
        )
        for one in prices
    ]
    missing = [name for kind, name in names.items() if kind not in {p["kind"] for p in prices}]
    lines += [f"{name}: cannot reach the target" for name in missing]
    return [
        "",
        f"What there was to choose from (a minute moved by {said(rate)} m counts as one withheld)",
        *listed("- ", lines),
    ]


def _circle(radius: float | None) -> str:
    if radius is None:
        return "who has no idea of the place learns nothing at all"
    return (
        f"who has no idea of the place can narrow it down to {_metres(radius)} around a point, and "
        "is right with that in 68 of 100 cases"
    )


def _cost(noise: dict[str, Any], times: dict[str, Any]) -> list[Line]:
    counts = f"{_count(noise['released_fixes'])} released, {noise['withheld_fixes']} withheld."
    moved = ""
    if noise["rms_m"] is not None:
        moved = (
            f" The track is moved by {_metres(noise['rms_m'])} on average over it (root mean "
            f"square), by {_metres(noise['largest_rms_m'])} where most, and there by no more than "
            f"{_metres(noise['largest_99_m'])} in 99 of 100 draws."
        )
    return ["", "What it costs", *paragraph(f"{counts}{moved}{times_in_words(times)}")]


def _count(number: int) -> str:
    return f"{number} fix" if number == 1 else f"{number} fixes"


def _metres(value: float) -> str:
    return f"{value / 1000:,.1f} km" if value >= 10_000 else f"{value:,.0f} m"
