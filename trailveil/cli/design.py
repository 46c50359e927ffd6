"""`trailveil design`: what would it cost? Noise for secrets of a series, with no recording."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from trailveil.cli.certifying import certify_option, check_certify
from trailveil.cli.kernel_options import KERNELS, kernel_from
from trailveil.cli.numbers import numbers_in
from trailveil.cli.parameters import ABOVE_ONE, LARGEST, NOT_NEGATIVE, POINTS, POSITIVE, OneOf
from trailveil.designer import LARGEST_GAP, Certificate, Kind
from trailveil.designer import design as design_mechanism
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.certified.certificate import certify
from trailveil.privacy.guarantee import Guarantee, loss_bound_for, paper_bound
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.report.certificate import certified, sentence

EXAMPLE = (
    "Example: trailveil design --points 50 --kernel rbf --length-scale 6.1 "
    "--secret 24 --budget 0.02"
)


_ADVERSARIES = {
    "plain": (PLAIN,),
    "robust": (PLAIN, PLAIN & Adversary.knows_point(), PLAIN & Adversary.knows_path()),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A secret as it was asked for, with its own radius and epsilon where it has them."""

    indices: tuple[int, ...]
    secret: Secret
    radius: float | None
    epsilon: float | None


@click.command(epilog=EXAMPLE)
@click.option(
    "--points",
    type=POINTS,
    help="Number of points, one unit of time apart.",
)
@click.option("--times", type=click.Path(path_type=Path), help="File of times, one number a line.")
@click.option("--kernel", type=OneOf(KERNELS), required=True, help="How the series varies.")
@click.option(
    "--length-scale", type=POSITIVE, required=True, help="Or time constant (integrated-ou)."
)
@click.option("--period", type=POSITIVE, help="Of the periodic kernel.")
@click.option(
    "--std",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="Of the series; of its velocity for integrated-ou.",
)
@click.option(
    "--noise-std",
    type=NOT_NEGATIVE,
    default=0.0,
    show_default=True,
    help="Measurement noise of the recording.",
)
@click.option(
    "--level-std",
    type=NOT_NEGATIVE,
    default=0.0,
    show_default=True,
    help="Of an unknown common level.",
)
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="I[,J...][@RADIUS/EPSILON]",
    help="Recorded values, by index from 0; several together are one compound secret.",
)
@click.option(
    "--mean",
    "means",
    multiple=True,
    metavar="A:B[@RADIUS/EPSILON]",
    help="The mean of the values A to B, both included.",
)
@click.option(
    "--difference",
    "differences",
    multiple=True,
    metavar="I:J[@RADIUS/EPSILON]",
    help="The difference of two values.",
)
@click.option("--everywhere", is_flag=True, help="Every value at once.")
@click.option(
    "--budget",
    type=POSITIVE,
    metavar="O_T",
    help="Noise variance per point: gives the least loss for it.",
)
@click.option("--epsilon", type=POSITIVE, help="Privacy loss: gives the least noise for it.")
@click.option(
    "--radius",
    type=POSITIVE,
    default=1.0,
    show_default=True,
    help="Of what must not be told apart.",
)
@click.option(
    "--order",
    type=ABOVE_ONE,
    default=5.0,
    show_default=True,
    help="Renyi order.",
)
@click.option(
    "--mechanism",
    type=click.Choice([kind.value for kind in Kind]),
    default="optimal",
    show_default=True,
)
@click.option(
    "--adversary",
    type=click.Choice(["plain", "robust"]),
    default="plain",
    show_default=True,
    help="robust: also any one value 60 or more away, and all of them 300 or more away, to 10.",
)
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    help="What noise costs at each point, one positive number a line.",
)
@click.option(
    "--floor",
    type=NOT_NEGATIVE,
    default=0.0,
    metavar="STD",
    help="Independent noise that must be at every point.",
)
@certify_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def design(**options: Any) -> None:
    """Design the noise for secrets of a series of which only times and kernel are known.

    Give either --budget (the least privacy loss for that much noise) or --epsilon (the least noise
    for that privacy loss). Indices count from 0.
    """
    _not_both(options)
    check_certify(certify=options["certify"])
    times = _times(options)
    prior = Prior(_kernel(options, times), times)
    asked = None if options["everywhere"] else _asked(options, prior)
    _one_target(options, asked)
    started = time.perf_counter()
    mechanism, certificate = design_mechanism(
        prior,
        None if asked is None else [part.secret for part in asked],
        budget=None if options["budget"] is None else options["budget"] * prior.times.size,
        bounds=None if options["budget"] is not None else _bounds(options, asked),
        mechanism=options["mechanism"],
        floor=options["floor"] ** 2,
        adversaries=_ADVERSARIES[options["adversary"]],
        weights=numbers_in(options["weights"], "--weights"),
    )
    seconds = time.perf_counter() - started
    described = _described(options, prior, asked, mechanism, certificate, seconds)
    if options["certify"]:
        _certify(options, described, prior, asked, mechanism, certificate)
    click.echo(json.dumps(described) if options["as_json"] else _text(described))


def _not_both(options: dict[str, Any]) -> None:
    if options["everywhere"] and (options["secrets"] or options["means"] or options["differences"]):
        raise click.UsageError("give secrets or --everywhere, not both")


def _one_target(options: dict[str, Any], asked: list[Asked] | None) -> None:
    """Either a budget, or an epsilon for each secret."""
    some = options["epsilon"] is not None or any(part.epsilon is not None for part in asked or [])
    if options["budget"] is not None and some:
        raise click.UsageError("give either --budget or --epsilon (or @RADIUS/EPSILON), not both")
    if options["budget"] is None and options["epsilon"] is None and not _all_own(asked):
        raise click.UsageError("give --budget, or --epsilon for every secret without its own")


def _kernel(options: dict[str, Any], times: FloatArray) -> Kernel:
    return kernel_from(
        options["kernel"],
        options["length_scale"],
        period=options["period"],
        std=options["std"],
        noise_std=options["noise_std"],
        level_std=options["level_std"],
        origin=float(times[0]) if times.size else 0.0,
    )


def _times(options: dict[str, Any]) -> FloatArray:
    if (options["points"] is None) == (options["times"] is None):
        raise click.UsageError("give either --points or --times")
    if options["times"] is None:
        return np.arange(options["points"], dtype=np.float64)
    times = numbers_in(options["times"], "--times")
    return np.empty(0) if times is None else times


def _asked(options: dict[str, Any], prior: Prior) -> list[Asked]:
    parts = [_compound(text, prior) for text in options["secrets"]]
    parts += [_pair(text, prior, "mean") for text in options["means"]]
    parts += [_pair(text, prior, "difference") for text in options["differences"]]
    if not parts:
        raise click.UsageError("give a --secret, a --mean, a --difference or --everywhere")
    return parts


def _compound(text: str, prior: Prior) -> Asked:
    body, radius, epsilon = _own(text)
    indices = _indices(body.split(","), text, prior)
    times = prior.times[list(indices)]
    secret = (
        Secret.at(times[0], recorded=True)
        if len(indices) == 1
        else Secret.at(times.tolist(), recorded=True)
    )
    return Asked(indices, secret, radius, epsilon)


def _pair(text: str, prior: Prior, kind: str) -> Asked:
    body, radius, epsilon = _own(text)
    ends = _indices(body.split(":"), text, prior)
    if len(ends) != 2:  # a pair
        raise InvalidValue(f"--{kind} must be two indices A:B, got {text}")
    first, last = ends
    if kind == "difference":
        secret = Secret.difference(prior.times[first], prior.times[last], recorded=True)
        return Asked(ends, secret, radius, epsilon)
    if first > last:
        raise InvalidValue(f"--mean must be A:B with A before B, got {text}")
    inside = tuple(range(first, last + 1))
    return Asked(inside, Secret.mean(prior.times[first : last + 1], recorded=True), radius, epsilon)


def _own(text: str) -> tuple[str, float | None, float | None]:
    """The secret, its own radius and its own epsilon, of SECRET[@RADIUS/EPSILON]."""
    body, at, bound = text.partition("@")
    if not at:
        return body, None, None
    radius, slash, epsilon = bound.partition("/")
    try:
        numbers = float(radius), float(epsilon)
    except ValueError as error:
        raise InvalidValue(f"a secret's own figures must be @RADIUS/EPSILON, got {text}") from error
    if not slash or not all(1 / LARGEST <= number <= LARGEST for number in numbers):
        raise InvalidValue(
            f"a secret's own radius and epsilon must be positive, and at most {LARGEST:g}, got "
            f"{text}"
        )
    return body, *numbers


def _indices(words: list[str], text: str, prior: Prior) -> tuple[int, ...]:
    try:
        indices = tuple(int(word) for word in words)
    except ValueError as error:
        raise InvalidValue(f"indices must be whole numbers, got {text}") from error
    if any(not 0 <= index < prior.times.size for index in indices):
        raise InvalidValue(f"indices must be from 0 to {prior.times.size - 1}, got {text}")
    if len(set(indices)) != len(indices):
        raise InvalidValue(f"indices of one secret must differ, got {text}")
    return indices


def _all_own(asked: list[Asked] | None) -> bool:
    return asked is not None and all(part.epsilon is not None for part in asked)


def _bounds(options: dict[str, Any], asked: list[Asked] | None) -> list[float]:
    pairs = [(part.epsilon, part.radius) for part in asked] if asked else [(None, None)]
    return [
        loss_bound_for(epsilon or options["epsilon"], radius or options["radius"], options["order"])
        for epsilon, radius in pairs
    ]


def _described(
    options: dict[str, Any],
    prior: Prior,
    asked: Sequence[Asked] | None,
    mechanism: Mechanism,
    certificate: Certificate,
    seconds: float,
) -> dict[str, Any]:
    """What the contract of the command line prints, as one object."""
    everywhere = [((index,), None) for index in range(prior.times.size)]
    named = [(part.indices, part.radius) for part in asked] if asked else everywhere
    secrets = []
    for outcome, (indices, own_radius) in zip(certificate.outcomes, named, strict=True):
        radius = own_radius or options["radius"]
        tight = Guarantee(radius * float(np.sqrt(outcome.effective)), options["order"])
        paper = options["order"] / 2 * paper_bound([outcome.loss.matrix], radius)
        secrets.append(
            {
                "indices": list(indices),
                "loss": outcome.loss.largest,
                "mu": tight.mu,
                "epsilon": tight.epsilon,
                "epsilon_paper": paper,
                "interval": 2 * outcome.deviation,
                "left": {exposure.adversary: exposure.least for exposure in outcome.exposures},
            }
        )
    return {
        "mechanism": options["mechanism"],
        "points": int(prior.times.size),
        "noise_trace": mechanism.noise_trace,
        "rms": float(np.sqrt(mechanism.noise_trace / prior.times.size)),
        "max_std": mechanism.max_std,
        "secrets": secrets,
        "gap": certificate.gap,
        "seconds": seconds,
        "beyond_double_precision": mechanism.refinement is not None,
    }


def _certify(
    options: dict[str, Any],
    described: dict[str, Any],
    prior: Prior,
    asked: Sequence[Asked] | None,
    mechanism: Mechanism,
    certificate: Certificate,
) -> None:
    """Add what is certified of each secret, and of all."""
    mus, radius = [secret["mu"] for secret in described["secrets"]], options["radius"]
    radii = [part.radius or radius for part in asked] if asked else [radius] * len(mus)
    whole = certify(
        prior,
        [outcome.secret for outcome in certificate.outcomes],
        mechanism,
        _ADVERSARIES[options["adversary"]],
        [Guarantee(mu, options["order"]) for mu in mus],
        radii,
        together=options["everywhere"],
    )
    for secret, certificate_of_part in zip(described["secrets"], whole, strict=True):
        secret["epsilon_certified"] = certificate_of_part.epsilon
    described["certificate"] = certified(whole)


def _text(described: dict[str, Any]) -> str:
    lines = [
        f"{described['mechanism']} mechanism for {described['points']} points, "
        f"designed in {described['seconds']:.3g} s",
        f"  noise: rms {described['rms']:.6g}, largest standard deviation "
        f"{described['max_std']:.6g}, "
        f"trace {described['noise_trace']:.6g}",
    ]
    if described["gap"] is not None:
        proved = "" if described["gap"] <= LARGEST_GAP else "not proved optimal: "
        lines.append(
            f"  {proved}within {described['gap']:.1e} (relative) of what any mechanism can do"
        )
    shown = described["secrets"][:10]
    for secret in shown:
        indices = ",".join(map(str, secret["indices"][:6]))
        lines.append(
            f"  secret {indices}: epsilon {secret['epsilon']:.6g} "
            f"(the paper's bound {secret['epsilon_paper']:.6g}), loss {secret['loss']:.6g}, "
            f"2-sigma interval {secret['interval']:.6g}"
        )
        lines += [f"    left to who {who}: {std:.6g}" for who, std in secret["left"].items()]
    if len(described["secrets"]) > len(shown):
        lines.append(
            f"  and {len(described['secrets']) - len(shown)} more secrets (--json lists all)"
        )
    if "certificate" in described:
        lines.append(f"  {sentence(described['certificate'])}")
    if described["beyond_double_precision"]:
        lines.append(
            "  note: this prior has no measurement noise; rounding the noise to double precision "
            "would undo it (--noise-std or --floor states some)"
        )
    return "\n".join(lines)
