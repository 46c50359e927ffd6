"""Files of each format, by the name of its row in the table: what a new format adds is here.

- FULL: a recording of TRACE (its PLACES to six decimals at its SECONDS, in one segment) with all
  that the format can say besides. A name with "Secretville" in it, "Petronella" or "Wristwatch"
  where it has a place for names or comments; ELEVATIONS where it has one for heights; more of
  FIELDS where it can. What FULL cannot hold so is said in STATED.
- SAMPLES: TRACE and nothing else. It is what the format writes, if it writes; a format that is
  only read has a file here.
- HUGE: numbers that are beyond all measure in place of PLACES. It is made of the sample, where
  that has its degrees as text (46.123456).
"""

import json
import re
from dataclasses import dataclass

from tests.traces.formats.builders import (
    ELEVATIONS,
    FEET,
    fit,
    full_fit,
    full_geojson,
    full_gpx,
    full_kml,
    full_moving,
    full_nmea,
    full_owntracks,
    full_parquet,
    full_plt,
    full_table,
    full_tcx,
    full_timeline,
    huge_parquet,
    kmz,
    messages,
    moving,
    nmea,
    plt,
    signals,
    tcx,
)
from tests.traces.formats.fit_files import semicircles
from tests.traces.formats.traces import COUNT, PLACES, TRACE, written
from trailveil.traces.formats.table import FORMATS, Format

TEXT = [(f"{a:.6f}", f"{b:.6f}") for a, b in PLACES]
SAMPLES: dict[str, bytes] = {
    **{row.name: written(TRACE, row.suffixes[0]) for row in FORMATS if row.write},
    "FIT": fit([(semicircles(a), semicircles(b)) for a, b in PLACES.tolist()]),
    "TCX": tcx(TEXT),
    "NMEA": nmea(),
    "GeoLife": plt(TEXT),
    "Moving Features": json.dumps(moving()).encode(),
    "Google Timeline": json.dumps(signals(), ensure_ascii=False).encode(),
    "OwnTracks": json.dumps(messages()).encode(),
}
FULL: dict[str, bytes] = {
    "GPX": full_gpx(),
    "FIT": full_fit(),
    "TCX": full_tcx(),
    "KML": full_kml(),
    "KMZ": kmz(full_kml()),
    "NMEA": full_nmea(),
    "GeoLife": full_plt(),
    "GeoJSON": full_geojson(),
    "Moving Features": full_moving(),
    "Google Timeline": full_timeline(),
    "OwnTracks": full_owntracks(),
    "GeoParquet": full_parquet(),
    "CSV": full_table(","),
    "TSV": full_table("\t"),
}


@dataclass(frozen=True)
class Stated:
    """What FULL holds: how ELEVATIONS[3] is written, or None for not at all; whether names are."""

    elevation: str | None = f"{ELEVATIONS[3]:.2f}"
    names: bool = True


STATED: dict[str, Stated] = {
    "FIT": Stated("515.4"),  # a fifth of a metre
    "GeoLife": Stated(str(FEET[3]), names=False),
}
"""Of the formats whose FULL does not say all of it."""


def stated(row: Format) -> Stated:
    """What FULL holds of a format."""
    return STATED.get(row.name, Stated())


def _huge(sample: bytes) -> bytes:
    """A text with 400 digits behind the points of its degrees."""
    text, count = re.subn(
        r"\b(46|7)\.\d{6}", lambda match: f"{match[1]}{'9' * 400}", sample.decode()
    )
    assert count >= COUNT, "state in HUGE what numbers beyond all measure are like in the format"
    return text.encode()


_BEYOND = [("1e999", "9" * 400)] * COUNT
HUGE: dict[str, bytes] = {
    "FIT": fit([(2**31 - 2, -(2**31))] * COUNT),
    "TCX": tcx(_BEYOND),
    "GeoLife": plt(_BEYOND),
    "GeoParquet": huge_parquet(),
    "KMZ": kmz(_huge(SAMPLES["KML"])),
    "NMEA": SAMPLES["NMEA"].replace(b",46", b",99"),
}
HUGE |= {name: _huge(sample) for name, sample in SAMPLES.items() if name not in HUGE}

BINARY = {name for name, sample in SAMPLES.items() if b"\0" in sample}
"""The formats that are no text."""
