"""`trailveil calibrate`: does a prior predict what is left out of recordings as well as it says?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trailveil.cli.parameters import POSITIVE, OneOf
from trailveil.cli.waiting import watched
from trailveil.errors import UnreadableInput
from trailveil.files.output import check_output, write_atomically
from trailveil.privacy.priors import BUILT_IN
from trailveil.traces.loading import prior_named

if TYPE_CHECKING:  # what the work takes is loaded when it begins, not for --help
    from trailveil.studies.calibrating import Recorded

KERNELS = ("rbf", "matern12", "matern32", "matern52", "integrated-ou")
NONE = "none"
PICTURES = (".png", ".svg")
EXAMPLE = """Examples:

\b
  trailveil calibrate rides/*.gpx
  trailveil calibrate rides/*.gpx --prior mine.json --kernel none --gaps 0,60,300
  trailveil calibrate rides/*.gpx --plot coverage.png --json"""


def _gaps(context: click.Context, option: click.Parameter, text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        gaps = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        gaps = (-1.0,)
    if not all(0 <= gap <= 86_400 for gap in gaps):
        raise click.BadParameter(
            f"must be seconds from 0 to 86400 with commas between, got {text!r}", context, option
        )
    return tuple(sorted(gaps))


@click.command(epilog=EXAMPLE)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--prior",
    "priors",
    multiple=True,
    metavar="NAME|FILE",
    help=f"A prior to judge, may be repeated. Default: {', '.join(BUILT_IN)}.",
)
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    type=OneOf([*KERNELS, NONE]),
    help="A kernel to fit on the others and judge, may be repeated. Default: all; none: none.",
)
@click.option(
    "--gaps",
    callback=_gaps,
    metavar="S,S,...",
    help="Seconds left out on each side; 0: one fix. Default: 0,30,75,150,300,600.",
)
@click.option(
    "--window",
    type=POSITIVE,
    metavar="SECONDS",
    help="Recordings are cut into windows of this length. Default: 3600.",
)
@click.option(
    "--labels",
    type=OneOf(["walk", "bike", "drive"]),
    help="FILES is a GeoLife folder: what its users labelled so.",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="A picture to write: FILE.png or FILE.svg."
)
@click.option("--skip-unreadable", is_flag=True, help="Go on without files that cannot be read.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.option("--overwrite", is_flag=True, help="Replace the picture if it exists.")
def calibrate(
    files: Sequence[Path],
    priors: Sequence[str],
    kernels: Sequence[str],
    gaps: tuple[float, ...],
    window: float | None,
    labels: str | None,
    plot: Path | None,
    skip_unreadable: bool,
    as_json: bool,
    overwrite: bool,
) -> None:
    """Leave fixes out of recordings, and look how often a prior holds what it says of them.

    Does the interval of 68 % hold 68 %? Priors are judged as they are; kernels with parameters that
    are fitted on the other recordings. The output holds no position and no time.
    """
    if NONE in kernels and len(kernels) > 1:
        raise click.UsageError("--kernel none must come alone: it fits no kernel")
    if plot is not None:
        _check_plot(plot, files, overwrite=overwrite)
    from trailveil.report.calibration import calibration_record, calibration_text, panels
    from trailveil.studies.calibrating import GAPS, WINDOW
    from trailveil.studies.calibrating import calibrate as calibrated

    specs = [prior_named(name) for name in dict.fromkeys(priors or BUILT_IN)]
    recordings = _recorded(files, labels, skip=skip_unreadable)
    fitted = [name for name in dict.fromkeys(kernels or KERNELS) if name != NONE]
    result = calibrated(
        recordings, specs, fitted, gaps=gaps or GAPS, window=window or WINDOW, watch=watched
    )
    if plot is not None:
        picture = panels(result, plot.suffix.lower())
        write_atomically(plot, lambda stream: stream.write(picture), overwrite=overwrite)
    if as_json:
        read = {"twice": recordings.twice, "unreadable": list(recordings.unreadable)}
        drawn = {"plot": None if plot is None else str(plot)}
        click.echo(json.dumps(calibration_record(result) | read | drawn))
        return
    lines = calibration_text(result)
    if recordings.twice:
        lines.append(f"Left out {recordings.twice} files with the content of another.")
    click.echo("\n".join(lines if plot is None else [*lines, f"Picture: {plot}"]))


def _check_plot(plot: Path, files: Sequence[Path], *, overwrite: bool) -> None:
    if plot.suffix.lower() not in PICTURES:
        raise click.UsageError(f"--plot must end in {' or '.join(PICTURES)}, got {plot.name}")
    from trailveil.plots.drawing import check_available

    check_available()
    check_output(plot, *files, overwrite=overwrite, what="picture")


def _recorded(files: Sequence[Path], labels: str | None, *, skip: bool) -> "Recorded":
    from trailveil.studies.calibrating import recorded, recorded_as

    if labels:
        if len(files) != 1:
            raise click.UsageError(f"Give one folder with --labels, not {len(files)}.")
        return recorded_as(files[0], labels)
    recordings = recorded(files, watched)
    lines = recordings.unreadable
    if lines and (not skip or not recordings.traces):
        for line in lines[:-1]:
            click.secho(f"trailveil: {line}", fg="red", err=True)
        raise UnreadableInput(lines[-1])
    for line in lines:
        click.echo(f"trailveil: left out: {line}", err=True)
    return recordings
