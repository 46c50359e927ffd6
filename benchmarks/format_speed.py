"""Fixes a second that each format reads and writes: a table. python -m benchmarks.format_speed."""

import io
import struct
import time

import click
import numpy as np

from trailveil.traces.formats.table import FORMATS, Format
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import NANOSECONDS, Trace

COUNT = 20_000
START = 1_714_548_600
GRID = np.column_stack([46_200_000 + np.arange(COUNT), -33_000_000 + 5 * np.arange(COUNT)])
TRACE = Trace(
    (START + np.arange(COUNT)) * NANOSECONDS,
    GRID / MICRO,
    np.zeros(COUNT, dtype=np.intp),
    (0,),
)


def stamps() -> list[str]:
    """Each time as ISO 8601 in UTC, without its zone."""
    return [str(stamp) for stamp in (START + np.arange(COUNT)).astype("datetime64[s]")]


def tcx() -> bytes:
    """TRACE as the TCX of a watch, heart rate included."""
    points = "".join(
        f"<Trackpoint><Time>{stamp}Z</Time><Position><LatitudeDegrees>{a}</LatitudeDegrees>"
        f"<LongitudeDegrees>{b}</LongitudeDegrees></Position><HeartRateBpm><Value>90</Value>"
        "</HeartRateBpm></Trackpoint>"
        for stamp, (a, b) in zip(stamps(), TRACE.positions.tolist(), strict=True)
    )
    return (
        "<TrainingCenterDatabase><Activities><Activity><Lap><Track>"
        f"{points}</Track></Lap></Activity></Activities></TrainingCenterDatabase>"
    ).encode()


def plt() -> bytes:
    """TRACE as a .plt file of GeoLife."""
    rows = [
        f"{a},{b},0,-777,0,{stamp.replace('T', ',')}"
        for stamp, (a, b) in zip(stamps(), TRACE.positions.tolist(), strict=True)
    ]
    return "\r\n".join(["Geolife trajectory", *"12345", *rows]).encode()


def fit() -> bytes:
    """TRACE as a FIT file of one message a fix: time, position, heart rate."""
    body = struct.pack("<BBBHB", 0x40, 0, 0, 20, 4)
    body += bytes((253, 4, 0x86, 0, 4, 0x85, 1, 4, 0x85, 3, 1, 0x02))
    places = np.round(TRACE.positions * (2**31 / 180)).astype(int).tolist()
    body += b"".join(
        struct.pack("<BIiiB", 0, START + index - 631_065_600, a, b, 90)
        for index, (a, b) in enumerate(places)
    )
    return struct.pack("<BBHI4s", 12, 0x10, 2134, len(body), b".FIT") + body + b"\0\0"


MADE = {"TCX": tcx, "GeoLife": plt, "FIT": fit}


def row(one: Format) -> str:
    """The speeds of a format, as a row of the table."""
    written = "-"
    if one.write is None and one.name not in MADE:
        return f"| {one.name} | no file is made here | - |"
    if one.write is None:
        data = MADE[one.name]()
    else:
        one.write(TRACE, GRID, io.BytesIO())  # imports included
        stream = io.BytesIO()
        begun = time.perf_counter()
        one.write(TRACE, GRID, stream)
        written = f"{COUNT / (time.perf_counter() - begun):,.0f}"
        data = stream.getvalue()
    one.read(data, "x")
    begun = time.perf_counter()
    recording = one.read(data, "x")
    taken = time.perf_counter() - begun
    return f"| {one.name} | {len(recording) / taken:,.0f} | {written} |"


def main() -> None:
    """Print the table."""
    click.echo("| format | fixes read a second | fixes written a second |")
    click.echo("|---|---|---|")
    for one in FORMATS:
        click.echo(row(one))


if __name__ == "__main__":
    main()
