"""Measures what docs/validation.md shows of mechanisms and attacks, and makes its tables.

    python -m benchmarks.comparison --geolife FOLDER [--only NAME] [--workers N]  # 20 min of CPU

One run of all settings beside this file. comparison.csv keeps the lines of the summaries that the
page shows, to three digits; comparison.json says on how many recordings of whom, when, and with
which seed. Without GeoLife, which is not in this repository, what is kept of it stays.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from matplotlib import rc_context

from benchmarks._kept import today
from trailveil.plots.drawing import STYLE
from trailveil.report.comparison import Standing, standings
from trailveil.studies.comparing import compare
from trailveil.studies.comparing.results import Results
from trailveil.studies.comparing.settings import Settings, read_settings

HERE = Path(__file__).parent
KEPT, FACTS = HERE / "comparison.csv", HERE / "comparison.json"
SETTINGS = ("comparison", "comparison-map", "comparison-walkers", "comparison-recordings")
REAL = "recordings"
OURS = ("cut", "noise", "both", "everywhere")
MECHANISMS = read_settings(KEPT.with_suffix(".toml")).mechanisms
HEAD = ("data", "mechanism", "attack", "metric", "secret", "value", "low", "high")
SHOWN = ("error_m", "identified", "refused", "moved", "withheld", "stops")

# Columns: head, data set, metric, and attacks, of which the nearest counts; none for what it costs.
Column = tuple[str, str, str, tuple[str, ...]]
SIMPLE = ("kalman", "average", "circle", "edges", "stays")
COLUMNS: tuple[Column, ...] = (
    ("moved, m", "prior", "moved", ()),
    ("lost", "prior", "withheld", ()),
    ("stops", "prior", "stops", ()),
    ("stranger", "prior", "error_m", ("posterior", "still")),
    ("place", "prior", "error_m", ("place",)),
    ("path", "prior", "error_m", ("path",)),
    ("6 places", "prior", "error_m", ("true-places",)),
    ("walkers", "walkers", "error_m", ("speed",)),
    ("regimes", "prior", "error_m", ("regimes",)),
    ("learned", "prior", "error_m", ("learned",)),
    ("simple", "prior", "error_m", SIMPLE),
    ("earlier ride", "prior", "error_m", ("known-paths",)),
    ("10 releases", "prior", "error_m", ("repeated",)),
    ("4 days", "people", "error_m", ("home", "zone-circle")),
    ("map", "town", "error_m", ("map",)),
    ("who", "people", "identified", ("heat-map",)),
)
ON_RECORDINGS: tuple[Column, ...] = (
    ("refused", REAL, "refused", ()),
    *(
        (head, REAL, metric, attacks)
        for head, data, metric, attacks in COLUMNS
        if data == "prior" and head != "10 releases"
    ),
    ("days", REAL, "error_m", ("home", "zone-circle")),
    ("who", REAL, "identified", ("heat-map",)),
)

Line = dict[str, str]


def lines(path: Path) -> list[Line]:
    """The lines of a summary."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def kept(summary: Sequence[Line]) -> str:
    """The lines that are shown, as CSV: three digits are more than the intervals hold."""
    stream = io.StringIO()
    out = csv.writer(stream, lineterminator="\n")
    out.writerow(HEAD)
    for line in summary:
        if line["metric"] in SHOWN:
            numbers = [rounded(line[name]) for name in ("value", "low", "high")]
            out.writerow([*(line[name] for name in HEAD[:5]), *numbers])
    return stream.getvalue()


def rounded(text: str) -> str:
    return f"{float(text):.3g}" if text else ""


def nearest(summary: Sequence[Line], mechanism: str, column: Column) -> Line | None:
    """The line of a cell: of the attack and the place where it is lowest."""
    _, data, metric, attacks = column
    matching = [
        line
        for line in summary
        if (line["data"], line["mechanism"], line["metric"]) == (data, mechanism, metric)
        and (not attacks or line["attack"] in attacks)
        and line["value"]
    ]
    return min(matching, key=lambda line: float(line["value"]), default=None)


def table(summary: Sequence[Line], columns: Sequence[Column] = COLUMNS) -> Iterator[str]:
    """A table of the page. Bold: the least that any attack leaves of a place.

    Mechanisms that were not run have no row.
    """
    yield f"||{'|'.join(name for name, *_ in columns)}|"
    yield f"|{'---|' * (len(columns) + 1)}"
    for mechanism in MECHANISMS:
        cells = [nearest(summary, mechanism, column) for column in columns]
        if all(each is None for each in cells):
            continue
        errors = [float(c["value"]) for c in cells if c is not None and c["metric"] == "error_m"]
        least = min(errors, default=math.inf)
        yield f"|{mechanism}|{'|'.join(cell(each, least) for each in cells)}|"


def cell(line: Line | None, least: float) -> str:
    """A number; a share in percent."""
    if line is None:
        return ""
    value = float(line["value"])
    if line["metric"] != "moved" and line["metric"] != "error_m":
        return f"{value:.0%}"
    text = metres(value)
    lowest = line["metric"] == "error_m" and value == least < math.inf
    return f"**{text}**" if lowest else text


def metres(value: float) -> str:
    return "none" if math.isinf(value) else f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"


def worse(summary: Sequence[Line], columns: Sequence[Column]) -> Iterator[str]:
    """Where ours is worse: the rank of each of ours by the metres that it leaves to an attack.

    Of all mechanisms but `nothing`, which is none.
    """
    yield f"|attack|{'|'.join(OURS)}|"
    yield f"|---|{'---|' * len(OURS)}"
    for column in columns:
        lines = {name: nearest(summary, name, column) for name in MECHANISMS if name != "nothing"}
        leave = {name: float(line["value"]) for name, line in lines.items() if line is not None}
        if column[2] != "error_m" or not leave:
            continue
        ranks = {name: 1 + sum(leave[other] > leave[name] for other in leave) for name in leave}
        cells = [f"{ranks[name]}/{len(leave)}" if name in leave else "" for name in OURS]
        head = f"{REAL}: {column[0]}" if column[1] == REAL else column[0]
        yield f"|{head}|{'|'.join(cells)}|"


def picture(summary: Sequence[Line]) -> bytes:
    """A row for each mechanism: attacks on all three sets, with the interval of the nearest."""
    rows = []
    for mechanism in MECHANISMS:
        cells = [(c[0], nearest(summary, mechanism, c)) for c in COLUMNS if c[2] == "error_m"]
        numbers = {
            name: tuple(float(line[key] or "nan") for key in ("value", "low", "high"))
            for name, line in cells
            if line is not None
        }
        rows.append(Standing(mechanism, numbers))  # type: ignore[arg-type]  # of three
    out = io.BytesIO()
    with rc_context({**STYLE, "svg.fonttype": "none"}):
        standings(rows).savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def measured(settings: Settings, workers: int) -> tuple[list[Line], dict[str, Any]]:
    """The lines of a comparison, and the facts of each of its data sets."""
    results = compare(settings, workers=workers)
    summary = list(csv.DictReader(io.StringIO("".join(results.summary()))))
    return summary, {name: facts(results, name, settings) for name in settings.data}


def facts(results: Results, data: str, settings: Settings) -> dict[str, Any]:
    """On how many recordings of how many people, when, and with which seed."""
    of_data = results.codes["data"] == results.names["data"].index(data)
    return {
        "recordings": len(set(results.codes["trace"][of_data].tolist())),
        "people": len(set(results.codes["person"][of_data].tolist())),
        "seed": settings.seed,
        "draws": settings.draws,
        "date": today(),
    }


@click.command()
@click.option("--geolife", type=click.Path(exists=True, file_okay=False), help="Its folder.")
@click.option("--only", multiple=True, type=click.Choice(SETTINGS), help="Others stay as they are.")
@click.option("--workers", type=click.IntRange(0), default=1, help="Processes; 0 for all.")
def main(geolife: str | None, only: Sequence[str], workers: int) -> None:
    """Run all comparisons, and keep what the page shows of them."""
    before, known = lines(KEPT), json.loads(FACTS.read_text(encoding="utf-8"))
    summary: list[Line] = []
    for name in SETTINGS:
        settings = read_settings(HERE / f"{name}.toml")
        if (only and name not in only) or (REAL in settings.data and geolife is None):
            summary += [line for line in before if line["data"] in settings.data]
            continue
        if REAL in settings.data:
            where = {("data", REAL): {**settings.parameters["data", REAL], "folder": geolife}}
            settings = replace(settings, parameters={**settings.parameters, **where})
        more, of_data = measured(settings, workers)
        summary += more
        known |= of_data
        click.echo(f"{', '.join(settings.data)}: {len(more)} lines")
    KEPT.write_text(kept(summary), encoding="utf-8")
    FACTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
