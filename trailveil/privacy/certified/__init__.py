"""Guarantees recomputed in ball arithmetic: bounds that are proofs, whatever rounding does."""

from trailveil.privacy.certified.certificate import (
    AGREEMENT,
    BallCertificate,
    Proved,
    certificate_of,
    check_claim,
    prove,
)
from trailveil.privacy.certified.losses import Enough, Lost

__all__ = [
    "AGREEMENT",
    "BallCertificate",
    "Enough",
    "Lost",
    "Proved",
    "certificate_of",
    "check_claim",
    "prove",
]
