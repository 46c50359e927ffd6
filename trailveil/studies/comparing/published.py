"""Readers of published data sets, from the files as their authors hand them out.

None of them is in this package: users have them. Each reader yields cases: recordings of a person,
cut where they pause, thinned, with what is to be hidden. What cannot be read as what it claims to
be raises UnreadableInput; a recording with nothing to hide is left out.
"""

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, TrailveilError, UnreadableInput
from trailveil.files.source import named
from trailveil.gp.arrays import numbers_in
from trailveil.studies.comparing.cases import Case
from trailveil.studies.datasets.geolife import users
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.selection import Stretch
from trailveil.traces.stops import settled, stays
from trailveil.traces.trace import NANOSECONDS, Recording, Trace

MOST_FIXES = 300
"""Fixes of a recording that are used, where nothing else is stated: mechanisms of full matrices."""

_SUFFIXES = {suffix for row in FORMATS for suffix in row.suffixes}
# Seconds by which the time of Beijing is ahead; characters of a line of the longest trip.
_BEIJING, _LONGEST = 8 * 3600, 10**7
_CELLS = 200  # of the grid of YJMob, either way

Rows: TypeAlias = Sequence[tuple[int, float, float]]
"""Nanoseconds since 1970 UTC, latitude, longitude."""


def geolife(
    *,
    folder: str,
    traces: int = 100,
    per_person: int = 10,
    minutes: float = 0.0,
    fixes: int = MOST_FIXES,
) -> Iterator[Case]:
    """GeoLife 1.3: USER/Trajectory/*.plt, or Data/ above. Zheng, Xie and Ma (2010), IEEE DEB 33.

    minutes: shorter recordings are left out.
    """

    def every() -> Iterator[Case]:
        for user in users(folder):
            usable = (
                _of_file(path, user.name, f"{user.name}/{path.name}", fixes) for path in user.files
            )
            long = (x for x in usable if x is not None and x.trace.duration >= 60 * minutes)
            yield from islice(long, per_person)

    return islice(every(), traces)


def t_drive(*, folder: str, traces: int = 100, fixes: int = MOST_FIXES) -> Iterator[Case]:
    """T-Drive: NUMBER.txt, a taxi each: number, time of Beijing, longitude, latitude.

    A recording is a day of UTC, from 08:00 to 08:00 in Beijing. Source: Yuan, Zheng, Xie and Sun
    (2011), KDD.
    """

    def days() -> Iterator[Case]:
        for path in _files(folder, "*.txt"):
            rows = [
                (_clock(line[1]) - _BEIJING * NANOSECONDS, float(line[3]), float(line[2]))
                for line in _lines(path, 4)
            ]
            yield from _by_day(path.stem, rows, fixes)

    return islice(_checked(days(), folder), traces)


def porto(*, file: str, traces: int = 100, fixes: int = MOST_FIXES) -> Iterator[Case]:
    """Porto taxi: train.csv with TRIP_ID, TAXI_ID, TIMESTAMP and POLYLINE, a place each 15 s.

    Trips with MISSING_DATA are left out, whose places are not 15 s apart; of those of one TRIP_ID,
    all but the first. Source: Moreira-Matias, Gama, Ferreira, Mendes-Moreira and Damas (2013), IEEE
    T-ITS 14(3).
    """

    def trips() -> Iterator[Case]:
        before: set[str] = set()
        with _opened(Path(file)) as stream:
            for row in _long_rows(stream):
                if row["MISSING_DATA"].strip().lower() == "true" or row["TRIP_ID"] in before:
                    continue
                before.add(row["TRIP_ID"])
                line = json.loads(row["POLYLINE"])
                begin = int(row["TIMESTAMP"]) * NANOSECONDS
                rows = [
                    (begin + 15 * i * NANOSECONDS, float(lat), float(lon))
                    for i, (lon, lat) in enumerate(line)
                ]
                case = _case(row["TAXI_ID"], row["TRIP_ID"], _trace(rows), fixes)
                if case is not None:
                    yield case

    return islice(_checked(trips(), file), traces)


def _long_rows(stream: TextIO) -> Iterator[dict[str, str]]:
    """Rows with cells as long as a trip of hours takes; elsewhere they stay bounded."""
    rows = csv.DictReader(stream)
    while True:
        usual = csv.field_size_limit(_LONGEST)
        try:
            row = next(rows, None)
        finally:
            csv.field_size_limit(usual)
        if row is None:
            return
        yield row


def cabspotting(*, folder: str, traces: int = 100, fixes: int = MOST_FIXES) -> Iterator[Case]:
    """Cabspotting: new_CAB.txt: latitude, longitude, occupied, seconds since 1970; latest first.

    A recording is a day of UTC, which begins at 16:00 or 17:00 in San Francisco. Source:
    Piorkowski, Sarafijanovic-Djukic and Grossglauser (2009), CRAWDAD epfl/mobility.
    """

    def days() -> Iterator[Case]:
        for path in _files(folder, "new_*.txt"):
            lines = _lines(path, 4, " ")
            rows = [(int(x[3]) * NANOSECONDS, float(x[0]), float(x[1])) for x in lines]
            yield from _by_day(path.stem.removeprefix("new_"), rows, fixes)

    return islice(_checked(days(), folder), traces)


def gowalla(*, file: str, traces: int = 100, fixes: int = MOST_FIXES) -> Iterator[Case]:
    """Check-ins as Gowalla and Brightkite: user, time, latitude, longitude, place, by tabs.

    A recording is all of a user, latest first. Check-ins that lack a time or a place are left out,
    as Brightkite has some. Source: Cho, Myers and Leskovec (2011), KDD; SNAP.
    """

    def people() -> Iterator[Case]:
        lines = (x for x in _lines(Path(file), 5, "\t", ragged=True) if all(x[:4]))
        for person, own in groupby(lines, key=lambda line: line[0]):
            rows = sorted(
                (_clock(line[1].rstrip("Z")), float(line[2]), float(line[3])) for line in own
            )
            case = _case(person, person, _trace(rows), fixes)
            if case is not None:
                yield case

    return islice(_checked(people(), file), traces)


def yjmob(
    *,
    file: str,
    traces: int = 100,
    fixes: int = MOST_FIXES,
    corner: Sequence[float] = (35.0, 136.0),
) -> Iterator[Case]:
    """YJMob100K: uid, d, t, x, y: a day, half an hour of it, and a cell of a grid of 500 m.

    Where the grid lies is not published: `corner` (latitude, longitude) is that of cell 1, 1. x is
    taken to grow eastwards and y northwards. A study that fits it to a map finds x northwards and y
    eastwards (Pinter 2024, arXiv:2407.18086): all is mirrored then, and distances differ by up to
    1 %. A cell beyond 200, such as the 999 of the HuMob challenge, stands for no place. A recording
    is a day. Source: Yabe and others (2024), Scientific Data 11.
    """
    place = numbers_in("corner must be a latitude and a longitude", corner)
    if place.shape != (2,):
        raise InvalidValue(f"corner must be a latitude and a longitude, got shape {place.shape}")
    latitude, longitude = place.tolist()
    north = 500.0 / 111_195.0
    east = north / float(np.cos(np.radians(latitude)))

    def days() -> Iterator[Case]:
        lines = (line for line in _lines(Path(file), 5) if line[0] != "uid")
        for person, own in groupby(lines, key=lambda line: line[0]):
            rows = []
            for line in own:
                day, slot, x, y = (int(float(cell)) for cell in line[1:])
                if not (1 <= x <= _CELLS and 1 <= y <= _CELLS):
                    continue
                seconds = day * 86_400 + slot * 1800
                rows.append(
                    (seconds * NANOSECONDS, latitude + (y - 1) * north, longitude + (x - 1) * east)
                )
            yield from _by_day(person, rows, fixes)

    return islice(_checked(days(), file), traces)


def recordings(*, folder: str, traces: int = 100, fixes: int = MOST_FIXES) -> Iterator[Case]:
    """Any folder that `protect` reads: the folder that a file is in is the person."""

    def files() -> Iterator[Case]:
        for path in _files(folder, "*"):
            if path.suffix.lower() in _SUFFIXES:
                name = str(path.relative_to(folder))
                case = _of_file(path, path.parent.name, name, fixes)
                if case is not None:
                    yield case

    return islice(_checked(files(), folder), traces)


def _of_file(path: Path, person: str, name: str, fixes: int) -> Case | None:
    """The case of a recording in a file; None where it cannot be read, or hides nothing."""
    try:
        trace = clean(read(path), assume_utc=True)[0]
        return _case(person, name, trace, fixes)
    except TrailveilError:
        return None


def _files(folder: str, pattern: str) -> list[Path]:
    root = Path(folder)
    if not root.is_dir():
        raise UnreadableInput(f"a data set must be a folder, got none: {named(folder)}")
    return sorted(path for path in root.rglob(pattern) if path.is_file())


def _opened(path: Path) -> TextIO:
    """The text of a file, which may be compressed as it is handed out."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="latin-1", newline="")
    return path.open(encoding="latin-1", newline="")


def _lines(
    path: Path, columns: int, separator: str = ",", *, ragged: bool = False
) -> Iterator[list[str]]:
    """The lines of a table without a head. Raises UnreadableInput for one of other columns.

    ragged: shorter ones are left out, but for the first.
    """
    with _opened(path) as stream:
        for number, line in enumerate(csv.reader(stream, delimiter=separator), start=1):
            if ragged and number > 1 and len(line) < columns:
                continue
            if line and len(line) != columns:
                raise UnreadableInput(
                    f"a line must have {columns} columns, got {len(line)} in line {number}: "
                    f"{named(path)}; name the files as they are published"
                )
            if line:
                yield line


def _clock(text: str) -> int:
    """Nanoseconds since 1970 of a clock time, taken to be UTC."""
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise UnreadableInput("a time must be a date and a clock time, got other text") from None
    return round(moment.timestamp()) * NANOSECONDS


def _by_day(person: str, rows: Rows, fixes: int) -> Iterator[Case]:
    """A case for each day (UTC) of a person; rows may be in any order."""
    for day, of_day in groupby(sorted(rows), key=lambda row: row[0] // (86_400 * NANOSECONDS)):
        case = _case(person, f"{person} day {day}", _trace(list(of_day)), fixes)
        if case is not None:
            yield case


def _trace(rows: Rows) -> Trace | None:
    """A cleaned trace of rows; None where too little of it is usable."""
    if len(rows) < 2:
        return None
    recording = Recording(
        np.array([row[0] for row in rows]).astype("datetime64[ns]"),
        np.zeros(len(rows), np.bool_),
        np.array([row[1:] for row in rows]),
        np.zeros(len(rows), np.intp),
        (0,),
    )
    try:
        return clean(recording)[0]
    except TrailveilError:
        return None


def _checked(cases: Iterator[Case], source: str) -> Iterator[Case]:
    """The cases; numbers that are none become one line that names the source."""
    try:
        yield from cases
    except (ValueError, KeyError, TypeError, OSError, csv.Error) as error:
        if isinstance(error, TrailveilError):
            raise
        raise UnreadableInput(
            f"a data set must be as its authors publish it, got other text: {named(source)}; name "
            "the right kind of it"
        ) from None


def _case(person: str, name: str, trace: Trace | None, fixes: int) -> Case | None:
    """A recording with its longest stay and both ends to hide; None where that is all of it."""
    if not 20 <= fixes <= 10_000:
        raise InvalidValue(f"fixes must be 20 to 10,000 of a recording, got {fixes}")
    if trace is None or len(trace) < 10:
        return None
    hidden = hidden_in(trace)
    covered = np.any([part.rows(trace) for part in hidden], axis=0)
    if not hidden or np.count_nonzero(~covered) < 5:
        return None
    return Case("", person, name, _thinned(trace, hidden, fixes), hidden)


def hidden_in(trace: Trace) -> tuple[Stretch, ...]:
    """Both ends, as wide as somebody stays there, and the longest stay between them, if any.

    None where all of it is one stay.
    """
    first, last = settled(trace)
    if first >= last:
        return ()
    times = trace.times.tolist()
    begins, ends = times[first], times[last]
    hidden = [
        Stretch("start", times[0], begins, by_place=True),
        Stretch("end", ends, times[-1], by_place=True),
    ]
    within = [(a, b) for a, b in stays(trace) if begins < a and b < ends]
    if within:
        longest = max(within, key=lambda stay: stay[1] - stay[0])
        hidden.insert(1, Stretch("stay", *longest, by_place=True))
    return tuple(hidden)


def _thinned(trace: Trace, hidden: Sequence[Stretch], fixes: int) -> Trace:
    """Evenly thinned in time to so many fixes; those at which a part begins or ends stay."""
    if len(trace) <= fixes:
        return trace
    step = trace.duration / (fixes - 2 * len(hidden) - 1)
    chosen: NDArray[np.bool_] = np.diff(np.floor(trace.seconds / step), prepend=-1.0) > 0
    edges = [moment for part in hidden for moment in (part.begin, part.end)]
    return trace.only(chosen | np.isin(trace.times, edges))
