"""`trailveil verify REPORT`: does what a private report promises hold, and is it of these files?"""

import json
from pathlib import Path
from typing import Any

import click

from trailveil.checks.everywhere import compared_everywhere
from trailveil.checks.everywhere import promised as promised_everywhere
from trailveil.checks.verifying import beyond_fixes, compared
from trailveil.cli.options import naive_zone, timing
from trailveil.cli.parameters import most_option
from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.source import load, named, once
from trailveil.privacy.promises import UNCHECKED, Check, promises
from trailveil.traces.fields import ALL
from trailveil.traces.formats import read, size_of
from trailveil.traces.loading import load as load_trace

EXAMPLE = """Examples:

\b
  trailveil protect ride.gpx --mechanism noise --private-report ride.PRIVATE.json
  trailveil verify ride.PRIVATE.json
  trailveil verify ride.PRIVATE.json ride.gpx ride.private.gpx"""

_SAME_CODE = (
    "--everywhere by other code than that which its noise is designed with, or between the points "
    "of its grids"
)
# Bytes: a report with a few hundred designs.
_LARGEST = 1 << 26


@click.command(epilog=EXAMPLE)
@click.argument("report", type=click.Path(path_type=Path))
@click.argument("original", required=False, type=click.Path(path_type=Path))
@click.argument("released", required=False, type=click.Path(path_type=Path))
@timing
@most_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def verify(report: Path, original: Path | None, released: Path | None, **options: Any) -> None:
    """Prove anew what a release promises; but for --everywhere, by code of no design.

    REPORT is what protect --json prints, or --private-report NAME.PRIVATE.json writes. With the
    recording and the release, these are held against it as well. Exit status 0: all holds. 1: not.
    """
    if original is not None and released is None:
        raise click.UsageError("ORIGINAL must come with RELEASED: name both files, or neither")
    stated = _report(report)
    whole = "everywhere" in stated
    promised = list(promised_everywhere(stated) if whole else promises(stated))
    if original is not None and released is not None:
        promised += _of_files(stated, original, released, options)
    unchecked = [*UNCHECKED, *([_SAME_CODE] if whole else [])]
    if released is None:
        unchecked.append("what is said of the two files, which were not named")
    holds = all(each.holds for each in promised)
    if options["as_json"]:
        checks = [{"check": each.what, "holds": each.holds} for each in promised]
        click.echo(json.dumps({"holds": holds, "checks": checks, "not_checked": unchecked}))
    else:
        for promise in promised:
            what = "".join(c if c.isprintable() else "?" for c in promise.what)
            click.echo(f"{'ok    ' if promise.holds else 'FAILED'} {what}")
        wrong = sum(not each.holds for each in promised)
        click.echo(f"{len(promised)} checks: " + ("all hold" if holds else f"{wrong} failed"))
        if not holds and original is not None:
            click.echo("Are these the recording and the file that the report is of?")
        click.echo(f"Not checked: {'; '.join(unchecked)}.")
    click.get_current_context().exit(0 if holds else 1)


def _report(path: Path) -> dict[str, Any]:
    """A private report. Raises UnreadableInput for no JSON, Refused for another object."""
    try:
        report = json.loads(load(path, _LARGEST), object_pairs_hook=once)
    except InvalidValue as error:
        raise UnreadableInput(f"{error}: {named(path)}; name what protect wrote") from None
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(
            f"the report must be JSON, got none: {named(path)}; name the file that "
            "--private-report NAME.PRIVATE.json wrote, or what --json printed"
        ) from error
    if isinstance(report, dict) and "secrets" in report and "designs" in report:
        return report
    if isinstance(report, dict) and "everywhere" in report and report.get("private"):
        return {**report, "secrets": [], "designs": []}
    raise Refused(
        "the report must be the private one of a trace, got "
        f"another: {named(path)}; protect writes it with --private-report NAME.PRIVATE.json"
    )


def _of_files(
    report: dict[str, Any], original: Path, released: Path, options: dict[str, Any]
) -> list[Check]:
    asked = {name: options[name] for name in ("assume_utc", "every", "most")}
    trace, _ = load_trace(original, zone=naive_zone(options), **asked)
    fixes = read(released, ALL, most=options["most"])
    names = (original, released)
    both = [(str(name), load(name, size_of(options["most"]))) for name in names]
    try:
        against = compared_everywhere if "everywhere" in report else compared
        checks = list(against(report, trace, fixes))
        return [*checks, *beyond_fixes(report, both[0], both[1], trace, fixes)]
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        return [Check(f"the report is whole (got {type(error).__name__})", False)]
