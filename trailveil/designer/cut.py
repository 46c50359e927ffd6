"""The least cut: how long nothing must be released around a window, while all else is exact.

Whoever has all of the rest, and a map that turns it into the true path, knows the place and the
velocity on either side of the cut. What is left of the window's place is then what movement alone
leaves of it, and that has a closed form (trailveil.privacy.movement).
"""

from bisect import bisect_left
from functools import lru_cache

from trailveil.errors import Refused
from trailveil.privacy.movement import Movement

_LONGEST = 86_400


@lru_cache(maxsize=1024)  # most parts of most recordings ask for the same few
def least_cut(floor: Movement, variance: float, sides: int) -> float:
    """Whole seconds outward from a window within which nothing may be released.

    floor: at least how fast the person moves there. variance: square metres per coordinate that
    must be left of the window's place. sides: how many the recording goes on beyond, 1 or 2.
    Raises Refused for a cut of more than a day.
    """
    if floor.bridged(_LONGEST) / sides < variance:
        raise Refused(
            "a cut must be shorter than a day on each side, got a longer one: ask for a smaller "
            "radius, a larger epsilon, or a faster --activity"
        )
    whole = range(1, _LONGEST + 1)
    return float(whole[bisect_left(whole, variance, key=lambda h: floor.bridged(h) / sides)])
