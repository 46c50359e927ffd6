"""Ways to release a recording: ours, the paper's, and what people use today.

Each is a `Law`: Gaussian noise, planar Laplace noise, or fixes that are left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from benchmarks._rides import Ride
from trailveil.checks.attacks.worlds import released
from trailveil.designer.paper import multiple_secrets, sdp_a
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.adversaries import Named
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import observe
from trailveil.privacy.secrets import Secret
from trailveil.release.cutting import withheld
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.selection import within

# Planar Laplace as it is often set: a place and one 200 m away differ by a factor of 4 (Andres,
# Bordenabe, Chatzikokolakis and Palamidessi (2013), CCS).
USUAL = 200.0 / np.log(4.0)
# Metres per second of those who cut: as the simulated recordings have it.
PACE = 3.0
# Metres around each place of which nothing is released; seconds before and after.
ZONES, AROUND = (200.0, 400.0), 300.0
# The paper's secrets, of each part at most, and how its program is solved (at so many budgets).
MOST_SECRETS, FACTOR = 20, 1000.0
# Square metres: the least and the most budgets of a fix that are tried.
_LEAST, _MOST = 1.0, 1e8


@dataclass(frozen=True)
class Law:
    """How a recording is released.

    mechanism: the noise as attackers take it, which is what it is where it is Gaussian. laplace:
    metres, of planar Laplace noise with density exp(-distance / metres), in its place. zone: metres
    around each place within which no fix is released, whenever it was.
    """

    name: str
    mechanism: Mechanism
    laplace: float = 0.0
    zone: float = 0.0

    def views(
        self, ride: Ride, draws: int, generator: np.random.Generator
    ) -> Iterator[tuple[list[int], Mechanism, FloatArray]]:
        """Some of the recordings, their mechanism, and what is released (each * draws, m, 2)."""
        count = len(ride.recorded)
        if self.zone:
            for i in range(count):
                mechanism = self.mechanism.withholding(near(ride, i, self.zone))
                places = ride.recorded[i][mechanism.rows]
                yield [i], mechanism, np.broadcast_to(places, (draws, *places.shape))
            return
        each = np.repeat(ride.recorded, draws, axis=0)
        if self.laplace:
            places = each + planar_laplace(each.shape[:2], self.laplace, generator)
        else:
            places = released(each, self.mechanism, generator)
        yield list(range(count)), self.mechanism, places

    def others(
        self, recorded: FloatArray, mechanism: Mechanism, count: int, generator: np.random.Generator
    ) -> FloatArray:
        """Further releases (draws, count, m, 2) of recordings (draws, n, 2)."""
        each = np.repeat(recorded[:, None], count, axis=1)
        if self.laplace:
            return each + planar_laplace(each.shape[:3], self.laplace, generator)
        return released(each, mechanism, generator)

    def cost(self, ride: Ride) -> tuple[float, float, float]:
        """Metres by which a released fix is moved (rms), and where most; minutes withheld."""
        lost = []
        for i in range(len(ride.recorded) if self.zone else 1):
            cut = near(ride, i, self.zone) if self.zone else np.zeros(ride.times.size, bool)
            lost.append(withheld(ride.times, self.mechanism.withholding(cut).rows) / 60)
        plane = np.sqrt(2.0)
        return plane * self.mechanism.rms, plane * self.mechanism.max_std, float(np.mean(lost))


def planar_laplace(
    shape: tuple[int, ...], metres: float, generator: np.random.Generator
) -> FloatArray:
    """Draws (*shape, 2): the distance has density r exp(-r / metres) / metres^2."""
    distance = generator.gamma(2.0, metres, shape)
    angle = generator.uniform(0.0, 2 * np.pi, shape)
    return np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=-1)


def near(ride: Ride, number: int, metres: float) -> NDArray[np.bool_]:
    """The fixes (n,) of one recording within so many metres of a protected place."""
    fixes = ride.recorded[number]
    places = [ride.truths(part)[number] for part in range(len(ride.stretches))]
    return np.asarray(np.any([np.hypot(*(fixes - place).T) <= metres for place in places], axis=0))


@dataclass(frozen=True)
class Laws:
    """All ways for one ride, and the plan of our noise."""

    ours: Plan
    each: tuple[Law, ...]


def laws(ride: Ride, progress: Callable[[str], None]) -> Laws:
    """Design each of them."""
    request = Request(ride.stretches, method=Method.NOISE)
    progress("ours")
    ours = protect(ride.trace, request)
    stranger = protect(ride.trace, replace(request, who=(Named.PLAIN,)))
    progress("the paper's")
    secrets = _indices(ride, 1), _indices(ride, MOST_SECRETS)
    compound = calibrated(
        ride, request.bound, np.concatenate(secrets[0]), lambda t: _sdp_a(ride, secrets[0], t)
    )
    fixes = np.concatenate(secrets[1])
    many = multiple_secrets(ride.prior, [[i] for i in fixes], 1.0, factor=FACTOR).mechanism
    several = calibrated(ride, request.bound, fixes, many.scaled)
    progress("uniform noise")
    silent, same = no_noise(ride.times), ours.mechanism.rms**2

    def cut(seconds: float) -> Mechanism:
        return silent.withholding(within(ride.trace.times, ride.stretches, seconds))

    return Laws(
        ours,
        (
            *_both_ways(ride, ours),
            Law("ours, noise against a stranger", stranger.mechanism),
            Law("SDP_A, a fix of each", compound),
            Law("Multiple Secrets", several),
            Law("uniform, same distortion", replace(silent, floor=same)),
            *_of_today(ride, request.bound, fixes),
            _laplace("planar Laplace, same distortion", silent, float(np.sqrt(same / 3))),
            Law("cut", cut(0.0)),
            Law(f"cut, {AROUND / 60:.0f} min around", cut(AROUND)),
            # What attackers know anyway.
            Law("nothing released", cut(ride.trace.duration)),
        ),
    )


def on_streets(ride: Ride) -> tuple[Law, ...]:
    """Those that an attacker with a street map is tried on."""
    request = Request(ride.stretches, method=Method.NOISE)
    fixes = np.concatenate(_indices(ride, MOST_SECRETS))
    ours = protect(ride.trace, request)
    return (*_both_ways(ride, ours), *_of_today(ride, request.bound, fixes))


def _both_ways(ride: Ride, noisy: Plan) -> tuple[Law, ...]:
    """Our cut, our noise as it was planned, and both at once."""
    moving = replace(noisy.request, floor=PACE, middle=PACE)
    return (
        Law("ours, cut", protect(ride.trace, replace(moving, method=Method.CUT)).mechanism),
        Law("ours, noise", noisy.mechanism),
        Law("ours, both", protect(ride.trace, replace(moving, method=Method.BOTH)).mechanism),
    )


def _of_today(ride: Ride, bound: float, fixes: NDArray[np.intp]) -> tuple[Law, ...]:
    """What people use: independent noise, and zones."""
    silent = no_noise(ride.times)

    def white(trace: float) -> Mechanism:
        return replace(silent, floor=trace / ride.times.size)

    return (
        Law("uniform, epsilon 1", calibrated(ride, bound, fixes, white)),
        _laplace("planar Laplace, usual", silent, USUAL),
        *(Law(f"zone of {metres:.0f} m", silent, zone=metres) for metres in ZONES),
    )


def _laplace(name: str, silent: Mechanism, metres: float) -> Law:
    """E r^2 = 6 metres^2 in the plane, so 3 metres^2 per coordinate."""
    return Law(name, replace(silent, floor=3 * metres**2), laplace=metres)


def _indices(ride: Ride, most: int) -> list[NDArray[np.intp]]:
    """The fixes of each part, evenly chosen; its middle one where one is asked for."""
    found = []
    for part in range(len(ride.stretches)):
        rows = np.flatnonzero(ride.inside(part))
        shares = (np.arange(min(most, rows.size)) + 0.5) / min(most, rows.size)
        found.append(rows[(shares * rows.size).astype(np.intp)])
    return found


def _sdp_a(ride: Ride, secrets: list[NDArray[np.intp]], budget: float) -> Mechanism:
    indices = np.concatenate(secrets)
    # As it would be drawn: in double precision.
    return replace(sdp_a(ride.prior, indices, budget, factor=FACTOR), refinement=None)


def calibrated(
    ride: Ride, bound: float, indices: NDArray[np.intp], make: Callable[[float], Mechanism]
) -> Mechanism:
    """The least noise of a kind that leaves each recorded value a loss of at most `bound`.

    make: trace(Gamma) -> the mechanism.
    """
    secrets = [Secret.at(float(time), recorded=True) for time in ride.times[indices]]

    def excess(log_trace: float) -> float:
        observation = observe(ride.prior, make(float(np.exp(log_trace))))
        known = [observation.posterior(secret).covariance[0, 0] for secret in secrets]
        return -float(np.log(min(known) * bound))

    low, high = np.log(ride.times.size * _LEAST), np.log(ride.times.size * _MOST)
    root = float(brentq(excess, low, high, xtol=1e-4))
    while excess(root) > 0:
        root += 1e-4
    return make(float(np.exp(root)))
