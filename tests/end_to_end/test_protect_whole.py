"""protect from end to end, as a user and as an attacker meet it: real files, real processes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from tests.conftest import Sweep
from tests.rides import PATIENCE, stated_key
from trailveil.release.drawing import draw, noise_of
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

HEAD = '<?xml version="1.0"?><gpx version="1.1" creator="Watch" xmlns="http://www.topografix.com/GPX/1/1"'

NOISE = ("--mechanism", "noise")


def point(minute: float, latitude: str | float, longitude: str | float, inside: str = "") -> str:
    when = np.datetime64("2024-05-14T08:00:00") + np.timedelta64(round(60 * minute), "s")
    return f'<trkpt lat="{latitude}" lon="{longitude}"><time>{when}Z</time>{inside}</trkpt>'


def gpx(points: list[str], before: str = "") -> str:
    return f"{HEAD}>{before}<trk><trkseg>{''.join(points)}</trkseg></trk></gpx>"


def ride(count: int = 60) -> list[str]:
    return [point(i / 2, f"{46.2 + 2e-4 * i:.7f}", f"{-33.1 + 3e-4 * i:.7f}") for i in range(count)]


def rich() -> str:
    """A ride that is full of what must not leave."""
    extra = (
        "<ele>412.5</ele><cmt>Ludovica</cmt>"
        "<extensions><hr>171</hr><device>Fenix</device></extensions>"
    )
    points = [one.replace("</time>", f"</time>{extra}") for one in ride()]
    before = (
        "<metadata><name>Morning Walk</name><author><name>Ludovica</name></author>"
        '<link href="https://example.org/profile/4711"/><bounds minlat="46.2" minlon="-33.1" '
        'maxlat="46.22" maxlon="-33.08"/></metadata>'
        '<wpt lat="46.2051" lon="-33.0951"><name>heart clinic</name></wpt><!-- Ludovica -->'
    )
    return gpx(points, before)


def trailveil(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trailveil", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=PATIENCE,
    )


def refused(process: subprocess.CompletedProcess[str], status: int = 1) -> str:
    """The one line of a refusal."""
    assert process.returncode == status, process.stderr
    assert "Traceback" not in process.stderr
    if status == 1:
        assert len(process.stderr.strip().splitlines()) == 1
    return process.stderr


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(program: Callable[..., tuple[int, str, str]]) -> Call:
    """As `trailveil`, in this process: where nothing but words and files is looked at."""

    def called(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, *program(*map(str, words)))

    return called


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "ride.gpx"
    path.write_text(rich(), encoding="utf-8")
    return path


def test_nothing_but_times_and_moved_positions_leaves(source: Path, tmp_path: Path) -> None:
    key = stated_key(tmp_path / "key")
    found = trailveil("protect", source, *NOISE, "--at", "start+10m", "--key", key)
    assert found.returncode == 0, found.stderr
    released = (tmp_path / "ride.private.gpx").read_text(encoding="utf-8")
    text = rich()
    told = set(re.findall(r"[A-Za-z]{4,}", text)) - {
        "trkpt",
        "trkseg",
        "time",
        "creator",
        "version",
    }
    told -= {"http", "topografix", "xmlns", "encoding"}
    assert not told & set(re.findall(r"[A-Za-z]{4,}", released))
    assert set(re.findall(r"<(\w+)", released)) == {"gpx", "trk", "trkseg", "trkpt", "time"}
    assert "412.5" not in released
    assert "171" not in re.findall(r">(\d+)<", released)
    before, after = clean(read(source))[0], clean(read(tmp_path / "ride.private.gpx"))[0]
    assert np.array_equal(before.times, after.times)
    moved = np.abs(
        Frame(46, -33).to_lattice(after.positions) - Frame(46, -33).to_lattice(before.positions)
    )
    # It is on a grid of 22 m, so that noise may leave a fix where it was.
    assert moved[20].max() > MICRO
    assert np.mean(moved.max(axis=1) > MICRO) > 0.9
    grid = after.positions * 1e6
    assert np.abs(grid - np.round(grid)).max() < 1e-6


def test_the_same_again_is_the_same_file_and_another_is_refused(
    source: Path, tmp_path: Path, call: Call
) -> None:
    first, again = tmp_path / "a.gpx", tmp_path / "b.gpx"
    assert trailveil("protect", source, "-o", first).returncode == 0
    assert trailveil("protect", source, "-o", again).returncode == 0
    assert first.read_bytes() == again.read_bytes()
    other = tmp_path / "c.gpx"
    assert "--again" in refused(call("protect", source, "-o", other, "--epsilon", "2"))
    crop = tmp_path / "crop.gpx"
    crop.write_text(gpx(ride()[10:50]), encoding="utf-8")
    assert "--again" in refused(call("protect", crop, "-o", other))
    thinned = tmp_path / "thinned.gpx"
    thinned.write_text(gpx(ride()[::3]), encoding="utf-8")
    assert "--again" in refused(call("protect", thinned, "-o", other))
    assert not other.exists()
    found = call("protect", source, "-o", other, "--epsilon", "2", "--again", "--json")
    assert found.returncode == 0
    assert "released before" in " ".join(json.loads(found.stdout)["warnings"])


def test_two_first_releases_differ(source: Path, tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        out = tmp_path / f"{name}.gpx"
        state = str(tmp_path / name)
        assert trailveil("protect", source, *NOISE, "-o", out, XDG_STATE_HOME=state).returncode == 0
        files.append(out.read_bytes())
        for path in Path(state).rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path
    assert files[0] != files[1]


BAD_FILES = {
    "empty": "",
    "not XML": "lat,lon,time\n46,8,now\n",
    "truncated": rich()[:900],
    "no track": gpx([]).replace("<trk><trkseg></trkseg></trk>", '<wpt lat="1" lon="2"/>'),
    "one point": gpx(ride(1)),
    "no times": gpx([re.sub("<time>.*?</time>", "", one) for one in ride()]),
    "equal times": gpx([point(0, 46 + i / 1000, -33) for i in range(9)]),
    "latitudes of 400": gpx([point(i, 400, -33) for i in range(9)]),
    "undefined": gpx([point(i, "undefined", -33) for i in range(9)]),
    "NaN": gpx([point(i, "NaN", "NaN") for i in range(9)]),
    "naive times": gpx([one.replace("Z</time>", "</time>") for one in ride()]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_refused_in_one_line(name: str, tmp_path: Path, call: Call) -> None:
    source = tmp_path / "bad.gpx"
    source.write_text(BAD_FILES[name], encoding="utf-8")
    line = refused(call("protect", source))
    assert "bad.gpx" in line
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["bad.gpx"]


BAD_OPTIONS: list[tuple[int, tuple[str, ...]]] = [
    (1, ("--at", "2024-05-14T20:00:00Z")),
    (1, ("--between", "start+9h", "start+10h")),
    (1, ("--between", "start+9m", "start+2m")),
    (1, ("--at", "08:10")),
    (1, ("--at", "yesterday")),
    (1, ("--near", "46,-33,100")),
    (1, ("--stops", "auto", "--no-ends")),
    (2, ("--withhold", "sometimes")),
    (2, ("--leave", "200", "--epsilon", "1")),
    (2, ("--adversary", "nobody")),
    (1, ("--withhold", "99999")),
    (2, ("--mechanism", "withhold")),
    (1, ("--at", "start+10m", "--radius", "300")),
    (1, ("--prior", "swim", "--mechanism", "noise")),
    (2, ("--prior", "walk")),
    (2, ("--radius", "0")),
    (2, ("--epsilon", "-1")),
    (2, ("--order", "1")),
    (2, ("--tz", "Nowhere/Land", "--at", "08:10")),
    (2, ("--no-such-option",)),
]


@pytest.mark.parametrize(("status", "options"), BAD_OPTIONS, ids=str)
def test_bad_options(
    status: int, options: tuple[str, ...], source: Path, tmp_path: Path, call: Call
) -> None:
    refused(call("protect", source, *options), status)
    assert not (tmp_path / "ride.private.gpx").exists()


def test_outputs_that_must_not_be(source: Path, tmp_path: Path, call: Call) -> None:
    text = source.read_bytes()
    refused(call("protect", source, "-o", source, "--overwrite"))
    link = tmp_path / "link.gpx"
    link.symlink_to(source)
    refused(call("protect", source, "-o", link, "--overwrite"))
    taken = tmp_path / "taken.gpx"
    taken.write_text("mine", encoding="utf-8")
    refused(call("protect", source, "-o", taken))
    assert taken.read_text(encoding="utf-8") == "mine"
    refused(call("protect", source, "-o", tmp_path / "nowhere" / "a.gpx"))
    refused(call("protect", source, "-o", tmp_path))
    refused(call("protect", tmp_path / "missing.gpx"))
    refused(call("protect", tmp_path))
    assert source.read_bytes() == text
    assert trailveil("protect", source, "-o", taken, "--overwrite").returncode == 0


@pytest.mark.slow
def test_a_killed_run_leaves_nothing_half_written(
    source: Path, tmp_path: Path, sweep: Sweep
) -> None:
    text, out = source.read_bytes(), tmp_path / "out.gpx"
    whole: bytes | None = None
    for moment in sweep([0.2, 0.5, 0.8, 1.1, 1.4, 1.7, 2.0, 2.5], short=4):
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "trailveil",
                "protect",
                source,
                "-o",
                out,
                "--overwrite",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert source.read_bytes() == text
        if out.exists():
            assert out.read_bytes().endswith(b"</gpx>\n")
            assert whole in (None, out.read_bytes())
            whole = out.read_bytes()
    assert trailveil("protect", source, "-o", out, "--overwrite").returncode == 0
    assert whole in (None, out.read_bytes())


def small_plan() -> Any:
    times = np.arange(8, dtype=np.int64) * 60 * NANOSECONDS
    positions = np.column_stack([46.2 + 1e-3 * np.arange(8), np.full(8, -33.1)])
    trace = Trace(times, positions, np.zeros(8, np.intp), (0,))
    here = Stretch("here", int(times[4]), int(times[4]))
    return protect(trace, Request((here,), method=Method.NOISE))


def test_drawn_noises_have_the_covariance_of_the_mechanism() -> None:
    made, count = small_plan(), 20_000
    draws = np.array(
        [noise_of(made.mechanism, i.to_bytes(32, "big"), "east") for i in range(count)]
    )
    gamma = made.mechanism.covariance()
    found = draws.T @ draws / count
    # An entry of the sample covariance has variance (g_ii g_jj + g_ij^2) / count: 36 distinct
    # entries within 5 deviations; by the union bound a false alarm once in 48,000.
    deviation = np.sqrt((np.outer(np.diag(gamma), np.diag(gamma)) + gamma**2) / count)
    assert np.all(np.abs(found - gamma) <= 5 * deviation)


def test_east_and_north_are_independent_and_exact_on_the_lattice() -> None:
    made, count = small_plan(), 2_000
    variance = made.mechanism.variances[4]
    pairs = np.array(
        [
            [noise_of(made.mechanism, i.to_bytes(32, "big"), axis)[4] for axis in ("east", "north")]
            for i in range(count)
        ]
    )
    share = float(np.mean(pairs[:, 0] * pairs[:, 1])) / variance
    assert abs(share) <= 4.5 / np.sqrt(count)  # false alarm once in 150,000
    total = float(np.sum(pairs**2)) / variance
    assert chi2.ppf(5e-6, 2 * count) <= total <= chi2.isf(5e-6, 2 * count)  # once in 100,000
    seed = bytes(31) + b"\x07"
    trace, grid = draw(made, seed)
    noise = np.column_stack([noise_of(made.mechanism, seed, axis) for axis in ("east", "north")])
    # X + round(G) = round(X + G) for lattice points X: the sum is exact in integers.
    expected = made.frame.to_degrees(made.lattice + np.floor(noise * MICRO + 0.5).astype(np.int64))
    assert np.array_equal(grid, made.grid.rounded_places(expected))
    assert np.array_equal(np.round(trace.positions * 1e6).astype(np.int64), grid)


@pytest.mark.slow
def test_every_real_gpx_file_is_protected_or_refused(
    shared: Path, tmp_path: Path, sweep: Sweep
) -> None:
    files = sorted((shared / "traces" / "gpx").rglob("*.gpx"))
    assert len(files) > 50
    for number, path in enumerate(sweep(files, short=14)):
        out = tmp_path / f"{number}.gpx"
        found = trailveil("protect", path, "-o", out, "--again")
        if found.returncode == 0:
            assert out.read_bytes().endswith(b"</gpx>\n")
        else:
            refused(found)
            assert not out.exists()
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".gpx" and path.is_file()]
