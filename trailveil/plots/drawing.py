"""What all pictures share: how they look, and what they are drawn on.

matplotlib is optional and slow to import, so nothing here imports it before something is drawn.
"""

from typing import TYPE_CHECKING, Any

from trailveil.errors import Unavailable, installing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "trailveil",
}
"""Settings of matplotlib that hold while something is drawn."""

INK, MUTED, PAPER, GRID = "#1b1f24", "#57606a", "#fffffe", "#d0d7de"
RELEASED, RECORDED, CIRCLE, NOISE = "#005f9e", "#8a4b08", "#b3261e", "#5b3cc4"
"""Text, lesser text, background and lines; what is released, what is true, what is left, noise.

Told apart by lightness and by dashes, too. All but GRID have a contrast of 4.5 or more on PAPER.
"""

_WIDTH, _HEIGHT = 3.5, 2.4


def check_available(instead: str = ", or --csv-only") -> None:
    """Unavailable, with the command that installs it, where matplotlib is missing.

    instead: what else can be done, for the end of the message.
    """
    try:
        import matplotlib  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise Unavailable(
            "pictures must have matplotlib, got an installation without; say: "
            f"{installing('plots')}{instead}"
        ) from error


def new_figure(width: float = _WIDTH, height: float = _HEIGHT, *, layout: bool = True) -> "Figure":
    """An empty figure of so many inches, that no list of open figures knows."""
    check_available("")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        return Figure(figsize=(width, height), layout="constrained" if layout else None)


def on(axes: "Axes | None", width: float = _WIDTH, height: float = _HEIGHT) -> "Axes":
    """The axes given, or new ones alone on a figure."""
    if axes is not None:
        return axes
    from matplotlib import rc_context

    figure = new_figure(width, height)
    with rc_context(STYLE):
        return figure.add_subplot()


def dressed(axes: "Axes", x_label: str, y_label: str) -> "Axes":
    """Axes in the colours of pages: labels, ticks and lines around. Returns them."""
    axes.set_xlabel(x_label, color=INK, fontsize=9.5)
    axes.set_ylabel(y_label, color=INK, fontsize=9.5)
    axes.tick_params(colors=MUTED, labelsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(MUTED)
    axes.patch.set_visible(False)
    return axes


def legend(axes: "Axes", columns: int = 2) -> None:
    """A legend above the axes, in so many columns."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=columns,
        fontsize=9,
        labelcolor=INK,
        frameon=False,
        handlelength=1.6,
        columnspacing=1.0,
    )
