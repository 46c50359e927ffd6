"""The leak scan: does a released file hold anything of its original that it must not?

It sees what stands in the two files: names, texts, numbers, comments, and where fixes are. It does
not see what is coded (base64, encrypted, hidden in the order or the noise of fixes), what stands
between the parts of a Parquet or KMZ file, times of files, or names of folders. A file without
findings is not a guarantee: that is what the report of `protect` states.
"""

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import PurePath
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from trailveil.checks.scan.contents import File, contents, finer, on_grid
from trailveil.checks.scan.known import Coordinates
from trailveil.checks.scan.matching import Leak, LeakKind, Moved, Scan, in_order
from trailveil.checks.scan.positions import compare
from trailveil.errors import UnreadableInput
from trailveil.files.source import named
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.cleaning import clean
from trailveil.traces.fields import ALL, FIELDS
from trailveil.traces.formats import MOST_POINTS
from trailveil.traces.formats.table import FORMATS, format_of
from trailveil.traces.projection import frame_for
from trailveil.traces.selection import Chosen, Stretch
from trailveil.traces.stops import Interval
from trailveil.traces.trace import NANOSECONDS, Recording, Trace

__all__ = ["Leak", "LeakKind", "Moved", "Scan", "files", "further", "scan"]

_NEAREST = 10 * NANOSECONDS
"""A protected time without a fix has that of the nearest one, if it is as near as this."""
_WORD = re.compile(r"[^\W_]{3,}")


def scan(
    original: tuple[str, bytes],
    released: tuple[str, bytes],
    chosen: Chosen | None = None,
    *,
    keep: Collection[str] = (),
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
    every: float | None = None,
    most: int = MOST_POINTS,
    visits: Callable[[Trace], Sequence[Interval]] = lambda _: (),
) -> Scan:
    """What a released file gives away of its original; each a name and the content.

    chosen: what was protected, as it was asked for; None is every fix. keep: fields that were kept
    by name. assume_utc, zone, every: for recorded times without a zone, or none, as for protecting.
    most: how many fixes each may have. visits: of places with names, which are protected anyway.
    Raises UnreadableInput, Refused as reading and cleaning do, and UnreadableInput for a release in
    a format that is not written.
    """
    first, second = files(original, released)
    recording = format_of(*original).read(first.data, first.where, (), most)
    trace, _ = clean(recording, assume_utc=assume_utc, zone=zone, every=every)
    frame_for(trace.positions)
    protected, places = np.ones(len(trace), dtype=np.bool_), None
    if chosen is not None:
        known = visits(trace)
        protected, places = _rows(trace, chosen, known), chosen.places(trace, known)
    fixes = format_of(*released).read(second.data, second.where, ALL, most)
    fixes = in_order(trace, fixes)
    moved = compare(trace, protected, on_grid(fixes, second.format.step), places)
    accepted = set() if chosen is None or chosen.returns else {LeakKind.RETURN}
    held = further(first, second, trace.positions, protected, fixes, keep)
    if LeakKind.FINE in {leak.kind for leak in moved.findings}:  # which are told there
        held = tuple(leak for leak in held if leak.kind is not LeakKind.FINE)
    return Scan(
        (*(leak for leak in moved.findings if leak.kind not in accepted), *held),
        (*moved.notes, *_told_by_fields(fixes), *_names(original[0], released[0])),
        len(trace),
        len(fixes),
        int(protected.sum()),
        moved.every,
        moved.of_protected,
    )


def files(original: tuple[str, bytes], released: tuple[str, bytes]) -> tuple[File, File]:
    """Two files, each of a name and the content.

    Raises UnreadableInput for a release in a format that is not written.
    """
    first, second = _file(*original), _file(*released)
    if second.format.write is None:
        written = ", ".join(row.name for row in FORMATS if row.write)
        raise UnreadableInput(
            f"a released file must be of a format that is written ({written}), got "
            f"{second.format.name}: {second.where}; name what protect wrote, before it is converted"
        )
    return first, second


def further(
    original: File,
    released: File,
    positions: FloatArray,
    protected: NDArray[np.bool_],
    fixes: Recording,
    keep: Collection[str] = (),
) -> tuple[Leak, ...]:
    """What a released file holds besides its fixes and the fields that were kept.

    positions: (n, 2) degrees, of the recorded fixes, of which `protected` (n,) are. fixes: what the
    reader finds in the release. Raises UnreadableInput as readers do.
    """
    known = Coordinates(positions[protected]), Coordinates(positions)
    held = contents(original, released, known, fixes, keep)
    return (*finer(released, fixes, positions), *held)


def _file(name: str, data: bytes) -> File:
    return File(data, named(name), format_of(name, data))


def _rows(trace: Trace, chosen: Chosen, known: Sequence[Interval]) -> NDArray[np.bool_]:
    """The fixes (n,) that were to be protected."""
    inside = np.zeros(len(trace), dtype=np.bool_)
    for begin, end in known:
        inside |= (trace.times >= begin) & (trace.times <= end)
    for stretch in chosen.stretches(trace, known):
        rows = stretch.rows(trace)
        inside |= rows if rows.any() else _nearest(trace, stretch)
    return inside


def _nearest(trace: Trace, stretch: Stretch) -> NDArray[np.bool_]:
    middle = stretch.begin + (stretch.end - stretch.begin) // 2
    away = np.abs(trace.times - middle)
    return np.asarray((away == away.min()) & (away <= _NEAREST))


def _told_by_fields(released: Recording) -> tuple[str, ...]:
    """A note for each further field of the released file: what it tells."""
    return tuple(
        f"{name.replace('_', ' ').capitalize()} stands at {int(np.isfinite(values).sum())} of the "
        f"released fixes: {FIELDS[name].tells}."
        for name, values in released.fields
        if np.isfinite(values).any()
    )


def _names(original: str, released: str) -> tuple[str, ...]:
    """A note where the name of the released file has a word of the original's name."""
    first, other = (
        {word.casefold() for word in _WORD.findall(PurePath(name).stem)}
        for name in (original, released)
    )
    if not first & other:
        return ()
    return ("The name of the released file shares a word with the name of the original.",)
