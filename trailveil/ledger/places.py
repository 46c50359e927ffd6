"""The places with names: the file that they are in, and what all releases tell of them.

`places.json`, in the user's own state folder and of its owner's alone, has where each place is,
what it is to be left with, and its noise. Where a place is, is a secret: it is in no message, in no
report and not in the ledger, which has the name that it was given and a random one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.keys import check_private
from trailveil.files.output import write_atomically
from trailveil.files.source import load, named
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.randomness import derive
from trailveil.ledger import ID_BYTES, NO_ID, Book, Ledger, Mark
from trailveil.ledger.recorded import unpacked
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


_VERSION = 1
_FILE = "places.json"
EVERYTHING = 1e30
"""1 / m^2: the loss that counts where all may be told."""
# Of cuts: what they tell, and how many they are. Of noise: what its bound allows for each way, and
# ways as a share of those that it is made for. Earlier versions counted matrices of information.
_NUMBERS = 2


def load_places(ledger: Ledger) -> list["Place"]:
    """All places of the user, removed ones too.

    Raises Refused for a file that others can read, that was changed, or is of another key.
    """
    record = _record(ledger)
    try:
        return [_read(stored) for stored in record["places"]]
    except (KeyError, TypeError, ValueError) as error:
        raise _changed(ledger.folder / _FILE) from error


def forgotten(ledger: Ledger) -> set[bytes]:
    """What the ledger knows the places by that were forgotten on purpose. Raises as above."""
    return {bytes.fromhex(name) for name in _record(ledger)["forgotten"]}


def check_known(ledger: Ledger, book: Book, places: Sequence["Place"]) -> None:
    """Refuse to go on where releases are of places that are no longer in the file of places."""
    marked = {place for row in book.standing() for place, _ in row.marked} - {NO_ID}
    if marked - {place.ident for place in places} - forgotten(ledger):
        raise Refused(
            "every place that releases are counted for must be in the file of places, got one that "
            f"is not: {named(ledger.folder / _FILE)}; restore that file from a backup, or move the "
            "whole folder away to begin anew: what was released until now is then counted no more"
        )


def _record(ledger: Ledger) -> dict[str, Any]:
    """The file of places, checked, as an object; an empty one where there is none."""
    path = ledger.folder / _FILE
    if not path.exists() and not path.is_symlink():
        return {"places": [], "forgotten": []}
    check_private(path, "the file of places")
    try:
        data = load(path)
    except UnreadableInput as error:
        raise _changed(path) from error
    whole, _, code = data.rpartition(b"\n")
    if derive(ledger.key, [b"places", whole]).hex().encode() != code:
        raise _changed(path)
    try:
        record: dict[str, Any] = json.loads(whole)
    except ValueError as error:
        raise _changed(path) from error
    if record.get("version") != _VERSION:
        raise _changed(path)
    return record


def save_places(ledger: Ledger, places: Sequence["Place"]) -> None:
    """Write all places, whole or not at all, for their owner alone."""
    saved = {place.ident for place in places}
    dropped = {place.ident for place in load_places(ledger)} | forgotten(ledger)
    record = {
        "version": _VERSION,
        "places": [_written(place) for place in places],
        "forgotten": sorted(ident.hex() for ident in dropped - saved),
    }
    whole = json.dumps(record).encode()
    code = derive(ledger.key, [b"places", whole]).hex().encode()
    path = ledger.folder / _FILE
    data = whole + b"\n" + code
    write_atomically(path, lambda out: out.write(data), overwrite=True, private=True)


def added(places: Sequence["Place"], place: "Place", *, change: bool) -> list["Place"]:
    """The places with one more, or with one changed; where it was before, it keeps its ident.

    Raises Refused for a name that is taken unless `change`, and for a place that overlaps another.
    """
    from trailveil.release.places import overlap

    same = [known for known in places if known.name == place.name]
    if any(not known.gone for known in same) and not change:
        raise Refused(
            f"a place must have a name of its own, got one that exists: {place.name!r}; add "
            "--change to state it anew (its noise is then drawn anew, and counted with the old)"
        )
    others = [known for known in places if known.name != place.name]
    near = [known for known in others if overlap(known, place)]
    if any(not known.gone for known in near):
        name = next(known.name for known in near if not known.gone)
        raise Refused(
            f"places must not overlap, nor be within the radius, got one that overlaps {name!r}: "
            f"one place with both in it is enough; `trailveil place remove {name}` first"
        )
    earlier = [*(known for known in same if overlap(known, place)), *near]
    if len({known.ident for known in earlier}) > 1:
        raise Refused(
            "a place must be where at most one was before, got one that overlaps several that were "
            "removed: state smaller metres"
        )
    ident = earlier[0].ident if earlier else place.ident
    distant = [known for known in others if known not in near]
    return [*distant, replace(place, ident=ident)]


def _written(place: "Place") -> dict[str, Any]:
    noise = place.designed_noise
    return {
        "name": place.name,
        "at": [place.circle.latitude, place.circle.longitude, place.circle.metres],
        "radius": place.radius,
        "epsilon": place.epsilon,
        "order": place.order,
        "ways": place.ways,
        "withhold": place.withhold,
        "prior": place.prior,
        "who": [adversary.value for adversary in place.who],
        "ident": place.ident.hex(),
        "gone": place.gone,
        "noise": noise
        and {
            "knots": noise.knots.seconds,
            "root": noise.root.tolist(),
            "left": [
                [exposure.adversary, exposure.loss, exposure.prior] for exposure in noise.exposures
            ],
        },
    }


def _read(record: dict[str, Any]) -> "Place":
    from trailveil.privacy.adversaries import Named
    from trailveil.privacy.exposure import Exposure
    from trailveil.privacy.false_tracks import Knots
    from trailveil.privacy.priors import BUILT_IN
    from trailveil.release.place_noise import PlaceNoise
    from trailveil.release.places import Place
    from trailveil.traces.visits import Circle

    noise = None
    if stored := record.get("noise"):  # earlier versions have other fields in its place
        knots, root = Knots(tuple(stored["knots"])), np.array(stored["root"], dtype=np.float64)
        noise = PlaceNoise(
            knots, root, tuple(Exposure.of_loss(*exposure) for exposure in stored["left"])
        )
    if record["prior"] not in BUILT_IN:
        raise InvalidValue("the prior of a place must be a built-in one")
    return Place(
        record["name"],
        Circle(*record["at"]),
        record["radius"],
        record["epsilon"],
        record["order"],
        record["ways"],
        record["withhold"],
        record["prior"],
        tuple(Named(name) for name in record["who"]),
        bytes.fromhex(record["ident"]),
        noise,
        record["gone"],
    )


def _changed(path: Path) -> Refused:
    return Refused(
        f"the file of places must be as Trailveil wrote it, got another: {named(path)}; restore it "
        "from a backup, or move the whole folder away to begin anew: what was released until now "
        "is then counted no more"
    )


@dataclass(frozen=True, slots=True)
class OfPlace:
    """What is told of one place with a name, as epsilon.

    releases: how many visited it. alone: this release. total: all so far. at_most: all, with every
    part without a name, which may be there, too. after: metres per coordinate that are then left.
    visits: how many were cut. moved: how many ways have the latest noise. stated: the epsilon that
    was stated for so many ways.
    """

    name: str
    releases: int
    alone: float
    total: float
    at_most: float
    after: float
    ways: int
    visits: int
    moved: float
    stated: float

    @property
    def more(self) -> int:
        """How many visits more the stated epsilon holds for; of noise alone, how many ways."""
        spent = self.ways * self.total / self.stated if self.visits else self.moved
        return max(0, int(min(self.ways - spent, self.ways) + 1e-3))


def places_told(book: Book, places: Sequence["Place"], subject: str) -> tuple[OfPlace, ...]:
    """What all releases of a subject tell of the places that they visited."""
    marked = [place for place in places if book.count_of(subject, place.ident)]
    return tuple(place_told(book, place, None, subject, ()) for place in marked)


def place_told(
    book: Book, place: "Place", mark: Mark | None, subject: str, unnamed: Sequence[Mark]
) -> OfPlace:
    """What is told of a place by all in the book, and by one more release that has a mark.

    unnamed: the marks of that release of its parts without a name.
    """
    sums = book.totals(subject, place.ident)
    last = max(((n, draw) for draw, (n, _) in sums.items() if draw != place.ident), default=None)
    newest = None if last is None else last[1]
    alone, total, visits = 0.0, 0.0, 0
    if mark is not None:
        number, before = sums.get(mark.draw, (0, np.zeros(mark.information.size)))
        sums[mark.draw] = number, before + mark.information
        if mark.draw == place.ident:
            alone = float(mark.information[0])
        else:
            newest, alone = mark.draw, _of_ways(place, mark.information, place.noise.root)
    for draw, (number, flat) in sums.items():
        if draw == place.ident:
            total, visits = total + float(flat[0]), round(flat[1])
            continue
        fresh = mark is not None and draw == mark.draw
        root = place.noise.root if fresh else unpacked(book.blob(number)).roots[draw]
        total += _of_ways(place, flat, root) if flat.size == _NUMBERS else _of_earlier(flat, root)
    moved = sums[newest][1] if newest is not None else np.zeros(_NUMBERS)
    scale = epsilon_of(place.radius, 1.0, place.order)
    return OfPlace(
        place.name,
        book.count_of(subject, place.ident) + (mark is not None),
        scale * alone,
        scale * total,
        scale * (total + unnamed_near(book, place, unnamed, subject)),
        total**-0.5 if total > 0 else float("inf"),
        place.ways,
        visits,
        place.ways * float(moved[1]) if moved.size == _NUMBERS else 0.0,
        place.epsilon,
    )


def _of_ways(place: "Place", information: FloatArray, root: FloatArray) -> float:
    """The most that a place loses by noise that visits share, by its root.

    Of noise that was stated otherwise: its bound, and in proportion beyond its ways. What n ways
    tell is concave in n, and nothing of none.
    """
    by_way, share = (float(number) for number in information)
    if share == 0 or by_way >= EVERYTHING:
        return by_way
    noise = place.designed_noise
    if noise is not None and np.array_equal(noise.root, root):
        return noise.loss(share * place.ways, place.request)
    return max(by_way, by_way / share)


def _of_earlier(flat: FloatArray, root: FloatArray) -> float:
    """The same by noise c ~ N(0, root root^T) of an earlier version, of the worst of its priors.

    flat: for each prior, information on p and d = c + p: (1 + r, 1 + r).
    """
    size, precise = root.shape[0] + 1, np.linalg.inv(root)
    less = np.hstack([-precise.sum(axis=1, keepdims=True), precise])
    whole = flat.reshape(-1, size, size) + less.T @ less
    return max(0.0, *(1 / float(np.linalg.inv(matrix)[0, 0]) for matrix in whole))


def epsilon_of(radius: float, loss: float, order: float) -> float:
    """Epsilon for a loss (1 / m^2) of two places so many metres apart."""
    return order / 2 * (radius * (1 + Frame.SCALE_ERROR)) ** 2 * loss
