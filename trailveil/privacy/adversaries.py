"""The sets of adversaries that a release is made against, by name.

The default is the first five of the design document, of somebody who may be seen to stand still:
knows nothing but how people move, one true place besides, the path but for some minutes around the
secret, and that this person walks, or drives. Whoever names some of them gets those and the plain
one.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import IntegratedOU, Kernel, Sum

if TYPE_CHECKING:  # names are known without what judges them
    from trailveil.privacy.adversary import Adversary

Window = tuple[float, float]

SPEEDS = (1.0, 10.0)
"""Metres per second: people who walk, and who drive, beside the average of the default prior.

Slower ones would be held too, were it not that noise must then reach hours (docs/realism.md).
"""


class Named(StrEnum):
    """What an adversary may know besides how people move."""

    PLAIN = "plain"
    STILL = "still"
    POINT = "point"
    PATH = "path"
    SPEEDS = "speeds"


DEFAULT = tuple(Named)


def named(stated: Iterable[str]) -> tuple[Named, ...]:
    """Adversaries by their names, the plain one among them; "default" is all of them."""
    names = {Named.PLAIN}
    for name in stated:
        if name == "default":
            return DEFAULT
        if name not in set(Named):
            raise InvalidValue(f"an adversary must be default, {', '.join(Named)}, got {name!r}")
        names.add(Named(name))
    return tuple(adversary for adversary in Named if adversary in names)


def moving(
    who: Sequence[Named], kernel: Kernel, unseen: Sequence[Window] = (), *, surely: float = math.inf
) -> list["Adversary"]:
    """Adversaries who do not know that the person stood still, each by itself.

    kernel: of the prior; who knows the speed believes in another one. unseen: windows that are
    secret as a whole. surely: see
    `trailveil.privacy.adversary.Known`.
    """
    from trailveil.privacy.adversary import PLAIN, Adversary

    adversaries = [PLAIN]
    if Named.POINT in who:
        adversaries.append(Adversary.knows_point())
    if Named.PATH in who:
        adversaries.append(Adversary.knows_path(surely=surely))
    if Named.SPEEDS in who:
        adversaries += [
            Adversary.believes(f"knows that the speed is {speed:g} m/s", other)
            for speed, other in other_speeds(kernel)
        ]
    around = Adversary(PLAIN.name, unseen=tuple(unseen))
    return [around & adversary if unseen else adversary for adversary in adversaries]


def seeing_stillness(
    who: Sequence[Named], kernel: Kernel, windows: Sequence[Window], *, surely: float = math.inf
) -> list["Adversary"]:
    """The same, each of whom sees besides that the person stood still in the windows."""
    from trailveil.privacy.adversary import Adversary

    if Named.STILL not in who or not windows:
        return []
    return [
        adversary & Adversary.sees_stillness(windows)
        for adversary in moving(who, kernel, surely=surely)
    ]


def every(
    who: Sequence[Named], kernel: Kernel, windows: Sequence[Window] = ()
) -> list["Adversary"]:
    """All of a set: those who see that the person stood still in the windows, and the others."""
    return [*moving(who, kernel), *seeing_stillness(who, kernel, windows)]


def other_speeds(kernel: Kernel) -> list[tuple[float, Kernel]]:
    """The same movement at each other speed that somebody may know, with that speed (m/s)."""
    kernels = [(speed, at_speed(kernel, speed)) for speed in SPEEDS]
    return [(speed, other) for speed, other in kernels if other is not None and other != kernel]


def kernels_of(who: Sequence[Named], kernel: Kernel) -> list[Kernel]:
    """The priors of movement that a set of adversaries holds: the stated one, and its speeds."""
    more = [other for _, other in other_speeds(kernel)] if Named.SPEEDS in who else []
    return [kernel, *more]


def at_speed(kernel: Kernel, speed: float) -> Kernel | None:
    """The same movement at another speed (metres per second); None for a prior that has none."""
    parts = kernel.parts if isinstance(kernel, Sum) else (kernel,)
    if sum(isinstance(part, IntegratedOU) for part in parts) != 1:
        return None
    return Sum(
        tuple(
            replace(part, std=speed) if isinstance(part, IntegratedOU) else part for part in parts
        )
    )
