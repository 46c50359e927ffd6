"""Recordings from files, cleaned: every refusal names the file."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from trailveil.errors import TrailveilError
from trailveil.files.source import named
from trailveil.traces.cleaning import Cleaning, clean, clean_readings
from trailveil.traces.formats import MOST_POINTS, read
from trailveil.traces.projection import frame_for
from trailveil.traces.readings import Readings
from trailveil.traces.trace import Recording, Trace


def load(
    source: Path,
    *,
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
    every: float | None = None,
    keep: Sequence[str] = (),
    most: int = MOST_POINTS,
) -> tuple[Trace, Cleaning]:
    """A cleaned trace from a file, within one frame; every refusal names the file.

    keep: names of fields to read besides, of `trailveil.traces.fields`. most: how many fixes there
    may be.
    """
    recording = read(source, keep, most=most)
    return cleaned(recording, source, assume_utc=assume_utc, zone=zone, every=every)


def cleaned(
    recording: Recording,
    source: Path,
    *,
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
    every: float | None = None,
) -> tuple[Trace, Cleaning]:
    """As `load`, of a recording that was read from a file, or from a part of it."""
    with _about(source):
        trace, cleaning = clean(recording, assume_utc=assume_utc, zone=zone, every=every)
        frame_for(trace.positions)
    return trace, cleaning


def load_readings(
    source: Path,
    *,
    column: str | None,
    unit: str | None,
    assume_utc: bool = False,
    zone: ZoneInfo | None = None,
    most: int = MOST_POINTS,
) -> tuple[Readings, Cleaning]:
    """Cleaned readings from a table; every refusal names the file."""
    from trailveil.traces.formats.series import read_series

    recorded = read_series(source, column=column, unit=unit, most=most)
    with _about(source):
        return clean_readings(recorded, assume_utc=assume_utc, zone=zone)


@contextlib.contextmanager
def _about(source: Path) -> Iterator[None]:
    """Name the file in front of what is refused about it."""
    try:
        yield
    except TrailveilError as error:
        raise type(error)(f"{named(source)}: {error}") from error
