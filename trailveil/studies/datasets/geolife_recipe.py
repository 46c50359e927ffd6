"""Effective length scales of GeoLife by the paper's recipe.

The paper's section 5, in the detail of its authors' published preprocessing: of each file the first
320 s; where n > 50 fixes are left, every floor(n / 50)-th, 50 in all; at least 240 s from the first
fix of the file to the last one left (the paper's text: 4.5 to 5.5 min); each coordinate de-meaned,
with unit variance; users with 10 such files or more, and the first 50 of each. An RBF kernel of
unit variance, noise variance 0.0025, length scale 1 to 40 s by maximum likelihood from 8 s; over
the median sampling period.

Where this differs by default: files are taken in the order of their names, and a file stored under
several users counts once, for the first. Theirs count for each, in the order in which APFS lists a
folder (`selection="paper"`): so lie the published values of the files that we have. From several
starts the best optimum counts (`starts=1` is theirs). Local metres stand in the place of
R cos(lat) cos(lon) and R cos(lat) sin(lon) on a sphere (`projection="paper"`).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.source import load, named
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.datasets.fitting import EffectiveScales, LengthScaleTask, collected, fitted
from trailveil.studies.datasets.geolife import users
from trailveil.studies.datasets.workers import Watch, mapped, unwatched
from trailveil.studies.fit import FAMILIES, FitSeries
from trailveil.traces.formats.plt import fields, numbers
from trailveil.traces.projection import EXTENT, MICRO, placed

Projection = Literal["metres", "paper"]
Selection = Literal["distinct", "paper"]

FAMILY: Final = FAMILIES["rbf"].set(length_scale=(1.0, 8.0, 40.0), std=1.0, noise_std=0.05)

_LONGEST, _SHORTEST = 320.0, 240.0  # seconds
_MOST_FIXES = 50
_FEWEST_FILES, _MOST_FILES = 10, 50  # of a user
_RADIUS = 6.371e6  # metres, theirs


@dataclass(frozen=True, slots=True, eq=False)
class GeoLifeScales:
    """What the recipe gave, a value for each file in each coordinate.

    first, second: east and north; or, as in the paper, its X and Y. counts: of `users` with files
    that are used, and of `files`. Each file is in exactly one of `duplicates` (stored under an
    earlier user; none where the selection is the paper's), `unreadable`, `short`, `still` (does not
    move in a coordinate), `of_few` (its user has too few), `beyond` (the first 50 of its user),
    `unclear` (median period of 0), `used`.
    """

    first: EffectiveScales
    second: EffectiveScales
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """A file: a hash of its content, and the rows left of it, or why there are none."""

    digest: bytes
    fate: str
    seconds: FloatArray
    values: FloatArray


def geolife_scales(
    folder: str | PathLike[str],
    *,
    projection: Projection = "metres",
    selection: Selection = "distinct",
    starts: int = 6,
    fewest: int = _FEWEST_FILES,
    watch: Watch = unwatched,
    workers: int | None = None,
) -> GeoLifeScales:
    """Effective length scales of a GeoLife folder, in either layout.

    fewest: files a user must have, 10 in the recipe. Raises UnreadableInput where there is no such
    folder, and where nothing in it serves the recipe; InvalidValue for another projection or
    selection.
    """
    if projection not in ("metres", "paper"):
        raise InvalidValue(f"projection must be metres or paper, got {projection}")
    if selection not in ("distinct", "paper"):
        raise InvalidValue(f"selection must be distinct or paper, got {selection}")
    distinct = selection == "distinct"
    people = users(folder)
    order = None if distinct else apfs_order
    files = [(user.name, file) for user in people for file in sorted(user.files, key=order)]
    prepare = partial(_prepare, projection=projection)
    prepared = mapped(
        prepare, [file for _, file in files], label="Reading", watch=watch, workers=workers
    )
    names = [name for name, _ in files]
    chosen, fates = _choose(names, prepared, fewest, distinct=distinct)
    if not chosen:
        raise UnreadableInput(
            f"a user must have {fewest} files or more of {_SHORTEST:.0f} s at least, got none of "
            f"{len(people)} with as many: {named(folder)}"
        )
    periods = [float(np.median(np.diff(trajectory.seconds))) for trajectory in chosen]
    tasks = [
        LengthScaleTask(
            FitSeries(trajectory.seconds, trajectory.values[:, axis]), FAMILY, starts, period
        )
        for axis in (0, 1)
        for trajectory, period in zip(chosen, periods, strict=True)
    ]
    fits = mapped(fitted, tasks, label="Fitting", watch=watch, workers=workers)
    half = len(chosen)
    owners = {name for name, fate in zip(names, fates, strict=True) if fate == "used"}
    counts = {"users": len(owners), "files": len(files)} | {f: fates.count(f) for f in _FATES}
    first, second = collected(tasks[:half], fits[:half]), collected(tasks[half:], fits[half:])
    return GeoLifeScales(first, second, counts)


_FATES = ("duplicates", "unreadable", "short", "still", "of_few", "beyond", "unclear", "used")


def _choose(
    names: Sequence[str], prepared: Sequence[_Prepared], fewest: int, *, distinct: bool
) -> tuple[list[_Prepared], list[str]]:
    """The files that are used, and the fate of each."""
    digests: set[bytes] = set()
    fates = []
    for trajectory in prepared:
        again = distinct and trajectory.digest in digests
        fates.append("duplicates" if again else trajectory.fate)
        digests.add(trajectory.digest)
    sizes = Counter(name for name, fate in zip(names, fates, strict=True) if fate == "used")
    taken: Counter[str] = Counter()
    for index, (name, trajectory) in enumerate(zip(names, prepared, strict=True)):
        if fates[index] != "used":
            continue
        taken[name] += 1
        if sizes[name] < fewest:
            fates[index] = "of_few"
        elif taken[name] > _MOST_FILES:
            fates[index] = "beyond"
        elif not np.median(np.diff(trajectory.seconds)) > 0:
            fates[index] = "unclear"
    chosen = [one for one, fate in zip(prepared, fates, strict=True) if fate == "used"]
    return chosen, fates


def _prepare(path: Path, projection: Projection) -> _Prepared:
    """Steps one to four of the recipe, on one file."""
    try:
        data = load(path)
        digest = sha256(data).digest()
        table = numbers(fields(data, named(path)))
    except UnreadableInput:
        return _lost(str(path).encode(), "unreadable")
    degrees, days = table[:, :2], table[:, 2]
    # The paper's coordinates are defined for every angle. The comparison is False for NaN.
    limits = [90.0, 180.0] if projection == "metres" else [np.finfo(float).max] * 2
    if not ((np.abs(degrees) <= limits).all() and np.isfinite(days).all()):
        return _lost(digest, "unreadable")
    seconds = (days - days[0]) * 24 * 60 * 60
    rows = _kept(seconds)
    if not rows.size or seconds[rows[-1]] < _SHORTEST:
        return _lost(digest, "short")
    try:
        moved = _metres(degrees[rows], projection)
    except Refused:  # a place that is too far from the others to be one
        return _lost(digest, "unreadable")
    moved = moved - np.mean(moved, axis=0)
    spread = np.std(moved, axis=0)
    if not (spread > 0).all():
        return _lost(digest, "still")
    return _Prepared(digest, "used", seconds[rows], moved / spread)


def _kept(seconds: FloatArray) -> NDArray[np.intp]:
    """Rows of the first 320 s, thinned to 50 at most."""
    rows = np.arange(len(seconds))
    if seconds[-1] >= _LONGEST:
        rows = np.flatnonzero(seconds <= _LONGEST)
    if len(rows) > _MOST_FIXES:
        rows = rows[np.arange(1, _MOST_FIXES + 1) * (len(rows) // _MOST_FIXES) - 1]
    return rows


def _metres(degrees: FloatArray, projection: Projection) -> FloatArray:
    """Coordinates (n, 2) in metres, from the first fix so that a place that never moves gives 0."""
    if projection == "metres":
        lattice = placed(degrees, furthest=EXTENT)[1]
        return np.asarray((lattice - lattice[0]) / MICRO)
    latitude, longitude = np.radians(degrees).T
    ring = _RADIUS * np.cos(latitude)
    points = np.stack([ring * np.cos(longitude), ring * np.sin(longitude)], axis=1)
    return np.asarray(points - points[0])


def apfs_order(path: Path) -> tuple[int, str]:
    """What Apple's file system (APFS) sorts a folder by: the low 22 bits of a name's CRC-32C.

    The name is taken in UTF-32, and without its end. Source: Apple File System Reference (2020),
    j_drec_hashed_key_t.
    """
    checksum = 0xFFFF_FFFF
    for byte in path.name.encode("utf-32-le"):
        checksum ^= byte
        for _ in range(8):
            checksum = checksum >> 1 ^ (0x82F6_3B78 if checksum & 1 else 0)
    return checksum & 0x3F_FFFF, path.name


def _lost(digest: bytes, fate: str) -> _Prepared:
    return _Prepared(digest, fate, np.empty(0), np.empty((0, 2)))
