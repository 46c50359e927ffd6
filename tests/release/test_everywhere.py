"""Every place at once: what the release promises, against dense algebra, and by the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import done, run
from tests.rides import ride, written
from trailveil.errors import InvalidValue
from trailveil.gp.kernels import Constant, IntegratedOU, White
from trailveil.privacy.adversary import PLAIN, Adversary, exposure
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.release.drawing import draw, noise_of
from trailveil.release.everywhere import plan_everywhere
from trailveil.release.plan import Plan
from trailveil.release.protect import requested
from trailveil.release.request import DEFAULT_KERNEL, Method, Request
from trailveil.traces.selection import Chosen


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_everywhere(ride(200, 10.0), Request((), method=Method.EVERYWHERE))


def kernel_at(speed: float) -> Adversary:
    kernel = IntegratedOU(speed, 60.0) + Constant(1e5) + White(2.0)
    return Adversary.believes(f"{speed:g} m/s", kernel)


@pytest.mark.parametrize("speed", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("knows", [PLAIN, Adversary.knows_point(), Adversary.knows_path()])
def test_no_adversary_learns_more_than_is_said(plan: Plan, speed: float, knows: Adversary) -> None:
    prior = Prior(DEFAULT_KERNEL, plan.trace.seconds)
    said = max(worst.exposure.loss for worst in plan.everywhere)
    assert said <= plan.request.bound
    middle = float(prior.times[100])
    window = (middle - 150.0, middle + 150.0)
    still = kernel_at(speed) & Adversary.sees_stillness([window]) & knows
    for secret, adversary in (
        (Secret.at(middle), kernel_at(speed) & knows),
        (Secret.at(float(prior.times[0])), kernel_at(speed) & knows),
        (Secret.stay(*window), still),
    ):
        assert exposure(prior, secret, plan.mechanism, adversary).loss <= said


def test_the_noise_drawn_has_the_covariance_of_the_design() -> None:
    plan = plan_everywhere(ride(4, 100.0), Request((), method=Method.EVERYWHERE))
    count = 2_500
    draws = np.array(
        [noise_of(plan.mechanism, i.to_bytes(32, "big"), "east") for i in range(count)]
    )
    truth = plan.mechanism.covariance()
    scale = np.sqrt(np.diagonal(truth))
    off = (draws.T @ draws / count - truth) / np.outer(scale, scale)
    # An entry has a standard error of at most sqrt(2 / count): 6 of them, a chance of 1e-8 in all.
    assert np.max(np.abs(off)) < 6 * np.sqrt(2 / count)
    # Whitened, all squares together are chi-square: noise a twentieth too small fails.
    white = np.linalg.solve(np.linalg.cholesky(truth), draws.T)
    assert np.mean(white**2) == pytest.approx(1, abs=6 * np.sqrt(2 / white.size))


def test_a_seed_gives_one_release_and_another_seed_another(plan: Plan) -> None:
    first, again, other = (draw(plan, bytes([i]) * 32)[1] for i in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.any(np.all(first == other, axis=1))


def test_stretches_are_refused() -> None:
    with pytest.raises(InvalidValue, match="not both"):
        plan_everywhere(ride(), Request((), method=Method.EVERYWHERE, withhold=60.0))


def test_the_command_end_to_end(tmp_path: Path) -> None:
    source = written(tmp_path / "ride.gpx", ride(120, 5.0))
    report = tmp_path / "report.json"
    said = json.loads(done("protect", source, "--everywhere", "--json", "--report", report))
    assert said["worst"]["epsilon"] <= 1.0
    assert {exposure["adversary"] for exposure in said["everywhere"]["left"]} >= {
        "plain",
        "point",
        "path",
    }
    assert said["mechanism"]["withheld_fixes"] == 0
    assert json.loads(report.read_text())["everywhere"] == said["everywhere"]
    released = (tmp_path / "ride.private.gpx").read_bytes()
    again = done("protect", source, "--everywhere", "--overwrite", "--explain")
    assert (tmp_path / "ride.private.gpx").read_bytes() == released
    words = " ".join(again.split())
    assert "any time of the recording" in words
    assert "no Gaussian noise that holds all this moves a track by less than" in words
    assert 0.9 < said["everywhere"]["least_rms_m"] / said["mechanism"]["rms_m"] < 1.0


def test_a_stated_floor_and_longest_stay_need_less_noise(tmp_path: Path) -> None:
    source = written(tmp_path / "ride.gpx", ride(120, 5.0))
    words = ["--everywhere", "--json", "--floor", "3", "--slow-for", "0"]
    said = json.loads(done("protect", source, *words))
    assert said["everywhere"]["speeds_m_s"] == [3.0, 10.0]
    assert said["everywhere"]["longest_stay_s"] == 0.0
    assert said["worst"]["epsilon"] <= 1.0
    assert said["everywhere"]["least_rms_m"] < said["mechanism"]["rms_m"] < 460.0


def test_what_a_file_says_of_its_activity_changes_nothing() -> None:
    trace, request = ride(), Request((), method=Method.EVERYWHERE)
    stated = replace(trace, activity="drive")
    assert requested(trace, Chosen(), request) == requested(stated, Chosen(), request) == request
    # A stay that is stated is a part of what is asked for; without one, all is as it was.
    other = replace(request, longest_stay=0.0)
    assert other.design != request.design
    assert "longest" not in request.design


@pytest.mark.parametrize(
    "also", [("--at", "start"), ("--between", "start", "end"), ("--withhold", "60")]
)
def test_it_must_come_alone(tmp_path: Path, also: tuple[str, ...]) -> None:
    source = written(tmp_path / "ride.gpx", ride())
    refused = run("protect", source, "--everywhere", *also, status=2)
    assert "--everywhere must come alone" in refused.stderr
