"""Whose release is it? Re-identification of people by where they are on other days."""

from collections.abc import Hashable

import numpy as np

from trailveil.checks.utility import density
from trailveil.studies.comparing.cases import Clues, Sighting

_CELL = 800.0  # metres

HeatMap = dict[Hashable, float]


def heat_map(released: Sighting, known: Clues) -> str | None:
    """The person whose known days have the heat map most like that of the release.

    Shares of time in cells of 800 m, compared by the Topsoe divergence. Source: the AP-attack of
    Maouche, Ben Mokhtar and Bouchenak (2017), MobiQuitous. None where no other day is known.
    """
    people = known.people()
    if known.case.person not in people or not released.seconds.size:
        return None
    maps: dict[str, HeatMap] = known.remembered(
        "heat maps",
        lambda: {
            person: _shares(density([case.trace for case in cases], _CELL))
            for person, cases in people.items()
        },
    )
    mine = _shares(density([released.trace], _CELL))
    return min(maps, key=lambda person: (_topsoe(mine, maps[person]), person))


def _shares(spent: dict[tuple[int, int], float]) -> HeatMap:
    whole = sum(spent.values())
    return {cell: seconds / whole for cell, seconds in spent.items()} if whole > 0 else {}


def _topsoe(first: HeatMap, other: HeatMap) -> float:
    """sum p log(2p / (p + q)) + q log(2q / (p + q)); cells of one alone count p log 2."""
    shared = first.keys() & other.keys()
    p, q = (np.array([each[cell] for cell in shared]) for each in (first, other))
    alone = 2.0 - p.sum() - q.sum()
    both = p * np.log(2 * p / (p + q)) + q * np.log(2 * q / (p + q))
    return float(alone * np.log(2.0) + both.sum())
