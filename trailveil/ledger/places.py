"""Places that a person names, and the noise that all visits of each of them share.

In the user's own state folder, in a file of its owner's alone: `places.json`, with where each place
is, what it is to be left with, and its noise. Where a place is, is a secret: it is in no message,
in no report and not in the ledger, which has the name that it was given and a random one.

The draw of the common noise is a keyed function of all that was stated about a place: with another
radius, epsilon or position it is another draw, never the same one at another scale. Two devices
with one key and one statement agree without talking.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from trailveil.designer.cut import least_cut
from trailveil.designer.table import Cache
from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.keys import check_private
from trailveil.files.output import write_atomically
from trailveil.files.source import load, named
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.gp.randomness import derive, normals
from trailveil.ledger import ID_BYTES, NO_ID, Book, Ledger
from trailveil.privacy.adversaries import Named
from trailveil.privacy.exposure import TrackExposure
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.priors import BUILT_IN
from trailveil.release.common import Common
from trailveil.release.cutting import Paces
from trailveil.release.place_noise import PlaceNoise, place_noise
from trailveil.release.request import Method, Request
from trailveil.traces.returns import TELLS
from trailveil.traces.selection import Stretch
from trailveil.traces.stops import Interval, joined
from trailveil.traces.trace import NANOSECONDS, Trace
from trailveil.traces.visits import Circle, between_places, visits

# Raised whenever the same statement would get another noise: draws are not shared between them.
_DESIGN = 2
_VERSION = 1
_FILE = "places.json"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Place:
    """A place by its name, and what is stated about it; printing it shows nothing.

    circle: a visit is to be within it. radius: metres, epsilon, order, as of a release. ways: how
    many ways to and from it the noise is made for. withhold: seconds around a visit within which
    nothing is released, or None. prior: the name of a built-in one. who: the adversaries. ident:
    what the ledger knows it by. designed_noise: None for a place of an earlier version, which can
    only be cut. gone: removed, and kept, so that it is known if it comes back.
    """

    name: str
    circle: Circle
    radius: float
    epsilon: float
    order: float
    ways: int
    withhold: float | None
    prior: str
    who: tuple[Named, ...]
    ident: bytes
    designed_noise: PlaceNoise | None = None
    gone: bool = False

    @property
    def wide(self) -> Circle:
        """Where a visit is one: the circle, and all that tells its middle."""
        return replace(self.circle, metres=max(self.circle.metres, TELLS))

    @property
    def noise(self) -> PlaceNoise:
        """Its noise; Refused for a place of an earlier version, whose noise was another."""
        if self.designed_noise is None:
            raise Refused(
                f"noise for a place must be designed by this version, got {self.name!r} of an "
                "earlier one: state it anew (trailveil place add --change), or use --mechanism cut"
            )
        return self.designed_noise

    @property
    def kernel(self) -> Kernel:
        """The prior of movement, metres and seconds."""
        return BUILT_IN[self.prior].kernel

    @property
    def request(self) -> Request:
        """What is asked for at it, as of a release."""
        return Request(
            (), self.radius, self.epsilon, self.order, self.who, Method.NOISE, self.kernel
        )

    @property
    def variance(self) -> float:
        """Square metres per coordinate that each cut must leave, for so many visits together.

        Given the place, ways to and from it are independent: what cuts tell of it adds up.
        """
        return self.ways / self.request.bound

    @property
    def reach(self) -> float:
        """Seconds from a visit within which another recording may be cut or moved because of it."""
        slowest = Request(())
        try:
            cut = least_cut(slowest.slowest, self.variance, 1) + slowest.uncertain
        except Refused:
            cut = float("inf")
        moved = 0.0 if self.designed_noise is None else self.designed_noise.reach
        return max(moved, cut, self.withhold or 0.0)

    @property
    def statement(self) -> bytes:
        """All that was stated about it: what its draw depends on."""
        at = (self.circle.latitude, self.circle.longitude, self.circle.metres)
        stated = (self.radius, self.epsilon, self.order, self.ways, self.withhold)
        return repr((_DESIGN, self.name, at, *stated, self.kernel, self.who)).encode()

    def seed(self, key: bytes) -> bytes:
        """The seed of its draw under a key."""
        return derive(key, [b"common noise of a place", self.statement])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Visited:
    """A place that a recording visits, with the draw of its common noise.

    intervals: the visits, nanoseconds, of this recording or known from others. seed: of the draw.
    """

    place: Place
    intervals: tuple[Interval, ...]
    seed: bytes = field(repr=False)

    @property
    def draw(self) -> bytes:
        """What the ledger knows the draw by."""
        return derive(self.seed, [b"name"])[:ID_BYTES]

    def counted_as(self, method: Method) -> bytes:
        """What the ledger counts its visits as, in a release by this method: a draw, or cuts."""
        return self.place.ident if method.cuts else self.draw

    def parts(self, paces: Paces, uncertain: float) -> list[Stretch]:
        """Its visits as parts to be cut. uncertain: seconds around a part that belong to it."""
        variance, silent = self.place.variance, self.place.withhold
        if silent is not None and silent > uncertain:
            variance = max(variance, paces.end.bridged(silent - uncertain))
        name = self.place.name
        return [
            Stretch(name, *interval, by_place=True, variance=variance)
            for interval in self.intervals
        ]

    def away(self, trace: Trace) -> FloatArray:
        """Seconds of each fix to the nearest visit (n,)."""
        gaps = [np.maximum(begin - trace.times, trace.times - end) for begin, end in self.intervals]
        return np.asarray(np.maximum(np.min(gaps, axis=0), 0) / NANOSECONDS)

    def common(self, trace: Trace) -> Common:
        """Its noise at the fixes of a trace."""
        noise, silence = self.place.noise, self.place.withhold
        parts = tuple(
            Stretch(self.place.name, *interval, by_place=True) for interval in self.intervals
        )
        columns = noise.at(trace.seconds, [part.seconds(trace) for part in parts])
        size = columns.shape[1]
        draws = [normals(self.seed, f"{axis} place", size) for axis in ("east", "north")]
        silent = self.away(trace) <= (-1.0 if silence is None else silence)
        return Common(self.draw, columns, np.array(draws), silent, parts, self.place.who)


def shared_noise(there: Sequence[Visited], trace: Trace, method: Method) -> list[Common]:
    """The noise of the places that a trace visits, as a release by this method has it.

    A cut alone has none. Beside a cut it is another draw than without one: who has the rest of a
    track as it was recorded learns the draw, and what it hides elsewhere must not hang on that.
    """
    if method is Method.CUT:
        return []
    if method is Method.BOTH:
        there = [replace(visit, seed=derive(visit.seed, [b"beside a cut"])) for visit in there]
    return [visit.common(trace) for visit in there]


def visited(
    trace: Trace,
    places: Sequence[Place],
    key: bytes,
    known: dict[bytes, list[Interval]],
) -> list[Visited]:
    """The places that a trace visits, or is near in time to a visit of.

    known: visits that earlier releases had, near in time, by the ident of the place.
    """
    visits_by_place = []
    for place in places:
        whole = joined(sorted({*visits(trace, place.wide), *known.get(place.ident, [])}))
        if whole:
            visits_by_place.append(Visited(place, tuple(whole), place.seed(key)))
    return visits_by_place


def designed(place: Place, cache: Cache | None = None) -> Place:
    """The place with its noise. Raises as `trailveil.release.place_noise.place_noise` does."""
    return replace(place, designed_noise=place_noise(place.request, place.ways, cache))


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
    dropped = {load_place.ident for load_place in load_places(ledger)} | forgotten(ledger)
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


def overlap(place: Place, other: Place) -> bool:
    """Whether two places may be one: what nobody is to tell apart is counted together."""
    apart = between_places(place.circle, other.circle)
    return apart <= place.circle.metres + other.circle.metres + max(place.radius, other.radius)


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
                [exposure.adversary, exposure.loss, exposure.prior] for exposure in noise.left
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
