"""Recordings from files, cleaned: every refusal names the file."""

import contextlib
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from zoneinfo import ZoneInfo

from trailveil.errors import InvalidValue, TrailveilError, UnreadableInput
from trailveil.files.source import SMALL, named
from trailveil.files.source import load as bytes_of
from trailveil.privacy.priors import BUILT_IN, PriorSpec, from_json
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


def prior_named(name_or_path: str) -> PriorSpec:
    """The built-in prior of that name, else the one in the file of that name.

    Raises InvalidValue where there is neither, UnreadableInput for a file that is no prior file.
    """
    if name_or_path in BUILT_IN:
        return BUILT_IN[name_or_path]
    if not Path(name_or_path).exists():
        raise InvalidValue(
            f"a prior must be one of {', '.join(BUILT_IN)} or a file, got neither: "
            f"{named(name_or_path)}; make a file with trailveil fit"
        )
    return read_prior(name_or_path)


def prior_in(unit: str, name_or_path: str) -> PriorSpec:
    """The prior of that name, in a unit. Raises as `prior_named`, InvalidValue for another unit."""
    spec = prior_named(name_or_path)
    if spec.unit != unit:
        raise InvalidValue(
            f"--prior must be in {unit}, as the values are, got one in {spec.unit}: "
            f"{named(name_or_path)}"
        )
    return spec


def read_prior(path: str | PathLike[str]) -> PriorSpec:
    """The prior in a file. Raises UnreadableInput for anything else than a prior file."""
    where = named(path)
    try:
        text = bytes_of(path, SMALL).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableInput(f"a prior file must be text in UTF-8, got another: {where}") from None
    return from_json(text, where)
