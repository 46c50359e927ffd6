"""What attacks made of a release, as one object and in words: distances, never places."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trailveil.checks.attacks.drawn import Drawn
from trailveil.checks.attacks.hypotheses import Audited
from trailveil.checks.attacks.suite import AttackOutcome
from trailveil.checks.attacks.trial import Circle68, Verdict
from trailveil.errors import said

_HEAD = (
    "attack",
    "who",
    "promised",
    "simulated (95 %)",
    "this recording (95 %)",
    "this file",
    "verdict",
)
_EXPLAINED = (
    "Promised: the 68 % circle around the true place that somebody is left with. Simulated: the "
    "circle that the attack comes to on recordings that move as the prior says. This recording: "
    "the same over fresh draws of the noise. This file: how far off the released file leaves it, "
    "once; no average of anything."
)


def attacks_record(
    outcomes: Sequence[AttackOutcome], audits: Sequence[Audited], noise: Sequence[Drawn]
) -> dict[str, Any]:
    """All of it as an object of JSON: metres, and mu as it was claimed and as it was proved.

    noise: whether that of the file is as designed, around each part; none where that is not known.
    """
    return {
        "beaten": failed(outcomes, audits),
        "attacks": [_outcome(outcome) for outcome in outcomes],
        "hypotheses": [_audited(audit) for audit in audits],
        "noise": [_drawn(draw) for draw in noise],
    }


def failed(outcomes: Sequence[AttackOutcome], audits: Sequence[Audited]) -> int:
    """How many attacks beat what was promised, and how many claims of mu were proved wrong."""
    wrong = (Verdict.BEATEN, Verdict.CLOSER)
    return sum(outcome.verdict in wrong for outcome in outcomes) + sum(
        audit.caught for audit in audits
    )


def attacks_text(tried: dict[str, Any]) -> str:
    """The object of `attacks_record` as a table, and what its columns mean."""
    lines = []
    parts = sorted({attack["part"] for attack in tried["attacks"]})
    for part in parts:
        rows = [_HEAD, *(_row(attack) for attack in tried["attacks"] if attack["part"] == part)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
        lines += [f"Attacks on protected part {part}:"]
        lines += [
            "  "
            + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
    lines += [_EXPLAINED] if parts else []
    lines += [_told(claim) for claim in tried["hypotheses"]]
    lines += [_of_noise(noise) for noise in tried["noise"]]
    return "\n".join(lines)


def _outcome(outcome: AttackOutcome) -> dict[str, Any]:
    fields = asdict(outcome)
    return fields | {"part": outcome.part + 1, "verdict": outcome.verdict.value}


def _audited(audited: Audited) -> dict[str, Any]:
    return {
        "part": audited.part + 1,
        "adversary": audited.adversary,
        "way": audited.way,
        "metres": audited.metres,
        "mu_claimed": audited.claimed,
        "mu_least": audited.distinction.least,
        "mu_likely": audited.distinction.likely,
        "confidence": audited.distinction.confidence,
        "draws": audited.distinction.draws,
        "caught": audited.caught,
    }


def _drawn(drawn: Drawn) -> dict[str, Any]:
    fields = {"part": drawn.part + 1, "as_designed": drawn.as_designed}
    return fields | {"off_m": drawn.off, "chance": drawn.chance}


def _of_noise(noise: dict[str, Any]) -> str:
    if noise["as_designed"]:
        return (
            f"The noise of this file is as designed around part {noise['part']}, as far as one "
            f"draw tells (chance {said(noise['chance'], 2)})."
        )
    return (
        f"The noise of this file is NOT that of the design around part {noise['part']}: fixes are "
        f"up to {said(noise['off_m'], 2)} m from where it could have put them, and its size has a "
        f"chance of {said(noise['chance'], 1)}. What is promised above is not promised of this "
        "file."
    )


def _row(attack: dict[str, Any]) -> tuple[str, ...]:
    return (
        attack["attack"],
        attack["adversary"],
        _metres(attack["promised"]),
        _circle(attack["simulated"]),
        _circle(attack["recorded"]),
        _metres(attack["file"]),
        attack["verdict"],
    )


def _told(claim: dict[str, Any]) -> str:
    verdict = "PROVED WRONG" if claim["caught"] else "holds"
    return (
        f"Two places {claim['metres']:.0f} m apart ({claim['way']}; part {claim['part']}; "
        f"{claim['adversary']}), {claim['draws']} releases of each told apart: mu is at least "
        f"{claim['mu_least']:.2f}, likely {claim['mu_likely']:.2f}, claimed "
        f"{claim['mu_claimed']:.2f}: {verdict}"
    )


def _circle(circle: dict[str, Any] | Circle68 | None) -> str:
    if circle is None:
        return "-"
    values = circle if isinstance(circle, dict) else asdict(circle)
    return f"{values['radius']:.0f} m ({values['low']:.0f} to {values['high']:.0f})"


def _metres(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} m"
