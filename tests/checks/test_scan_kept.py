"""What `protect --keep FIELD` leaves in a release passes the scan by the same name, and only so."""

import io
from dataclasses import replace

import numpy as np
import pytest

from tests.rides import gpx, ride
from trailveil.checks.scan import scan
from trailveil.release.drawing import on_lattice
from trailveil.traces.fields import FIELDS, KEEPABLE
from trailveil.traces.formats import write
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.projection import frame_for
from trailveil.traces.selection import Chosen

TRACE = ride(60, 5.0)
FRAME = frame_for(TRACE.positions)
NOISE = np.random.default_rng(4).normal(0, 300, (len(TRACE), 2))
MOVED = FRAME.to_degrees(FRAME.to_lattice(TRACE.positions) + on_lattice(NOISE))


def released(suffix: str, name: str) -> bytes:
    """A release with one field kept."""
    if name == "name":
        trace = replace(TRACE, names=("Morning loop",))
    elif name == "type":
        trace = replace(TRACE, types=("ride",))
    else:
        values = np.linspace(60.0, 70.0, len(TRACE))
        trace = replace(TRACE, fields=((name, values),))
    out = io.BytesIO()
    write(trace, out, suffix, grid=MOVED)
    return out.getvalue()


WRITTEN = [
    (row.suffixes[0], name)
    for row in FORMATS
    if row.write
    for name in KEEPABLE
    if name in row.fields or (name == "name" and row.names)
]


@pytest.mark.parametrize(("suffix", "name"), WRITTEN)
def test_a_kept_field_passes_by_its_name_and_only_so(suffix: str, name: str) -> None:
    original, release = ("ride.gpx", gpx(TRACE)), (f"x{suffix}", released(suffix, name))
    assert scan(original, release, Chosen(), keep=[name]).leaks == ()
    assert not scan(original, release, Chosen()).clean
    notes = scan(original, release, Chosen(), keep=[name]).notes
    assert [FIELDS[name].tells in note for note in notes] == ([True] if name in FIELDS else [])
    others = [other for other in KEEPABLE if other != name]
    assert not scan(original, release, Chosen(), keep=others).clean


@pytest.mark.parametrize(
    "planted",
    [
        b"<trk><type>cycling</type><type>Aunt Ida</type>",
        b"<trk><type>cycling to Aunt Ida</type>",
        b"<wpt><type>cycling</type></wpt><trk>",
        b"<trk><link><type>cycling</type></link>",
    ],
)
def test_a_type_is_one_word_at_one_place(planted: bytes) -> None:
    original, data = ("ride.gpx", gpx(TRACE)), released(".gpx", "type")
    stated = b"<trk>\n<type>cycling</type>"
    assert stated in data
    assert scan(original, ("x.gpx", data), Chosen(), keep=["type"]).clean
    changed = data.replace(stated, planted)
    assert not scan(original, ("x.gpx", changed), Chosen(), keep=["type"]).clean
