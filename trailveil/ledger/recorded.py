"""What the ledger keeps of a release besides its summary: times and mechanism, and no position.

Arrays of an entry: enough to compute again what the release tells, alone or with others. As bytes,
whole numbers, which are mostly times and row numbers that go up evenly, are stored as differences
and compressed; floating point is stored as it is: compressing it takes long and saves a twentieth.
"""

import io
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.ledger import Book
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.traces.trace import NANOSECONDS, Trace, seconds_since_the_first

if TYPE_CHECKING:  # the ledger is read without what designs releases
    from trailveil.designer.random_curves import WindowNoise
    from trailveil.release.places import Place
    from trailveil.release.plan import Plan


_MAGIC = b"TVA1"
_SIZES = struct.Struct("<4sII")
SAME_OUTING = 2 * 3600.0
"""Seconds from a recorded visit of a place within which another recording is reckoned with it."""
# How an archive of NumPy's begins, which is what entries once were.
_ARCHIVE = b"PK"


def to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays of whole numbers, booleans or floating point, of any shape, by their names.

    Raises InvalidValue for one of another kind.
    """
    heads, whole, floating = [], [], []
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        kind = plain.dtype.kind
        if kind not in "biuf":
            raise InvalidValue(f"arrays must be of numbers, got {plain.dtype}: {name}")
        heads.append([name, plain.dtype.newbyteorder("<").str, np.shape(array)])
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False).ravel()
        if kind == "f":
            floating.append(little.tobytes())
        else:
            whole.append(little.tobytes() if kind == "b" else _steps(little).tobytes())
    head = json.dumps(heads).encode()
    squeezed = zlib.compress(b"".join((head, *whole)), 1)
    return b"".join((_SIZES.pack(_MAGIC, len(head), len(squeezed)), squeezed, *floating))


def from_bytes(data: bytes) -> tuple[dict[str, NDArray[Any]], bytes]:
    """The arrays that `to_bytes` made the beginning of `data` of, and what comes after them.

    Raises InvalidValue for bytes that it did not make.
    """
    try:
        return _read(data)
    except (ValueError, TypeError, LookupError, struct.error, zlib.error) as error:
        raise InvalidValue("arrays must be as they were stored, got others") from error


def _read(data: bytes) -> tuple[dict[str, NDArray[Any]], bytes]:
    magic, length, size = _SIZES.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError
    squeezed, floats = zlib.decompress(data[_SIZES.size : _SIZES.size + size]), _SIZES.size + size
    whole, arrays = length, {}
    for name, kind, shape in json.loads(squeezed[:length]):
        dtype, count = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
        if dtype.kind == "f":
            array = np.frombuffer(data, dtype, count, floats)
            floats += array.nbytes
        else:
            array = np.frombuffer(squeezed, dtype, count, whole)
            whole += array.nbytes
            if dtype.kind != "b":
                array = np.cumsum(array, dtype=dtype)
        arrays[name] = array.reshape(shape)
    return arrays, data[floats:]


def _steps(values: NDArray[Any]) -> NDArray[Any]:
    """The first value and the differences (n,); they wrap around, and so does their sum."""
    steps = values.copy()
    steps[1:] -= values[:-1]
    return steps


@dataclass(frozen=True, slots=True, eq=False)
class StoredRelease:
    """What was kept of a release.

    times: (n,) nanoseconds. released: (n,). mechanism: its own noise, times in seconds since 1970;
    None for one that is no factor and floor. parts: (begin, end) that it protected, nanoseconds.
    roots: of each draw of common noise, by its name; visits: by that, or by the place that was cut.
    proved: seconds around a part in which nothing is assumed, and `reach_of`; infinite where they
    were not kept. windows, noises, about, bound: of noise that versions may be drawn from, as of
    `trailveil.release.layers.Layer`; empty for others.
    """

    times: NDArray[np.int64]
    released: NDArray[np.bool_]
    mechanism: Mechanism | None
    parts: list[tuple[int, int]]
    roots: dict[bytes, FloatArray]
    visits: dict[bytes, list[tuple[int, int]]]
    proved: tuple[float, float] = (inf, inf)
    windows: tuple[tuple[float, float], ...] = ()
    noises: "tuple[WindowNoise, ...]" = ()
    about: tuple[bytes, ...] = ()
    bound: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether all that was released of it is as it was recorded."""
        mechanism = self.mechanism
        return mechanism is not None and mechanism.noise_trace == 0 and not self.roots

    @property
    def unnamed(self) -> list[tuple[int, int]]:
        """The parts that are no visit of a place with a name."""
        named = {visit for visits in self.visits.values() for visit in visits}
        return [part for part in self.parts if part not in named]


def packed(plan: "Plan") -> bytes:
    """Times and mechanism of a release, enough to compute again what it tells; no position."""
    mechanism = plan.mechanism
    arrays: dict[str, NDArray[Any]] = {
        "times": plan.trace.times,
        "released": np.asarray(mechanism.released),
        "floor": np.array([mechanism.floor]),
        "plain": np.array([mechanism.process is None]),
        "parts": np.array(
            [(finding.stretch.begin, finding.stretch.end) for finding in plan.findings],
            dtype=np.int64,
        ).reshape(-1, 2),
        "proved": np.array([steady_of(plan), reach_of(plan)]),
    }
    if np.any(mechanism.independent_variances):
        moved = mechanism.independent_variances > 0
        arrays["moved"] = moved
        # No row is counted as moved by more than it was.
        arrays["independent"] = np.array([np.min(mechanism.independent_variances[moved])])
    if plan.designs:
        parts = [stretch.seconds(plan.trace) for stretch in plan.request.stretches]
        uncertain = plan.request.uncertain
        arrays["windows"] = np.array([(a - uncertain, b + uncertain) for a, b in parts])
        for number, design in enumerate(plan.designs):
            arrays[f"knots {number}"] = np.array(design.knots.seconds)
            arrays[f"even {number}"] = design.even
            if design.odd is not None:
                arrays[f"odd {number}"] = design.odd
        if not plan.common:  # with which nothing is drawn from it later
            about = json.dumps([part.hex() for part in plan.identity[2:]]).encode()
            arrays["about"] = np.frombuffer(about, dtype=np.uint8)
            arrays["bound"] = np.array([plan.request.noise_bound])
    else:
        factor = mechanism.factor[:, : plan.own_columns]
        rows = np.flatnonzero(np.any(factor != 0, axis=1))
        arrays |= {"rows": rows, "factor": factor[rows]}
    for visit in plan.visited:
        name = visit.counted_as(plan.request.method).hex()
        if not plan.request.method.cuts:
            arrays[f"root {name}"] = visit.place.noise.root
        arrays[f"visits {name}"] = np.array(visit.intervals, dtype=np.int64)
    return to_bytes(arrays)


def unpacked(blob: bytes) -> StoredRelease:
    """What `packed` made bytes of, with what they share after them, as `Book.blob` returns it."""
    if blob.startswith(_ARCHIVE):
        arrays, tail = _of_archive(blob), b""
    else:
        arrays, tail = from_bytes(blob)
    times, released, mechanism = arrays["times"], arrays["released"], None
    noises: tuple[WindowNoise, ...] = ()
    if arrays["plain"][0]:
        if "windows" in arrays:
            noises = _noises(arrays)
            factor = columns_around(times, arrays["windows"].tolist(), noises)
        elif "at" in arrays:  # as earlier versions had it: rows of columns that several shared
            columns = from_bytes(tail)[0]["columns"]
            factor = float(arrays["scale"][0]) * columns[arrays["at"]]
        else:
            factor = np.zeros((times.size, arrays["factor"].shape[1]))
            factor[arrays["rows"]] = arrays["factor"]
        fields = (times / NANOSECONDS, factor, float(arrays["floor"][0]), None, released)
        independent = None
        if "moved" in arrays:
            independent = arrays["independent"][0] * arrays["moved"]
        mechanism = Mechanism(*fields, independent=independent)
    names, places = (
        {bytes.fromhex(array[len(what) :]) for array in arrays if array.startswith(what)}
        for what in ("root ", "visits ")
    )
    return StoredRelease(
        times,
        released,
        mechanism,
        [(int(a), int(b)) for a, b in arrays["parts"]],
        {name: arrays[f"root {name.hex()}"] for name in names},
        {name: [(int(a), int(b)) for a, b in arrays[f"visits {name.hex()}"]] for name in places},
        tuple(arrays.get("proved", np.array([inf, inf])).tolist()),
        **_of_versions(arrays, noises),
    )


def _of_versions(
    arrays: Mapping[str, NDArray[Any]], noises: "tuple[WindowNoise, ...]"
) -> dict[str, Any]:
    """What versions may be drawn from, where it was kept."""
    if "about" not in arrays:
        return {}
    return {
        "windows": tuple((a, b) for a, b in arrays["windows"].tolist()),
        "noises": noises,
        "about": tuple(bytes.fromhex(part) for part in json.loads(arrays["about"].tobytes())),
        "bound": float(arrays["bound"][0]),
    }


def steady_of(plan: "Plan") -> int:
    """Seconds around a part in which nothing is assumed of the movement."""
    request = plan.request
    return request.uncertain if request.method == "cut" else request.steady


def reach_of(plan: "Plan") -> float:
    """Seconds from a part to where its false track is 0, on a side that is recorded.

    Of a cut, and of one with noise besides, that is before anything is released.
    """
    if plan.request.method.cuts:
        return 0.0
    ends = [design.knots.end for design in plan.designs]
    return max(ends) + plan.request.uncertain if ends else inf


def _noises(arrays: Mapping[str, NDArray[Any]]) -> "tuple[WindowNoise, ...]":
    """The noise around each window."""
    from trailveil.designer.random_curves import WindowNoise
    from trailveil.privacy.false_tracks import Knots

    return tuple(
        WindowNoise(
            Knots(tuple(arrays[f"knots {number}"].tolist())),
            arrays[f"even {number}"],
            arrays.get(f"odd {number}"),
            {},
            float("nan"),
        )
        for number in range(len(arrays["windows"]))
    )


def columns_around(
    times: NDArray[np.int64],
    windows: Sequence[tuple[float, float]],
    noises: "Sequence[WindowNoise]",
) -> FloatArray:
    """The factor (n, r) of noise around windows, seconds since the first of times (n,)."""
    from trailveil.designer.random_curves import together

    return together(seconds_since_the_first(times), windows, noises)


def bare(plan: "Plan") -> "Plan":
    """A plan without positions, and, as far as `packed` has them, without times and noise."""
    if _beyond_packed(plan):
        return _at(plan, plan.trace.times, plan.mechanism)
    ends = plan.trace.times[[0, -1]]
    return _at(plan, ends, no_noise(seconds_since_the_first(ends)))


def restored(plain: "Plan", whole: bytes) -> "Plan":
    """The plan that `bare` took times and noise from."""
    if _beyond_packed(plain):
        return plain
    stored = unpacked(whole)
    if stored.mechanism is None:
        raise InvalidValue("a plan must be restored from its own noise, got that of another")
    seconds = seconds_since_the_first(stored.times)
    return _at(plain, stored.times, replace(stored.mechanism, times=seconds))


def _beyond_packed(plan: "Plan") -> bool:
    """Whether noise is more than `packed` has: of a process, or common to several releases."""
    return plan.mechanism.process is not None or bool(plan.common)


def _at(plan: "Plan", times: NDArray[np.int64], mechanism: Mechanism) -> "Plan":
    count = times.size
    trace = Trace(times, np.zeros((count, 2)), np.zeros(count, dtype=np.intp), (0,))
    nowhere = np.empty((0, 2), dtype=np.int64)
    return replace(plan, trace=trace, lattice=nowhere, mechanism=mechanism, designs=())


def _of_archive(blob: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a release that was recorded when they were an archive of NumPy's."""
    with np.load(io.BytesIO(blob)) as archive:
        return {**archive, "plain": np.array([not str(archive["process"][0])])}


@dataclass(frozen=True, slots=True)
class Visit:
    """That a release from begin to end (ns) visited a place, by its ident, and when."""

    begin: int
    end: int
    place: bytes
    spans: tuple[tuple[int, int], ...]


def visits_of(
    book: Book, subject: str, places: Sequence["Place"], begin: int = -(2**63), end: int = 2**63
) -> list[Visit]:
    """The visits of places that the releases of a subject from begin to end (ns) had."""
    idents = {place.ident for place in places}
    return [
        Visit(row.begin, row.end, which, tuple(unpacked(book.blob(row.number)).visits[draw]))
        for row in book.overlapping(subject, "", begin, end)
        for which, draw in row.marked
        if which in idents
    ]


def known_visits(
    book: Book, subject: str, places: Sequence["Place"], begin: int, end: int
) -> dict[bytes, list[tuple[int, int]]]:
    """When earlier releases visited places, as far as that matters from begin to end (ns)."""
    most = round(SAME_OUTING * NANOSECONDS)
    near = visits_of(book, subject, places, begin - most, end + most)
    return near_in_time(near, places, begin, end)


def near_in_time(
    known: Sequence[Visit], places: Sequence["Place"], begin: int, end: int
) -> dict[bytes, list[tuple[int, int]]]:
    """Of visits, those that matter from begin to end (ns), by the ident of their place."""
    spans: dict[bytes, list[tuple[int, int]]] = {}
    for place in places:
        reach = round(min(place.reach, SAME_OUTING) * NANOSECONDS)
        for visit in known:
            near = visit.begin <= end + reach and visit.end >= begin - reach
            if near and visit.place == place.ident:
                spans.setdefault(visit.place, []).extend(visit.spans)
    return spans


def tells_nothing_new(book: Book, number: int, plan: "Plan") -> bool:
    """Whether a release is a part of an earlier one, with the same noise at the same fixes.

    Independent noise is drawn anew for each: that only adds to what hides them.
    """
    if plan.own_columns or plan.mechanism.floor or plan.mechanism.process is not None:
        return False
    stored = unpacked(book.blob(number))
    if stored.mechanism is None or np.any(stored.mechanism.factor) or stored.mechanism.floor:
        return False
    released = plan.trace.times[plan.mechanism.rows]
    within = bool(np.all(np.isin(released, stored.times[stored.released])))
    if plan.request.method.cuts:
        # Times alone tell: of a copy with another clock, some are not among them.
        return within and not stored.roots and bool(np.all(np.isin(plan.trace.times, stored.times)))
    if set(stored.roots) != {visit.draw for visit in plan.visited}:
        return False
    same = all(
        np.array_equal(stored.visits[visit.draw], visit.intervals)
        and np.array_equal(stored.roots[visit.draw], visit.place.noise.root)
        for visit in plan.visited
    )
    return same and within
