"""Mechanisms of others that need no prior: noise, other times, fewer fixes, fewer digits, zones."""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Refused, number_between
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.studies.comparing.cases import Case, Disclosure, generator
from trailveil.traces.grid import METRES_A_DEGREE
from trailveil.traces.trace import Trace

USUAL = math.log(4.0) / 200.0
"""Epsilon a metre as it is often set: two places 200 m apart differ by a factor of 4."""


def identity(case: Case, random: np.random.Generator) -> Trace:
    """The recording as it is: what attacks come to without any protection."""
    del random
    return case.trace


def nothing(case: Case, random: np.random.Generator) -> Disclosure:
    """No fix at all: what attackers know without any release."""
    del random
    none = np.zeros(len(case.trace), np.bool_)
    return Disclosure(case.only(none), no_noise(case.seconds).withholding(~none))


def planar_laplace(
    case: Case, random: np.random.Generator, *, epsilon: float = USUAL
) -> Disclosure:
    """Independent planar Laplace noise at each fix: geo-indistinguishability.

    epsilon: 1 / metre. The distance has density epsilon^2 r exp(-epsilon r), Gamma(2, 1 / epsilon),
    in metres at any latitude. An attacker takes it for Gaussian of variance 3 / epsilon^2. Source:
    Andres, Bordenabe, Chatzikokolakis and Palamidessi (2013), CCS, section 4.
    """
    scale = 1 / number_between("epsilon", epsilon, 0.0, 1e6)
    distance = random.gamma(2.0, scale, len(case.trace))
    angle = random.uniform(0.0, 2 * np.pi, len(case.trace))
    offsets = distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    noise = Mechanism(case.seconds, np.empty((len(case.trace), 0)), floor=3 * scale**2)
    return Disclosure(case.placed_at(case.metres + offsets), noise)


def correlated_laplace(
    case: Case, random: np.random.Generator, *, epsilon: float = USUAL, memory: float = 60.0
) -> Disclosure:
    """Laplace noise of each coordinate whose autocorrelation is that of movement.

    epsilon: 1 / metre, of a coordinate. memory: seconds over which the correlation falls to 1/e;
    the paper takes that of the series itself, which would tell something of it. Made as there, of
    four Gaussian series with the root of that correlation: b (g1^2 + g2^2 - g3^2 - g4^2) / 2.
    Source: Wang and Xu (2017), CTS-DP, Knowledge-Based Systems 122, section 4.
    """
    from trailveil.gp.kernels import Matern12

    scale = 1 / number_between("epsilon", epsilon, 0.0, 1e6)
    number_between("memory", memory, 0.0, 1e9)
    series = _autoregressive(case.seconds, 2 * memory, 8, random) ** 2
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    offsets = scale / 2 * np.stack([signs @ series[:4], signs @ series[4:]], axis=1)
    process = Matern12(memory, math.sqrt(2) * scale)
    noise = Mechanism(case.seconds, np.empty((len(case.trace), 0)), process=process)
    return Disclosure(case.placed_at(case.metres + offsets), noise)


def _autoregressive(
    seconds: FloatArray, memory: float, count: int, random: np.random.Generator
) -> FloatArray:
    """Series (count, n) of variance 1 and correlation exp(-|t| / memory)."""
    series = random.standard_normal((count, seconds.size))
    keep = np.exp(-np.diff(seconds) / memory)
    for i, share in enumerate(keep, start=1):
        series[:, i] = share * series[:, i - 1] + math.sqrt(1 - share**2) * series[:, i]
    return series


def promesse(case: Case, random: np.random.Generator, *, metres: float = 100.0) -> Trace:
    """Speed smoothing: equal distances in equal times, so that no stop shows.

    metres: between two released points, in a straight line. The first and the last of these points
    are left out, and times are spread evenly over what is left, as in the authors' code (Accio).
    Source: Primault, Ben Mokhtar, Lauradoux and Brunie (2015), Time distortion anonymization,
    TrustCom, section IV. Raises Refused for a recording that goes nowhere.
    """
    del random
    times, points = _equally_apart(case, number_between("metres", metres, 0.0, 1e6))
    if len(points) < 4:
        raise Refused(
            f"speed smoothing must have a way of three times {metres:g} m, got a shorter one: "
            "state fewer metres"
        )
    even = np.linspace(times[1], times[-2], len(points) - 2)
    return case.timed_at(even, points[1:-1])


def _equally_apart(case: Case, metres: float) -> tuple[FloatArray, FloatArray]:
    """Times (k,) and points (k, 2), each so far from the one before, towards a fix further away.

    A point has the time of that fix.
    """
    times, points = [float(case.seconds[0])], [case.metres[0]]
    for moment, fix in zip(case.seconds[1:].tolist(), case.metres[1:], strict=True):
        while (apart := math.hypot(*(fix - points[-1]))) >= metres:
            points.append(points[-1] + metres / apart * (fix - points[-1]))
            times.append(moment)
    return np.array(times), np.array(points)


def downsampling(case: Case, random: np.random.Generator, *, seconds: float = 300.0) -> Trace:
    """The first fix of every so many seconds, as recorded.

    Source: Hoh, Gruteser, Xiong and Alrabady (2006), Enhancing security and privacy in traffic
    monitoring systems, IEEE Pervasive Computing 5(4).
    """
    del random
    number_between("seconds", seconds, 0.0, 1e9)
    return case.only(np.diff(np.floor(case.seconds / seconds), prepend=-1.0) > 0)


def truncation(case: Case, random: np.random.Generator, *, decimals: int = 3) -> Disclosure:
    """Coordinates rounded to so many decimals of a degree: 3 are about 111 m.

    An attacker takes the error for Gaussian of the variance of rounding, step^2 / 12. Source:
    Krumm (2007), Inference attacks on location tracks, Pervasive, section 5.
    """
    del random
    if not 0 <= decimals <= 6:
        raise InvalidValue(f"decimals must be 0 to 6, got {decimals}: state fewer or more")
    latitude = math.radians(float(case.trace.positions[:, 0].mean()))
    steps = 10.0**-decimals * METRES_A_DEGREE * np.array([1.0, math.cos(latitude)])
    noise = replace(no_noise(case.seconds), floor=float(np.mean(steps**2)) / 12)
    rounded = replace(case.trace, positions=np.round(case.trace.positions, decimals))
    return Disclosure(rounded, noise)


def suppression(case: Case, random: np.random.Generator, *, seconds: float = 300.0) -> Trace:
    """No fix during a secret, nor within so many seconds of it: a cut by the clock.

    Source: Hoh, Gruteser, Xiong and Alrabady (2007), Preserving privacy in GPS traces via
    uncertainty-aware path cloaking, CCS, which chooses the time by how lost an attacker is.
    """
    del random
    if not 0 <= seconds < 1e9:
        raise InvalidValue(f"seconds must be 0 or more, got {seconds}")
    spans = np.array(case.spans)
    away = np.maximum(spans[:, 0] - case.seconds[:, None], case.seconds[:, None] - spans[:, 1])
    return _rest(case, away.min(axis=1) > seconds, "suppression")


def zones(case: Case, random: np.random.Generator, *, radius: float = 200.0) -> Trace:
    """Privacy zones: no fix within so many metres of what is hidden, in a circle around it.

    Source: Hassan, Rehman, Sudar, Mitchell, Gunter and Bates (2018), Analysis of privacy
    protections in fitness tracking social networks, USENIX Security, section 3.
    """
    del random
    return _outside(case, case.truths, radius)


def shifted_zones(case: Case, random: np.random.Generator, *, radius: float = 200.0) -> Trace:
    """Privacy zones whose middle is not the place: it is drawn evenly among those that hold it.

    The way from a place to its middle is a person's, and the same on all days: of one drawn anew
    each time, an attacker would find the mean. Source: Hassan and others (2018), as `zones`,
    section 7.
    """
    del random
    person = generator("shifted zone", case.data, case.person)
    shift, angle = radius * math.sqrt(person.random()), person.uniform(0.0, 2 * math.pi)
    middles = case.truths + shift * np.array([math.cos(angle), math.sin(angle)])
    return _outside(case, middles, radius)


def _outside(case: Case, middles: FloatArray, radius: float) -> Trace:
    number_between("radius", radius, 0.0, 1e9)
    apart = np.linalg.norm(case.metres[:, None] - middles, axis=2).min(axis=1)
    return _rest(case, apart > radius, "zones")


def _rest(case: Case, released: NDArray[np.bool_], what: str) -> Trace:
    if released.sum() < 2:
        raise Refused(f"{what} must leave two fixes, got fewer: state less to leave out")
    return case.only(released)
