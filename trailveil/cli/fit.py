"""`trailveil fit`: a prior from recordings; length scales of data sets by the paper's recipe."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trailveil.cli.parameters import POSITIVE
from trailveil.cli.waiting import watched
from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.output import check_output, write_atomically
from trailveil.wording import said

if TYPE_CHECKING:
    from trailveil.privacy.priors import PriorSpec
    from trailveil.studies.datasets.effective import EffectiveScales
    from trailveil.studies.datasets.fitting import Scale
    from trailveil.studies.datasets.stretches import Stretches
    from trailveil.traces.readings import Readings
    from trailveil.traces.trace import Trace

KERNELS = ("integrated-ou", "matern12", "matern32", "matern52", "rbf", "periodic")
EXAMPLE = "Example: trailveil fit rides/*.gpx -o my-rides.json"
SECONDS = ("time_constant", "period")


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The prior file to write.")
@click.option(
    "--kernel",
    type=click.Choice(KERNELS),
    default="integrated-ou",
    show_default=True,
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
    show_default=True,
    help="Fit each window and take medians, or all with the same parameters.",
)
@click.option(
    "--starts",
    type=click.IntRange(1, 1000),
    default=6,
    show_default=True,
    help="Where each search begins: the best of so many counts.",
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
    "--projection",
    type=click.Choice(["metres", "paper"]),
    default="metres",
    show_default=True,
    help="For --recipe geolife: local metres, or the paper's coordinates.",
)
@click.option(
    "--columns",
    type=click.Choice(["room", "paper"]),
    default="room",
    show_default=True,
    help="For --recipe sml2010: the room sensor, or the column that the paper's code read.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
def fit(
    files: Sequence[Path],
    output: Path | None,
    kernel: str,
    window: float | None,
    how: str,
    starts: int,
    column: str | None,
    unit: str | None,
    labels: str | None,
    recipe: str | None,
    projection: str,
    columns: str,
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
        described = _recipe(recipe, _one(files), projection, columns, starts)
        click.echo(json.dumps(described) if as_json else "\n".join(_scales_text(described)))
        return
    if output is None:
        raise click.UsageError("Say where to write the prior: -o prior.json.")
    check_output(output, *files, overwrite=overwrite)
    windows, scale = _windows(files, window, labels, column, unit)
    spec = _fitted(windows, scale, output.stem, kernel, how, starts)
    _write(spec, output, overwrite)
    if as_json:
        click.echo(json.dumps(_as_object(spec, windows, output)))
    else:
        click.echo("\n".join(_prior_text(spec, windows, output)))


def _write(spec: "PriorSpec", output: Path, overwrite: bool) -> None:
    from trailveil.privacy.priors import to_json

    content = to_json(spec).encode()
    write_atomically(output, lambda stream: stream.write(content), overwrite=overwrite)


def _one(files: Sequence[Path]) -> Path:
    if len(files) != 1:
        raise click.UsageError(
            f"Give one folder or file with --recipe and --labels, not {len(files)}."
        )
    return files[0]


def _recorded(files: Sequence[Path]) -> list["Trace"]:
    """The traces of recordings. Only lengths of time matter here, so any zone will do."""
    from trailveil.files.source import named
    from trailveil.traces.cleaning import clean
    from trailveil.traces.formats import read

    traces = []
    for path in files:
        recording = read(path)
        try:
            traces.append(clean(recording, assume_utc=True)[0])
        except UnreadableInput as error:
            raise UnreadableInput(f"{named(path)}: {error}") from None
    return traces


def _labelled(folder: Path, mode: str) -> list["Trace"]:
    from trailveil.studies.datasets.geolife import labelled_traces

    return [trace for _, trace in labelled_traces(folder, mode)]


def _readings(files: Sequence[Path], column: str | None, unit: str | None) -> list["Readings"]:
    """Readings of tables, of one unit. Only lengths of time matter here, so any zone will do."""
    from trailveil.traces.loading import load_readings

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
) -> tuple["Stretches", "Scale"]:
    import numpy as np

    from trailveil.studies.datasets.fitting import METRES, scale_of
    from trailveil.studies.datasets.geolife import FASTEST
    from trailveil.studies.datasets.stretches import (
        MOST_FIXES,
        WINDOW,
        reading_stretches,
        stretches,
    )

    if not (column or unit):
        traces = _labelled(_one(files), labels) if labels else _recorded(files)
        fastest = FASTEST[labels] if labels else float("inf")
        return stretches(traces, window or WINDOW, fastest), METRES
    if labels:
        raise click.UsageError("--labels must be for traces of places, got it with readings")
    readings = _readings(files, column, unit)
    step = float(np.median(np.concatenate([np.diff(series.seconds) for series in readings])))
    windows = reading_stretches(readings, window or MOST_FIXES * step)
    return windows, scale_of(windows, readings[0].unit)


def _fitted(
    windows: "Stretches", scale: "Scale", name: str, kernel: str, how: Any, starts: int
) -> "PriorSpec":
    from trailveil.studies.datasets.fitting import fit_prior

    return fit_prior(
        windows, name, kernel=kernel, how=how, starts=starts, scale=scale, watch=watched
    ).spec


def _as_object(spec: "PriorSpec", windows: "Stretches", output: Path) -> dict[str, Any]:
    from trailveil.privacy.priors import to_json

    left_out = {"short": windows.short, "fast": windows.fast}
    content: dict[str, Any] = json.loads(to_json(spec))
    return content | {"output": str(output), "left_out": left_out}


def _prior_text(spec: "PriorSpec", windows: "Stretches", output: Path) -> list[str]:
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


def _recipe(recipe: str, place: Path, projection: Any, columns: Any, starts: int) -> dict[str, Any]:
    """What the paper's recipe gives, as it is printed with --json."""
    if recipe == "sml2010":
        from trailveil.studies.datasets.sml2010 import sml2010_scales

        scales = sml2010_scales(place, column=columns, starts=starts, watch=watched)
        return {"recipe": recipe, "columns": columns, "scales": {"temperature": _scales(scales)}}
    from trailveil.studies.datasets.geolife_recipe import geolife_scales

    both = geolife_scales(place, projection=projection, starts=starts, watch=watched)
    names = ("east", "north") if projection == "metres" else ("x", "y")
    scales_by_name = dict(zip(names, (_scales(both.first), _scales(both.second)), strict=True))
    counts = dict(both.counts)
    return {"recipe": recipe, "projection": projection, "counts": counts, "scales": scales_by_name}


def _scales(scales: "EffectiveScales") -> dict[str, Any]:
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
