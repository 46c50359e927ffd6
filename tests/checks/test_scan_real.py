"""Releases of real recordings are clean, whatever oddities the recordings have."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Sweep
from tests.traces.formats.traces import written
from trailveil.checks.scan import scan
from trailveil.errors import TrailveilError
from trailveil.release.drawing import on_lattice
from trailveil.traces.formats.table import FORMATS, format_of
from trailveil.traces.loading import load
from trailveil.traces.projection import frame_for
from trailveil.traces.selection import Chosen

WRITTEN = [row.suffixes[0] for row in FORMATS if row.write]
FOLDERS = {"applehealth": 2, "gpx": 37, "tcx": 3, "fit": 9, "geojson": 5, "csv": 12, "geolife": 67}
"""How many recordings of each can be protected; of GeoLife every fourth is tried."""


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS)
def test_releases_of_real_recordings_are_clean(shared: Path, folder: str, sweep: Sweep) -> None:
    """With independent noise of 500 m, which is cheap to draw; in the format of the original."""
    rng = np.random.default_rng(5)
    paths = sorted(path for path in (shared / "traces" / folder).rglob("*") if path.is_file())
    paths = paths[::4] if folder == "geolife" else paths
    audited = 0
    tried = sweep(paths, short=20)
    for number, path in enumerate(tried):
        try:
            trace, _ = load(path, assume_utc=True)
        except TrailveilError:
            continue
        data = path.read_bytes()
        frame = frame_for(trace.positions)
        noise = on_lattice(rng.normal(0, 500, (len(trace), 2)))
        grid = frame.to_degrees(frame.to_lattice(trace.positions) + noise)
        row = format_of(path, data)
        suffix = row.suffixes[0] if row.write else WRITTEN[number % len(WRITTEN)]
        release = (f"shared{suffix}", written(trace, suffix, grid))
        result = scan((path.name, data), release, Chosen(), assume_utc=True)
        assert result.leaks == (), path.name
        assert result.every.compared == len(trace)
        audited += 1
    assert audited == FOLDERS[folder] or len(tried) < len(paths)
