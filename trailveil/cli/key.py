"""`trailveil key new FILE`: a key that makes releases repeatable."""

from pathlib import Path

import click

from trailveil.files.keys import new_key
from trailveil.files.source import named

EXAMPLE = """Example:

\b
  trailveil key new my.key
  trailveil protect ride.gpx --key my.key"""


@click.group(epilog=EXAMPLE)
def key() -> None:
    """Make keys. With the same key, the same request of the same recording is the same release."""


@key.command(epilog="Example: trailveil key new my.key")
@click.argument("file", type=click.Path(path_type=Path))
def new(file: Path) -> None:
    """Make a key from the operating system's randomness, in FILE, readable by you alone."""
    new_key(file)
    click.echo(
        f"Made {named(file)}. Keep it, and keep it to yourself: anyone who has it and a release "
        "can test guesses of the recording; without it the same release cannot be made again."
    )
