"""Figure 2: as the authors plot it where published, as mpmath finds it where exact."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import Sweep
from tests.studies.experiments import oracle
from trailveil.errors import InvalidValue
from trailveil.studies.experiments.figure2 import PANELS, Choice, Curve, Point, compute
from trailveil.studies.experiments.scenes import BUDGET, SCENES, mechanism

# Of the authors' columns, which curve they are. Panels d and h are in the rows of a and e.
COLUMNS = {
    "sdp": Curve("sdp"),
    "uniform": Curve("uniform"),
    "concentrated": Curve("concentrated"),
    "adversary_0.5": Curve("sdp", 0.5),
    "adversary_1.5": Curve("sdp", 1.5),
}
IN_ROWS_OF = {"d": "a", "h": "e"}
# Panel b is off where the authors' solver is inaccurate: see below.
AS_PUBLISHED = "acdefgh"
THREE = (0, 9, 19)


def published_rows(shared: Path, letter: str) -> list[dict[str, float]]:
    reference: Any = json.loads((shared / "reference" / "figure2.json").read_text())
    rows: list[dict[str, float]] = reference["panels"][IN_ROWS_OF.get(letter, letter)]
    return rows


def interval(scene: str, scale: float, curve: Curve, computed: str) -> float:
    return compute(Point(scene, scale, curve, computed))["interval"]


def scale_of(scene: str, rounded: float) -> float:
    scales = SCENES[scene].scales
    scale = float(scales[np.argmin(np.abs(scales - rounded))])
    assert scale == pytest.approx(rounded, rel=1e-7)
    return scale


@pytest.mark.slow
@pytest.mark.parametrize("letter", AS_PUBLISHED)
def test_as_published_is_what_the_authors_plot(letter: str, shared: Path, sweep: Sweep) -> None:
    panel = PANELS[letter]
    rows = published_rows(shared, letter)
    assert len(rows) == (7 if letter in "cg" else 20)
    compared = 0
    for row in sweep(rows):
        scale = scale_of(panel.scene, row["l_eff"])
        for column, curve in COLUMNS.items():
            if curve in panel.curves and column in row:
                interval_found = interval(panel.scene, scale, curve, "published")
                assert interval_found == pytest.approx(row[column], rel=1e-3), (scale, column)
                compared += 1
        trace = mechanism(SCENES[panel.scene], scale, "sdp").noise_trace
        assert trace == pytest.approx(row["noise_trace"], rel=1e-3)
    assert compared == len(sweep(rows)) * {"c": 2, "g": 2}.get(letter, 3)


@pytest.mark.slow
def test_panel_b_is_the_closed_form_and_the_authors_solver_is_not(shared: Path) -> None:
    """The authors' sdp curve is up to 20 % off ours; their baselines are not."""
    scene, budget = SCENES["rbf compound"], BUDGET * SCENES["rbf compound"].points
    away = {}
    for row in published_rows(shared, "b"):
        scale = scale_of("rbf compound", row["l_eff"])
        interval_found = interval("rbf compound", scale, Curve("sdp"), "published")
        assert interval_found == pytest.approx(
            closed_form_interval(scale, scene.factor, budget), rel=1e-3
        )
        away[scale] = abs(interval_found / row["sdp"] - 1)
        for name in ("uniform", "concentrated"):
            baseline = interval("rbf compound", scale, Curve(name), "published")
            assert baseline == pytest.approx(row[name], rel=1e-3)
    assert max(away.values()) == pytest.approx(0.20, abs=0.01)
    assert all(error < 1e-3 for scale, error in away.items() if scale < 2)


def closed_form_interval(scale: float, factor: float, budget: float) -> float:
    """SDP_A for values 24, 25 of 50 with the authors' jitter: another telling, in double precision.

    The two are exchanged by reversal, so everything is diagonal in their sum and difference.
    """
    t = np.arange(50.0)
    sigma = np.exp(-((t[:, None] - t[None, :]) ** 2) / (2 * scale**2))
    at, others = [24, 25], [i for i in range(50) if i not in (24, 25)]
    axes = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    a = sigma[np.ix_(others, at)] @ np.linalg.inv(sigma[np.ix_(at, at)]) @ axes
    r = 1 + np.sum(a**2, axis=0)
    explained = np.einsum("ik,ij,jk->k", a, sigma[np.ix_(others, others)], a)
    explained -= np.diagonal(axes @ sigma[np.ix_(at, at)] @ axes) * np.sum(a**2, axis=0) ** 2
    k0 = explained / r**2
    m = ((factor * budget + np.sum(r * k0)) / np.sum(r) - k0) / factor
    gamma = np.zeros((50, 50))
    gamma[np.ix_(others, others)] = (a * m) @ a.T
    gamma[at, at] = np.mean(m)
    sigma += 1e-6 * np.eye(50)
    gamma += 1e-6 * np.mean(np.diagonal(gamma)) * np.eye(50)
    told_of = sigma[at] @ np.linalg.solve(sigma + gamma, sigma[:, at])
    after = sigma[np.ix_(at, at)] - told_of
    return float(2 * np.sqrt(np.linalg.eigvalsh(after)[0]))


def one_of_three(letter: str) -> tuple[int, ...]:
    """One scale for each panel, each scale for some: a hundred digits take their time."""
    return (THREE[ord(letter) % 3],)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, scene in SCENES.items() if scene.secret])
def test_exact_is_what_mpmath_finds(name: str, full: bool, sweep: Sweep) -> None:
    """The curves of both panels of a scene, if it has two."""
    panels = [panel for panel in PANELS.values() if panel.scene == name]
    scene = SCENES[name]
    count, trace = scene.points, BUDGET * scene.points
    for index in THREE if full else one_of_three(panels[0].letter):
        scale = float(scene.scales[index])
        sigma = oracle.covariance(scene.kernel, count, scale)
        noise = {
            "sdp": oracle.sdp_a(sigma, scene.secret, trace, scene.factor),
            "optimum": oracle.optimum(sigma, scene.secret, trace),
            "uniform": oracle.independent(count, range(count), trace),
            "concentrated": oracle.independent(count, scene.secret, trace),
        }
        curves = dict.fromkeys(curve for panel in panels for curve in panel.curves)
        for curve in sweep(list(curves)):
            judge = oracle.covariance(scene.kernel, count, scale * curve.adversary)
            expected = oracle.interval(judge, noise[curve.mechanism], scene.secret)
            interval_found = interval(name, scale, curve, "exact")
            assert interval_found == pytest.approx(expected, rel=1e-8, abs=1e-100), (
                scale,
                curve.name,
            )


@pytest.mark.slow
@pytest.mark.parametrize("letter", "cg")
def test_exact_for_every_value_is_what_mpmath_finds(letter: str, full: bool) -> None:
    """The mechanism of Multiple Secrets is taken as it is; what it leaves is computed anew."""
    name = PANELS[letter].scene
    scene = SCENES[name]
    for index in THREE if full else one_of_three(letter):
        scale = float(scene.scales[index])
        sigma = oracle.covariance(scene.kernel, scene.points, scale)
        noise = mechanism(scene, scale, "sdp")
        factor = np.array([[oracle.mp.mpf(x) for x in row] for row in noise.factor.tolist()])
        floor = oracle.mp.mpf(noise.floor) * oracle.identity(scene.points)
        per_point = noise.noise_trace / scene.points
        expected = {
            "sdp": oracle.interval(sigma, factor.dot(factor.T) + floor, ()),
            "uniform": oracle.interval(sigma, per_point * oracle.identity(scene.points), ()),
            # Noise of the shape of the prior: each value as if it were alone.
            "optimum": 2 / np.sqrt(1 + 1 / per_point),
        }
        for curve, value in expected.items():
            assert interval(name, scale, Curve(curve), "exact") == pytest.approx(value, rel=1e-8)


def test_the_jitter_makes_the_curve_of_the_misled_adversary() -> None:
    scale, misled = float(SCENES["rbf basic"].scales[5]), Curve("sdp", 1.5)
    assert scale == pytest.approx(5.2, abs=0.02)
    assert interval("rbf basic", scale, misled, "exact") == pytest.approx(0.035, abs=0.0005)
    assert interval("rbf basic", scale, misled, "published") == pytest.approx(0.419, abs=0.001)


def test_what_is_released_again_a_period_later_is_no_secret() -> None:
    """Exactly nothing is left; the authors' jitter leaves 0.0024."""
    for name in ("periodic basic", "periodic compound"):
        scale = float(SCENES[name].scales[10])
        assert interval(name, scale, Curve("concentrated"), "exact") == 0.0
        assert interval(name, scale, Curve("concentrated"), "published") > 0.002


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_no_curve_of_the_same_noise_is_above_the_optimum(name: str, sweep: Sweep) -> None:
    for index in sweep(THREE, short=2):
        scale = float(SCENES[name].scales[index])
        best = compute(Point(name, scale, Curve("optimum"), "exact"))
        for other in ("sdp", "uniform"):
            interval_found = compute(Point(name, scale, Curve(other), "exact"))
            assert interval_found["noise_trace"] == pytest.approx(best["noise_trace"], rel=1e-9)
            assert interval_found["interval"] < best["interval"]


def test_a_choice_names_each_point_once() -> None:
    every = Choice().points()
    assert len(every) == len(set(every)) == 20 * 2 * 2 * (4 + 4 + 3 + 4)
    few = Choice(panels=("d",), computed=("exact",), scales=3)
    scales = {point.scale for point in few.points()}
    assert len(few.points()) == 18
    assert scales == {1.0, 10.0, float(SCENES["rbf basic"].scales[10])}


def test_a_mechanism_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValue, match="of this name here, got laplace"):
        mechanism(SCENES["rbf basic"], 1.0, "laplace")
    with pytest.raises(InvalidValue, match="got concentrated"):
        mechanism(SCENES["rbf all"], 1.0, "concentrated")
