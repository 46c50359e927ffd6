"""Pictures: the same bytes for the same data, nothing cut off, colours that can be told apart."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from trailveil import plots
from trailveil.plots import (
    LOOKS,
    Band,
    Chart,
    CoverageCurve,
    CoveragePanel,
    Line,
    NoiseCase,
    PlaneMap,
)
from trailveil.studies.experiments.figure2 import PANELS

X = np.array([1.0, 2.0, 4.0])
LINES = [
    Line(curve.label, X, curve.adversary * X / 10, curve.mechanism, curve.adversary)
    for letter in "ad"
    for curve in PANELS[letter].curves
]
CHART = Chart("a title of usual length", "the x axis", "y", LINES, Band("a data set", 2.0, 2.5, 3))
CASE = NoiseCase("periodic\nevery value", np.eye(4), np.ones((3, 4)), [2])
PLACES = np.array([[0.0, 1.0], [2.0, 3.0], [1.0, -1.0]])
MAP = PlaneMap("a release", PLACES, PLACES[:1], PLACES[1:2], np.array([0.5]))
SHARES = np.array([0.1, 0.5, 0.68, 0.9])
HELD = [
    CoveragePanel(
        f"{pace} (12,345)",
        [
            CoverageCurve("one fix", SHARES, SHARES**2, 0.0, None),
            CoverageCurve("600 s", SHARES, SHARES**0.5, 1.0, (0.68, 0.7, 0.9)),
        ],
    )
    for pace in ("all", "walking", "driving")
]

DRAWN: dict[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "chart": lambda: plots.charts("x", [[CHART]], "a title"),
    "pair": lambda: plots.charts("x", [[CHART, CHART]], "a title"),
    "sheet": lambda: plots.charts("x", [[CHART] * 4] * 2, "a title"),
    "covariances": lambda: plots.covariances("x", [CASE] * 8, "a title"),
    "coverages": lambda: plots.coverages(
        "x", [("default", HELD), ("integrated-ou (fitted)", HELD)], "what was held"
    ),
    "maps": lambda: plots.maps("x", [MAP] * 3, PLACES, "km", "a title"),
}


@cache
def drawn_once(name: str) -> tuple[Figure, dict[str, bytes]]:
    """A figure as it was saved, and its files."""
    figures: list[Figure] = []
    save = Figure.savefig

    def saved(figure: Figure, *args: Any, **kwargs: Any) -> None:
        figures.append(figure)
        save(figure, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", saved)
        files = dict(DRAWN[name]())
    return figures[0], files


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_equal_data_give_equal_bytes(name: str) -> None:
    first, second = drawn_once(name)[1], dict(DRAWN[name]())
    assert list(first) == ["x.png", "x.svg"]
    assert first == second
    assert b"dc:date" not in first["x.svg"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_cut_off_and_no_text_is_over_another(name: str) -> None:
    figure, _ = drawn_once(name)
    boxes, whole = text_boxes(figure), figure.bbox
    assert len(boxes) > 8
    for label, box in boxes:
        assert whole.x0 <= box.x0 <= box.x1 <= whole.x1, label
        assert whole.y0 <= box.y0 <= box.y1 <= whole.y1, label
    for index, (label, box) in enumerate(boxes):
        for other_label, other in boxes[index + 1 :]:
            assert not box.overlaps(other), (label, other_label)


def text_boxes(figure: Figure) -> list[tuple[str, Any]]:
    """Every title, label and line of a legend, and where it is, a little smaller than it is."""
    ticks = {
        id(label)
        for axes in figure.axes
        for axis in (axes.xaxis, axes.yaxis)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())
        for label in (tick.label1, tick.label2)
    }
    shown = [
        artist
        for artist in figure.findobj(Text)
        if artist.get_visible() and artist.get_text().strip() and id(artist) not in ticks
    ]
    return [(artist.get_text(), artist.get_window_extent().padded(-1.0)) for artist in shown]


def test_looks_differ_in_colour_marker_and_lightness() -> None:
    colors, markers = zip(*LOOKS.values(), strict=True)
    assert len(set(markers)) == len(LOOKS)
    light = sorted(
        0.2126 * int(c[1:3], 16) + 0.7152 * int(c[3:5], 16) + 0.0722 * int(c[5:7], 16)
        for c in colors
    )
    assert min(np.diff(light)) > 5
