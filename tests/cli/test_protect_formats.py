"""`trailveil protect` on every format: its output is in the format of the input where it can be."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import run
from tests.traces.formats.samples import SAMPLES
from tests.traces.formats.traces import TRACE, written
from trailveil.traces.formats import read
from trailveil.traces.formats.table import FORMATS, Format

pytestmark = pytest.mark.slow

# A cut leaves nothing of two minutes.
NOISE = ("--at", "start+1m", "--mechanism", "noise")


@pytest.mark.parametrize("row", FORMATS, ids=[row.name for row in FORMATS])
def test_each_format_goes_in_and_its_own_or_gpx_comes_out(row: Format, tmp_path: Path) -> None:
    suffix = (*row.suffixes, ".json")[0]  # what has none of its own is known by its content
    source = tmp_path / f"ride{suffix}"
    source.write_bytes(SAMPLES[row.name])
    completed = run("protect", source, *NOISE, "--json")
    assert completed.exit_code == 0, completed.output
    name = f"ride.private{suffix}" if row.write else f"{source.name}.private.gpx"
    assert json.loads(completed.stdout)["output"].endswith(name)
    assert ("Written as GPX" in completed.stderr) == (row.write is None)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == sorted(
        [source.name, name]
    )
    released = read(tmp_path / name)
    np.testing.assert_array_equal(released.times.astype(np.int64), TRACE.times)
    moved = np.abs(released.positions - TRACE.positions).max(axis=1)
    assert moved.max() > 1e-5


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".geojson", ".json", ".parquet", ".geoparquet"])
def test_any_format_may_be_asked_for(suffix: str, tmp_path: Path) -> None:
    source = tmp_path / "ride.gpx"
    source.write_bytes(written(TRACE, ".gpx"))
    output = tmp_path / f"out{suffix}"
    completed = run("protect", source, "-o", output, *NOISE)
    assert completed.exit_code == 0, completed.output
    assert completed.stderr == ""
    assert len(read(output)) == len(TRACE)


def test_the_report_says_what_was_dropped(tmp_path: Path) -> None:
    source = tmp_path / "ride.csv"
    lines = written(TRACE, ".csv").decode().splitlines()
    text = "\n".join([f"{lines[0]},heart rate,cadence", *(f"{line},90,80" for line in lines[1:])])
    source.write_text(f"{text}\n2024-05-01T09:00:00Z,,,91,80\n", encoding="utf-8")
    completed = run("protect", source, *NOISE, "--explain")
    assert completed.exit_code == 0, completed.output
    assert "further fields of fixes, kinds: 2; none is released" in " ".join(
        completed.stdout.split()
    )
    assert "records that state no position: 1" in " ".join(completed.stdout.split())
    assert (
        (tmp_path / "ride.private.csv")
        .read_text(encoding="utf-8")
        .startswith("time,latitude,longitude\n")
    )
