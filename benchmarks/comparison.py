"""The tables and the picture of docs/comparison.md, from results that are kept beside this file.

    trailveil compare benchmarks/comparison.toml -o all         # 5 minutes of processor time
    trailveil compare benchmarks/comparison-map.toml -o map     # 5 more
    trailveil compare benchmarks/comparison-walkers.toml -o walkers
    python -m benchmarks.comparison all map walkers             # takes the results over
    python -m benchmarks.comparison                             # writes the page anew

What is kept are the lines of summary.csv in each folder that the page shows, to three digits.
"""

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from matplotlib import rc_context

from trailveil.plots.drawing import STYLE
from trailveil.report.comparison import Standing, standings
from trailveil.studies.comparing.settings import read_settings

HERE = Path(__file__).parent
KEPT, PAGE = HERE / "comparison.csv", HERE.parent / "docs" / "comparison.md"
PICTURE = PAGE.parent / "images" / "comparison.svg"
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


def with_table(page: str, summary: Sequence[Line]) -> str:
    """The page with its table written anew."""
    whole = "\n".join(table(summary))
    between = re.compile(r"(<!-- table -->\n).*?(\n<!-- end -->)", flags=re.DOTALL)
    return between.sub(lambda marks: f"{marks[1]}{whole}{marks[2]}", page)


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True))
def main(folders: Sequence[Path]) -> None:
    """Write the table and the picture of the page."""
    if folders:
        summary = [line for folder in folders for line in lines(folder / "summary.csv")]
        KEPT.write_text(kept(summary), encoding="utf-8")
    summary = lines(KEPT)
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), summary), encoding="utf-8")
    PICTURE.write_bytes(picture(summary))
    click.echo(f"{PAGE.name} and {PICTURE.name}: {len(summary)} lines")


if __name__ == "__main__":
    main()
