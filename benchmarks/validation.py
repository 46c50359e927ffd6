"""Writes the tables and the picture of docs/validation.md from the results beside this file.

    make validation

What makes the results, each of which says on how much of what, and when:

    python -m benchmarks.comparison --geolife GEOLIFE --workers 2
    python -m benchmarks.realism GEOLIFE/*/*.plt --only mixture -o benchmarks/realism.json
    python -m benchmarks.prior_held_out GEOLIFE -o benchmarks/prior_held_out.json
    python -m benchmarks.activity_floors GEOLIFE --more OTHERS -o benchmarks/activity_floors.json
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from benchmarks.comparison import (
    COLUMNS,
    FACTS,
    HERE,
    KEPT,
    ON_RECORDINGS,
    Column,
    Line,
    lines,
    metres,
    nearest,
    picture,
    table,
    worse,
)
from trailveil.privacy.promises import FLOORS

ROOT = HERE.parent
PAGE = ROOT / "docs" / "validation.md"
PICTURE = PAGE.parent / "images" / "comparison.svg"
PACES = ("all", "still", "walking", "cycling", "driving", "fast")
GAPS = (30.0, 150.0, 600.0)
"""Seconds on each side, of those that are measured."""

PROMISED = 239.0
"""Metres: the circle that the default request promises."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a page says, the cell that it rests on, and from where to where that may be.

    page: from the root. words: as they stand there, line breaks aside. low, high: metres.
    """

    page: str
    words: str
    mechanism: str
    column: str
    low: float
    high: float


# A circle of 60 recordings is known to a fifth.
_KEPT = 0.8 * PROMISED
CLAIMS = (
    Claim("docs/guarantees.md", "a circle of 239 m holds it", "cut", "stranger", _KEPT, 1e9),
    Claim("docs/guarantees.md", "a circle of 239 m holds it", "noise", "stranger", _KEPT, 1e9),
    Claim("README.md", "A stranger, even with a map", "cut", "map", _KEPT, 1e9),
    Claim("README.md", "A street map can undo it", "noise", "map", 0.0, 60.0),
    Claim("docs/guarantees.md", "noise counts as nothing", "noise", "map", 0.0, 60.0),
    Claim("docs/guarantees.md", "nearer than promised", "noise", "walkers", 0.0, PROMISED),
    Claim("docs/guarantees.md", "can undo most of the noise", "noise", "6 places", 0.0, 60.0),
    Claim("README.md", "People slower than the floor", "cut", "walkers", 0.0, PROMISED),
)


def measured(claim: Claim, summary: Sequence[Line]) -> Line:
    """The line that a claim rests on."""
    (column,) = (column for column in COLUMNS if column[0] == claim.column)
    line = nearest(summary, claim.mechanism, column)
    assert line is not None, claim
    return line


def claims(summary: Sequence[Line]) -> Iterator[str]:
    yield "|said|mechanism: attack, secret|m (95 %)|"
    yield "|---|---|---|"
    for claim in CLAIMS:
        line = measured(claim, summary)
        value, low, high = (metres(float(line[key])) for key in ("value", "low", "high"))
        name = claim.page.removeprefix("docs/")
        target = "../README.md" if claim.page == "README.md" else name
        said = f"[{name.removesuffix('.md')}]({target}): {claim.words}"
        attacked = f"{claim.mechanism}: {line['attack']}, {line['secret']}"
        yield f"|{said}|{attacked}|{value} ({low} to {high})|"


def of_several() -> Iterator[str]:
    """The attacks of columns that have several."""
    for attacks in dict.fromkeys(column[3] for column in COLUMNS if len(column[3]) > 1):
        heads = dict.fromkeys(c[0] for c in (*COLUMNS, *ON_RECORDINGS) if c[3] == attacks)
        yield f"- {', '.join(heads)}: {', '.join(f'`{attack}`' for attack in attacks)}"


def results(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


def percent(share: Sequence[float | None], *, interval: bool = False) -> str:
    """A share, and its interval where there is one."""
    value, low, high = share
    assert value is not None
    if not interval or low is None or high is None:
        return f"{100 * value:.0f}"
    return f"{100 * value:.0f} ({100 * low:.0f}-{100 * high:.0f})"


def coverage() -> Iterator[str]:
    """How the default prior holds by gap and pace, and what a mixture of regimes does."""
    rows = {(row["way"], row["gap"], row["pace"]): row for row in results("realism")["rows"]}
    yield f"|prior, gap|{'|'.join(PACES)}|"
    yield f"|---|{'---|' * len(PACES)}"
    for way in ("default", "mixture"):
        for gap in GAPS:
            cells = []
            for pace in PACES:
                row = rows.get((way, gap, pace))
                shares = (
                    [percent(row[key], interval=pace == "all") for key in ("in_68", "in_95")]
                    if row
                    else []
                )
                cells.append("/".join(shares))
            yield f"|{way}, {gap:g} s|{'|'.join(cells)}|"


def held_out() -> Iterator[str]:
    """How priors that were fitted on other people hold, across the longest gap."""
    yield "|mode: people, windows|prior|promised, m|in 68 %|in 95 %|"
    yield "|---|---|---|---|---|"
    for mode, of_mode in results("prior_held_out")["modes"].items():
        gap = max(row["gap"] for row in of_mode["rows"])
        head = f"{mode}: {of_mode['people']}, {of_mode['windows']}"
        for row in of_mode["rows"]:
            if row["gap"] == gap:
                shares = (percent(row[key], interval=True) for key in ("in_68", "in_95"))
                yield f"|{head}|{row['way']}|{row['promised_m']:.0f}|{'|'.join(shares)}|"
                head = ""  # as in the row above


def floors() -> Iterator[str]:
    """What the floors cover: those that ship beside those measured, and shares of the circle."""
    yield (
        "|activity: people, parts, hours|end: ships, measured, slowest tenth|middle|"
        "in 68 %, rest|in 68 %, also the minute|"
    )
    yield "|---|---|---|---|---|"
    for activity, of_activity in results("activity_floors")["activities"].items():
        counts = f"{of_activity['people']}, {of_activity['parts']}, {of_activity['hours']:.0f}"
        cells = [f"{activity}: {counts}"]
        rows = [row for row in of_activity["rows"] if row["people"] >= 5]
        for number, where in enumerate(("end", "middle")):
            bound = of_activity["floors"][where]["bound"]
            mine = [row for row in rows if (row["where"] == MIDDLE) == (where == "middle")]
            slowest = min((row["slowest"] for row in mine), default=None)
            anew = "too few" if bound is None else f"{bound:.2f}, {slowest:.2f}"
            cells.append(f"{FLOORS[activity][number]:g}, {anew}")
        for adversary in (ALONE, TOLD):
            shares = [
                row["in_68"]
                for row in rows
                if row["adversary"] == adversary and row["in_68"] is not None
            ]
            cells.append(f"{100 * max(shares):.0f}" if shares else "")
        yield f"|{'|'.join(cells)}|"


MIDDLE = "anywhere, both sides"
ALONE, TOLD = "rest of the track", "told the movement within 60 s"


def dated() -> Iterator[str]:
    """On what each result rests."""
    yield "|result|recordings, people|seed, releases each|date|"
    yield "|---|---|---|---|"
    for name, of_data in json.loads(FACTS.read_text(encoding="utf-8")).items():
        counts = f"{of_data['recordings']}, {of_data['people']}"
        yield f"|{name}|{counts}|{of_data['seed']}, {of_data['draws']}|{of_data['date']}|"
    for name in ("realism", "prior_held_out", "activity_floors"):
        yield f"|{name}|||{results(name)['date']}|"


def with_tables(page: str, summary: Sequence[Line]) -> str:
    """The page with its tables written anew."""

    def columns(of: Sequence[Column]) -> Callable[[], Iterator[str]]:
        return lambda: table(summary, of)

    tables: dict[str, Callable[[], Iterator[str]]] = {
        "claims": lambda: claims(summary),
        "coverage": coverage,
        "nearest": of_several,
        "held out": held_out,
        "floors": floors,
        "simulated": columns(COLUMNS),
        "recordings": columns(ON_RECORDINGS),
        "worse": lambda: worse(summary, (*COLUMNS, *ON_RECORDINGS)),
        "dates": dated,
    }
    for name, make in tables.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", flags=re.DOTALL)
        whole = "".join(f"{row}\n" for row in make())
        page, count = between.subn(rf"\g<1>{whole}\g<2>", page)
        assert count == 1, name
    return page


@click.command()
def main() -> None:
    """Write the tables and the picture of the page."""
    summary = lines(KEPT)
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), summary), encoding="utf-8")
    PICTURE.write_bytes(picture(summary))
    click.echo(f"{PAGE.name} and {PICTURE.name}: {len(summary)} lines")


if __name__ == "__main__":
    main()
