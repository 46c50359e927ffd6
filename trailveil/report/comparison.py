"""A comparison of mechanisms as a page: for each data set a picture, and tables with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import TYPE_CHECKING

import numpy as np

from trailveil.plots.drawing import CIRCLE, GRID, MUTED, NOISE, RECORDED, RELEASED, dressed, inline
from trailveil.plots.drawing import new_figure as empty_figure
from trailveil.report.html import Page, rendered
from trailveil.report.parts import Cell, Picture, Section, Table, paragraph
from trailveil.studies.comparing.results import ERROR, GROUPS, Results, SummaryRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_LEAD = (
    "How near attacks come to what each mechanism was to hide, and what it costs. Brackets are "
    "95 % intervals: over people, by resampling them, or exact for a rate. A mark is a circle "
    "around the true place that holds 68 % of the guesses of an attack, where it comes nearest."
)

Nearest = dict[str, dict[str, SummaryRow]]


def comparison_page(results: Results, *, drawn: bool) -> bytes:
    """The page. drawn: with pictures, which need matplotlib."""
    sets = list(dict.fromkeys(line.group[0] for line in results.lines))
    sections = [
        section
        for number, data in enumerate(sets)
        for section in _sections(
            data, [line for line in results.lines if line.group[0] == data], number, drawn=drawn
        )
    ]
    foot = "Made by trailveil compare. All numbers: summary.csv, and one row each in results."
    return rendered(Page("Comparison of mechanisms", _LEAD, sections, foot, private=False))


def nearest_of(lines: Sequence[SummaryRow]) -> Nearest:
    """By mechanism and attack, the line of the secret to which the attack comes nearest."""
    nearest: Nearest = {}
    for line in lines:
        _, mechanism, attack, metric, _ = line.group
        if metric == ERROR:
            attacks = nearest.setdefault(mechanism, {})
            if attack not in attacks or line.value < attacks[attack].value:
                attacks[attack] = line
    return nearest


def _sections(data: str, lines: Sequence[SummaryRow], number: int, *, drawn: bool) -> list[Section]:
    nearest = nearest_of(lines)
    pictures = []
    if drawn and nearest:
        rows = [
            Standing(name, {a: (x.value, x.low, x.high) for a, x in attacks.items()})
            for name, attacks in nearest.items()
        ]
        words = "; ".join(f"{name}: {_best(attacks)}" for name, attacks in nearest.items())
        title = f"Attacks on {data}"
        svg = inline(standings(rows), f"standings{chr(97 + number % 26)}", title, words)
        pictures.append(Picture(svg, f"The nearest attack of each mechanism. {words}."))
    attacks = list(dict.fromkeys(line.group[2] for line in lines if line.group[2]))
    tables = [
        _table("Circles that hold 68 % of the guesses, metres", attacks, nearest),
        _table("Rates of attacks", *_others(lines, of_attacks=True)),
        _table("What it costs, and what is left of use", *_others(lines, of_attacks=False)),
    ]
    people = max((line.people for line in lines), default=0)
    items = paragraph(f"{people} people.")
    return [Section(f"Data: {data}", items, pictures, (), [t for t in tables if t.rows])]


def _best(attacks: dict[str, SummaryRow]) -> str:
    best = min(attacks.values(), key=lambda line: line.value)
    return f"{best.group[2]}, {shown(best)} m" if isfinite(best.value) else "nothing to go by"


def _others(lines: Sequence[SummaryRow], *, of_attacks: bool) -> tuple[list[str], Nearest]:
    """The columns and rows of what is no error of an attack."""
    rows: Nearest = {}
    columns: dict[str, None] = {}
    for line in lines:
        _, mechanism, attack, metric, secret = line.group
        nothing = metric == "failed" and line.value == 0
        if bool(attack) is of_attacks and metric not in (ERROR, "circle_68_m") and not nothing:
            column = " ".join(filter(None, (attack, metric.replace("_", " "), secret)))
            columns[column] = None
            rows.setdefault(mechanism, {})[column] = line
    return list(columns), rows


def _table(caption: str, columns: Sequence[str], rows: Nearest) -> Table:
    columns = [name for name in columns if any(name in row for row in rows.values())]
    cells = tuple(
        (
            Cell(mechanism),
            *(
                Cell(shown(row[name]), row[name].value if isfinite(row[name].value) else None)
                if name in row
                else Cell("")
                for name in columns
            ),
        )
        for mechanism, row in rows.items()
    )
    return Table(caption, ("", *columns), cells if columns else ())


def shown(line: SummaryRow) -> str:
    """A value and its interval for people."""
    if isnan(line.value) or not line.values:
        return ""
    if isnan(line.low):
        return _number(line.value)
    return f"{_number(line.value)} ({_number(line.low)} to {_number(line.high)})"


def _number(value: float) -> str:
    if not isfinite(value):
        return "none"
    return f"{value:,.0f}" if abs(value) >= 99.5 else f"{value:.3g}"


def text_of(results: Results) -> list[str]:
    """The nearest attack of each mechanism on each data set, and what it refused, as lines."""
    lines = []
    for data in dict.fromkeys(line.group[GROUPS.index("data")] for line in results.lines):
        of_data = [line for line in results.lines if line.group[0] == data]
        nearest = nearest_of(of_data)
        lines.append(f"{data}: the nearest attack, and the circle that holds 68 % of its guesses")
        for line in of_data:
            _, name, _, metric, _ = line.group
            if metric != "refused":  # each mechanism has one such line
                continue
            words = [_best(nearest[name])] if name in nearest else []
            if line.value > 0:
                words.append(f"refused {round(line.value * line.values)} of {line.values}")
            lines += [f"  {name:20} {'; '.join(words)}"] if words else []
    return lines


_LOOKS = ((RELEASED, "o"), (CIRCLE, "^"), (NOISE, "s"), (RECORDED, "D"))
_WIDTH, _ROW = 6.4, 0.3  # inches


@dataclass(frozen=True, slots=True)
class Standing:
    """A mechanism, and how near attacks come: (metres, low, high) by attack, low and high 95 %."""

    name: str
    attacks: Mapping[str, tuple[float, float, float]]


def standings(rows: Sequence[Standing]) -> "Figure":
    """The picture. The nearest attack of each mechanism has its name and its interval."""
    figure = empty_figure(_WIDTH, 1.0 + _ROW * len(rows))
    axes = dressed(figure.add_subplot(), "metres: circle that holds 68 % of the guesses", "")
    names = list(dict.fromkeys(attack for row in rows for attack in row.attacks))
    for height, row in enumerate(rows):
        axes.axhline(height, color=GRID, linewidth=0.8, zorder=0)
        finite = {name: x for name, x in row.attacks.items() if np.isfinite(x[0])}
        for name, (value, _, _) in finite.items():
            colour, mark = _LOOKS[names.index(name) % len(_LOOKS)]
            axes.plot(max(value, 0.1), height, mark, color=colour, markersize=3.5, alpha=0.7)
        if not finite:
            continue
        nearest = min(finite, key=lambda name: finite[name][0])
        value, low, high = finite[nearest]
        if np.isfinite(low) and np.isfinite(high):
            axes.plot([max(low, 0.1), max(high, 0.1)], [height, height], color=CIRCLE, linewidth=2)
        axes.annotate(
            nearest,
            (max(value, 0.1), height),
            xytext=(-5, 3),
            textcoords="offset points",
            ha="right",
            fontsize=7,
            color=MUTED,
        )
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.8)
    axes.set_xscale("log")
    axes.set_xlim(left=0.1)
    return figure
