"""What a certificate says, as an object and in words."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from typing import Any

from trailveil.privacy.adversary import PLAIN
from trailveil.privacy.certified import BallCertificate
from trailveil.report.parts import rounded_up
from trailveil.wording import said

_DIGITS = 10


def certified(
    ball_certificates: Sequence[BallCertificate], asked: float | None = None
) -> dict[str, Any]:
    """The certificates of all secrets as one object: the worst, for all adversaries together.

    asked: for others, what epsilon was to be at most. They learn no more of it than it says, since
    what was proved of the parts tells of them.
    """
    worst = max(ball_certificates, key=lambda certificate: certificate.epsilon)
    against = list(
        dict.fromkeys(name for certificate in ball_certificates for name in certificate.against)
    )
    bits = max(certificate.bits for certificate in ball_certificates)
    if asked is not None:
        epsilon = asked if worst.epsilon <= asked else rounded_up(worst.epsilon)
        what = ["every protected part"]
        return {"epsilon": epsilon, "order": worst.order, "against": against, "what": what}
    return {
        "epsilon": worst.epsilon,
        "mu": worst.mu,
        "order": worst.order,
        "against": against,
        "what": list(dict.fromkeys(certificate.what for certificate in ball_certificates)),
        "bits": bits,
        "radius": max(certificate.radius for certificate in ball_certificates),
        "seconds": sum(certificate.seconds for certificate in ball_certificates),
    }


def sentence(certificate: dict[str, Any]) -> str:
    """The same in words; every figure is rounded up."""
    how = ""
    if "bits" in certificate:
        how = (
            f", {certificate['bits']} bits, error of the balls {_up(certificate['radius'], 2)} "
            f"(relative), {said(certificate['seconds'], 3)} s"
        )
    return (
        f"certified: epsilon <= {_up(certificate['epsilon'])} (Renyi order "
        f"{said(certificate['order'])}) against {_people(certificate['against'])}; for "
        f"{'; '.join(certificate['what'])}; in ball arithmetic{how}; it "
        "assumes nothing exact in the recording"
    )


def _people(names: Sequence[str]) -> str:
    known = ["knows nothing besides" if name == PLAIN.name else name for name in names]
    return "; ".join(f"who {name}" for name in known)


def _up(value: float, digits: int = _DIGITS) -> str:
    """A number rounded up to some digits."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value))
    return said(float(rounded), digits)
