"""`trailveil design`: what would it cost? Noise for secrets of a series, with no recording."""

import json
import time
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from trailveil.cli.parameters import ABOVE_ONE, NOT_NEGATIVE, POINTS, POSITIVE, OneOf
from trailveil.cli.targets import (
    KERNELS,
    Asked,
    asked_of,
    bounds_of,
    kernel_of,
    numbers_in,
    times_of,
)
from trailveil.designer import LARGEST_GAP, PAPER_FACTOR, PAPERS, Certificate, Kind
from trailveil.designer import design as design_mechanism
from trailveil.errors import said
from trailveil.gp.balls import load_flint
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.guarantee import Guarantee, paper_bound
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior

if TYPE_CHECKING:
    from trailveil.privacy.certified.certificate import BallCertificate

EXAMPLE = (
    "Example: trailveil design --points 50 --kernel rbf --length-scale 6.1 "
    "--secret 24 --budget 0.02"
)


_ADVERSARIES = {
    "plain": (PLAIN,),
    "robust": (PLAIN, PLAIN & Adversary.knows_point(), PLAIN & Adversary.knows_path()),
}


@click.command(epilog=EXAMPLE)
@click.option("--points", type=POINTS, help="Number of points, one unit of time apart.")
@click.option("--times", type=click.Path(path_type=Path), help="File of times, one number a line.")
@click.option("--kernel", type=OneOf(KERNELS), required=True, help="How the series varies.")
@click.option(
    "--length-scale", type=POSITIVE, required=True, help="Or time constant (integrated-ou)."
)
@click.option("--period", type=POSITIVE, help="Of the periodic kernel.")
@click.option(
    "--std", type=POSITIVE, default=1.0, help="Of the series; of its velocity for integrated-ou."
)
@click.option(
    "--noise-std", type=NOT_NEGATIVE, default=0.0, help="Measurement noise of the recording."
)
@click.option("--level-std", type=NOT_NEGATIVE, default=0.0, help="Of an unknown common level.")
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
    help="Noise variance per point (tv.design takes that of all points together): gives the least "
    "loss for it.",
)
@click.option("--epsilon", type=POSITIVE, help="Privacy loss: gives the least noise for it.")
@click.option("--radius", type=POSITIVE, default=1.0, help="Of what must not be told apart.")
@click.option("--order", type=ABOVE_ONE, default=5.0, help="Renyi order.")
@click.option("--mechanism", type=click.Choice([kind.value for kind in Kind]), default="optimal")
@click.option(
    "--solved-at",
    type=POSITIVE,
    metavar="TIMES",
    help="Solve sdp-a and multiple-secrets at so many times the budget: 1,000 as the authors did, "
    "1 as printed.",
)
@click.option(
    "--adversary",
    type=click.Choice(["plain", "robust"]),
    default="plain",
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
@click.option(
    "--certify",
    is_flag=True,
    help="Prove what is said of privacy, in ball arithmetic (trailveil[certify]).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def design(**options: Any) -> None:
    """Design the noise for secrets of a series of which only times and kernel are known.

    Give either --budget (the least privacy loss for that much noise) or --epsilon (the least noise
    for that privacy loss). Indices count from 0.
    """
    _not_both(options)
    if options["certify"]:
        load_flint()  # refuses before any work where there is none
    times = times_of(options)
    prior = Prior(kernel_of(options, times), times)
    asked = None if options["everywhere"] else asked_of(options, prior)
    _one_target(options, asked)
    if options["solved_at"] is not None and options["mechanism"] not in PAPERS:
        raise click.UsageError(
            f"--solved-at must come with --mechanism {' or '.join(sorted(PAPERS))}, got "
            f"{options['mechanism']}: leave it out"
        )
    options["solved_at"] = options["solved_at"] or PAPER_FACTOR
    started = time.perf_counter()
    mechanism, certificate = design_mechanism(
        prior,
        None if asked is None else [part.secret for part in asked],
        budget=None if options["budget"] is None else options["budget"] * prior.times.size,
        bounds=None if options["budget"] is not None else bounds_of(options, asked),
        mechanism=options["mechanism"],
        floor=options["floor"] ** 2,
        adversaries=_ADVERSARIES[options["adversary"]],
        weights=numbers_in(options["weights"], "--weights"),
        solved_at=options["solved_at"],
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


def _all_own(asked: list[Asked] | None) -> bool:
    return asked is not None and all(part.epsilon is not None for part in asked)


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
        "solved_at": options["solved_at"] if options["mechanism"] in PAPERS else None,
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
    from trailveil.privacy.certified.certificate import certify  # balls only where asked for

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
    described["certificate"] = _certified(whole)


def _text(described: dict[str, Any]) -> str:
    lines = [
        f"{described['mechanism']} mechanism for {described['points']} points, "
        f"designed in {described['seconds']:.3g} s",
        f"  noise: rms {described['rms']:.6g}, largest standard deviation "
        f"{described['max_std']:.6g}, trace {described['noise_trace']:.6g} "
        f"({described['noise_trace'] / described['points']:.6g} per point)",
    ]
    if described["solved_at"] is not None:
        lines.append(
            f"  the paper's program, solved at {said(described['solved_at'])} times the budget and "
            "scaled back (--solved-at)"
        )
    if described["gap"] is not None:
        proved = "" if described["gap"] <= LARGEST_GAP else "not proved optimal: "
        lines.append(
            f"  {proved}within {described['gap']:.1e} (relative) of what any mechanism can do"
        )
    shown = described["secrets"][:10]
    for secret in shown:
        indices = ",".join(map(str, secret["indices"][:6]))
        lines.append(
            f"  secret {indices}: epsilon {secret['epsilon']:.6g} (the paper's bound "
            f"{secret['epsilon_paper']:.6g}), loss {secret['loss']:.6g}, 2-sigma interval "
            f"{secret['interval']:.6g}"
        )
        lines += [
            f"    left to an adversary who {who}: {std:.6g}" for who, std in secret["left"].items()
        ]
    if len(described["secrets"]) > len(shown):
        lines.append(
            f"  and {len(described['secrets']) - len(shown)} more secrets (--json lists all)"
        )
    if "certificate" in described:
        lines.append(f"  {_sentence(described['certificate'])}")
    if described["beyond_double_precision"]:
        lines.append(
            "  note: this prior has no measurement noise; rounding the noise to double precision "
            "would undo it (--noise-std or --floor states some)"
        )
    return "\n".join(lines)


def _certified(certificates: "Sequence[BallCertificate]") -> dict[str, Any]:
    """The certificates of all secrets as one object: the worst, for all adversaries together."""
    worst = max(certificates, key=lambda certificate: certificate.epsilon)
    return {
        "epsilon": worst.epsilon,
        "mu": worst.mu,
        "order": worst.order,
        "against": list(dict.fromkeys(name for each in certificates for name in each.against)),
        "what": list(dict.fromkeys(certificate.what for certificate in certificates)),
        "bits": max(certificate.bits for certificate in certificates),
        "radius": max(certificate.radius for certificate in certificates),
        "seconds": sum(certificate.seconds for certificate in certificates),
    }


def _sentence(certificate: dict[str, Any]) -> str:
    """The same in words; every figure is rounded up."""
    against = "; ".join(
        "an adversary who " + ("knows nothing besides" if name == PLAIN.name else name)
        for name in certificate["against"]
    )
    return (
        f"certified: epsilon <= {_up(certificate['epsilon'], 10)} (Renyi order "
        f"{said(certificate['order'])}) against {against}; for {'; '.join(certificate['what'])}; "
        f"in ball arithmetic, {certificate['bits']} bits, error of the balls "
        f"{_up(certificate['radius'], 2)} (relative), {said(certificate['seconds'], 3)} s; it "
        "assumes nothing exact in the recording"
    )


def _up(value: float, digits: int) -> str:
    """A number rounded up to some digits."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value))
    return said(float(rounded), digits)
