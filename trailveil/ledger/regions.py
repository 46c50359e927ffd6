"""The whole degrees that places are in: all that the ledger knows of where they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from trailveil.gp.gaussian import FloatArray
from trailveil.ledger import ID_BYTES, NO_ID, Book, Mark
from trailveil.traces.projection import MICRO, Frame, placed

if TYPE_CHECKING:
    from trailveil.release.places import Place

NEAR_BORDER = 2000.0
"""Metres: a place so near to a whole degree may be in it."""

# The corners of a square around a place, and its middle.
_CORNERS = np.array([[0.0, 0.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])


def degrees_near(frame: Frame, middle: FloatArray, radius: float) -> set[bytes]:
    """The whole degrees that a place (2,), metres in the frame, is in or near, by their names.

    radius: metres.
    """
    around = middle + max(NEAR_BORDER, 4 * radius) * _CORNERS
    degrees = np.floor(frame.to_degrees(np.round(around * MICRO).astype(np.int64)) / MICRO)
    return {
        f"{int(north):+03d}{int((east + 180) % 360):03d}".rjust(ID_BYTES).encode()
        for north, east in degrees
    }


def unnamed_near(book: Book, place: "Place", marks: Sequence[Mark], subject: str) -> float:
    """What parts without a name tell of a place with one (1 / m^2), if all of them are there.

    Those of all releases in the book, and those of one more that have these marks: of the whole
    degree in or near the place of which they tell the most, and of earlier versions anywhere.
    """
    told = {draw: float(total[0]) for draw, (_, total) in book.totals(subject, NO_ID).items()}
    anywhere = told.pop(NO_ID, 0.0)
    for mark in marks:
        told[mark.draw] = told.get(mark.draw, 0.0) + float(mark.information[0])
    frame, at = placed([[place.circle.latitude, place.circle.longitude]])
    near = degrees_near(frame, at[0] / MICRO, place.radius)
    return anywhere + max((told.get(region, 0.0) for region in near), default=0.0)
