"""A track under a Matern prior: released with noise, proved by `verify`, attacked by `audit`."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.rides import ride, written
from trailveil.cli import cli
from trailveil.errors import Refused
from trailveil.gp.kernels import (
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    StoppedClock,
    White,
)
from trailveil.ledger.marks import _joint, kernels_for
from trailveil.privacy.composition import Release, joint_loss
from trailveil.privacy.promises import promises
from trailveil.privacy.secrets import Secret
from trailveil.release.place_noise import place_noise
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.report.record import record
from trailveil.traces.selection import Stretch

LEVEL, MEASURED = Constant(1e5), White(2.0)
PRIORS = {
    "matern12": Matern12(400.0, 900.0) + MEASURED,
    "matern32 and a level": Matern32(400.0, 900.0) + LEVEL + MEASURED,
}
TRACE = ride(300, 20.0, still=(140, 160))
# Seconds of the stay.
BEGIN, END = 2800, 3200


def request(kernel: Kernel, *parts: tuple[int, int], method: Method = Method.NOISE) -> Request:
    first = int(TRACE.times[0])
    stretches = [
        Stretch(f"part {i}", first + a * 10**9, first + b * 10**9)
        for i, (a, b) in enumerate(parts or [(BEGIN, END)])
    ]
    return Request(tuple(stretches), method=method, kernel=kernel)


def run(*words: str | Path, status: int = 0) -> str:
    found = CliRunner().invoke(cli, [os.fspath(word) for word in words])
    assert found.exit_code == status, found.output + str(found.exception)
    return found.output


def file_of(kernel: str, level: float) -> dict[str, Any]:
    """A prior file as `trailveil fit` writes one."""
    terms = [
        {"kernel": kernel, "std": 900.0, "length_scale": 400.0},
        {"kernel": "white", "std": 2.0},
        *([{"kernel": "constant", "std": level}] if level else []),
    ]
    return {"format": "trailveil-prior", "version": 1, "unit": "metres", "terms": terms}


@pytest.mark.parametrize(("kernel", "level"), [("matern32", 1e5), ("matern12", 0.0)])
def test_a_track_under_a_prior_from_a_file(
    kernel: str, level: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path / "state"))
    source, prior = written(tmp_path / "ride.gpx", TRACE), tmp_path / "prior.json"
    prior.write_text(json.dumps({**file_of(kernel, level), "fitted_on": None}))
    stay = ("--no-ends", "--between", f"start+{BEGIN}s", f"start+{END}s", "--mechanism", "noise")
    out, report = tmp_path / "out.gpx", tmp_path / "out.PRIVATE.json"
    words = run(
        *("protect", source, *stay, "--prior", prior, "-o", out, "--private-report", report),
        "--explain",
    )
    known = "do not know" if level else "know"
    expected = f"expect that you are within 900 m of a middle that they {known} (--prior)"
    assert expected in " ".join(words.split())
    found = run("verify", report, source, out)
    assert "all hold" in found
    mean = "a mean, not known" if level else "a known mean"
    assert f"Matern {kernel[-2]}/2, 900.0 m around {mean}" in found
    found = run("audit", source, out, *stay, "--prior", prior, "--attack", "posterior", "--json")
    trials = json.loads(found)["attacks"]
    assert trials
    assert "BROKEN" not in found


@pytest.mark.parametrize("name", PRIORS)
def test_figures_better_than_the_proof_are_refused(name: str) -> None:
    made = protect(TRACE, request(PRIORS[name]))
    report = json.loads(json.dumps(record(made, None, output="x.gpx")))
    assert [promise.what for promise in promises(report) if not promise.holds] == []
    for number in (1, 2):
        better = json.loads(json.dumps(report))
        better["secrets"][0]["exposures"][number]["circle_68_m"] *= 1 + 1e-6
        assert len([promise for promise in promises(better) if not promise.holds]) == 1
    # A proof of a shorter window, or one in which the person is a stranger's.
    shorter = json.loads(json.dumps(report))
    for one in shorter["designs"][0]["adversaries"][1:]:
        one["seconds"] -= 1
    assert any(
        "its window of 520 s" in promise.what for promise in promises(shorter) if not promise.holds
    )
    slow = json.loads(json.dumps(report))
    slow["designs"][0]["adversaries"][0] |= {
        "smoothness": 1,
        "std": 1e6,
        "length_scale": 1e4,
        "levels": 1,
        "seconds": 1e3,
    }
    assert any("of your pace" in promise.what for promise in promises(slow) if not promise.holds)


@pytest.mark.parametrize("name", PRIORS)
def test_a_part_at_an_end_and_metres_to_leave(name: str) -> None:
    asked = request(PRIORS[name], (0, 300))
    found = protect(TRACE, asked).findings[0]
    assert found.sides == 1
    assert found.guarantee.epsilon <= 1 + 1e-9
    metres = Request(asked.stretches, method=Method.NOISE, kernel=asked.kernel, leave=150.0)
    left = [exposure.posterior for exposure in protect(TRACE, metres).findings[0].exposures]
    assert min(left) >= metres.variance**0.5 * (1 - 1e-9)


def test_a_window_is_proved_to_the_nanosecond() -> None:
    asked = request(PRIORS["matern12"])
    (stay,) = asked.stretches
    longer = replace(asked, stretches=(replace(stay, end=stay.end + 50),))
    report = json.loads(json.dumps(record(protect(TRACE, longer), None, output="x.gpx")))
    assert report["designs"][0]["adversaries"][1]["seconds"] == 521
    assert [promise.what for promise in promises(report) if not promise.holds] == []


def test_a_stay_too_long_for_its_prior_is_refused_in_a_line() -> None:
    kernel = Matern32(100.0, 250.0) + LEVEL + MEASURED
    with pytest.raises(Refused, match=r"the prior must leave the place of 9 min open") as refused:
        protect(TRACE, request(kernel))
    assert "\n" not in str(refused.value)
    protect(TRACE, request(kernel, method=Method.CUT))


def test_a_place_with_a_name_takes_no_such_prior() -> None:
    with pytest.raises(Refused, match="the prior of a place with a name must be integrated-ou"):
        place_noise(request(PRIORS["matern12"]))


@pytest.mark.parametrize("name", PRIORS)
def test_the_ledger_reckons_with_strangers_and_with_the_prior(name: str) -> None:
    """Two parts whose noises meet, of one place: no less than the dense loss of both together."""
    coarse = ride(75, 80.0, still=(35, 40))  # what is dense below grows with the cube of the fixes
    made = protect(coarse, request(PRIORS[name], (BEGIN, END), (4000, 4200)))
    kernels = kernels_for(made.request)
    assert PRIORS[name] in kernels
    slow = [
        kernel for kernel in kernels if any(isinstance(x, IntegratedOU) for x in kernel.terms())
    ]
    assert [one.terms()[0] for one in slow] == [IntegratedOU(made.request.slowest.speed, 60.0)]
    found = _joint(made, made.findings)
    windows = ((BEGIN - 60.0, END + 60.0), (3940.0, 4260.0))
    still = PRIORS[name].warp(StoppedClock(windows))
    loss = joint_loss(still, [Release(made.mechanism)], Secret.at([a for a, _ in windows])).matrix
    assert found >= float(np.ones(2) @ loss @ np.ones(2)) * (1 - 1e-6)
