"""What a report claims of two files is checked against them; what cannot be is said by `verify`."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import run
from tests.cli.test_verify import TRACE, Report, changed, failed, releases, report_of, times
from tests.rides import written
from trailveil.checks.verifying import FALSE_ALARM, as_large, compared, plausible_draw
from trailveil.privacy.promises import UNCHECKED
from trailveil.traces.formats import read
from trailveil.traces.loading import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return releases(tmp_path_factory.mktemp("claims"))


OF_FILES = [
    ("cut", changed(("mechanism", "withheld_fixes"), 0), "0 fixes are withheld"),
    ("noise", changed(("mechanism", "withheld_fixes"), 50), "50 fixes are withheld"),
    ("cut", changed(("mechanism", "withheld_min"), times(0.999)), "min are withheld"),
    ("both", changed(("mechanism", "withheld_km"), times(0.999)), "km are withheld"),
    ("cut", changed(("mechanism", "released_fixes"), 400), "is the recording"),
    ("cut", changed(("recording", "fixes"), 401), "is the recording"),
    ("cut", changed(("times", "dropped"), True), "has times"),
    ("noise", changed(("mechanism", "independent_m"), 500.0), "independent noise of 500 m"),
    ("noise", changed(("mechanism", "independent_m"), 100.0), "independent noise of 100 m"),
    ("noise", changed(("mechanism", "independent_m"), 3.0), "independent noise of 3 m"),
    ("noise", changed(("mechanism", "independent_m"), -2.0), "independent noise of -2 m"),
    ("both", changed(("mechanism", "independent_m"), 10.0), "independent noise of 10 m"),
    ("cut", changed(("mechanism", "independent_m"), 2.0), "no independent noise"),
    ("noise", changed(("mechanism", "grid_deg"), 0.001), "grid of the recording is 0.001"),
    ("noise", changed(("mechanism", "grid_deg"), 0.001), "are on the grid"),
    ("both", changed(("mechanism", "grid_deg"), 1e-7), "grid of the recording is 1e-07"),
    ("noise", changed(("mechanism", "rms_m"), times(0.99)), "the noise is"),
    ("noise", changed(("mechanism", "largest_99_m"), times(1.01)), "the noise is"),
    ("cut", changed(("target", "activity_in_file"), True), "recording states"),
    ("noise", changed(("target", "activity"), "run"), "recording states"),
]


@pytest.mark.parametrize(("name", "change", "expected"), OF_FILES)
def test_a_report_that_claims_what_the_files_refute(
    folder: Path, name: str, change: Callable[[Report], None], expected: str
) -> None:
    """Draws differ: that a claim of 3 m for 2 m passes is 10 standard deviations away."""
    report = report_of(folder, name)
    change(report)
    checks = compared(report, load(folder / "ride.gpx")[0], read(folder / f"{name}.gpx"))
    assert expected in " ".join(promise.what for promise in checks if not promise.holds)


def test_noise_that_is_small_everywhere_is_judged_by_what_is_left() -> None:
    factor = np.full((40, 1), 0.001)
    still, moved = np.zeros((40, 2)), np.full((40, 2), 60.0)
    assert all(check.holds for check in plausible_draw(factor, still, 2.0))
    assert not all(check.holds for check in plausible_draw(factor, moved, 2.0))


@pytest.mark.parametrize("rounding", [0.05, 5.0])
def test_independent_noise_is_not_claimed_larger_than_it_is(rounding: float) -> None:
    """Of true claims a millionth fails, of these 200 draws one in 5000; larger claims fail all."""
    random = np.random.default_rng(5)
    bumps = np.exp(-((np.arange(80)[:, None] / 8 - np.arange(10)) ** 2))
    factor, deviation = 100.0 * bumps @ np.diag(0.5 ** np.arange(10)), 12.0
    assert FALSE_ALARM == 1e-6
    for _ in range(200):
        exact = factor @ random.standard_normal((10, 2)) + deviation * random.standard_normal(
            (80, 2)
        )
        moved = np.round(exact / (2 * rounding)) * 2 * rounding
        assert as_large(factor, moved, rounding, deviation).holds
        for claim in (3.0, 10.0, 100.0):
            assert not as_large(factor, moved, rounding, claim * deviation).holds


@pytest.mark.parametrize("files", [(), ("ride.gpx", "cut.gpx")])
def test_what_is_not_checked_is_listed(folder: Path, files: tuple[str, ...]) -> None:
    """Words cannot be proved: a report without its warnings passes, and verify says why."""
    report = report_of(folder, "cut")
    report["warnings"] = report["not_protected"] = []
    report["secrets"][0]["chosen_by_place"] = False
    path = folder / "bare.PRIVATE.json"
    path.write_text(json.dumps(report))
    words: list[str | Path] = ["verify", path, *(folder / file for file in files)]
    *_, last = run(*words).output.splitlines()
    listed = json.loads(run(*words, "--json").output)["not_checked"]
    assert last == f"Not checked: {'; '.join(listed)}."
    assert listed[: len(UNCHECKED)] == list(UNCHECKED)
    assert ("not named" in last) == (not files)
    for word in ("warnings", "not protected", "labels", "chosen by its place", "ledger"):
        assert word in last


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ("drive", ("--at", "end", "--activity", "drive", "--mechanism", "both")),
        ("ride", ("--at", "start", "--activity", "ride", "--mechanism", "cut", "--drop-times")),
        (None, ("--at", "start", "--floor", "1.1", "--leave", "100", "--mechanism", "noise")),
    ],
)
def test_true_releases_of_other_kinds(
    expected: str | None, words: tuple[str, ...], tmp_path: Path
) -> None:
    source, report = written(tmp_path / "ride.gpx", TRACE), tmp_path / "x.PRIVATE.json"
    run("protect", source, *words, "-o", tmp_path / "x.gpx", "--private-report", report)
    changed = report_of(tmp_path, "x")
    assert changed["target"]["activity"] == expected
    run("verify", report, source, tmp_path / "x.gpx")
    if changed["times"]["dropped"]:
        changed["times"]["dropped"] = False
        report.write_text(json.dumps(changed))
        assert "no times" in " ".join(failed(report, source, tmp_path / "x.gpx"))
