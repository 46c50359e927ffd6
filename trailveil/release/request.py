"""What is asked of a release: how much is to be left of what, to whom, and by what mechanism."""

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from trailveil.errors import BeyondPrior, InvalidValue, Refused, number_between
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversaries import DEFAULT, Named
from trailveil.privacy.guarantee import CIRCLE_68, loss_bound_for
from trailveil.privacy.movement import Movement, movement_of
from trailveil.privacy.priors import BUILT_IN
from trailveil.traces.activities import ACTIVITIES, MIDDLE, UNKNOWN
from trailveil.traces.projection import Frame
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.version import DESIGN_VERSION

if TYPE_CHECKING:
    from trailveil.privacy.knowledge import Knowledge
    from trailveil.release.public import Position
    from trailveil.traces.selection import Stretch

DEFAULT_KERNEL = BUILT_IN["default"].kernel
"""The prior of movement where none is stated; metres and seconds."""

METRES = "m"

STRANGER = "a stranger"
KNOWS_PLACE = "someone who knows one true place"
KNOWS_PATH = "someone who knows your path"
HAS_THE_REST = "someone who has the rest of your track and a map"

# Metres per coordinate: the most that an adversary can be left with.
_MOST_UNSURE = 20_000.0
# Seconds: the time constant of the slowest movement that is reckoned with; how far from a window a
# place is known from on; how far from a part the path is known.
_TIME_CONSTANT, _PLACE_AWAY, _PATH_AWAY = 60.0, 60, 300

# Seconds from which on a part is a stay, and no stop on a way that goes on.
_STAY = 180

NOISE_AGAINST = (Named.PLAIN, Named.POINT, Named.PATH)
"""The adversaries that noise may be made against, by name."""


STEADY = 300
"""Seconds around a part of which a stranger assumes nothing, unless more are stated."""


@dataclass(frozen=True, slots=True)
class Paces:
    """The least that a person moves: outward from an end of a recording, and through its middle.

    A person who goes on and on through a place gives more of it away on both sides together than
    two separate ways would: see docs/activities.md. After a stay the way is another one.
    """

    end: Movement
    middle: Movement

    def around(self, stretch: "Stretch", sides: int) -> Movement:
        """The movement to reckon with around a part that has so many sides."""
        # After so long a stay, the way there and the way on are two.
        stay = stretch.end - stretch.begin >= _STAY * NANOSECONDS
        return self.middle if sides > 1 and not stay else self.end


class Method(StrEnum):
    """The mechanisms of `protect`."""

    CUT = "cut"
    NOISE = "noise"
    BOTH = "both"
    EVERYWHERE = "everywhere"
    """Noise for every place at once: see `release.everywhere`, which plans such a release."""

    @property
    def cuts(self) -> bool:
        """Whether nothing is released around what is protected."""
        return self in (Method.CUT, Method.BOTH)


# Of a request: what its design does not depend on, but on what it stands beside.
_ELSEWHERE = {"stretches", "returns", "scale", "unit", "public", "longest_stay"}


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a release.

    stretches: what to protect. radius: metres. who: the adversaries that noise is made against, by
    name. leave: metres around the true place, the 68 % circle that each of them must be left with,
    in place of epsilon. withhold: seconds around each part, at least, of which nothing is released,
    or None for what is needed. floor: m/s, at least how fast the person moves away from a part,
    or None for what the recording states. middle: m/s, the same for a cut in the middle of a
    recording; None for half of the floor.
    uncertain: seconds around a part within which nothing is assumed of the movement. steady:
    seconds around a part within which a stranger assumes nothing, either. longest_stay: seconds, of
    noise for every place, or None for 8 hours; the slowest of its speeds is the floor. returns:
    whether the stretches hold every time at which the trace is at one of their places. scale: how
    much longer than in truth a distance can be in the frame of the trace, see `framed`. unit: of
    readings, in place of metres. public: positions that are public already, as far as they tell of
    the stretches. Raises InvalidValue for numbers out of range.
    """

    stretches: "tuple[Stretch, ...]"
    radius: float = 100.0
    epsilon: float = 1.0
    order: float = 5.0
    who: tuple[Named, ...] = DEFAULT
    method: Method = Method.CUT
    kernel: Kernel = DEFAULT_KERNEL
    leave: float | None = None
    withhold: float | None = None
    floor: float | None = None
    middle: float | None = None
    uncertain: int = 60
    steady: int = STEADY
    longest_stay: float | None = None
    returns: bool = False
    scale: float = 1 + Frame.SCALE_ERROR
    unit: str = METRES
    public: "tuple[Position, ...]" = ()

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("radius", "epsilon", "order", "leave"):
            value = getattr(self, name)
            if value is not None or name != "leave":
                least = 1.0 if name == "order" else 0.0
                most = 1e9 if self.unit == METRES else 1e12
                object.__setattr__(self, name, number_between(name, value, least, most))
        if self.unit != METRES:
            object.__setattr__(self, "scale", 1.0)
        if self.longest_stay:
            number_between("the longest stay", self.longest_stay, 0.0, 1e9)
        if self.withhold is not None and self.withhold != 0:
            number_between("withhold", self.withhold, 0.0, 1e9)
        for pace in (self.floor, self.middle):
            if pace is not None:
                number_between("the floor", pace, 0.01, 1000.0)
        if not 0 <= self.uncertain <= self.steady <= 86_400:
            raise InvalidValue(
                "uncertain and steady must be 0 to 86,400 seconds, the first no longer, got "
                f"{self.uncertain} and {self.steady}"
            )

    @property
    def bound(self) -> float:
        """The most that the loss of one location may be, 1 / m^2, at the frame's worst scale."""
        return loss_bound_for(self.epsilon, self.radius * self.scale, self.order)

    @property
    def public_in_frame(self) -> "tuple[Position, ...]":
        """What is public already, as well as it can be known in the frame."""
        return tuple(each._replace(deviation=each.deviation / self.scale) for each in self.public)

    @property
    def wide(self) -> float:
        """How much larger the scale is than that of the frames of most traces, 1 for these."""
        return self.scale / (1 + Frame.SCALE_ERROR)

    def framed(self, frame: Frame) -> "Request":
        """The same request of a trace in this frame."""
        scale = 1 + frame.scale_error
        return self if scale == self.scale else replace(self, scale=scale)

    @property
    def variance(self) -> float:
        """Square metres per coordinate that must be left to who has no idea of the place."""
        if self.leave is None:
            return 1 / self.bound
        # Distances in the frame are a little longer than they are.
        return (self.leave * self.scale / CIRCLE_68) ** 2

    @property
    def slowest(self) -> Movement:
        """The least that the person moves away from a part; that of the slowest where unknown."""
        return Movement(self.floor or ACTIVITIES[UNKNOWN], _TIME_CONSTANT)

    def at_pace_of(self, trace: Trace) -> "Request":
        """The same with a floor: where none was stated, that of what the recording states."""
        if self.floor is not None:
            return self
        activity = trace.activity or UNKNOWN
        return replace(self, floor=ACTIVITIES[activity], middle=MIDDLE[activity])

    @property
    def paces(self) -> Paces:
        """The same, where nothing is released around a part."""
        return _paces(self.floor, self.middle)

    @property
    def adversaries(self) -> "tuple[Knowledge, ...]":
        """Whom noise is made against."""
        return _adversaries(self.slowest, self.kernel, self.who, self.uncertain, self.steady)

    @property
    def path_from(self) -> float | None:
        """Seconds from a part from which on an adversary of the noise knows the path, if any."""
        paths = [adversary.path for adversary in self.adversaries if adversary.path is not None]
        return min(paths) + self.uncertain if paths else None

    @property
    def noise_bound(self) -> float:
        """The most that the loss by noise may be: that leaves the metres that were asked for.

        Raises BeyondPrior where an adversary knows more than that without any release.
        """
        if self.leave is None:
            return self.bound
        known = min(adversary.variance(2, adversary.place) for adversary in self.adversaries)
        if known <= self.variance:
            raise _too_much(known, self.scale)
        return 1 / self.variance - 1 / known

    @property
    def design(self) -> str:
        """All of it that the release depends on, in one line: not what stretches are called.

        The scale is that of the trace's frame, which stands beside it.
        """
        when = tuple(
            (stretch.begin, stretch.end, *([stretch.variance] if stretch.variance else []))
            for stretch in self.stretches
        )
        others = tuple(
            getattr(self, field.name) for field in fields(self) if field.name not in _ELSEWHERE
        )
        public = [tuple(map(tuple, self.public))] if self.public else []
        stays = () if self.longest_stay is None else (("longest stay", self.longest_stay),)
        return repr((DESIGN_VERSION, when, *others, *public, *stays))


@lru_cache(maxsize=64)  # asked for again and again, of every part
def _paces(floor: float | None, middle: float | None) -> Paces:
    slowest = Movement(floor or ACTIVITIES[UNKNOWN], _TIME_CONSTANT)
    pace = MIDDLE[UNKNOWN] if floor is None else middle or slowest.speed / 2
    return Paces(slowest, Movement(min(pace, slowest.speed), _TIME_CONSTANT))


@lru_cache(maxsize=64)  # likewise
def _adversaries(
    slowest: Movement, kernel: Kernel, who: tuple[Named, ...], uncertain: int, steady: int
) -> "tuple[Knowledge, ...]":
    from trailveil.privacy.knowledge import Knowledge

    usual = movement_of(kernel)
    knowledge = [Knowledge(STRANGER, slowest, steady=steady - uncertain)]
    if Named.POINT in who:
        knowledge.append(Knowledge(KNOWS_PLACE, usual, place=_PLACE_AWAY))
    if Named.PATH in who:
        away = max(_PATH_AWAY - uncertain, _PLACE_AWAY)
        knowledge.append(Knowledge(KNOWS_PATH, usual, path=away))
    return tuple(knowledge)


def _too_much(known: float, scale: float) -> BeyondPrior:
    most = int(CIRCLE_68 * known**0.5 / scale)
    error = BeyondPrior(known**0.5)
    error.args = (
        f"metres to leave must be below {most} with noise, got more: somebody whom the noise is "
        f"made against knows the place that well without any release; say --leave {most - 1}, or "
        "--mechanism cut",
    )
    error.public = error.args[0]
    return error


def check_target(request: Request) -> None:
    """Refuse a target that would leave adversaries with more than any prior allows for."""
    deviation = request.variance**0.5
    if deviation > _MOST_UNSURE:
        option, metres = ("leave", request.leave) if request.leave else ("radius", request.radius)
        most = int(metres * _MOST_UNSURE / deviation)
        larger = "" if request.leave else ", or a larger --epsilon"
        raise Refused(
            f"an adversary must be left with at most {_MOST_UNSURE / 1000:g} km, got "
            f"{deviation / 1000:.4g} km: state --{option} {most} or less{larger}"
        )
