"""What became of each trace of a batch, as a file for its owner: JSON, or a table (CSV).

It holds what the report for others of one release holds, and who and what it is about: no position,
no time, and nothing that tells a protected one to who can run the program. Achieved losses and
metres do, so it states what was asked for, which is at least as bad, and no metres. How many
minutes are left out is for the owner. Digests of
inputs and rules are keyed: nobody can try guesses against them.
"""

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from trailveil.batch.inputs import Inputs, Trip
from trailveil.batch.manifest import DONE, Manifest, Row, may_be
from trailveil.batch.rules import Rules
from trailveil.batch.running import PROTECTED, REFUSED, TripOutcome
from trailveil.batch.working import sha256_of, why_of
from trailveil.errors import UnwritableOutput
from trailveil.files.output import check_output, write_atomically
from trailveil.files.source import named
from trailveil.privacy.guarantee import Guarantee, mu_for
from trailveil.release.request import Method, Request
from trailveil.report.parts import CONFIDENCE, prior_in_full, rounded_up
from trailveil.version import __version__

_WHAT = "manifest"
_MARK = "trailveil_manifest"
_VERSION = 1
COLUMNS = (
    *("trace", "subject", "status", "refused_by", "reason", "output", "output_sha256"),
    *(
        "input_digest",
        "rules_digest",
        "fixes",
        "released",
        "withheld_min",
        "mechanism",
        "radius_m",
        "epsilon",
    ),
    *("order", "mu", "odds_factor_99", "advantage", "leave_m", "withhold", "floor_m_s"),
    *("adversaries", "chosen_by_place", "prior", "prior_kernel", "kept", "rounded_to_s"),
    "shifted",
)
"""What is said of a trace; null, or an empty cell, where there is nothing to say."""


def check_listing(path: Path, outdir: Path, stated: Sequence[str], *, overwrite: bool) -> None:
    """Refuse a file that cannot or must not be written, before any work is done.

    stated: the inputs, as they were named. One that such a run wrote is replaced. Raises
    UnwritableOutput.
    """
    if path.suffix.lower() not in _WRITERS:
        raise UnwritableOutput(
            f"--manifest must be {' or '.join(_WRITERS)}, got {named(path)}: choose such a name"
        )
    here = Path(os.path.realpath(path))
    for folder in (outdir, *(Path(name) for name in stated)):
        holder = Path(os.path.realpath(folder))
        if holder == here or (holder in here.parents and (folder == outdir or folder.is_dir())):
            raise UnwritableOutput(
                "--manifest must be outside of the folders of inputs and outputs, got one within "
                f"{named(folder)}: choose another place, it is for you alone"
            )
    check_output(path, overwrite=overwrite or _is_listing(path), what=_WHAT)


def write_listing(
    path: Path,
    inputs: Inputs,
    outcomes: Iterable[TripOutcome],
    rules_of: Callable[[Trip], Rules],
    manifest: Manifest,
    outdir: Path,
    *,
    overwrite: bool,
) -> None:
    """Write what became of all, whole or not at all, for the owner's eyes alone.

    Raises UnwritableOutput, also where the file is one that must not be replaced.
    """
    write = _WRITERS[path.suffix.lower()]
    why = {
        outcome.output: (outcome.kind, outcome.line)
        for outcome in outcomes
        if outcome.status == REFUSED
    }

    def lines() -> Iterator[dict[str, Any]]:
        for name, error in inputs.failed:
            yield _refused(why_of(error), trace=name)
        for item in inputs.items:
            about = {"trace": item.name, "subject": item.subject}
            output = item.output.relative_to(outdir).as_posix()
            row = manifest.row(output)
            if item.output in why or row is None or row.status != DONE:
                yield _refused(why.get(item.output), **about, **_earlier(item.output, output, row))
            else:
                done = _done(row, rules_of(item))
                yield _line(**about, status=PROTECTED, output=output, **done)

    replace = overwrite or _is_listing(path)
    write_atomically(
        path, lambda out: write(lines(), out), overwrite=replace, private=True, what=_WHAT
    )


def _line(**said: Any) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | said


def _refused(why: tuple[str, str] | None, **said: Any) -> dict[str, Any]:
    kind, line = why or (None, None)
    return _line(status=REFUSED, refused_by=kind, reason=line, **said)


def _earlier(path: Path, output: str, row: Row | None) -> dict[str, Any]:
    """The output of an earlier run, where it is still there."""
    digest = sha256_of(path)
    known = digest and may_be(row, digest)
    return {"output": output, "output_sha256": digest.hex()} if known else {}


def _done(row: Row, rules: Rules) -> dict[str, Any]:
    request, chosen, about = rules.request, rules.chosen, row.about
    everywhere = request.method is Method.EVERYWHERE
    stated = bool(chosen.at or chosen.between) and not (chosen.near or chosen.stops)
    stated = stated and not chosen.returns
    return {
        "output_sha256": row.sha256.hex(),
        "input_digest": row.source.hex(),
        "rules_digest": row.rules.hex(),
        "fixes": about["fixes"],
        "released": about["released"],
        "withheld_min": about["withheld_min"],
        "mechanism": request.method.value,
        "radius_m": request.radius,
        **_guaranteed(request, about["epsilon"]),
        "leave_m": request.leave,
        "withhold": request.withhold,
        "floor_m_s": request.floor,
        "adversaries": [adversary.value for adversary in request.who],
        "chosen_by_place": not (everywhere or stated),
        **dict(zip(("prior", "prior_kernel"), prior_in_full(request.kernel).values(), strict=True)),
        "kept": list(rules.keep),
        "rounded_to_s": rules.retiming.step,
        "shifted": rules.retiming.shift,
    }


def _guaranteed(request: Request, epsilon: float) -> dict[str, Any]:
    """What was asked for, which is at least as bad as what was reached; never better than that.

    epsilon: the one that was reached. With places that have names it may be the larger one.
    """
    mu = mu_for(max(epsilon, request.epsilon), request.order)
    if request.leave is not None:
        mu = rounded_up(mu_for(epsilon, request.order))
    guarantee = Guarantee(mu, request.order)
    return {
        "epsilon": guarantee.epsilon,
        "order": guarantee.order,
        "mu": guarantee.mu,
        "odds_factor_99": guarantee.odds(CONFIDENCE),
        "advantage": guarantee.advantage,
    }


def _as_json(lines: Iterable[dict[str, Any]], out: BinaryIO) -> None:
    """One object, with a line for each trace."""
    head = {_MARK: _VERSION, "trailveil": __version__}
    out.write(f'{json.dumps(head)[:-1]}, "traces": ['.encode())
    for number, line in enumerate(lines):
        out.write(f"{',' if number else ''}\n{json.dumps(line)}".encode())
    out.write(b"\n]}\n")


def _as_csv(lines: Iterable[dict[str, Any]], out: BinaryIO) -> None:
    """A row for each trace; several words in a cell stand beside each other."""
    text = io.TextIOWrapper(out, "utf-8", errors="backslashreplace", newline="")
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for line in lines:
        rows.writerow([_cell(value) for value in line.values()])
    text.detach()


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return " ".join(value)
    return "" if value is None else str(value)


_WRITERS = {".json": _as_json, ".csv": _as_csv}
_BEGINNINGS = (f'{{"{_MARK}": '.encode(), f"{','.join(COLUMNS)}\n".encode())


def _is_listing(path: Path) -> bool:
    """Whether a file is one that a batch wrote."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(max(map(len, _BEGINNINGS))).startswith(_BEGINNINGS)
    except OSError:
        return False
