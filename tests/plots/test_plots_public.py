"""The pictures that are handed on: true to their numbers and to scale, and no state is touched."""

import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from tests.rides import ride
from trailveil.checks.attacks.contract import Background, Evidence
from trailveil.checks.attacks.posterior import posterior_mean, posterior_over_time
from trailveil.checks.utility import bounds
from trailveil.checks.utility import density as time_in_cells
from trailveil.errors import InvalidValue, Unavailable
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Matern32, White
from trailveil.plots import covariance, density, inline, posterior, trace, trade_off
from trailveil.plots.curves import noise_figure
from trailveil.plots.maps import Ring, Shown, lines_of, map_figure
from trailveil.privacy.mechanism import Mechanism, no_noise
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret
from trailveil.traces.projection import Frame, frame_for
from trailveil.traces.trace import Trace

TIMES = np.arange(0.0, 400.0, 10.0)
PRIOR = Prior(Matern32(60.0, 20.0) + Constant(1000.0) + White(2.0), TIMES)
NOISE = Mechanism(TIMES, np.exp(-(((TIMES[:, None] - 200) / 50) ** 2)) * 30.0, 4.0)
RANDOM = np.random.default_rng(5)
TRUTH = 3000 + np.cumsum(RANDOM.normal(0, 5, TIMES.size))
SEEN = TRUTH + RANDOM.multivariate_normal(np.zeros(TIMES.size), NOISE.covariance())
RIDE = ride(40, 20.0)


@pytest.mark.parametrize(
    "kernel",
    [
        PRIOR.kernel,
        RBF(40.0, 20.0) + White(2.0),
        RBF(40.0, 20.0) + Constant(1.0) + White(2.0),
        IntegratedOU(3.0, 60.0) + Constant(1e4) + White(2.0),
    ],
)
@pytest.mark.parametrize("slope", [None, 7.5])
def test_a_posterior_over_time_is_the_dense_formula(
    kernel: IntegratedOU, slope: float | None
) -> None:
    """Rasmussen and Williams (2006), eq. 2.38 and 2.26: around the mean of the prior, or 0."""
    prior = Prior(kernel, TIMES, None if slope is None else 2000 + slope * TIMES)
    guess = np.zeros(TIMES.size) if prior.mean is None else np.asarray(prior.mean)
    mechanism = NOISE.withholding(np.isin(np.arange(TIMES.size), [7, 8, 30]))
    rows, at = mechanism.rows, np.array([0.0, 75.0, 203.5, 390.0])
    white = 4.0 * np.eye(rows.size)
    whole = kernel(TIMES[rows], TIMES[rows]) + mechanism.covariance()
    parts = [term for term in kernel.terms() if not term.is_white()]
    cross = sum(part(at, TIMES[rows]) for part in parts)
    variance = sum(part(at, at) for part in parts)
    base = sum(part(TIMES[rows], TIMES[rows]) for part in parts)
    assert np.allclose(whole - mechanism.covariance() - white, base)
    gain = np.linalg.solve(whole, np.asarray(cross).T).T
    released = SEEN[rows]
    mean, deviation = posterior_over_time(prior, mechanism, released, at)
    expected = np.interp(at, TIMES, guess) + gain @ (released - guess[rows])
    assert np.allclose(mean, expected, atol=1e-3)
    expected = np.sqrt(np.diagonal(variance - gain @ np.asarray(cross).T))
    assert np.allclose(deviation, expected, rtol=1e-4)


def test_a_posterior_over_time_is_that_of_the_attack_at_each_time() -> None:
    times = np.arange(0.0, 6010.0, 10.0)  # enough of them for the form in O(n)
    prior = Prior(PRIOR.kernel, times)
    mechanism = Mechanism(times, np.exp(-(((times[:, None] - 3000) / 90) ** 2)) * 30.0, 4.0)
    released = 50 * np.sin(times / 700)
    released -= released.mean()  # the attack takes the mean for flat
    at = np.array([15.0, 2990.0, 5555.0])
    mean, deviation = posterior_over_time(prior, mechanism, released, at)
    view = Evidence(times, np.column_stack([released, released])[None])
    for k, time in enumerate(at):
        (posterior,) = posterior_mean(view, Background((Secret.at(time),), prior.kernel, mechanism))
        assert posterior is not None
        assert posterior.places[0, 0] == pytest.approx(mean[k], abs=1e-6)
        assert posterior.deviation == pytest.approx(deviation[k], rel=1e-6)


def test_a_posterior_must_fit() -> None:
    with pytest.raises(InvalidValue, match="released must have 40 values"):
        posterior(PRIOR, NOISE, SEEN[:-1])
    with pytest.raises(InvalidValue, match="truth must have 40 values"):
        posterior(PRIOR, NOISE, SEEN, truth=SEEN[:-1])


def test_what_is_drawn_of_a_posterior_is_the_posterior() -> None:
    axes = posterior(PRIOR, NOISE, SEEN, truth=TRUTH)
    lines = {str(line.get_label()): line for line in axes.lines}
    mean, _ = posterior_over_time(PRIOR, NOISE, SEEN, TIMES)
    assert np.allclose(np.asarray(lines["best guess"].get_ydata(), dtype=float), mean)
    assert np.array_equal(np.asarray(lines["released"].get_ydata(), dtype=float), SEEN)
    assert set(lines) == {"best guess", "released", "recorded"}


def test_a_trade_off_is_what_the_designer_gives() -> None:
    axes = trade_off(lambda epsilon: NOISE.scaled(1 / epsilon), [4, 1, 0.25], label="e")
    (line,) = axes.lines
    assert list(np.asarray(line.get_xdata())) == [0.25, 1, 4]
    assert np.allclose(np.asarray(line.get_ydata(), dtype=float), NOISE.rms * np.array([2, 1, 0.5]))
    for wrong in ([1.0], [1.0, 0.0], [1.0, np.nan]):
        with pytest.raises(InvalidValue, match="two or more positive numbers"):
            trade_off(lambda _: NOISE, wrong)


def test_a_point_without_a_design_is_left_out_by_name() -> None:
    def limited(epsilon: float) -> Mechanism:
        if epsilon < 1:
            raise Unavailable("epsilon must be at least 1")
        return NOISE.scaled(1 / epsilon)

    with pytest.warns(UserWarning, match=r"^half at epsilon 0.5 is left out: epsilon must be"):
        axes = trade_off({"half": limited, "whole": NOISE.scaled}, [0.5, 1, 2])
    half, whole = (np.asarray(line.get_ydata(), dtype=float) for line in axes.lines)
    assert np.array_equal(np.isfinite(half), [False, True, True])
    assert np.isfinite(whole).all()
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(InvalidValue, match="a value with a design"),
    ):
        trade_off(limited, [0.1, 0.2])


def test_trade_offs_by_name_have_a_legend_and_looks_of_their_own() -> None:
    several = {"half": lambda e: NOISE.scaled(0.5 / e), "whole": lambda e: NOISE.scaled(1 / e)}
    axes = trade_off(several, [1, 2], squared=True, unit="degC")
    half, whole = axes.lines
    assert np.allclose(np.asarray(whole.get_ydata(), dtype=float), NOISE.rms**2 / np.array([1, 2]))
    assert np.allclose(np.asarray(half.get_ydata(), dtype=float) * 2, whole.get_ydata())
    assert half.get_color() != whole.get_color()
    assert half.get_linestyle() != whole.get_linestyle()
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["half", "whole"]
    assert axes.get_ylabel() == "mean squared error (degC\u00b2)"


def test_a_covariance_is_that_of_the_mechanism_and_draws_are_of_it() -> None:
    upper, lower = covariance(NOISE, samples=2000, generator=np.random.default_rng(1))
    gamma = NOISE.covariance()
    (image,) = upper.images
    assert np.allclose(np.asarray(image.get_array()), gamma / gamma.max())
    draws = np.array([line.get_ydata() for line in lower.lines], dtype=float)
    # Of 2,000 draws a variance is known to 3.2 %: six times that is a false alarm of 1e-8 or so.
    assert np.allclose((draws**2).mean(axis=0), np.diagonal(gamma), rtol=0.19)
    with pytest.raises(InvalidValue, match="must release something"):
        covariance(no_noise(TIMES).withholding(np.ones(TIMES.size, dtype=bool)))


def test_axes_of_ones_own_are_drawn_on_and_nothing_else_is_touched() -> None:
    before = dict(mpl.rcParams)
    figure = Figure()
    first, middle, right = figure.subplots(1, 3)
    assert trace(RIDE, RIDE, ax=first) is first
    assert posterior(PRIOR, NOISE, SEEN, ax=middle) is middle
    assert trade_off(NOISE.scaled, [1, 2], ax=right) is right
    pair = (figure.add_subplot(), figure.add_subplot())
    assert covariance(NOISE, ax=pair) == pair
    assert trace(None, RIDE).figure is not figure
    assert dict(mpl.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def shown(place: Trace, **more: object) -> Shown:
    frame = frame_for(place.positions)
    return Shown(frame, lines_of(frame, place), **more)  # type: ignore[arg-type]  # by name


def test_a_map_is_to_scale() -> None:
    """A metre is as long east as north, in the map and beside it, and the bar is what it says."""
    figure = map_figure(shown(RIDE, size=150.0, rings=[Ring(0.0, 0.0, 10.0)]))
    figure.draw_without_rendering()
    scales = []
    for axes in figure.axes:
        box, (west, east), (south, north) = axes.bbox, axes.get_xlim(), axes.get_ylim()
        scales += [box.width / (east - west), box.height / (north - south)]
    assert np.allclose(scales, scales[0], rtol=1e-6)
    size = [patch for patch in figure.axes[1].patches if isinstance(patch, Circle)]
    assert {ring.radius for ring in size} == {150.0}
    (bar,) = (line for line in figure.axes[0].lines if line.get_linewidth() == 2)
    length = float(np.ptp(np.asarray(bar.get_xdata(), dtype=float)))
    (label,) = (text.get_text() for text in figure.axes[0].texts if text.get_text().endswith("m"))
    metres = float(label.split()[0]) * (1000 if label.endswith("km") else 1)
    assert length == pytest.approx(metres)


@pytest.mark.parametrize("step", [1.0, 20.0, 300.0])
@pytest.mark.parametrize("at", [(0.0, 179.9999), (89.95, 10.0), (-33.9, 151.2), (62.0, -179.9)])
def test_a_map_anywhere(at: tuple[float, float], step: float) -> None:
    """Across the antimeridian, near a pole: names are degrees, inside, and apart."""
    place = ride(30, step, at=(at[0], 0.0))
    positions = place.positions.copy()
    positions[:, 1] = (positions[:, 1] + at[1] + 180) % 360 - 180
    place = Trace(place.times, positions, place.segments, place.tracks)
    figure = map_figure(shown(place, size=300.0))
    picture = inline(figure, "map", "A map", "words")
    degrees = [
        float(label) for label in re.findall(r">(-?[\d.]+)°<", picture.replace("\u2212", "-"))
    ]
    assert all(-180 <= degree <= 180 for degree in degrees)
    assert len(degrees) >= (0 if at[0] > 88 else 4)
    axes = figure.axes[0]
    assert float(np.ptp(axes.get_xlim())) < 60_000
    whole = figure.bbox
    figure.draw_without_rendering()
    names = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    boxes = [name.get_window_extent() for name in names]
    for index, box in enumerate(boxes):
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1
        assert not any(box.overlaps(other) for other in boxes[index + 1 :])


def test_the_graticule_is_where_it_says() -> None:
    """Each label stands where the projection has that longitude, at the lower edge."""
    frame = Frame(48, 12)
    figure = map_figure(Shown(frame, lines_of(frame, RIDE)))
    axes = figure.axes[0]
    south = axes.get_ylim()[0]
    for x, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        at = frame.to_degrees(np.array([[x * 1e6, south * 1e6]]).round().astype(np.int64))[0]
        assert float(label.get_text()[:-1]) == pytest.approx(at[1] / 1e6, abs=2e-6)
    assert len(axes.get_xticks()) >= 2


def test_a_long_recording_is_thinned_and_keeps_its_ends() -> None:
    long = ride(20_000, 1.0)
    frame = frame_for(long.positions)
    (line,) = lines_of(frame, long)
    assert len(line) <= 3001
    assert np.allclose(line[[0, -1]], frame.to_lattice(long.positions[[0, -1]]) / 1e6)


def test_noise_of_a_long_recording_keeps_its_peak() -> None:
    spread = np.zeros(100_000)
    spread[77_777] = 500.0
    spread[:100] = np.nan
    figure = noise_figure(np.arange(100_000.0), spread, [], "m")
    drawn = np.asarray(figure.axes[0].lines[0].get_ydata(), dtype=float)
    assert np.nanmax(drawn) == 500.0
    assert np.isnan(drawn[0])
    assert drawn.size <= 1500


def test_a_picture_in_a_page_says_what_it_is_called(tmp_path: Path) -> None:
    del tmp_path
    picture = inline(map_figure(shown(RIDE)), "one", "<b>&", '"words"')
    other = inline(map_figure(shown(RIDE)), "two", "t", "w")
    assert '<title id="one-title">&lt;b&gt;&amp;</title>' in picture
    assert "&quot;words&quot;" in picture
    names = [set(re.findall(r'\bid="([^"]*)"', svg)) for svg in (picture, other)]
    assert names[0]
    assert not names[0] & names[1]
    assert "http" not in picture
    assert "<!--" not in picture


def test_a_density_has_a_shade_for_each_cell_at_its_place() -> None:
    spent = time_in_cells([RIDE], 100.0)
    axes = density({**spent, (0, 0): 0.0}, 100.0)
    (drawn,) = axes.collections
    hours = {place: seconds / 3600 for place, seconds in spent.items() if seconds > 0}
    assert np.allclose(np.asarray(drawn.get_array()), list(hours.values()))
    south, west, north, east = bounds(np.array(list(hours)), 100.0).T
    for path, *box in zip(drawn.get_paths(), west, south, east, north, strict=True):
        assert np.allclose(path.get_extents().extents, box)
    fixes = RIDE.positions
    assert axes.get_ylim()[0] <= fixes[:, 0].min()
    assert fixes[:, 0].max() <= axes.get_ylim()[1]
    with pytest.raises(InvalidValue, match="where time is spent"):
        density({})
