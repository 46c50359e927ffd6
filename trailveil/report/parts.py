"""What the reports of traces and of readings share: objects, and lines of text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import said
from trailveil.report.schema import Guaranteed, Times

if TYPE_CHECKING:  # lines of text are laid out without them
    from trailveil.gp.kernels import Kernel
    from trailveil.privacy.guarantee import Guarantee
    from trailveil.traces.retiming import Retiming

CONFIDENCE = 0.99
_DELTAS = (1e-2, 1e-5)
_WIDTH = 98


def guaranteed(guarantee: "Guarantee") -> Guaranteed:
    """What a guarantee means."""
    return {
        "mu": guarantee.mu,
        "epsilon": guarantee.epsilon,
        "order": guarantee.order,
        "odds_factor_99": guarantee.odds(CONFIDENCE),
        "advantage": guarantee.advantage,
        "paper_gap": {f"{delta:g}": guarantee.paper_gap(delta) for delta in _DELTAS},
    }


def rounded_up(value: float) -> float:
    """The least number of one digit that is not below a value; 0 for 0."""
    if value == 0:
        return 0.0
    unit = 10.0 ** np.floor(np.log10(value))
    return float(np.ceil(value / unit) * unit)


def rounded_down(value: float) -> float:
    """The largest number of one digit that is not above a positive value."""
    unit = 10.0 ** np.floor(np.log10(value))
    unit = unit / 10 if unit > value else unit  # a logarithm that was rounded up
    return float(np.floor(value / unit) * unit)


def prior_in_full(kernel: "Kernel") -> dict[str, str]:
    """The prior by its name, where it has one, and in full."""
    from trailveil.privacy.priors import BUILT_IN

    names = [name for name, spec in BUILT_IN.items() if spec.kernel == kernel]
    return {"name": names[0] if names else "stated", "kernel": repr(kernel)}


def times_of(released: NDArray[np.int64], retiming: "Retiming") -> Times:
    """What became of the times (n,) that are released, and how many share one and are left out."""
    return {
        "rounded_to_s": retiming.step,
        "shifted": retiming.shift,
        "dropped": retiming.drop,
        "left_out": int((~retiming.kept(released)).sum()),
    }


def changed_times(times: Times, what: str = "fix") -> str:
    """What became of the times, without a full stop; nothing where they are as recorded."""
    if times["dropped"]:
        return f"No times leave: the order of each {what} does"
    changed = ["Times count from the beginning of 2000"] if times["shifted"] else []
    if times["rounded_to_s"] is not None:
        changed.append(f"Times are rounded to {duration(times['rounded_to_s'])}")
    return ". ".join(changed)


def times_in_words(times: Times, what: str = "fix") -> str:
    """What became of the times, if anything, behind a space."""
    changed = changed_times(times, what)
    if times["rounded_to_s"] is not None:
        changed += f"; left out because an earlier {what} has that time: {times['left_out']}"
    return f" {changed}." if changed else ""


def count_of(number: float, noun: str) -> str:
    """So many of a thing."""
    plural = "" if number == 1 else "es" if noun.endswith("x") else "s"
    return f"{number} {noun}{plural}"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{said(seconds / size, 3)} {unit}"
    return f"{said(seconds, 3)} s"


@dataclass(frozen=True, slots=True)
class Item:
    """Sentences of a report. mark: what they stand behind; None for a paragraph of its own.

    style: BOLD or YELLOW, on a terminal; else empty.
    """

    mark: str | None
    words: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of a table, as it is shown; value: as it stands in the JSON report, or None."""

    shown: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a caption. head: names of the columns; the first cell names its row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture. svg: of trailveil.plots.inline. words: which say the same as it shows."""

    svg: str
    words: str


@dataclass(frozen=True, slots=True)
class Section:
    """A titled part of a report. A page shows pictures below the items, then `below`, then tables.

    As text it is the title and the items.
    """

    title: str
    items: Sequence[Item] = ()
    pictures: Sequence[Picture] = ()
    below: Sequence[Item] = ()
    tables: Sequence[Table] = ()


BOLD, YELLOW = "1", "33"
"""Styles of a terminal."""


def styled(line: str, style: str) -> str:
    """A line in a style, or as it is."""
    return f"\x1b[{style}m{line}\x1b[0m" if style else line


def paragraph(sentences: str, style: str = "") -> list[Item]:
    """Sentences by themselves."""
    return [Item(None, sentences, style)]


def listed(mark: str, items: Iterable[str], style: str = "") -> list[Item]:
    """Items behind a mark."""
    return [Item(mark, item, style) for item in items]


def ending(not_protected: Sequence[str], warnings: Sequence[str]) -> list[Section]:
    """How every report of a release ends."""
    return [
        Section("What is not protected", listed("- ", not_protected)),
        Section("Before you publish", listed("! ", warnings)),
    ]


def laid_out(sections: Iterable[Section]) -> str:
    """A report as text: sentences wrapped, items under each other; times and names stay whole."""
    return "\n\n".join(
        "\n".join([section.title, *(line for item in section.items for line in _wrapped(item))])
        for section in sections
    )


def _wrapped(item: Item) -> list[str]:
    if item.mark is None:
        lines = wrap(item.words, _WIDTH, initial_indent="  ", subsequent_indent="  ")
    else:
        lines = wrap(
            item.words,
            _WIDTH,
            initial_indent=f"  {item.mark}",
            subsequent_indent=" " * (2 + len(item.mark)),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return [styled(line, item.style) for line in lines]
