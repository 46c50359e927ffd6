"""Certificates of a design: every secret against every adversary, for the very Gamma."""

import time
from collections.abc import Sequence

from trailveil.privacy.adversary import Adversary
from trailveil.privacy.certified.certificate import BallCertificate, certificate_of, prove
from trailveil.privacy.certified.losses import Enough
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret


def certify(
    prior: Prior,
    secrets: Sequence[Secret],
    mechanism: Mechanism,
    adversaries: Sequence[Adversary],
    claimed: Sequence[Guarantee],
    radii: Sequence[float],
    *,
    together: bool = False,
) -> list[BallCertificate]:
    """The certificate of each secret, against all of the adversaries.

    claimed: what double precision says of each. radii: in the unit of the series. together: all
    secrets are of one kind, and what the adversaries know does not depend on which it is. Raises
    NumericalError where a claim is optimistic, and as `prove` does.
    """
    whole = tuple(zip(secrets, claimed, radii, strict=True))
    started = time.perf_counter()
    proved = (
        [prove(prior, secrets, mechanism, adversary) for adversary in adversaries]
        if together
        else []
    )
    certificates = []
    for i, (secret, claim, radius) in enumerate(whole):
        if not together:
            started = time.perf_counter()
            enough = Enough(loss=(claim.mu / radius) ** 2)
            proved = [
                prove(prior, [secret], mechanism, adversary, enough=enough)
                for adversary in adversaries
            ]
        seconds = time.perf_counter() - started
        certificates.append(
            certificate_of(
                _what(secret, adversaries),
                [adversary.name for adversary in adversaries],
                proved,
                i if together else 0,
                radius,
                claim.order,
                claimed=claim.epsilon,
                seconds=seconds,
            )
        )
    return certificates


def _what(secret: Secret, adversaries: Sequence[Adversary]) -> str:
    """What is covered, in words."""
    kinds = {"basic": "a recorded value", "compound": f"{secret.size} recorded values together"}
    others = {"mean": "a mean of recorded values", "difference": "a difference of recorded values"}
    known = any(adversary.point for adversary in adversaries)
    besides = ", whichever one value is known" if known else ""
    return f"{({**kinds, **others}).get(secret.kind, secret.kind)}{besides}"
