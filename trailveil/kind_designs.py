"""Noise for a kind of protected part (trailveil.kinds), and what is left of it to whom."""

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trailveil.adversaries import kernels_of
from trailveil.arrays import from_bytes, to_bytes
from trailveil.crops import Crop
from trailveil.demands import Left, Target, adversaries_of, judged_at_first, judged_means
from trailveil.designing import LARGEST_STD, optimal
from trailveil.errors import InvalidValue, NumericalError
from trailveil.gaussian import FloatArray
from trailveil.kinds import Kind
from trailveil.mechanism import Mechanism, no_noise
from trailveil.recurring import information
from trailveil.unasked import Unasked, unasked

# Relative: what fixes beyond a crop may tell of a place besides; see `_told`.
_BEYOND = 1e-4
# Relative: how nearly a design that was kept must be found again, and how little more noise helps.
_SAME, _MORE, _LEAST_STEP, _MOST_STEPS = 1e-9, 1.02, 1e-5, 60


@dataclass(frozen=True, slots=True, eq=False)
class OfKind:
    """Noise for a kind, and what it guarantees of every recording that has it.

    columns: (N + 1, r), read-only, metres: at each step of the kind's crop; the last row is 0, for
    fixes beyond. first: the row at which the part begins. left: what each adversary is left with,
    at least; times are seconds since the part began. told: what it tells, at most, of a place that
    may be visited again (trailveil.recurring), 1 / m^2.
    """

    columns: FloatArray
    first: int
    left: tuple[Left, ...]
    unasked: Unasked
    told: float

    def rows(self, kind: Kind, times: NDArray[np.int64], begin: int) -> NDArray[np.intp]:
        """The rows (n,) of the columns for fixes at times (n,), nanoseconds."""
        last = self.columns.shape[0] - 1
        steps = (times - (begin + kind.offset)) // kind.step + self.first
        return np.where((steps >= 0) & (steps < last), steps, last).astype(np.intp)


def designed_for(kind: Kind) -> OfKind:
    """Design the noise for a kind: seconds to minutes.

    Raises Refused, BeyondPrior or NumericalError where there is none, as `trailveil.designing`.
    """
    crop = kind.crop()
    base = no_noise(crop.prior.times)
    found = optimal([_whole(crop)], base, _target(kind))
    mechanism = found.mechanism
    if mechanism.max_std > LARGEST_STD:
        raise NumericalError(
            f"the noise of a kind must stay below {LARGEST_STD / 1000:g} km, got more: have it "
            "designed for the recording"
        )
    begin = crop.spans[0][0]
    columns = np.vstack([mechanism.factor, np.zeros((1, mechanism.factor.shape[1]))])
    columns.flags.writeable = False
    return OfKind(
        columns,
        int(np.searchsorted(crop.prior.times, begin)),
        tuple(later(one, -crop.start - begin) for one in found.left[0]),
        unasked(crop, mechanism, 0, kind.target.who),
        _told(kind, crop, mechanism),
    )


def means_of(kind: Kind, made: OfKind, rows: NDArray[np.intp]) -> tuple[float, tuple[Left, ...]]:
    """How much of the noise (at least 1) hides the mean of a stay's fixes, too, and what is left.

    rows: (m,) of these fixes: not of every step, or the mean is one that the kind was designed for.
    """
    crop, target = kind.crop(), _target(kind)
    mechanism = Mechanism(crop.prior.times, made.columns[:-1])
    seconds = crop.prior.times[rows]
    scale = 1.0
    for _ in range(_MOST_STEPS):
        found = judged_means(crop, mechanism.scaled(scale), 0, target, seconds)
        missed = target.missed(found)
        if missed <= 1:
            return scale, _worse(made.left, found)
        scale *= 1 + _MORE * (missed - 1) + _LEAST_STEP
    raise NumericalError("the mean of a stay's fixes must be hidden, got noise that never does it")


def is_as_designed(kind: Kind, made: OfKind) -> bool:
    """Whether a design that was kept is one of this kind: one adversary is judged again."""
    crop, target = kind.crop(), _target(kind)
    if made.columns.shape[0] != crop.prior.times.size + 1 or np.any(made.columns[-1]):
        return False
    passing, still = adversaries_of(crop, 0, target)
    if [one.adversary for one in made.left] != [one.name for one in (*passing, *still)]:
        return False
    if made.first != int(np.searchsorted(crop.prior.times, crop.spans[0][0])):
        return False
    left = judged_at_first(crop, Mechanism(crop.prior.times, made.columns[:-1]), 0, target)
    said = [one.loss for one in made.left if one.adversary == left.adversary]
    return bool(said) and left.loss <= said[0] * (1 + _SAME) and target.missed(made.left) <= 1


def later(left: Left, seconds: float) -> Left:
    """The same, its times by so many seconds later."""

    def moved(time: float | None) -> float | None:
        return None if time is None else time + seconds

    return replace(
        left,
        at=moved(left.at),
        place=moved(left.place),
        weakest=moved(left.weakest),
        near=tuple(moved(one) for one in left.near),
    )


def stored(made: OfKind) -> bytes:
    """A design as bytes, to the last digit."""
    about = {
        "first": made.first,
        "left": [asdict(one) for one in made.left],
        "unasked": asdict(made.unasked),
        "told": made.told,
    }
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    return to_bytes({"about": text, "columns": made.columns})


def restored(data: bytes) -> OfKind:
    """What `stored` made bytes of. Raises InvalidValue for others."""
    arrays, _ = from_bytes(data)
    try:
        about = json.loads(arrays["about"].tobytes())
        columns = arrays["columns"]
        columns.flags.writeable = False
        return OfKind(
            columns,
            int(about["first"]),
            tuple(_left_of(one) for one in about["left"]),
            _unasked_of(about["unasked"]),
            float(about["told"]),
        )
    except (ValueError, TypeError, LookupError) as error:
        raise InvalidValue("a design must be as it was kept, got another") from error


def _left_of(about: dict[str, Any]) -> Left:
    return Left(**{**about, "near": tuple(about["near"]), "elsewhere": tuple(about["elsewhere"])})


def _unasked_of(about: dict[str, Any]) -> Unasked:
    after = tuple((float(away), float(metres)) for away, metres in about["after_learning"])
    return Unasked(after, about["seen_still"], about["way_loss"])


def _target(kind: Kind) -> Target:
    return replace(kind.target, surely=kind.surely)


def _whole(crop: Crop) -> Crop:
    """The crop as one of a recording that is itself."""
    return replace(crop, first=0, last=crop.prior.times.size)


def _worse(all_left: tuple[Left, ...], others: list[Left]) -> tuple[Left, ...]:
    """The worse of what was left before, and with other places."""
    by = {one.adversary: one for one in others}

    def of(one: Left) -> Left:
        other = by.get(one.adversary)
        if other is None:
            return one
        worst = other if other.loss > one.loss else one
        weakest = other if other.least < one.least else one
        return replace(
            worst,
            known=min(one.known, other.known),
            least=weakest.least,
            weakest=weakest.weakest,
        )

    return tuple(of(one) for one in all_left)


def _told(kind: Kind, crop: Crop, mechanism: Mechanism) -> float:
    """The most that a release tells of a place of which this part is one visit.

    Fixes beyond the crop tell of how the person moved at its edges, if anything: minutes of true
    places there tell that to a few centimetres a second, and the place is most of an hour away.
    """
    ones = np.ones((crop.prior.times.size, 1))
    found = [
        information(kernel, crop.prior.times, crop.spans, ones, mechanism.factor)[0, 0]
        for kernel in kernels_of(kind.target.who, kind.kernel)
    ]
    return float(max(found)) * (1 + _BEYOND)
