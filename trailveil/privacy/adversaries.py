"""The sets of adversaries that a release is made against, by name.

The default is those that designs ship for: an adversary who knows nothing but how people move, one
true place besides, the path but for some minutes around the secret, that this person stands still,
and that this person walks or drives. Noise in continuous time is made against three of them. A set
that is stated has the plain one as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import IntegratedOU, Kernel, Sum

SPEEDS = (1.0, 10.0)
"""Metres per second: people who walk, and who drive, beside the average of the default prior.

Slower ones would be held too, were it not that noise must then reach hours (docs/validation.md).
"""


class Named(StrEnum):
    """What an adversary may know besides how people move."""

    PLAIN = "plain"
    STILL = "still"
    POINT = "point"
    PATH = "path"
    SPEEDS = "speeds"


DEFAULT = (Named.PLAIN, Named.STILL, Named.POINT, Named.PATH, Named.SPEEDS)
"""A further one is stated by name: releases by default stay what they are."""


def named(stated: Iterable[str]) -> tuple[Named, ...]:
    """Adversaries by their names, the plain one among them; "default" is all of `DEFAULT`."""
    names = {Named.PLAIN}
    for name in stated:
        if name == "default":
            return DEFAULT
        if name not in set(Named):
            raise InvalidValue(f"an adversary must be default, {', '.join(Named)}, got {name!r}")
        names.add(Named(name))
    return tuple(adversary for adversary in Named if adversary in names)


def kernels_of(who: Sequence[Named], kernel: Kernel) -> list[Kernel]:
    """The priors of movement that a set of adversaries holds: the stated one, and its speeds."""
    speeds = SPEEDS if Named.SPEEDS in who else ()
    others = [at_speed(kernel, speed) for speed in speeds]
    return [kernel, *(other for other in others if other is not None and other != kernel)]


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
