"""`trailveil reproduce`: the paper's figures, as pictures and as tables of the plotted numbers."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from trailveil.cli.options import options_of
from trailveil.cli.waiting import waiting, watched
from trailveil.errors import said
from trailveil.files.source import named
from trailveil.studies.experiments import covariances as noise_study
from trailveil.studies.experiments import figure2 as interval_study
from trailveil.studies.experiments import nyc as day_study
from trailveil.studies.experiments.figure2 import Choice, Point
from trailveil.studies.experiments.folder import Folder, opened

LETTERS = "abcdefgh"
EXAMPLE = "Example: trailveil reproduce figure2 --panel a --scales 5 --out figures"


_shared = options_of(
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default="reproduced",
        help="Folder for what is made; an interrupted run goes on there.",
    ),
    click.option("--csv-only", is_flag=True, help="No pictures: matplotlib is not needed."),
    click.option("--overwrite", is_flag=True, help="Replace files that no earlier run made."),
    click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout."),
)


@click.group(epilog=EXAMPLE)
def reproduce() -> None:
    """Compute and draw the paper's figures anew, with our optimum beside the paper's mechanism."""


@reproduce.command(epilog=EXAMPLE)
@click.option(
    "--panel",
    "panels",
    type=click.Choice(list(LETTERS)),
    multiple=True,
    help="One panel; may be given again. Default: all eight.",
)
@click.option("--published", is_flag=True, help="Only as published, jitter and all.")
@click.option("--exact", is_flag=True, help="Only exact: nothing added, all digits.")
@click.option(
    "--scales",
    type=click.IntRange(2, 20),
    default=20,
    help="How many of the 20 length scales, evenly chosen.",
)
@_shared
def figure2(
    panels: tuple[str, ...],
    published: bool,
    exact: bool,
    scales: int,
    out: Path,
    csv_only: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Posterior intervals against the effective length scale: eight panels, some minutes for all.

    Both as published and exact, unless one of them is asked for. Every computed point is kept in
    the folder: a run that was stopped goes on where it was.
    """
    computed = tuple(
        name for name, asked in (("published", published), ("exact", exact)) if asked
    ) or tuple(interval_study.COMPUTED)
    letters = tuple(letter for letter in LETTERS if letter in panels) or tuple(LETTERS)
    choice = Choice(letters, computed, scales)
    drawn = not csv_only
    started = time.perf_counter()
    names = choice.files(drawn=drawn)
    folder = _ready(out, "figure2", names, drawn=drawn, overwrite=overwrite)
    try:
        fresh = interval_study.run(folder, choice, _computing)
        interval_study.write(folder, choice, drawn=drawn, overwrite=overwrite)
    except KeyboardInterrupt:
        click.secho(
            f"trailveil: stopped: what was computed is kept in {named(out)}; the same command goes "
            "on from there",
            fg="red",
            err=True,
        )
        sys.exit(130)
    points = len(choice.points())
    described = _described("figure2", out, names, started)
    described |= {"points": points, "computed": fresh, "kept": points - fresh}
    described["median"] = interval_study.at_median(folder, choice)
    _print(described, _figure2_text(described, choice), as_json=as_json)


@reproduce.command(epilog="Example: trailveil reproduce covariances --out figures")
@_shared
def covariances(out: Path, csv_only: bool, overwrite: bool, as_json: bool) -> None:
    """The noise itself: covariances as heat maps, and draws, for each kind of secret."""
    _simple("covariances", noise_study, out, csv_only, overwrite, as_json)


@reproduce.command(epilog="Example: trailveil reproduce nyc --out figures")
@_shared
def nyc(out: Path, csv_only: bool, overwrite: bool, as_json: bool) -> None:
    """A simulated day with three sensitive times under three releases of equal noise."""
    _simple("nyc", day_study, out, csv_only, overwrite, as_json)


def _simple(
    name: str, experiment: Any, out: Path, csv_only: bool, overwrite: bool, as_json: bool
) -> None:
    """A figure that is made in one go."""
    started, drawn = time.perf_counter(), not csv_only
    names = experiment.files(drawn=drawn)
    folder = _ready(out, name, names, drawn=drawn, overwrite=overwrite)
    with waiting(f"computing {name}"):
        experiment.write(folder, drawn=drawn, overwrite=overwrite)
    described = _described(name, out, names, started)
    _print(described, [f"{name}: made in {described['seconds']:.1f} s."], as_json=as_json)


def _ready(out: Path, name: str, names: list[str], *, drawn: bool, overwrite: bool) -> Folder:
    """The folder, once it is sure that what is to be computed can be drawn and written."""
    if drawn:
        from trailveil.plots.drawing import check_available

        check_available()
    folder = opened(out, name)
    folder.check_free(names, overwrite=overwrite)
    return folder


def _computing(points: Sequence[Point]) -> Iterator[Point]:
    """Pass the points on; on a terminal, with a progress bar on stderr."""
    return watched(points, len(points), "computing")


def _described(name: str, out: Path, names: list[str], started: float) -> dict[str, Any]:
    return {
        "figure": name,
        "out": str(out),
        "files": names,
        "seconds": round(time.perf_counter() - started, 3),
    }


def _figure2_text(described: dict[str, Any], choice: Choice) -> list[str]:
    lines = [
        f"figure2: {described['computed']} points computed, {described['kept']} kept from before, "
        f"{described['seconds']:.1f} s.",
        "Intervals at the length scale nearest to the median of the fits:",
    ]
    for median in described["median"]:
        curves = ", ".join(
            f"{name} {said(value, 3)}" for name, value in median["intervals"].items()
        )
        scale = median["length_scale"]
        lines.append(f"  {median['panel']}) {median['computed']}, l = {scale:.2f}: {curves}")
    return lines


def _print(described: dict[str, Any], lines: list[str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(described))
        return
    names = ", ".join(described["files"])
    click.echo("\n".join([*lines, f"Files in {named(described['out'])}: {names}"]))
