"""FIT that is written: fitdecode reads it, its checksums are sound, and it holds nothing else."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.leaks import MOVED
from tests.traces.formats import fit_files
from tests.traces.formats.samples import FULL
from tests.traces.formats.traces import START, TRACE, timed, traces_with_fields, written
from trailveil.checks.scan import LeakKind, scan
from trailveil.errors import UnwritableOutput
from trailveil.traces.fields import FIELDS
from trailveil.traces.formats.fit import read
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import NANOSECONDS, Seen, Trace

(FIT,) = [row for row in FORMATS if row.name == "FIT"]
# Steps of a field, and the values that there is room for.
STEPS = {"elevation": 0.2, "speed": 0.01, "temperature": 1.0}
ROOM = {"elevation": (-500, 50_000), "heart_rate": (1, 254.4), "cadence": (0, 254.4)}


@given(case=traces_with_fields())
def test_fields_that_are_written_read_back_to_their_steps(case: tuple[Trace, np.ndarray]) -> None:
    drawn, grid = case
    trace = timed(drawn, FIT)
    recording = read(written(trace, ".fit", grid), "x", tuple(FIELDS))
    order = np.argsort(recording.times)
    assert recording.seen == Seen()
    fields = dict(recording.fields)
    for name, values in trace.fields:
        if name not in FIT.fields:
            continue
        least, most = ROOM.get(name, (FIELDS[name].least, FIELDS[name].most))
        possible = (values >= least) & (values <= most)
        back = fields.get(name, np.full(len(trace), np.nan))[order]
        step = STEPS.get(name, 1.0)
        np.testing.assert_allclose(back[possible], values[possible], rtol=0, atol=0.76 * step)


def test_the_file_is_sound_by_an_independent_checksum() -> None:
    data = written(TRACE, ".fit")
    assert fit_files.checksum(data[:12]) == int.from_bytes(data[12:14], "little")
    assert fit_files.checksum(data[:-2]) == int.from_bytes(data[-2:], "little")
    assert int.from_bytes(data[4:8], "little") == len(data) - 16
    assert len(data) < 20 * len(TRACE) + 300


@pytest.mark.parametrize("second", [START + 0.5, -(10**9), 5 * 10**9])
def test_times_that_fit_does_not_hold_are_refused(second: float) -> None:
    times = np.array([int(second * NANOSECONDS)])
    trace = Trace(times, np.array([[46.0, 7.0]]), np.array([0]), (0,))
    with pytest.raises(UnwritableOutput, match=r"whole seconds from 1998 to 2125.*--round-times 1"):
        written(trace, ".fit")


def test_a_clean_release_passes_and_any_other_byte_does_not() -> None:
    data = written(TRACE, ".fit", MOVED)
    original = ("a.fit", FULL["FIT"])
    assert scan(original, ("b.fit", data), Chosen()).leaks == ()
    product = data.replace(b"\x04\xff\x00\x00\x00", b"\x04\xff\x00\xbb\x03", 1)
    assert product != data
    body = product[:-2]
    product = body + fit_files.checksum(body).to_bytes(2, "little")
    (leak,) = scan(original, ("b.fit", product), Chosen()).leaks
    assert (leak.kind, leak.leaked) == (LeakKind.FIELD, ("955",))
    unnamed = scan(original, ("b.fit", data[:-2] + b"xx"), Chosen()).leaks
    assert [leak.where for leak in unnamed] == ["the file"]
    assert not scan(original, original, Chosen()).clean


def test_a_field_passes_by_its_name_and_only_so() -> None:
    trace = replace(TRACE, fields=(("heart_rate", np.full(len(TRACE), 120.0)),))
    release = ("b.fit", written(trace, ".fit", MOVED))
    original = ("a.fit", FULL["FIT"])
    assert scan(original, release, Chosen(), keep=["heart_rate"]).leaks == ()
    assert not scan(original, release, Chosen(), keep=["cadence"]).clean
    assert not scan(original, release, Chosen()).clean


def test_a_file_of_a_chain_is_a_track() -> None:
    halves = np.repeat([0, 1], len(TRACE) // 2)
    data = written(replace(TRACE, segments=halves, tracks=(0, 1)), ".fit")
    assert len(re.findall(rb"\.FIT", data)) == 2
    assert read(data, "x").tracks == (0, 1)
    stream = io.BytesIO()
    assert FIT.write is not None
    FIT.write(TRACE, np.round(TRACE.positions * 1e6).astype(np.int64), stream)
    assert stream.getvalue() == written(TRACE, ".fit")
