"""The designs that ship with the package, made anew: trailveil/designer/table.zip.

Run: make designs, or python -m benchmarks._shipped_designs [--missing]. It takes some ten minutes
of CPU. Noise for default requests, of each --activity, with windows of up to 12 hours, in the
middle of a recording or at an end; and of a single time for the bounds of
trailveil.release.mixture. Raise DESIGN_VERSION (trailveil/version.py) where designs change: draws
must never be shared between designs.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from trailveil.designer import table
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.table import key_of, read, rounded_bound, shaped_for, shipped, write_table
from trailveil.designer.window import window_noise
from trailveil.files.output import write_atomically
from trailveil.privacy.knowledge import Knowledge
from trailveil.release.mixture import BOUNDS, LENGTH
from trailveil.release.request import Request
from trailveil.traces.activities import ACTIVITIES

TABLE = Path(table.__file__).with_name("table.zip")
LONGEST = 12 * 3600

Asked = tuple[float, int, tuple[Knowledge, ...], float]


def asked(activity: str) -> list[Asked]:
    """What designs are for: length, sides, adversaries, bound."""
    request = Request((), floor=ACTIVITIES[activity])
    longest = LONGEST + 2 * request.uncertain
    lengths = sorted({shaped_for(second) for second in range(longest + 1)})
    pairs = [(length, rounded_bound(request.bound)) for length in lengths]
    pairs += [(LENGTH, bound) for bound in BOUNDS if (LENGTH, bound) not in pairs]
    return [
        (length, sides, request.adversaries, bound) for sides in (1, 2) for length, bound in pairs
    ]


def designs(missing: bool) -> Iterator[tuple[str, WindowNoise]]:
    """Each design by its key."""
    seen: set[str] = set()
    for activity in ACTIVITIES:
        for one in asked(activity):
            key = key_of(*one)
            if key in seen:  # activities of one floor
                continue
            seen.add(key)
            stored = shipped(key) if missing else None
            yield key, window_noise(*one) if stored is None else read(stored)
        click.echo(f"{activity}: done", err=True)


@click.command()
@click.option("--missing", is_flag=True, help="Keep the designs that are there.")
def main(missing: bool) -> None:
    """Make the table."""
    write_atomically(TABLE, lambda out: write_table(out, designs(missing)), overwrite=True)
    click.echo(f"{TABLE.name}: {TABLE.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
