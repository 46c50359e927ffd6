"""`trailveil ledger import`: what was published by other means, counted for later releases."""

import math
import re
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import click
import numpy as np

from trailveil.cli.parameters import FiniteRange, person, zone_named
from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import load as bytes_of
from trailveil.files.source import named
from trailveil.ledger import user_ledger
from trailveil.ledger.identity import ME
from trailveil.ledger.places import load_places
from trailveil.ledger.public import Imported, add_public, in_words, public_places

_PLACE = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*,\s*([+-]?\d+(?:\.\d+)?)\s*")


@click.command(
    "import",
    epilog="Example: trailveil ledger import posted.gpx photo.jpg, or --at 46.5,-33.25 "
    "--time 2024-05-14T08:50:00Z --accuracy 50",
)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--at", "place", metavar="LAT,LON", help="A position that is public.")
@click.option("--time", "time", metavar="TIME", help="When you were there.")
@click.option(
    "--accuracy",
    type=FiniteRange(0, 1e6),
    metavar="METRES",
    help="You are within so far of each position 68 times in 100. Default: exact.",
)
@click.option("--subject", default=ME, callback=person, metavar="NAME", help="Whose they are.")
@click.option(
    "--tz", "zone", metavar="ZONE", callback=zone_named, help="Zone of times that state none."
)
def import_public(files: tuple[Path, ...], **options: Any) -> None:
    """Count positions that are public already: of tracks, of photos, or one that you state.

    The next releases reckon with them: they cut longer, or say that nothing can be hidden.
    """
    from trailveil.traces.stated_times import in_words as time_in_words

    single = options["place"] is not None
    if single != (options["time"] is not None) or single == bool(files):
        raise click.UsageError("state files, or --at LAT,LON with --time TIME")
    zone, accuracy = options["zone"], options["accuracy"] or 0.0
    imported = (
        [("the position", _stated(options["place"], options["time"], zone, accuracy))]
        if single
        else [(named(file), _read(file, zone, accuracy)) for file in files]
    )
    ledger = user_ledger()
    for name, public in imported:
        places = public_places(load_places(ledger), public)
        fresh = add_public(ledger, public, subject=options["subject"], places=places)
        begin, end = (time_in_words(int(when)) for when in (public.times.min(), public.times.max()))
        span = begin if begin == end else f"{begin} to {end}"
        state = "is counted as public now" if fresh else "was counted before"
        click.echo(f"{name} {state}: {in_words(len(public.times), accuracy)}, {span}.")
        for place in places:
            click.echo(f"It shows {named(place.name)}: that counts as told, for all visits.")
    click.echo("Later releases reckon with it. Those that are out are as they were.")


def _stated(place: str, time: str, zone: ZoneInfo | None, accuracy: float) -> Imported:
    from trailveil.traces.stated_times import time_of

    numbers = _PLACE.fullmatch(place)
    degrees = [float(number) for number in numbers.groups()] if numbers else [math.inf]
    if len(degrees) < 2 or abs(degrees[0]) > 90 or abs(degrees[1]) > 180:
        raise InvalidValue("--at must be LAT,LON such as 46.5,-33.25, got something else")
    when = np.array([time_of(time, zone)], dtype=np.int64)
    return Imported(when, np.array([degrees]), accuracy)


def _read(file: Path, zone: ZoneInfo | None, accuracy: float) -> Imported:
    """The positions of a photo or of a track."""
    from trailveil.traces.formats import (  # the ledger is shown without any format
        MOST_POINTS,
        size_of,
    )
    from trailveil.traces.formats.exif import JPEG, read_photo
    from trailveil.traces.loading import load

    with_head = bytes_of(file, size_of(MOST_POINTS))
    if not with_head.startswith(JPEG):
        trace = load(file, zone=zone)[0]
        return Imported(trace.times, trace.positions, accuracy)
    try:
        photo = read_photo(with_head, zone)
    except UnreadableInput as error:
        raise UnreadableInput(f"{named(file)}: {error}") from error
    return Imported(np.array([photo.when]), np.array([photo[1:]]), accuracy)
