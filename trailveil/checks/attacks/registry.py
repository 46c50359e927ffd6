"""One row an attack: its name, its function, what the attacker does, and what it is held to.

The command line, its help, the table of docs/commands/audit.md and `compare` take it from here. A
new attack is a function of `contract` and a row.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from trailveil.checks.attacks.contract import Attack
from trailveil.checks.attacks.estimators import (
    average,
    circle_of_holes,
    circle_of_stay,
    edges_of_hole,
    kalman_smoother,
    known_paths,
)
from trailveil.checks.attacks.exact import on_a_grid
from trailveil.checks.attacks.on_streets import on_streets
from trailveil.checks.attacks.posterior import posterior_mean, repeated_releases
from trailveil.checks.attacks.scenes import Scene, Trial, Trials
from trailveil.checks.attacks.trials import (
    Everywhere,
    against_stranger,
    exactly,
    misspecified,
    of_the_set,
    plainly,
    true_places,
    unpromised,
    with_a_map,
    worst_cases,
)
from trailveil.errors import InvalidValue


class HeldTo(StrEnum):
    """What an attack must not come nearer than."""

    EACH = "what is promised against it"
    STRANGER = "the stranger"
    NO_PLACE = "the least left to anybody who knows no place"
    NOTHING = "nothing"


class Needs(StrEnum):
    """What an attack cannot do without: a field of `Background`."""

    NOTHING = ""
    TRACKS = "tracks"
    STREETS = "streets"


_LACKING: Final = {
    Needs.TRACKS: "earlier tracks, got none: name files of them",
    Needs.STREETS: "a street network, got none: name a file of streets",
}


@dataclass(frozen=True, slots=True)
class RegisteredAttack:
    """A row.

    attack: its function; of several, the first. attacker: what it does or knows, as a sentence
    about it goes on. alone: whether it need not know how the noise varies, so that files of any
    design are attacked as well. still: whether it sees that the person stood still. trials: what it
    is tried as, where what it is held to does not say. everywhere: what it is tried as on noise for
    every place, or None.
    """

    name: str
    attack: Attack
    attacker: str
    held_to: HeldTo
    alone: bool = False
    needs: Needs = Needs.NOTHING
    still: bool = False
    trials: Trials | None = None
    everywhere: Everywhere | None = None

    def tried(self, scene: Scene) -> list[Trial]:
        """What it is tried as on a part of a release."""
        trials = self.trials
        if trials is None and self.held_to is HeldTo.STRANGER:
            trials = against_stranger(self.attack, still=self.still)
        elif trials is None:
            trials = unpromised(self.attack, self.attacker)
        return trials(scene)


_TEN: Final = "has ten releases with independent noise"
_MAPPED: Final = "has a street map"

_ROWS: Final = (
    RegisteredAttack(
        "posterior",
        posterior_mean,
        "is each adversary of the report, with the best guess there is",
        HeldTo.EACH,
        trials=of_the_set,
        everywhere=worst_cases,
    ),
    RegisteredAttack(
        "misspecified",
        posterior_mean,
        "believes in another model of movement",
        HeldTo.STRANGER,
        trials=misspecified,
    ),
    RegisteredAttack(
        "true-places",
        posterior_mean,
        "knows true places one, two and five minutes away",
        HeldTo.NOTHING,
        trials=true_places,
    ),
    RegisteredAttack(
        "kalman",
        kalman_smoother,
        "knows only the size of the noise, and smooths",
        HeldTo.STRANGER,
        alone=True,
        everywhere=plainly(kalman_smoother),
    ),
    RegisteredAttack(
        "average",
        average,
        "takes the average of a stay's fixes",
        HeldTo.STRANGER,
        alone=True,
        still=True,
    ),
    RegisteredAttack(
        "circle",
        circle_of_stay,
        "takes the centre of a circle through these",
        HeldTo.STRANGER,
        alone=True,
        still=True,
    ),
    RegisteredAttack(
        "edges",
        edges_of_hole,
        "goes on from where the hardly moved fixes end",
        HeldTo.STRANGER,
        alone=True,
    ),
    RegisteredAttack(
        "lattice",
        on_a_grid,
        "looks for exact structure: a grid, repeats, straight lines, roads, filters, equal steps",
        HeldTo.STRANGER,
        trials=exactly,
    ),
    RegisteredAttack(
        "holes",
        circle_of_holes,
        "takes all protected parts within an hour for one place",
        HeldTo.NOTHING,
        alone=True,
    ),
    RegisteredAttack(
        "map",
        on_streets,
        _MAPPED,
        HeldTo.NO_PLACE,
        alone=True,
        needs=Needs.STREETS,
        trials=with_a_map(on_streets, _MAPPED),
    ),
    RegisteredAttack(
        "repeated",
        repeated_releases,
        _TEN,
        HeldTo.NOTHING,
        trials=unpromised(repeated_releases, _TEN, repeated=10),
    ),
    RegisteredAttack(
        "known-paths",
        known_paths,
        "has earlier tracks of the same ways",
        HeldTo.NOTHING,
        alone=True,
        needs=Needs.TRACKS,
    ),
)
ATTACKS: Final[dict[str, RegisteredAttack]] = {row.name: row for row in _ROWS}
"""The attacks by name."""


def needing(what: Needs) -> tuple[str, ...]:
    """The names of the attacks that cannot do without it."""
    return tuple(row.name for row in ATTACKS.values() if row.needs is what)


def chosen(stated: Sequence[str] | None, given: Iterable[Needs]) -> list[RegisteredAttack]:
    """The attacks by these names; of None, all that can be tried with what is given.

    Raises InvalidValue for a name that is none, and for an attack that needs something else.
    """
    there = {Needs.NOTHING, *given}
    if stated is None:
        return [row for row in ATTACKS.values() if row.needs in there]
    unknown = [name for name in stated if name not in ATTACKS]
    if unknown:
        raise InvalidValue(f"an attack must be {', '.join(ATTACKS)}, got {unknown[0]!r}")
    rows = [row for name, row in ATTACKS.items() if name in stated]
    for row in rows:
        if row.needs not in there:
            raise InvalidValue(f"{row.name} must have {_LACKING[row.needs]}")
    return rows
