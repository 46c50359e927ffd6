"""Measures what docs/validation.md shows of mechanisms and attacks, and makes its tables.

    python -m benchmarks.comparison [--geolife FOLDER] [--workers N]    # 15 minutes of CPU

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
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from matplotlib import rc_context

from trailveil.plots.drawing import STYLE
from trailveil.plots.standings import Standing, standings
from trailveil.studies.comparing import compare
from trailveil.studies.comparing.results import Results
from trailveil.studies.comparing.settings import Settings, read_settings

HERE = Path(__file__).parent
KEPT, FACTS = HERE / "comparison.csv", HERE / "comparison.json"
SETTINGS = ("comparison", "comparison-map", "comparison-walkers", "comparison-recordings")
REAL = "recordings"
MECHANISMS = read_settings(KEPT.with_suffix(".toml")).mechanisms
HEAD = ("data", "mechanism", "attack", "metric", "secret", "value", "low", "high")
SHOWN = ("error_m", "identified", "moved", "withheld", "frechet", "stops", "heat_map")

# Columns: head, data set, metric, and attacks, of which the nearest counts; none for what it costs.
COLUMNS = (
    ("moved, m", "prior", "moved", ()),
    ("lost", "prior", "withheld", ()),
    ("stops", "prior", "stops", ()),
    ("posterior", "prior", "error_m", ("posterior", "still")),
    ("place", "prior", "error_m", ("place",)),
    ("path", "prior", "error_m", ("path",)),
    ("6 places", "prior", "error_m", ("true-places",)),
    ("walkers", "walkers", "error_m", ("speed",)),
    ("regimes", "prior", "error_m", ("regimes",)),
    ("learned", "prior", "error_m", ("learned",)),
    ("simple", "prior", "error_m", ("kalman", "average", "circle", "edges", "stays")),
    ("earlier ride", "prior", "error_m", ("known-paths",)),
    ("10 releases", "prior", "error_m", ("repeated",)),
    ("4 days", "people", "error_m", ("home", "zone-circle")),
    ("map", "town", "error_m", ("map",)),
    ("who", "people", "identified", ("heat-map",)),
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


def nearest(summary: Sequence[Line], mechanism: str, column: Sequence[object]) -> Line | None:
    """The line of a cell: of the attack and the place where it is lowest."""
    _, data, metric, attacks = column
    found = [
        line
        for line in summary
        if (line["data"], line["mechanism"], line["metric"]) == (data, mechanism, metric)
        and (not attacks or line["attack"] in attacks)  # type: ignore[operator]  # names
        and line["value"]
    ]
    return min(found, key=lambda line: float(line["value"]), default=None)


def table(summary: Sequence[Line]) -> Iterator[str]:
    """The table of the page. Bold: the least that any attack leaves of a place."""
    yield f"||{'|'.join(name for name, *_ in COLUMNS)}|"
    yield f"|{'---|' * (len(COLUMNS) + 1)}"
    for mechanism in MECHANISMS:
        cells = [nearest(summary, mechanism, column) for column in COLUMNS]
        errors = [float(c["value"]) for c in cells if c is not None and c["metric"] == "error_m"]
        least = min(errors, default=math.inf)
        yield f"|{mechanism}|{'|'.join(cell(each, least) for each in cells)}|"


def cell(line: Line | None, least: float) -> str:
    """A number; a share in percent."""
    if line is None:
        return ""
    value = float(line["value"])
    if line["metric"] in ("identified", "withheld", "stops"):
        return f"{value:.0%}"
    text = "none" if math.isinf(value) else f"{value:,.0f}" if value >= 9.95 else f"{value:.2g}"
    lowest = line["metric"] == "error_m" and value == least < math.inf
    return f"**{text}**" if lowest else text


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
        "date": datetime.now(UTC).date().isoformat(),
    }


@click.command()
@click.option("--geolife", type=click.Path(exists=True, file_okay=False), help="Its folder.")
@click.option("--workers", type=click.IntRange(0), default=1, help="Processes; 0 for all.")
def main(geolife: str | None, workers: int) -> None:
    """Run all comparisons, and keep what the page shows of them."""
    every = {name: read_settings(HERE / f"{name}.toml") for name in SETTINGS}
    of_real = every.pop("comparison-recordings")
    summary: list[Line] = []
    known: dict[str, Any] = {}
    if geolife is not None:
        where = {("data", REAL): {**of_real.parameters["data", REAL], "folder": geolife}}
        every["recordings"] = replace(of_real, parameters={**of_real.parameters, **where})
    else:
        summary = [line for line in lines(KEPT) if line["data"] == REAL]
        known = {REAL: json.loads(FACTS.read_text(encoding="utf-8"))[REAL]}
    for settings in every.values():
        more, of_data = measured(settings, workers)
        summary += more
        known |= of_data
        click.echo(f"{', '.join(settings.data)}: {len(more)} lines")
    KEPT.write_text(kept(summary), encoding="utf-8")
    FACTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
