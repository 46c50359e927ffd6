"""`trailveil live`: fixes in, line by line, and out what may be released of them."""

import math
import sys
from typing import Any, cast

import click

from trailveil.cli import say
from trailveil.cli.parameters import ABOVE_ONE, NOT_NEGATIVE, POSITIVE, person
from trailveil.errors import InvalidValue, UnreadableInput, said
from trailveil.ledger.identity import ME
from trailveil.live.lines import HEADER, LONGEST, Lines, plain
from trailveil.live.stream import Stream
from trailveil.release.options import Options
from trailveil.traces.activities import ACTIVITIES

EXAMPLE = """Examples:

\b
  gpspipe -r | trailveil live --activity ride > shared.nmea
  mosquitto_sub -t owntracks/me/phone | trailveil live --everywhere

A line `stay` on standard input announces a stay, and `go` ends it."""
_STAY, _GO = b"stay", b"go"
_MANY = 100
_READ = "of NMEA, RMC with a position is read alone; of OwnTracks, locations that are not encrypted"


@click.command(epilog=EXAMPLE)
@click.option("--everywhere", is_flag=True, help="Move every fix by noise; nothing is late.")
@click.option("--name", default="live", help="Of the stream: a restart goes on with it.")
@click.option("--delay", type=POSITIVE, metavar="SECONDS", help="Release fixes so late.")
@click.option("--radius", type=POSITIVE, help="Metres (100).")
@click.option("--epsilon", type=POSITIVE, help="Privacy loss (1).")
@click.option("--order", type=ABOVE_ONE, help="Renyi order (5).")
@click.option("--activity", type=click.Choice(list(ACTIVITIES)), help="How you move.")
@click.option("--floor", type=POSITIVE, metavar="M_PER_S", help="At least how fast you move.")
@click.option(
    "--slow-for",
    type=NOT_NEGATIVE,
    metavar="MINUTES",
    help="With --everywhere: the longest stay that is hidden (480).",
)
@click.option("--columns", default="", metavar="NAMES", help="Of rows without a line of names.")
@click.option(
    "--subject", default=ME, callback=person, metavar="NAME", help="Whose fixes they are."
)
@click.option("--again", is_flag=True, help="Count it besides other releases of these times.")
def live(**options: Any) -> None:
    """Protect fixes as they come: lines on standard input, lines on standard output.

    Lines are NMEA, JSON of OwnTracks, or CSV. Without --everywhere, fixes near your named places
    (trailveil place) and in announced stays are left out, and all others leave as they are, late.
    A line that cannot be used gives one line on standard error, and the stream goes on.
    """
    lines = Lines(options.pop("columns"))
    about = {name: options.pop(name) for name in ("name", "delay", "subject", "again")}
    if about["delay"] is not None and options["everywhere"]:
        raise click.UsageError("--delay must come without --everywhere, which delays nothing")
    if (minutes := options.pop("slow_for")) is not None:
        if not options["everywhere"]:
            raise click.UsageError(
                "--slow-for must come with --everywhere, got a cut: it hides whoever keeps to the "
                "pace that --activity or --floor states"
            )
        options["longest_stay"] = 60 * minutes
    stated = {name: value for name, value in options.items() if value not in (None, False)}
    with Stream(**about, **cast(Options, stated)) as stream:
        if stream.delay:
            minutes = math.ceil(stream.first / 60)
            say(
                f"fixes leave {said(stream.delay)} s late, the first after {minutes} min or more: "
                "none leaves near where the stream begins"
            )
        for name in stream.spent:  # now, and not when it is visited
            say(f"{name}: a further visit tells more than was stated; see trailveil ledger show")
        run(stream, lines)


def run(stream: Stream, lines: Lines) -> None:
    """Take lines from standard input until it ends."""
    if sys.stdin is None:
        raise InvalidValue("live must get lines on standard input, got none that is open")
    number, source, out = 0, sys.stdin.buffer, sys.stdout.buffer
    moved, contradicted = stream.moved, 0
    while line := source.readline(LONGEST + 1):
        number += 1
        while len(line) > LONGEST and not line.endswith(b"\n"):
            if not (more := source.readline(LONGEST)):
                break
            line = b"?" * (LONGEST + 1) + more[-1:]
        try:
            out.write(_answer(stream, lines, line))
            out.flush()
        except (UnreadableInput, InvalidValue) as error:
            say(f"line {number}: {error}")
        if moved is None and stream.moved is not None:
            moved = stream.moved
            say(f"fixes are moved by {moved:,.0f} m (root mean square)")
        if stream.contradicted > contradicted:
            say(f"line {number}: fixes must be in order of time, got a later one before: left out")
        contradicted = stream.contradicted
        if lines.skipped == _MANY and not lines.fixes:
            say(f"no fix in {_MANY} lines yet: {_READ}")
    if lines.skipped:
        say(f"{lines.skipped:,} lines were not read: {_READ}")


def _answer(stream: Stream, lines: Lines, line: bytes) -> bytes:
    """What is printed for a line."""
    word = plain(line).lower()
    if word in (_STAY, _GO):
        (stream.stay if word == _STAY else stream.go)()
        return b""
    if lines.is_header(line):
        return HEADER
    fix = lines.fix(line)
    return b"" if fix is None else b"".join(fix.line() for fix in stream.take(fix))
