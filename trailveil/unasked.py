"""What is reported of a protected part besides what was asked for: nothing is held against it."""

from collections.abc import Sequence
from dataclasses import dataclass

from trailveil.adversaries import Named
from trailveil.adversary import PLAIN, Adversary, knows_a_point, stood_still
from trailveil.crops import Crop
from trailveil.marginals import seen
from trailveil.mechanism import Mechanism
from trailveil.secrets import basic, difference

KNOWN_AWAY = (60.0, 300.0, 600.0, 1200.0)
"""Seconds to a true place that somebody learns, for the report's warning."""

# Metres: how well they learn it.
_ACCURACY = 10.0


@dataclass(frozen=True, slots=True)
class Unasked:
    """What others would learn.

    after_learning: (seconds away, metres) for somebody who learns one true place that far away,
    where noise was not made for them; seen_still: metres for who sees that a stay stands still, if
    it was not made for them. way_loss: of the way from begin to end of a stay, 1 / m^2.
    """

    after_learning: tuple[tuple[float, float], ...] = ()
    seen_still: float | None = None
    way_loss: float | None = None


def unasked(crop: Crop, mechanism: Mechanism, number: int, who: Sequence[Named]) -> Unasked:
    """What others would learn of part `number` of a crop. mechanism: at the rows of the crop."""
    begin, end = crop.spans[number]
    window = [(begin, end)] if begin < end else []

    def left_to(adversary: Adversary) -> float:
        place = [basic(begin)]
        return float(seen(crop.prior, place, mechanism, adversary, edges=crop.edges).least[0])

    still = [stood_still(window)] if window and Named.STILL in who else []
    after: tuple[tuple[float, float], ...] = ()
    if Named.POINT not in who:
        base = still[0] if still else Adversary(PLAIN.name, unseen=tuple(window))
        first, last = crop.prior.times[[0, -1]]
        after = tuple(
            (away, left_to(base & knows_a_point(away, _ACCURACY)))
            for away in KNOWN_AWAY
            if first <= begin - away or end + away <= last
        )
    if not window:
        return Unasked(after)
    seen_still = None if still else left_to(stood_still(window))
    way = seen(crop.prior, [difference(begin, end)], mechanism, PLAIN, edges=crop.edges)
    return Unasked(after, seen_still, float(way.losses[0]))
