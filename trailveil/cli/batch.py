"""`trailveil batch IN... -o OUTDIR`: many recordings."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePath
from typing import Any

import click
import numpy as np

from trailveil.batch.inputs import InputRules, Inputs, Trip, check_outdir, find
from trailveil.batch.listing import check_listing, write_listing
from trailveil.batch.manifest import folder_of, opened
from trailveil.batch.rules import Rules, check_rules, read_rules
from trailveil.batch.running import PROTECTED, REFUSED, SAME, Setting, TripOutcome, run
from trailveil.batch.workers import cluster_at, workers_here
from trailveil.batch.working import Engine, here, why_of
from trailveil.cli.options import (
    WithPlaces,
    check_keep,
    counting,
    naive_zone,
    reading,
    requested_of,
    requesting,
    retiming_of,
    selected,
    selecting,
    was_given,
)
from trailveil.cli.waiting import watched
from trailveil.errors import Refused, said
from trailveil.files.keys import load_key, make_key
from trailveil.files.source import named
from trailveil.ledger import Ledger, user_ledger
from trailveil.ledger.places import load_places, places_told
from trailveil.release.request import Method
from trailveil.report.ledger import past_what_was_stated

EXAMPLE = """Examples:

\b
  trailveil batch rides -o protected
  trailveil batch study --subject-from folder -o protected --stops auto
  trailveil batch 'rides/2024-*.gpx' more.fit -o protected --key my.key --workers 4

Stopped, or cut off, the same command again goes on where it was."""

_KEY = "batch.key"
# Recordings that are sooner done by one process than others are started.
_FEW = 4
# Advice that begins with so many characters alike is said once: its numbers differ.
_ALIKE = 40


@click.command(cls=WithPlaces, epilog=EXAMPLE)
@click.argument("sources", metavar="IN...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="OUTDIR",
    type=click.Path(path_type=Path),
    help="The folder of outputs; made where there is none.",
)
@click.option("--suffix", metavar=".SUFFIX", help="Format of all outputs, such as .parquet.")
@selecting
@requesting
@reading
@counting
@click.option(
    "--subject-from",
    type=click.Choice(["folder"]),
    help="Whose a recording is: the first folder below IN names the person.",
)
@click.option("--trace-column", metavar="NAME", help="Of tables: which trace a row is of.")
@click.option("--subject-column", metavar="NAME", help="Of tables: whose a trace is.")
@click.option("--whole-files", is_flag=True, help="Tables are one recording each.")
@click.option(
    "--rules",
    "table",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="CSV or Parquet of trace and, for that one: from, to, radius, epsilon.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1, max=1024),
    metavar="N",
    help="Processes of this machine. Default: one for each core, one alone for few recordings.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Of a Dask cluster that is there, such as tcp://10.0.0.1:8786.",
)
@click.option("--again", is_flag=True, help="Release recordings again, with other noise.")
@click.option("--overwrite", is_flag=True, help="Replace outputs that no batch has written.")
@click.option(
    "--manifest",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What became of each, for you alone: .json or .csv, outside of OUTDIR.",
)
@click.option("--allow-refusals", is_flag=True, help="Exit 0 even if some were refused.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def batch(**options: Any) -> None:
    """Protect many recordings: folders, patterns in quotation marks, files.

    Each is protected as trailveil protect does with the same key; the tree below IN is found again
    below OUTDIR. One that is refused is one line, and stops none of the others.
    """
    sources, outdir = options["sources"], options["output"]
    check_outdir(outdir, sources)
    manifest, overwrite = options["manifest"], options["overwrite"]
    if manifest is not None:
        check_listing(manifest, outdir, sources, overwrite=overwrite)
    rules, ledger = _rules(options), user_ledger()
    inputs = find(sources, outdir, _wanted(options))
    setting = Setting(
        outdir,
        _key(options["key"], ledger),
        ledger,
        again=options["again"],
        overwrite=overwrite,
        limit=options["limit"],
    )
    rules_of = _rules_of(options, rules, inputs)
    with _engine(options, len(inputs.items)) as engine:
        outcomes = _told(run(inputs.items, rules_of, setting, engine), inputs)
    given: set[str] = set()
    for outcome in outcomes:
        if outcome.status == REFUSED:
            click.echo(f"{named(outcome.name)}: {_once(outcome.line, given)}", err=True)
    if manifest is not None:
        with opened(folder_of(ledger.folder, outdir), outdir) as rows:
            more = (rules_of, rows, outdir)
            write_listing(manifest, inputs, outcomes, *more, overwrite=overwrite)
    summary = summed(inputs, outcomes) | {"places": _overspent(ledger, inputs)}
    click.echo(json.dumps(summary) if options["as_json"] else _text(summary, outdir))
    if summary["refused"] and not options["allow_refusals"]:
        click.get_current_context().exit(1)


def _once(line: str, given: set[str]) -> str:
    """A refusal, with what to do about it where no earlier one said that. given: what they did."""
    what, _, advice = line.partition("; ")
    begins = advice[:_ALIKE]
    if begins in given:
        return f"{what}; see above"
    given.update([begins] if begins else [])
    return line


def _overspent(ledger: Ledger, inputs: Inputs) -> list[str]:
    """A warning for each place with a name of which all releases tell more than was stated."""
    places = load_places(ledger)
    if not places:
        return []
    with ledger.open() as book:
        subjects = dict.fromkeys(item.subject for item in inputs.items)
        every = {subject: places_told(book, places, subject) for subject in subjects}
    lines = {subject: past_what_was_stated(accounts) for subject, accounts in every.items()}
    alone = len(subjects) == 1
    return [line if alone else f"{subject}: {line}" for subject in lines for line in lines[subject]]


def _rules(options: dict[str, Any]) -> Rules:
    return Rules(
        selected(options),
        requested_of(options),
        retiming_of(options, None),
        tuple(options["keep"]),
        options["assume_utc"],
        naive_zone(options),
        options["every"],
        options["most"],
    )


def _rules_of(options: dict[str, Any], rules: Rules, inputs: Inputs) -> Callable[[Trip], Rules]:
    """The rules of each trace, checked before any work is done."""
    path = options["table"]
    if path is None:
        return lambda _: rules
    if options["everywhere"]:
        raise click.UsageError("--rules must come without --everywhere: state one of them")
    by_trace = {name: row.over(rules) for name, row in read_rules(path).items()}
    names = [*(item.name for item in inputs.items), *(name for name, _ in inputs.failed)]
    check_rules(by_trace, names, named(path))
    return lambda item: by_trace.get(item.name, rules)


def _wanted(options: dict[str, Any]) -> InputRules:
    columns = (options["trace_column"], options["subject_column"])
    if options["whole_files"] and any(columns):
        raise click.UsageError("--whole-files must come without columns: state one of them")

    def check(output: Path) -> None:
        check_keep(output, options["keep"])
        retiming_of(options, output)

    subject = _subject_of(options)
    return InputRules(subject, options["suffix"], options["whole_files"], *columns, check)


def _subject_of(options: dict[str, Any]) -> Callable[[PurePath, str], str]:
    """Whose a recording is, by its path below what was named and the person that a column names.

    What is stated wins over a column: releases of one person are then never counted apart.
    """
    stated, folder = was_given("subject"), options["subject_from"] is not None
    if folder and stated:
        raise click.UsageError("--subject-from must come without --subject: state one of them")
    if options["subject_column"] and (folder or stated):
        other = "--subject-from" if folder else "--subject"
        raise click.UsageError(f"--subject-column must come without {other}: state one of them")
    if folder:
        return _first_folder
    return lambda _, person: options["subject"] if stated else person or options["subject"]


def _first_folder(below: PurePath, person: str) -> str:
    if len(below.parts) < 2 and person:
        return person
    if len(below.parts) < 2:
        raise Refused(
            "--subject-from folder must have each recording in a folder of its person below IN, "
            f"got {named(below)} beside them: put it into one, or name the folder above"
        )
    return below.parts[0]


def _key(stated: Path | None, ledger: Ledger) -> bytes:
    """The stated key, else the user's own for batches, made at first use."""
    path = ledger.folder / _KEY if stated is None else stated
    if stated is None and not path.exists():
        make_key(path)
    return load_key(path)


def _engine(options: dict[str, Any], traces: int) -> AbstractContextManager[Engine]:
    """Who does the work: a cluster where one is named, else processes, else this one."""
    stated, address = options["workers"], options["scheduler"]
    if address is not None:
        if stated is not None:
            raise click.UsageError("--scheduler must come without --workers: state one of them")
        return cluster_at(address)
    workers = stated or (_cores() if traces >= _FEW else 1)
    if workers == 1:
        return nullcontext(here)
    noise = options["everywhere"] or options["mechanism"] != Method.CUT
    return workers_here(min(workers, traces), noise=noise)


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _told(running: Iterator[TripOutcome], inputs: Inputs) -> list[TripOutcome]:
    """What became of all."""
    outcomes = [
        TripOutcome(name, Path(), REFUSED, {}, *why_of(error)) for name, error in inputs.failed
    ]
    for outcome in watched(running, len(inputs.items), "protecting"):
        outcomes.append(outcome)
    return outcomes


def summed(inputs: Inputs, outcomes: Sequence[TripOutcome]) -> dict[str, Any]:
    """The summary of a run, JSON-able."""
    states = Counter(outcome.status for outcome in outcomes)
    good = [outcome for outcome in outcomes if outcome.status != REFUSED]
    return {
        "traces": len(inputs.items) + len(inputs.failed),
        "protected": states[PROTECTED],
        "as_before": states[SAME],
        "refused": states[REFUSED],
        "refused_by": dict(
            Counter(outcome.kind for outcome in outcomes if outcome.status == REFUSED)
        ),
        "other_files": inputs.others,
        "fixes": sum(outcome.about["fixes"] for outcome in good),
        "withheld_min": {
            "total": sum(outcome.about["withheld_min"] for outcome in good),
            **(_quantiles([outcome.about["withheld_min"] for outcome in good]) or {}),
        },
        "rms_m": _quantiles([outcome.about["rms_m"] for outcome in good]),
        "epsilon": _quantiles([outcome.about["epsilon"] for outcome in good]),
        "refusals": [
            {"name": outcome.name, "kind": outcome.kind, "line": outcome.line}
            for outcome in outcomes
            if outcome.status == REFUSED
        ],
    }


def _quantiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    shares = {"least": 0.0, "half": 0.5, "nine_of_ten": 0.9, "most": 1.0}
    quantiles = np.quantile(values, list(shares.values()))
    return dict(zip(shares, quantiles.tolist(), strict=True))


def _text(summary: dict[str, Any], outdir: Path) -> str:
    lines = [
        f"{summary['protected']} of {summary['traces']} recordings protected, "
        f"{summary['as_before']} are as they were, {summary['refused']} refused: {named(outdir)}"
    ]
    lines += [f"  refused ({kind}): {count}" for kind, count in summary["refused_by"].items()]
    if summary["other_files"]:
        lines.append(f"  files of other kinds, passed over: {summary['other_files']}")
    cut = summary["withheld_min"]
    if cut["total"]:
        lines.append(
            f"  left out: {cut['total']:,.0f} min in total; of half of the recordings up to "
            f"{cut['half']:,.0f} min, of one {cut['most']:,.0f} min"
        )
    for name, what, unit in (
        ("rms_m", "moved on average by", " m"),
        ("epsilon", "epsilon of the worst part", ""),
    ):
        if summary[name] is not None and summary[name]["most"] > 0:
            quantiles = summary[name]
            lines.append(
                f"  {what}: {said(quantiles['least'], 3)} to {said(quantiles['most'], 3)}{unit}, "
                f"half of them up to {said(quantiles['half'], 3)}{unit}, nine of ten up to "
                f"{said(quantiles['nine_of_ten'], 3)}{unit}"
            )
    return "\n".join([*lines, *(f"  ! {line}" for line in summary["places"])])
