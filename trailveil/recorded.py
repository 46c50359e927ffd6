"""What the ledger keeps of a release besides its summary: times and mechanism, and no position.

One compressed archive of arrays an entry: enough to compute again what the release tells, alone or
with others.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trailveil.gaussian import FloatArray
from trailveil.ledger import Book
from trailveil.mechanism import Mechanism
from trailveil.places import Place, Visited
from trailveil.release import Plan
from trailveil.trace import NANOSECONDS

SAME_OUTING = 2 * 3600.0
"""Seconds from a recorded visit of a place within which another recording has its noise as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What was kept of a release.

    times: (n,) nanoseconds. released: (n,). mechanism: its own noise, times in seconds since 1970;
    None for one that is no factor and floor. parts: (begin, end) that it protected, nanoseconds.
    roots, visits: of each draw of common noise, by its name.
    """

    times: NDArray[np.int64]
    released: NDArray[np.bool_]
    mechanism: Mechanism | None
    parts: list[tuple[int, int]]
    roots: dict[bytes, FloatArray]
    visits: dict[bytes, list[tuple[int, int]]]


def packed(made: Plan, there: Sequence[Visited]) -> bytes:
    """Times and mechanism of a release, enough to compute again what it tells; no position."""
    mechanism = made.mechanism
    own = mechanism.factor[:, : made.own_columns]
    rows = np.flatnonzero(np.any(own != 0, axis=1))
    arrays: dict[str, Any] = {
        "times": made.trace.times,
        "released": np.asarray(mechanism.released),
        "rows": rows,
        "factor": own[rows],
        "floor": np.array([mechanism.floor]),
        "process": np.array(["" if mechanism.process is None else repr(mechanism.process)]),
        "parts": np.array(
            [(one.stretch.begin, one.stretch.end) for one in made.findings], dtype=np.int64
        ).reshape(-1, 2),
    }
    for one in there:
        arrays[f"root {one.draw.hex()}"] = one.place.noise.root
        arrays[f"visits {one.draw.hex()}"] = np.array(one.intervals, dtype=np.int64)
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def unpacked(blob: bytes) -> Kept:
    """What `packed` made bytes of."""
    with np.load(io.BytesIO(blob)) as arrays:
        times, released = arrays["times"], arrays["released"]
        mechanism = None
        if not str(arrays["process"][0]):
            factor = np.zeros((times.size, arrays["factor"].shape[1]))
            factor[arrays["rows"]] = arrays["factor"]
            own = (times / NANOSECONDS, factor, float(arrays["floor"][0]), None, released)
            mechanism = Mechanism(*own)
        names = {bytes.fromhex(one[5:]) for one in arrays.files if one.startswith("root ")}
        return Kept(
            times,
            released,
            mechanism,
            [(int(a), int(b)) for a, b in arrays["parts"]],
            {name: arrays[f"root {name.hex()}"] for name in names},
            {name: [(int(a), int(b)) for a, b in arrays[f"visits {name.hex()}"]] for name in names},
        )


@dataclass(frozen=True, slots=True)
class Visit:
    """That a release from begin to end (ns) visited a place, by its ident, and when."""

    begin: int
    end: int
    place: bytes
    spans: tuple[tuple[int, int], ...]


def visits_of(
    book: Book, subject: str, places: Sequence[Place], begin: int = -(2**63), end: int = 2**63
) -> list[Visit]:
    """The visits of places that the releases of a subject from begin to end (ns) had."""
    idents = {one.ident for one in places}
    return [
        Visit(one.begin, one.end, which, tuple(unpacked(book.blob(one.number)).visits[draw]))
        for one in book.overlapping(subject, "", begin, end)
        for which, draw in one.marked
        if which in idents
    ]


def known_visits(
    book: Book, subject: str, places: Sequence[Place], begin: int, end: int
) -> dict[bytes, list[tuple[int, int]]]:
    """When earlier releases visited places, as far as that matters from begin to end (ns)."""
    most = round(SAME_OUTING * NANOSECONDS)
    near = visits_of(book, subject, places, begin - most, end + most)
    return near_in_time(near, places, begin, end)


def near_in_time(
    known: Sequence[Visit], places: Sequence[Place], begin: int, end: int
) -> dict[bytes, list[tuple[int, int]]]:
    """Of visits, those that matter from begin to end (ns), by the ident of their place."""
    found: dict[bytes, list[tuple[int, int]]] = {}
    for place in places:
        reach = round(min(place.noise.reach, SAME_OUTING) * NANOSECONDS)
        for one in known:
            near = one.begin <= end + reach and one.end >= begin - reach
            if near and one.place == place.ident:
                found.setdefault(one.place, []).extend(one.spans)
    return found


def tells_nothing_new(book: Book, number: int, made: Plan, there: Sequence[Visited]) -> bool:
    """Whether a release is a part of an earlier one, with the same noise at the same fixes."""
    if made.own_columns or made.mechanism.floor or made.mechanism.process is not None:
        return False
    kept = unpacked(book.blob(number))
    if kept.mechanism is None or kept.mechanism.noise_trace > 0:
        return False
    if set(kept.roots) != {one.draw for one in there}:
        return False
    same = all(
        np.array_equal(kept.visits[one.draw], one.intervals)
        and np.array_equal(kept.roots[one.draw], one.place.noise.root)
        for one in there
    )
    released = made.trace.times[made.mechanism.rows]
    return same and bool(np.all(np.isin(released, kept.times[kept.released])))
