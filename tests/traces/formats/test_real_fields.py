"""Fields of real recordings, against what independent readers find in the same files."""

import warnings
from collections import Counter
from pathlib import Path

import fitdecode
import gpxpy
import numpy as np

from trailveil.errors import TrailveilError
from trailveil.traces.fields import FIELDS, plausible
from trailveil.traces.formats import read

LARGEST = 300_000  # bytes: the independent readers are slow
OF_FIT = {
    "elevation": ("enhanced_altitude", "altitude"),
    "speed": ("enhanced_speed", "speed"),
    "heart_rate": ("heart_rate",),
    "cadence": ("cadence",),
    "power": ("power",),
    "temperature": ("temperature",),
}


def by_fitdecode(path: Path) -> dict[str, np.ndarray]:
    """Every field of every record with a position."""
    numbers: dict[str, list[float]] = {name: [] for name in OF_FIT}
    with warnings.catch_warnings(), fitdecode.FitReader(path) as reader:
        warnings.simplefilter("ignore")
        for frame in reader:
            if frame.frame_type != fitdecode.FIT_FRAME_DATA or frame.name != "record":
                continue
            values = {field.name: field.value for field in frame.fields if field.value is not None}
            if "position_lat" not in values and "position_long" not in values:
                continue
            for name, keys in OF_FIT.items():
                stated = [values[key] for key in keys if isinstance(values.get(key), int | float)]
                numbers[name].append(stated[0] if stated else np.nan)
    return {name: plausible(name, values) for name, values in numbers.items()}


def test_fit_files_have_the_fields_that_fitdecode_finds(shared: Path) -> None:
    counted: Counter[str] = Counter()
    for path in sorted((shared / "traces/fit").rglob("*.fit")):
        if path.stat().st_size > LARGEST:
            continue
        try:
            fields = dict(read(path, tuple(FIELDS)).fields)
            expected = by_fitdecode(path)
        except (TrailveilError, fitdecode.FitError):
            continue
        for name, values in expected.items():
            mine = fields.get(name, np.full(len(values), np.nan))
            np.testing.assert_allclose(mine, values, rtol=1e-12, err_msg=f"{path.name}: {name}")
            counted[name] += int(np.isfinite(values).any())
    assert all(counted[name] for name in OF_FIT if name != "power"), (
        counted
    )  # which none of them has


def test_gpx_files_have_the_elevations_that_gpxpy_finds(shared: Path) -> None:
    counted: Counter[str] = Counter()
    for path in sorted((shared / "traces/gpx").rglob("*.gpx")):
        if path.stat().st_size > LARGEST:
            continue
        try:
            fields = dict(read(path, ("elevation", "speed", "course")).fields)
            tree = gpxpy.parse(path.read_text(encoding="utf-8"))
        except (TrailveilError, gpxpy.gpx.GPXException, ValueError):
            continue
        points = [
            point for track in tree.tracks for part in track.segments for point in part.points
        ]
        stated = {"elevation": [point.elevation for point in points]}
        if tree.version == "1.0":
            stated |= {
                name: [getattr(point, name) for point in points] for name in ("speed", "course")
            }
        for name, cells in stated.items():
            expected = plausible(name, [np.nan if cell is None else cell for cell in cells])
            mine = fields.get(name, np.full(len(points), np.nan))
            np.testing.assert_array_equal(mine, expected, err_msg=f"{path.name}: {name}")
            counted[name] += int(np.isfinite(expected).any())
    assert counted["elevation"] > 30, counted
    assert counted["speed"] > 0, counted


def test_extensions_of_many_writers_are_read(shared: Path) -> None:
    """What some file has of each kind is found."""
    counted: Counter[str] = Counter()
    for kind in ("gpx", "tcx"):
        for path in sorted((shared / f"traces/{kind}").rglob(f"*.{kind}")):
            if path.stat().st_size > LARGEST:
                continue
            try:
                fields = read(path, tuple(FIELDS)).fields
            except TrailveilError:
                continue
            counted.update(f"{kind} {name}" for name, _ in fields)
    of_both = ("elevation", "heart_rate", "cadence", "speed")
    expected_kinds = {f"{kind} {name}" for kind in ("gpx", "tcx") for name in of_both}
    expected_kinds |= {"gpx course", "gpx temperature", "tcx power"}
    assert expected_kinds <= {*counted}, expected_kinds - {*counted}
