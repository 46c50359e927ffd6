"""Certificates: what secrets lose at most, recomputed in balls from formulas and the Gamma used."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from trailveil.errors import InvalidValue, NumericalError, Unavailable
from trailveil.gp.balls import BALLS, load_flint, lower, precision, upper
from trailveil.privacy.adversary import Adversary, Judge, far_from, judge_of, span_of
from trailveil.privacy.certified.losses import BallView, KnownValues, Lost, worst
from trailveil.privacy.certified.observed import Observed, bits_needed
from trailveil.privacy.certified.posterior import TooWide, block
from trailveil.privacy.guarantee import Guarantee
from trailveil.privacy.loss import proportional
from trailveil.privacy.mechanism import Mechanism, no_release
from trailveil.privacy.prior import NOTHING_KNOWN, Prior
from trailveil.privacy.secrets import Secret

START_BITS, LAST_BITS = 128, 16_384
AGREEMENT = 1e-9
"""Relative: what is claimed must not be less than what is proved by more than this."""
# Relative: balls narrower than this say all that a double can.
_NARROW = 1e-12
# ... and of so little that is lost of what is left, nothing can be said.
_HARDLY = 1e-26
# Of rows times locations: half an hour.
_LARGEST_WORK = 10_000_000


@dataclass(frozen=True, slots=True)
class BallCertificate:
    """What is proved of one secret, or of several alike, against some adversaries.

    what: in words. against: names of adversaries. epsilon: at `order`, rounded up. mu: rounded up.
    bits: of the balls. radius: how wide they were in the end, relative. seconds: what it took.
    """

    what: str
    against: tuple[str, ...]
    epsilon: float
    mu: float
    order: float
    bits: int
    radius: float
    seconds: float

    def __post_init__(self) -> None:
        """Check that something is proved."""
        if not (0 <= self.epsilon < math.inf and 0 <= self.mu < math.inf):
            raise InvalidValue(f"a certificate must be of a finite epsilon, got {self.epsilon}")


@dataclass(frozen=True, slots=True)
class Proved:
    """What one adversary learns of some secrets, in their order, with the bits that it took."""

    lost: tuple[Lost, ...]
    bits: int


def prove(
    prior: Prior,
    secrets: Sequence[Secret],
    mechanism: Mechanism,
    adversary: Adversary,
    *,
    enough: float = 0.0,
) -> Proved:
    """Bounds of mu^2 / r^2 of secrets that share a span, whatever this adversary may know.

    enough: a loss up to which it does not matter which known value is the worst. Raises Unavailable
    for what is out of reach, NumericalError where no precision gives narrow balls.
    """
    load_flint()
    spans = {span_of(secret, adversary) for secret in secrets}
    alike = {(secret.window, secret.recorded) for secret in secrets}
    if (len(spans) > 1 and (adversary.point or adversary.path)) or len(alike) != 1:
        raise InvalidValue("secrets that are proved together must be of a kind and in one span")
    judge = judge_of(prior, secrets[0], adversary)
    # The clock of a stay is stopped in the judge: once is enough.
    places = tuple(replace(secret, window=None) for secret in secrets)
    return _narrowed(_Case(judge, places, mechanism, adversary, enough))


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    judge: Judge
    secrets: tuple[Secret, ...]
    mechanism: Mechanism
    adversary: Adversary
    enough: float

    @property
    def bits(self) -> int:
        """In which all times are exact."""
        times = np.concatenate([secret.times for secret in self.secrets])
        return bits_needed(self.judge.prior, times, self.mechanism.process)

    @property
    def share(self) -> float:
        """c > 0 where Gamma = c Sigma and nothing is known besides."""
        if self.adversary.point is not None:
            return 0.0
        prior, known = self.judge.prior, self.judge.known
        return min(proportional(prior, secret, self.mechanism, known) for secret in self.secrets)

    def lost(self) -> list[Lost]:
        """In the precision that is set."""
        if share := self.share:
            return [self._proportional(secret, share) for secret in self.secrets]
        adversary, judge, known = self.adversary, self.judge.prior, self.judge.known
        together, groups = _together(self.secrets), _groups(self.secrets)
        after = Observed(judge, self.mechanism, known)
        before = Observed(judge, no_release(judge.times), known)
        if (after.size + 1) * together.size > _LARGEST_WORK:
            raise Unavailable(
                f"a certificate must be for at most {_LARGEST_WORK} points times secrets, got "
                f"{after.size} times {together.size}: name fewer secrets, or leave --certify out"
            )
        points = np.empty(0)
        if adversary.point is not None:
            points = far_from(judge, self.judge.span, adversary.point.away)
        posterior, knew = block(after, together, points), block(before, together, points)
        view = BallView(posterior, knew, groups)
        values = None
        if adversary.point is not None and points.size:
            values = KnownValues(after, before, view, points, adversary.point.accuracy)
        return worst(values, view, self.enough)

    def _proportional(self, secret: Secret, share: float) -> Lost:
        """Gamma = c Sigma: Q = P c / (1 + c) of recorded values."""
        prior = self.judge.prior
        before = block(Observed(prior, no_release(prior.times), NOTHING_KNOWN), secret, np.empty(0))
        factor = BALLS.number(share) / (1 + BALLS.number(share))
        group = tuple(range(secret.size))
        after = replace(before, covariance=before.covariance * factor)
        return BallView(after, before, (group,)).alone(group)


def _together(secrets: Sequence[Secret]) -> Secret:
    """All locations as those of one secret."""
    if len(secrets) == 1:
        return secrets[0]
    times = np.unique(np.concatenate([secret.times for secret in secrets]))
    weights = np.zeros((sum(secret.size for secret in secrets), times.size))
    row = 0
    for secret in secrets:
        weights[row : row + secret.size, np.searchsorted(times, secret.times)] = secret.weights
        row += secret.size
    return Secret("several", times, weights, secrets[0].recorded)


def _groups(secrets: Sequence[Secret]) -> tuple[tuple[int, ...], ...]:
    ends = np.cumsum([secret.size for secret in secrets]).tolist()
    return tuple(
        tuple(range(end - secret.size, end)) for secret, end in zip(secrets, ends, strict=True)
    )


def _narrowed(case: _Case) -> Proved:
    """With more and more bits, until the balls are narrow."""
    bits = max(START_BITS, case.bits)
    while bits <= LAST_BITS:
        try:
            with precision(bits):
                losses = case.lost()
        except TooWide:
            losses = []
        if losses and all(_is_narrow(loss, case.enough) for loss in losses):
            return Proved(tuple(losses), bits)
        bits *= 2
    raise NumericalError(
        f"a certificate must have narrow balls, got wide ones with {LAST_BITS} bits; "
        "state a measurement noise (--noise-std) or an independent noise floor (--floor)"
    )


def _is_narrow(lost: Lost, enough: float) -> bool:
    """To what a double can say of the loss, or of what is left where hardly anything is lost."""
    return lost.radius <= _NARROW * max(lost.upper, enough) or lost.radius * lost.variance < _HARDLY


def certificate_of(
    what: str,
    against: Sequence[str],
    proved: Sequence[Proved],
    index: int,
    radius: float,
    order: float,
    *,
    claimed: float,
    seconds: float,
) -> BallCertificate:
    """The certificate of one secret, by its index among those that were proved.

    radius: in the unit of the series. claimed: the epsilon that was computed in double precision.
    Raises NumericalError where that is optimistic by more than AGREEMENT, relative.
    """
    losses = [by.lost[index] for by in proved]
    top = max(loss.upper for loss in losses)
    with precision(START_BITS):
        squared = BALLS.number(radius) ** 2
        mu = (squared * BALLS.number(top)).sqrt()
        half = BALLS.number(order) / 2 * squared
        epsilon, least = upper(half * BALLS.number(top)), half * max(loss.lower for loss in losses)
        check_claim(claimed, lower(least))
        wide = max(loss.radius for loss in losses) / top if top > 0 else 0.0
        return BallCertificate(
            what,
            tuple(against),
            epsilon,
            upper(mu),
            order,
            max(by.bits for by in proved),
            wide,
            seconds,
        )


def check_claim(claimed: float, proved: float) -> None:
    """NumericalError where an epsilon is surely above what was claimed."""
    if proved > claimed * (1 + AGREEMENT):
        raise NumericalError(
            f"the epsilon that is reported must not be below what is proved, got {claimed!r} for "
            f"{proved!r}: nothing was released; this is an error in Trailveil, please report it"
        )


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
            proved = [
                prove(prior, [secret], mechanism, adversary, enough=(claim.mu / radius) ** 2)
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
