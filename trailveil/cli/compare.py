"""`trailveil compare`: which mechanism protects best, against which attacks, at what cost?"""

from functools import partial
from pathlib import Path
from typing import BinaryIO

import click

from trailveil.cli.waiting import watched
from trailveil.files.output import write_atomically
from trailveil.files.source import named

EXAMPLE = """Examples:

\b
  trailveil compare settings.toml -o comparison
  trailveil compare settings.toml -o comparison --workers 8"""


@click.command(epilog=EXAMPLE)
@click.argument("settings", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder for the tables and the page.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    help="Processes; 0: one for each processor. The tables are the same for any number.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Of a cluster of Dask, in place of processes.")
@click.option("--csv", "as_csv", is_flag=True, help="All rows as CSV, not as Parquet.")
def compare(
    settings: Path, output: Path, workers: int, scheduler: str | None, as_csv: bool
) -> None:
    """Compare mechanisms on recordings: release them, attack the releases, measure both.

    SETTINGS is a TOML file that names data sets, mechanisms, attacks and metrics. A run that was
    stopped goes on where it was.
    """
    from trailveil.report.comparison import comparison_page, text_of
    from trailveil.studies.comparing import compare as compared

    drawn = _available("matplotlib")
    as_csv = as_csv or not _available("pyarrow")
    results = compared(
        settings, folder=output / "done", workers=workers, scheduler=scheduler, watch=watched
    )
    files = {
        "summary.csv": "".join(results.summary()).encode(),
        "results.csv" if as_csv else "results.parquet": (
            "".join(results.csv()).encode() if as_csv else results.parquet()
        ),
        "index.html": comparison_page(results, drawn=drawn),
    }
    for name, content in files.items():
        write_atomically(output / name, partial(_put, content), overwrite=True)
    click.echo("\n".join([*text_of(results), f"Files in {named(output)}: {', '.join(files)}"]))


def _put(content: bytes, stream: BinaryIO) -> None:
    stream.write(content)


def _available(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None
