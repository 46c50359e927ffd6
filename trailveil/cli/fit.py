"""`trailveil fit`: a prior from recordings; length scales of data sets by the paper's recipe."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from trailveil.cli.parameters import POSITIVE
from trailveil.cli.waiting import watched
from trailveil.errors import InvalidValue, UnreadableInput, said
from trailveil.files.output import check_output, write_atomically
from trailveil.files.source import named
from trailveil.privacy.priors import PriorSpec, to_json
from trailveil.studies.datasets.fitting import METRES, EffectiveScales, Scale, fit_prior, scale_of
from trailveil.studies.datasets.geolife import FASTEST, labelled_traces
from trailveil.studies.datasets.geolife_recipe import geolife_scales
from trailveil.studies.datasets.sml2010 import Column, sml2010_scales
from trailveil.studies.datasets.stretches import (
    MOST_FIXES,
    WINDOW,
    Stretches,
    reading_stretches,
    stretches,
)
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read
from trailveil.traces.loading import load_readings
from trailveil.traces.readings import Readings
from trailveil.traces.trace import Trace

KERNELS = ("integrated-ou", "matern12", "matern32", "matern52", "rbf", "periodic")
EXAMPLE = "Example: trailveil fit rides/*.gpx -o my-rides.json"
SECONDS = ("time_constant", "period")
_STARTS = 6


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The prior file to write.")
@click.option(
    "--kernel",
    type=click.Choice(KERNELS),
    default="integrated-ou",
    help="How recordings vary; measurement noise and a level are always there.",
)
@click.option(
    "--window",
    type=POSITIVE,
    metavar="SECONDS",
    help="Recordings are cut into windows of this length. Default: 600; for readings, a hundred.",
)
@click.option(
    "--how",
    type=click.Choice(["median", "pooled"]),
    default="median",
    help="Fit each window and take medians, or all with the same parameters.",
)
@click.option(
    "--starts",
    type=click.IntRange(1, 1000),
    help="From how many starts each search begins: the best counts. 6, or 1 with --as-published.",
)
@click.option("--column", metavar="NAME", help="FILES are readings: the column of values.")
@click.option("--unit", metavar="UNIT", help="FILES are readings: their unit, such as degC.")
@click.option(
    "--labels",
    type=click.Choice(["walk", "bike", "drive"]),
    help="FILES is a GeoLife folder: what its users labelled so.",
)
@click.option(
    "--recipe",
    type=click.Choice(["geolife", "sml2010"]),
    help="Effective length scales as in the paper, and no prior. FILES is a GeoLife folder, or the "
    "table of SML2010.",
)
@click.option(
    "--as-published",
    is_flag=True,
    help="For --recipe: the files, coordinates and column that the paper's code read.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
def fit(
    files: Sequence[Path],
    output: Path | None,
    kernel: str,
    window: float | None,
    how: Any,
    starts: int | None,
    column: str | None,
    unit: str | None,
    labels: str | None,
    recipe: str | None,
    as_published: bool,
    as_json: bool,
    overwrite: bool,
) -> None:
    """Fit a prior to recordings: how people move who move like this.

    FILES are recordings. The prior says how much it was fitted on, and holds no position and no
    time. Do not fit it on the recording that it is to protect: then it depends on the secret.
    """
    if recipe:
        if output or labels:
            raise click.UsageError("--recipe prints length scales: leave out -o and --labels.")
        described = _recipe(recipe, _one(files), starts, as_published=as_published)
        click.echo(json.dumps(described) if as_json else "\n".join(_scales_text(described)))
        return
    if as_published:
        raise click.UsageError("--as-published is for --recipe geolife or sml2010: add that.")
    if output is None:
        raise click.UsageError("Say where to write the prior: -o prior.json.")
    check_output(output, *files, overwrite=overwrite)
    windows, scale = _windows(files, window, labels, column, unit)
    spec = fit_prior(
        *(windows, output.stem),
        kernel=kernel,
        how=how,
        starts=starts or _STARTS,
        scale=scale,
        watch=watched,
    ).spec
    content = to_json(spec)
    write_atomically(output, lambda out: out.write(content.encode()), overwrite=overwrite)
    if as_json:
        left_out = {"short": windows.short, "fast": windows.fast}
        stated = json.loads(content) | {"output": str(output), "left_out": left_out}
        click.echo(json.dumps(stated))
    else:
        click.echo("\n".join(_prior_text(spec, windows, output)))


def _one(files: Sequence[Path]) -> Path:
    if len(files) != 1:
        raise click.UsageError(
            f"Give one folder or file with --recipe and --labels, not {len(files)}."
        )
    return files[0]


def _recorded(files: Sequence[Path]) -> list[Trace]:
    """The traces of recordings. Only lengths of time matter here, so any zone will do."""
    traces = []
    for path in files:
        recording = read(path)
        try:
            traces.append(clean(recording, assume_utc=True)[0])
        except UnreadableInput as error:
            raise UnreadableInput(f"{named(path)}: {error}") from None
    return traces


def _readings(files: Sequence[Path], column: str | None, unit: str | None) -> list[Readings]:
    """Readings of tables, of one unit. Only lengths of time matter here, so any zone will do."""
    readings = [load_readings(file, column=column, unit=unit, assume_utc=True)[0] for file in files]
    if len({series.unit for series in readings}) > 1:
        raise InvalidValue("readings must be in one unit for a fit, got several: state --unit")
    return readings


def _windows(
    files: Sequence[Path],
    window: float | None,
    labels: str | None,
    column: str | None,
    unit: str | None,
) -> tuple[Stretches, Scale]:
    if not (column or unit):
        if labels is None:
            return stretches(_recorded(files), window or WINDOW, float("inf")), METRES
        labelled = [trace for _, trace in labelled_traces(_one(files), labels)]
        return stretches(labelled, window or WINDOW, FASTEST[labels]), METRES
    if labels:
        raise click.UsageError("--labels must be for traces of places, got it with readings")
    readings = _readings(files, column, unit)
    step = float(np.median(np.concatenate([np.diff(series.seconds) for series in readings])))
    windows = reading_stretches(readings, window or MOST_FIXES * step)
    return windows, scale_of(windows, readings[0].unit)


def _prior_text(spec: PriorSpec, windows: Stretches, output: Path) -> list[str]:
    basis = spec.fitted_on
    if basis is None:
        return []
    meant = (
        "median over windows (middle half in brackets)"
        if basis.how == "median"
        else "shared by all windows (plus and minus its standard error in brackets)"
    )
    lines = [
        f"Fitted on {basis.files} recordings: {basis.windows} windows, {basis.fixes} fixes, "
        f"{basis.seconds / 3600:.1f} h; left out {windows.short} windows too short to tell"
        + (f" and {windows.fast} too fast for their label." if windows.fast else "."),
        f"{type(spec.kernel.terms()[0]).__name__}, {meant}:",
    ]
    for name, (low, middle, high) in basis.spread.items():
        unit = _unit(name, basis.spread, "m" if spec.unit == "metres" else spec.unit)
        held = basis.at_bounds.get(name, 0)
        note = f", at its bound in {held} of the fits" if held else ""
        lines.append(
            f"  {name:<14}{said(middle, 4)} {unit} ({said(low, 4)} to {said(high, 4)}){note}"
        )
    if basis.unfinished:
        lines.append(f"Warning: {basis.unfinished} fits did not converge.")
    return [*lines, f"Written to {output.name}. Use it with --prior, on other recordings."]


def _unit(name: str, parameters: Mapping[str, Any], unit: str) -> str:
    """The unit of a fitted parameter; the length scale of a periodic kernel has none."""
    if name in SECONDS or (name == "length_scale" and "period" not in parameters):
        return "s"
    if name == "length_scale":
        return ""
    return f"{unit}/s" if name == "std" and "time_constant" in parameters else unit


def _recipe(recipe: str, place: Path, starts: int | None, *, as_published: bool) -> dict[str, Any]:
    """What the paper's recipe gives, as it is printed with --json."""
    described: dict[str, Any] = {"recipe": recipe, "as_published": as_published}
    count = starts or (1 if as_published else _STARTS)
    if recipe == "sml2010":
        column: Column = "paper" if as_published else "room"
        scales = sml2010_scales(place, column=column, starts=count, watch=watched)
        return described | {"scales": {"temperature": _scales(scales)}}
    both = geolife_scales(
        place,
        projection="paper" if as_published else "metres",
        selection="paper" if as_published else "distinct",
        starts=count,
        watch=watched,
    )
    names = ("x", "y") if as_published else ("east", "north")
    scales_by_name = dict(zip(names, (_scales(both.first), _scales(both.second)), strict=True))
    return described | {"counts": dict(both.counts), "scales": scales_by_name}


def _scales(scales: EffectiveScales) -> dict[str, Any]:
    return {
        "quartiles": scales.quartiles,
        "at_bound": scales.at_bound,
        "at_low": scales.at_low,
        "at_high": scales.at_high,
        "several_optima": scales.several,
        "unfinished": scales.unfinished,
        "rejected_starts": scales.rejected,
        "values": scales.values.tolist(),
    }


def _scales_text(described: Mapping[str, Any]) -> list[str]:
    lines = []
    if counts := described.get("counts"):
        lines.append("Files: " + ", ".join(f"{k} {v}" for k, v in counts.items()) + ".")
    for name, scales in described["scales"].items():
        low, middle, high = scales["quartiles"]
        lines.append(
            f"Effective length scale, {name}: {len(scales['values'])} fits, quartiles {low:.3f}, "
            f"{middle:.3f}, {high:.3f}; {scales['at_bound']:.1%} at a bound, "
            f"{scales['several_optima']} with several optima, {scales['unfinished']} unfinished."
        )
    return lines
