"""The day in the plane: circles and estimates against plain conditioning, and who hides best."""

import csv
from pathlib import Path

import numpy as np
import pytest

from trailveil.gp.gaussian import FloatArray
from trailveil.studies.experiments.folder import opened
from trailveil.studies.experiments.nyc import (
    COUNT,
    NOISE,
    SENSITIVE,
    NycRelease,
    prior,
    releases,
    write,
)

Made = tuple[FloatArray, dict[str, NycRelease]]


@pytest.fixture(scope="module")
def releases_made() -> Made:
    return releases()


@pytest.mark.slow
def test_every_release_has_the_same_noise(releases_made: Made) -> None:
    for release in releases_made[1].values():
        assert release.mechanism.noise_trace == pytest.approx(COUNT * NOISE**2, rel=1e-9)
        assert release.released.shape == releases_made[0].shape == (COUNT, 2)


@pytest.mark.slow
def test_circles_are_the_posterior_of_who_knows_the_prior(releases_made: Made) -> None:
    sigma, at = prior().covariance, list(SENSITIVE)
    for release in releases_made[1].values():
        gain = np.linalg.solve(sigma + release.mechanism.covariance(), sigma[:, at])
        variances = np.diagonal(sigma[np.ix_(at, at)] - sigma[at] @ gain)
        assert release.deviations == pytest.approx(np.sqrt(variances), rel=1e-5)
        assert release.estimates == pytest.approx(gain.T @ release.released, rel=1e-4, abs=0.1)
        assert np.array_equal(release.secrets, releases_made[0][at])


@pytest.mark.slow
def test_the_optimum_hides_best_and_its_worst_place_as_well_as_its_best(
    releases_made: Made,
) -> None:
    least = {name: float(np.min(release.deviations)) for name, release in releases_made[1].items()}
    assert least["optimum"] > 1.5 * least["paper"] > 3 * least["independent"]
    assert np.ptp(releases_made[1]["optimum"].deviations) < 1e-3


@pytest.mark.slow
def test_the_table_has_circles_that_hold_68_in_100(releases_made: Made, tmp_path: Path) -> None:
    write(opened(tmp_path, "nyc"), drawn=False, overwrite=False)
    with (tmp_path / "nyc-circles.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["release"] for row in rows] == [
        name for name in releases_made[1] for _ in SENSITIVE
    ]
    deviations = np.concatenate([release.deviations for release in releases_made[1].values()])
    radii = np.array([float(row["radius"]) for row in rows])
    assert 1 - np.exp(-((radii / deviations) ** 2) / 2) == pytest.approx(0.68, abs=1e-5)
    away = [
        np.hypot(float(row["east"]) - float(row["true_east"]), float(row["north"]) - north)
        for row in rows
        for north in [float(row["true_north"])]
    ]
    assert 3 <= int(np.sum(np.array(away) < radii)) <= 9
