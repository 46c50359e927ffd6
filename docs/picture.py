"""Draws docs/images/day.svg: the made-up day of `trailveil demo`, before and after. Run.

Python docs/picture.py.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.release.drawing import draw
from trailveil.release.protect import protect
from trailveil.release.request import Request
from trailveil.studies.datasets.day import day_plan, simulated_day
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.projection import frame_for
from trailveil.traces.selection import Stretch

TARGET = Path(__file__).parent / "images" / "day.svg"
# For a picture of an invented place only: a seed that is known protects nothing.
SEED = bytes(32)
# Nanoseconds without a fix, from which on no line is drawn.
GAP = 60 * 10**9


def main() -> None:
    """Draw the picture."""
    day, stays = simulated_day(), day_plan().stays
    frame = frame_for(day.positions)
    first, last = int(day.times[0]), int(day.times[-1])
    stretches = [Stretch(one.name, max(one.begin, first), min(one.end, last)) for one in stays]
    clinic = stretches[1]
    made = protect(day, Request(tuple(stretches), floor=ACTIVITIES["ride"], middle=MIDDLE["ride"]))
    released, _ = draw(made, SEED)
    before, after = (frame.to_lattice(trace.positions) / 1e9 for trace in (day, released))
    left = CIRCLE_68 * made.findings[1].deviation / 1000
    later = int(np.searchsorted(released.times, clinic.end))
    place = after[later - 1 : later + 1].mean(axis=0)
    gaps = np.flatnonzero(np.diff(released.times) > GAP) + 1
    shown = np.insert(after, gaps, np.nan, axis=0)

    mpl.rcParams.update({"font.family": "sans-serif", "svg.hashsalt": "trailveil"})
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(*before.T, color="#777777", linewidth=1.2, label="recorded (private)")
    axes.plot(*shown.T, color="#0b6e99", linewidth=2.4, label="released: exactly as recorded")
    axes.add_patch(Circle((place[0], place[1]), left, color="#0b6e99", alpha=0.12))
    axes.annotate(
        "the best guess of an adversary with the rest of\n"
        f"the track and a map: a circle of {1000 * left:.0f} m",
        place - [left, 0],
        xytext=(-8, 0),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8,
    )
    for name, text in (("home", "home"), ("clinic", "clinic")):
        stay = next(one for one in stays if one.name == name)
        at = frame.to_lattice(np.array([[stay.latitude, stay.longitude]]))[0] / 1e9
        axes.plot(*at, marker="o", color="#b3392f", markersize=5)
        axes.annotate(
            text, at, xytext=(6, 6), textcoords="offset points", fontsize=9, color="#b3392f"
        )
    axes.set_aspect("equal")
    axes.margins(0.08)
    axes.set_xlabel("km east")
    axes.set_ylabel("km north")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="best")
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
