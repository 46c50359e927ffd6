"""The file of the places with names, in the user's own state folder, of its owner's alone.

`places.json` has where each place is, what it is to be left with, and its noise. Where a place is,
is a secret: it is in no message, in no report and not in the ledger, which has the name that it was
given and a random one.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.keys import check_private
from trailveil.files.output import write_atomically
from trailveil.files.source import load, named
from trailveil.gp.randomness import derive
from trailveil.ledger import NO_ID, Book, Ledger
from trailveil.privacy.adversaries import Named
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import TrackExposure
from trailveil.privacy.priors import BUILT_IN
from trailveil.release.place_noise import PlaceNoise
from trailveil.release.places import Place, overlap
from trailveil.traces.visits import Circle

_VERSION = 1
_FILE = "places.json"


def load_places(ledger: Ledger) -> list[Place]:
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


def check_known(ledger: Ledger, book: Book, places: Sequence[Place]) -> None:
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


def save_places(ledger: Ledger, places: Sequence[Place]) -> None:
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


def added(places: Sequence[Place], place: Place, *, change: bool) -> list[Place]:
    """The places with one more, or with one changed; where it was before, it keeps its ident.

    Raises Refused for a name that is taken unless `change`, and for a place that overlaps another.
    """
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


def _written(place: Place) -> dict[str, Any]:
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


def _read(record: dict[str, Any]) -> Place:
    noise = None
    if stored := record.get("noise"):  # earlier versions have other fields in its place
        knots, root = Knots(tuple(stored["knots"])), np.array(stored["root"], dtype=np.float64)
        noise = PlaceNoise(
            knots, root, tuple(TrackExposure(*exposure) for exposure in stored["left"])
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
