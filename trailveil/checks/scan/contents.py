"""What a released file holds beside its fixes, and what of the original that is.

Whether something fails is settled by its place alone, so neither chance nor disguise decides it:
what `trailveil.checks.scan.allowed` does not know must not be there, unless its field was kept by
name. The original then tells what it is. Of a field that was kept, only the coordinates of
protected fixes fail.
"""

import io
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np

from trailveil.checks.scan.allowed import (
    KEPT_AS,
    LAYOUTS,
    NAMESPACES,
    Layout,
    Role,
    described,
    taker_of,
)
from trailveil.checks.scan.known import Coordinates, Number, Tokens, numbers
from trailveil.checks.scan.matching import Leak, LeakKind
from trailveil.checks.scan.tokens import NAME, VALUE, Place
from trailveil.errors import TrailveilError
from trailveil.gp.gaussian import FloatArray
from trailveil.traces.fields import TYPE
from trailveil.traces.formats import write
from trailveil.traces.formats.table import Format
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Recording, Trace

_MOST_PLACES = 1000  # that are told apart; what is at further ones is counted together
_ELSEWHERE: Final[Place] = ("further places",)
_MOST_WRITTEN = 1_000_000  # tokens of what is written that are known
_MOST_SHOWN, _LONGEST_SHOWN = 5, 80  # values for the owner, and characters of each
_HALF = 0.50001  # of a step, with room for rounding
_BINARY = frozenset({"GeoParquet", "KMZ"})  # which have no white space
_FINEST = 6  # decimals of the public grid
_COORDINATES: Final = (Role.LATITUDE, Role.LONGITUDE)


@dataclass(frozen=True, slots=True)
class File:
    """A file to scan: its content, its name in messages, and its format."""

    data: bytes
    where: str
    format: Format


def contents(
    original: File,
    released: File,
    coordinates: tuple[Coordinates, Coordinates],
    fixes: Recording,
    keep: Collection[str] = (),
) -> tuple[Leak, ...]:
    """What the released file holds that it must not.

    coordinates: those of the protected fixes, and of all. fixes: what the reader finds in the
    released file. keep: names of fields that were kept. Raises UnreadableInput as readers do.
    """
    typed, take = TYPE in keep, taker_of(released.format)
    # A type stands at one place, so that others of that name stay what they are.
    held = [name for name in keep if name != TYPE]
    names = [called for name in held for called in (name, *KEPT_AS.get(name, ()))]
    allowed = frozenset(filter(None, map(_plain, names)))
    layout: Layout | _Written
    leaks: tuple[Leak, ...] = ()
    if released.format.name not in LAYOUTS:
        layout = _Written()
        for content in _as_written(released, fixes, allowed, typed=typed):
            if content == released.data:
                return ()
            take(content, released.where, layout)
    else:
        layout = LAYOUTS[released.format.name].of(fixes, typed=typed)
        first = _Slots(layout)
        take(released.data, released.where, first)
        leaks = first.findings(len(fixes))
        if not first.beyond:
            return leaks if leaks or keep else _between(released, fixes)
    known = Tokens()
    taker_of(original.format)(original.data, original.where, known)
    judge = _Judge(layout, allowed, known, *coordinates)
    take(released.data, released.where, judge)
    leaks = (*leaks, *judge.findings())
    if isinstance(layout, _Written) and not leaks:
        return (Leak(LeakKind.FIELD, "the file", 1),)
    return leaks


def on_grid(released: Recording, step: float) -> Recording:
    """Positions of a format with steps of its own (degrees), as those of a release that they are.

    What is within half a step of the public grid is on it.
    """
    with np.errstate(invalid="ignore"):
        grid = np.round(released.positions * MICRO) / MICRO
        near = np.abs(grid - released.positions) <= _HALF * step
    return replace(released, positions=np.where(near, grid, released.positions))


def finer(released: File, fixes: Recording, positions: FloatArray) -> tuple[Leak, ...]:
    """Coordinates of fixes that are neither on the public grid nor any that was recorded.

    positions: (n, 2) degrees, of the recorded fixes.
    """
    off, half = np.zeros(len(fixes), dtype=np.bool_), _HALF * released.format.step
    for given, recorded in zip(
        on_grid(fixes, released.format.step).positions.T, positions.T, strict=True
    ):
        known = np.sort(recorded)
        after = np.searchsorted(known, given)
        beside = [known[np.clip(after - step, 0, known.size - 1)] for step in (0, 1)]
        with np.errstate(invalid="ignore"):
            away = np.min(np.abs(beside - given), axis=0)
            off |= (np.round(given * MICRO) / MICRO != given) & (away > half)
    count = int(off.sum())
    return (Leak(LeakKind.FINE, "positions of fixes", count),) if count else ()


def _as_written(
    released: File, fixes: Recording, allowed: Collection[str], *, typed: bool
) -> Iterator[bytes]:
    """What is written of a file's fixes and of the fields kept: as noise is, and as a cut is."""
    order = np.argsort(fixes.times, kind="stable")
    fields = [
        (name, values[order])
        for name, values in fixes.fields
        if any(_plain(called) in allowed for called in (name, *KEPT_AS.get(name, ())))
    ]
    dated = not np.isnat(fixes.times).all()
    times = fixes.times.astype(np.int64)[order] if dated else np.arange(len(order))
    # Of noise, places are on the public grid; of a cut, they are as they were recorded.
    # Fixes of a file without times were given those of the recording.
    without = [False] if released.format.untimed and dated else []
    for timed, exact in product((dated, *without), (False, True)):
        recording = fixes if exact else on_grid(fixes, released.format.step)
        places, stream = recording.positions[order], io.BytesIO()
        try:
            trace = Trace(
                *(times, places, fixes.segments[order], fixes.tracks, tuple(fields)),
                types=fixes.types if typed else (),
                timed=timed,
            )
            grid = places if exact else None
            write(trace, stream, released.format.suffixes[0], grid=grid)
        except TrailveilError:
            return
        yield stream.getvalue()


def _between(released: File, fixes: Recording) -> tuple[Leak, ...]:
    """White space and empty parts of a file of text, without fields, that is not written so."""
    if released.format.name in _BINARY:
        return ()
    for content in _as_written(released, fixes, (), typed=False):
        if content == released.data or _frame(content) == _frame(released.data):
            return ()
    return (Leak(LeakKind.FIELD, "between fields", 1),)


def _frame(data: bytes) -> bytes:
    """What stands around numbers, which older versions wrote with other decimals."""
    return re.sub(rb"[-+.e\d]*\d", b"0", data)


class _Written:
    """Collects the tokens of what is written, as an `Emit`: what a file may have besides is none.

    Of more than `_MOST_WRITTEN` those that come after are taken for what is not written.
    """

    frame: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self._tokens: dict[tuple[Place, str], set[str]] = {}
        self._count = 0

    def __call__(self, place: Place, text: str, part: str, count: int = 1) -> None:
        """A token that is written."""
        texts = self._tokens.setdefault((place, part), set())
        if self._count < _MOST_WRITTEN and text not in texts:
            texts.add(text)
            self._count += 1

    def allows(self, place: Place, text: str, part: str) -> bool:
        """Whether a token is written where it stands."""
        return text in self._tokens.get((place, part), ())


@lru_cache(maxsize=1000)
def _plain(name: str) -> str:
    """A name without its prefix and what stands between words, in small letters."""
    return re.sub(r"[\W_]", "", name.rpartition(":")[2].casefold())


class _Slots:
    """Counts what is where releases have it, as an `Emit`, and tells whether there is more."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.beyond = False
        self._counts: Counter[Role] = Counter()
        self._latest: dict[Place, int] = {}
        self._stray = self._longer = 0
        self._decimals: Counter[int] = Counter()

    def __call__(self, place: Place, text: str, part: str, count: int = 1) -> None:
        """A token of the release."""
        rule = self._layout.rule(place)
        if not self._layout.allows(place, text, part):
            self.beyond = True
        elif part == VALUE and isinstance(rule, Role):
            self._counts[rule] += count
            if rule in _COORDINATES:
                self._digits(text, count)
            if rule is Role.NUMBER_OF:
                self._number(place, int(text), count)

    def _digits(self, text: str, count: int) -> None:
        """Exact degrees have the fewest digits that tell them, others all as many decimals."""
        value, decimals = float(text), len(text.partition(".")[2])
        grid = decimals <= _FINEST and text == f"{value:.{decimals}f}"
        self._decimals[decimals if grid else -1] += count
        if text not in {repr(value), np.format_float_positional(value, trim="0")}:
            self._longer += count

    def _number(self, place: Place, number: int, count: int) -> None:
        """Segments and tracks are numbered as they come: anything else is some other number."""
        latest = self._latest.get(place, -1)
        if number not in {max(latest, 0), latest + 1}:
            self._stray += count
        self._latest[place] = number

    def findings(self, fixes: int) -> tuple[Leak, ...]:
        """Coordinates and times that are of none of so many fixes, and numbers out of order."""
        roles = (*_COORDINATES, Role.TIME) if self._counts[Role.TIME] else _COORDINATES
        stray = self._stray + sum(abs(self._counts[role] - fixes) for role in roles)
        even = max((n for decimals, n in self._decimals.items() if decimals >= 0), default=0)
        odd = min(self._longer, self._decimals.total() - even)
        found = (
            Leak(LeakKind.STRAY, "where fixes stand", stray),
            Leak(LeakKind.DIGITS, "positions of fixes", odd),
        )
        return tuple(leak for leak in found if leak.count)


class _Judge:
    """Sorts what is beyond a release by what of the original it is, as an `Emit`."""

    def __init__(
        self,
        layout: "Layout | _Written",
        allowed: frozenset[str],
        known: Tokens,
        protected: Coordinates,
        every: Coordinates,
    ) -> None:
        self._layout, self._kept, self._known = layout, allowed, known
        self._protected, self._every = protected, every
        self._previous: Number | None = None
        self._found: dict[tuple[Place, LeakKind], Leak] = {}
        self._names: Counter[Place] = Counter()
        self._places: set[Place] = set()

    def __call__(self, place: Place, text: str, part: str, count: int = 1) -> None:
        """A token of the release."""
        if self._layout.allows(place, text, part):
            return
        allowed = self._is_kept(place, part)
        if part == NAME:
            if not (allowed or self._is_frame(place)):
                self._names[self._counted(place)] += 1
            return
        if place[-1].startswith("@xmlns") and self._kept and NAMESPACES.fullmatch(text):
            return
        parsed = list(numbers(text))
        if self._has_protected_place(parsed):
            self._add(place, LeakKind.PLACE, text, count)
        elif not allowed:
            self._add(place, self._kind(place, text, parsed), text, count)

    def findings(self) -> tuple[Leak, ...]:
        """What was found, with names that have nothing found below them."""
        with_more = {place[:depth] for place, _ in self._found for depth in range(len(place) + 1)}
        with_more |= {place[:depth] for place in self._names for depth in range(len(place))}
        for place, count in self._names.items():
            if place not in with_more:
                self._add(place, LeakKind.FIELD, place[-1], count)
        return tuple(self._found.values())

    def _is_kept(self, place: Place, part: str) -> bool:
        if not self._kept or part not in {NAME, VALUE}:
            return False
        return any(_plain(name) in self._kept for name in place)

    def _is_frame(self, place: Place) -> bool:
        local = place[-1].rpartition(":")[2]
        return bool(self._kept) and (local in self._layout.frame or place[-1].startswith("@xmlns"))

    def _has_protected_place(self, numbers: list[Number]) -> bool:
        """Whether two numbers, one after the other in the file, are such a place."""
        pairs = list(zip([self._previous, *numbers], numbers, strict=False))
        self._previous = numbers[-1] if numbers else self._previous
        return any(number and self._protected.has_pair(number, other) for number, other in pairs)

    def _kind(self, place: Place, text: str, numbers: list[Number]) -> LeakKind:
        named = place[-1].lstrip("@").rpartition(":")[2].casefold() in self._known.names
        if any(self._every.has_one(number) for number in numbers):
            return LeakKind.COORDINATE
        if self._known.has_text(text):
            return LeakKind.TEXT
        known = any(self._known.has_number(number, named=named) for number in numbers)
        return LeakKind.NUMBER if known else LeakKind.FIELD

    def _add(self, place: Place, kind: LeakKind, text: str, count: int) -> None:
        place = self._counted(place)
        key = (place, kind)
        before = self._found.get(key) or Leak(kind, described(place), 0)
        shown, text = before.leaked, text[:_LONGEST_SHOWN]
        if len(shown) < _MOST_SHOWN and text not in shown:
            shown = (*shown, text)
        self._found[key] = replace(before, count=before.count + count, leaked=shown)

    def _counted(self, place: Place) -> Place:
        """The place, or one for all where there are too many to tell apart."""
        if place not in self._places and len(self._places) >= _MOST_PLACES:
            return _ELSEWHERE
        self._places.add(place)
        return place
