"""`verify` and `audit`: in a release there is no room for digits, empty parts or white space."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import run
from tests.cli.test_verify import STAY, TRACE, failed
from tests.rides import written
from trailveil.traces.formats import read, write
from trailveil.traces.projection import microdegrees
from trailveil.traces.trace import Trace

TEXTS = (".gpx", ".kml", ".tcx", ".geojson", ".csv", ".tsv")
FREE = "the file is free of coordinates"


def of_decimals(decimals: int) -> Trace:
    return replace(TRACE, positions=np.round(TRACE.positions, decimals))


def release(folder: Path, suffix: str, trace: Trace, mechanism: str = "cut") -> list[Path]:
    """Report, recording and release."""
    source, report = written(folder / "ride.gpx", trace), folder / "x.PRIVATE.json"
    out = folder / f"out{suffix}"
    words = ("--mechanism", mechanism, "-o", out, "--private-report", report)
    run("protect", source, *STAY, *words, "--subject", mechanism)
    return [report, source, out]


def tells(files: list[Path]) -> list[str]:
    """What verify finds wrong; audit fails as well."""
    run("audit", *files[1:], *STAY, status=1)
    return failed(*files)


@pytest.mark.parametrize("suffix", TEXTS)
@pytest.mark.parametrize("decimals", [6, 9])
def test_digits_behind_those_of_a_coordinate(suffix: str, decimals: int, tmp_path: Path) -> None:
    files = release(tmp_path, suffix, of_decimals(decimals))
    run("verify", *files)
    text = files[-1].read_text()
    (first, *_) = re.findall(rf"-?\d+\.\d{{{decimals}}}(?!\d)", text)
    # Less than the reader tells apart; the next number; a hundredth of a step.
    for more in ("0" * (15 - decimals) + "457399", "00000004", "01"):
        files[-1].write_text(text.replace(first, first + more, 1))
        assert any(line.startswith(FREE) for line in tells(files)), more
    if suffix != ".geojson":  # JSON has no such number
        files[-1].write_text(text.replace(first, "0" + first, 1))
        assert any(line.startswith(FREE) for line in tells(files))


@pytest.mark.parametrize("mechanism", ["noise", "both"])
def test_digits_behind_those_of_noise(mechanism: str, tmp_path: Path) -> None:
    files = release(tmp_path, ".gpx", of_decimals(6), mechanism)
    run("verify", *files)
    text = files[-1].read_text()
    for more in ("000000001457", "00000004", "01"):
        files[-1].write_text(re.sub(r'(lat="[\d.]+)"', rf'\g<1>{more}"', text, count=1))
        assert any(line.startswith(FREE) for line in tells(files)), more


@pytest.mark.parametrize("suffix", [*TEXTS, ".kmz", ".parquet", ".fit"])
def test_what_was_released_with_six_decimals_still_holds(suffix: str, tmp_path: Path) -> None:
    """As cuts were once written, before places left exactly as they were recorded."""
    files = release(tmp_path, suffix, of_decimals(6))
    run("verify", *files)
    again = read(files[-1])
    moments = again.times.astype("datetime64[ns]").astype(np.int64)
    trace = Trace(moments, again.positions, again.segments, again.tracks)
    with files[-1].open("wb") as stream:
        write(trace, stream, suffix, grid=microdegrees(trace.positions))
    run("verify", *files)


EMPTY = {
    ".gpx": ("</trkseg>", "</trkseg><trkseg/>"),
    ".kml": ("</gx:Track>", "</gx:Track><gx:Track/>"),
    ".tcx": ("</Track>", "</Track><Track/>"),
    ".geojson": ('"features":[', '"features":[ '),
    ".csv": (",", ", "),
    ".tsv": ("\n", " \n"),
}


@pytest.mark.parametrize("suffix", TEXTS)
def test_empty_parts_and_white_space(suffix: str, tmp_path: Path) -> None:
    files = release(tmp_path, suffix, of_decimals(6))
    text = files[-1].read_text()
    for changed in (text + " \t\n", "\n" + text, text.replace(*EMPTY[suffix], 1)):
        assert changed != text
        files[-1].write_text(changed)
        run("verify", *files, status=1)
        run("audit", *files[1:], *STAY, status=1)
