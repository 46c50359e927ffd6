"""The attacks of `audit`, on what others release: each adversary of them with what it knows."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from trailveil.checks.attacks.contract import Attack as AuditAttack
from trailveil.checks.attacks.contract import (
    Background,
    Estimate,
    Evidence,
    Filter,
    OnGrid,
    TruePlaces,
)
from trailveil.checks.attacks.estimators import known_paths
from trailveil.checks.attacks.exact import EXACT
from trailveil.checks.attacks.on_streets import on_streets
from trailveil.checks.attacks.posterior import posterior_mean
from trailveil.checks.attacks.registry import ATTACKS
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, Scaled
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import PLAIN, Adversary, far_from, known_path, span_of
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation
from trailveil.studies.comparing.cases import ACCURACY, Clues, Sighting
from trailveil.traces.grid import coarse_subset, position_grid

# Releases that are averaged; metres by which an earlier ride is off; of how many of its fixes one
# is left; seconds from a part of a place that is known.
_REPEATED, _JITTER, _THINNED, _PLACE_AWAY = 10, 10.0, 3, 120.0

Places = tuple[FloatArray, FloatArray]

# Recordings of one clock under one mechanism share their filters.
_FILTERS: dict[Hashable, Filter] = {}
_MOST_FILTERS = 2000


def _asked(
    attack: AuditAttack, released: Sighting, known: Clues, background: Background
) -> tuple[Estimate | None, ...]:
    """The estimate of each secret; none where there is nothing to go by."""
    if not released.seconds.size and background.true is None:
        return (None,) * len(background.secrets)
    view = Evidence(released.noise.times[released.noise.rows], released.metres[None])
    return attack(view, background)


def _places(estimates: Sequence[Estimate | None]) -> Places:
    """Places (k, 2) and deviations (k,), NaN where there is none."""
    none = np.full(2, np.nan)
    places = np.array([none if each is None else each.places[0] for each in estimates])
    deviations = [np.nan if each is None else each.deviation or np.nan for each in estimates]
    return places, np.array(deviations)


def _background(released: Sighting, known: Clues, adversary: Adversary = PLAIN) -> Background:
    """What everybody knows: how people move, how the noise varies, a map where there is one."""
    if len(_FILTERS) > _MOST_FILTERS:
        _FILTERS.clear()
    return Background(
        known.secrets,
        known.kernel,
        released.noise,
        adversary,
        streets=known.streets,
        filters=_FILTERS,
    )


def _stillness(known: Clues) -> Adversary:
    windows = [(begin, end) for begin, end in known.spans if begin < end]
    return Adversary.sees_stillness(windows) if windows else PLAIN


def posterior(released: Sighting, known: Clues) -> Places:
    """The best guess of an adversary who knows how people move and how the noise varies.

    Source: Rasmussen and Williams (2006), eq. 2.25.
    """
    return _places(_asked(posterior_mean, released, known, _background(released, known)))


def still(released: Sighting, known: Clues) -> Places:
    """The same of one who sees that the person stood still in each part."""
    background = _background(released, known, _stillness(known))
    return _places(_asked(posterior_mean, released, known, background))


Knows = Callable[[Prior, tuple[float, float]], SideInformation]


def _informed(released: Sighting, known: Clues, knows: Knows) -> Places:
    """The same of one who knows true places besides, for each secret by itself."""
    who = _stillness(known)
    prior = Prior(known.kernel, known.case.seconds)
    estimates: list[Estimate | None] = []
    for secret in known.secrets:
        information = knows(prior, span_of(secret, who))
        true = None
        if information.times.size:
            places = known.places(information.times)[None]
            true = TruePlaces(information.times, places, ACCURACY)
        background = replace(_background(released, known, who), secrets=(secret,), true=true)
        estimates += _asked(posterior_mean, released, known, background)
    return _places(estimates)


def place(released: Sighting, known: Clues) -> Places:
    """One who knows the nearest true place two minutes or more before the part, or after it."""

    def nearest(prior: Prior, span: tuple[float, float]) -> SideInformation:
        far = far_from(prior, span, _PLACE_AWAY)
        before = far[far < span[0]]
        chosen = before[-1:] if before.size else far[:1]
        return SideInformation(chosen, ACCURACY) if chosen.size else NOTHING_KNOWN

    return _informed(released, known, nearest)


def path(released: Sighting, known: Clues) -> Places:
    """One who knows the path but for five minutes around the part."""
    who = Adversary.knows_path()
    return _informed(released, known, lambda prior, span: known_path(prior, span, who))


def true_places(released: Sighting, known: Clues) -> Places:
    """One who knows six true places, 1, 2 and 5 minutes before and after the part."""

    def around(prior: Prior, span: tuple[float, float]) -> SideInformation:
        moments = [t for away in (60.0, 120.0, 300.0) for t in (span[0] - away, span[1] + away)]
        times = prior.times
        rows = {int(np.argmin(np.abs(times - t))) for t in moments if times[0] <= t <= times[-1]}
        chosen = times[sorted(rows)]
        chosen = chosen[(chosen < span[0]) | (chosen > span[1])]
        return SideInformation(chosen, ACCURACY) if chosen.size else NOTHING_KNOWN

    return _informed(released, known, around)


def _believing(kernel: Kernel, released: Sighting, known: Clues) -> Places:
    """The attack of one who sees stillness and believes in another prior of movement."""
    who = _stillness(known) & Adversary.believes("another prior", kernel)
    return _places(_asked(posterior_mean, released, known, _background(released, known, who)))


def speed(released: Sighting, known: Clues, *, metres: float = 1.0) -> Places:
    """One who sees stillness and knows how fast the person is. metres: a second."""
    return _believing(at_speed(known.kernel, metres) or known.kernel, released, known)


def misspecified(released: Sighting, known: Clues) -> Places:
    """One who believes in a Matern 3/2 prior, fitted to half hours."""
    from trailveil.gp.kernels import Constant, Matern32, White
    from trailveil.privacy.priors import LEVEL_STD

    kernel = Matern32(427.0, 860.0) + Constant(LEVEL_STD) + White(2.0)
    return _believing(kernel, released, known)


def _simply(attack: AuditAttack, released: Sighting, known: Clues) -> Places:
    """An attack that takes no prior of the noise; edges are of what is nearly exact, if any is."""
    background = _background(released, known)
    estimates = _asked(attack, released, known, background)
    if all(estimate is None for estimate in estimates):
        estimates = _asked(attack, released, known, replace(background, mechanism=None))
    return _places(estimates)


@dataclass(frozen=True, slots=True)
class ByItself:
    """An attack of `audit` that needs nothing but the release. alone: not even of its noise."""

    attack: AuditAttack
    alone: bool

    def __call__(self, released: Sighting, known: Clues) -> Places:
        """Places and deviations, as every attack has them."""
        if self.alone:
            return _simply(self.attack, released, known)
        return _places(_asked(self.attack, released, known, _background(released, known)))


BY_THEMSELVES = {
    name: ByItself(row.attack, row.alone)
    for name, row in ATTACKS.items()
    if row.trials is None and not row.needs
}
"""By their names."""


def lattice(released: Sighting, known: Clues) -> Places:
    """One who knows that recorded positions lie on a grid, and solves for the noise.

    Of the ways of `audit` the first that comes to something.
    """
    grid = position_grid(known.case.trace.positions)
    on = OnGrid(known.case.frame, grid.step, coarse_subset(known.case.trace.positions, grid))
    background = replace(_background(released, known), grid=on)
    estimates: tuple[Estimate | None, ...] = (None,) * len(known.spans)
    # Noise of full rank leaves nothing to solve for.
    low_rank = released.noise.factor.shape[1] > 0 and released.noise.floor == 0
    for attack in EXACT.values() if low_rank else ():
        tried = _asked(attack, released, known, background)
        estimates = tuple(a or b for a, b in zip(estimates, tried, strict=True))
    return _places(estimates)


def repeated(released: Sighting, known: Clues) -> Places:
    """One who has ten releases of the recording, each with noise of its own, and sees stillness."""
    others = [known.repeat(number) for number in range(1, _REPEATED)]
    same = [other for other in others if np.array_equal(other.seconds, released.seconds)]
    together = replace(
        released,
        metres=np.mean([each.metres for each in (released, *same)], axis=0),
        noise=_averaged(released.noise, 1 + len(same)),
    )
    background = _background(together, known, _stillness(known))
    return _places(_asked(posterior_mean, together, known, background))


def _averaged(noise: Mechanism, count: int) -> Mechanism:
    """The noise of the mean of so many releases."""
    if noise.process is None:
        return noise.scaled(1 / count)
    process = cast(Kernel, noise.process)
    return replace(
        replace(noise, process=None).scaled(1 / count), process=Scaled(process, 1 / count)
    )


def earlier_ride(released: Sighting, known: Clues) -> Places:
    """One who has an earlier recording of the same way, 10 m off, and follows it."""
    track = known.case.metres[::_THINNED]
    track = track + _JITTER * known.random.standard_normal(track.shape)

    def follow(view: Evidence, background: Background) -> tuple[Estimate | None, ...]:
        return known_paths(view, replace(background, tracks=(track,)))

    return _simply(follow, released, known)


def street_map(released: Sighting, known: Clues) -> Places | None:
    """One who has a street map, and knows how the noise varies; none where there is no map."""
    if known.streets is None:
        return None
    return _places(_asked(on_streets, released, known, _background(released, known)))
