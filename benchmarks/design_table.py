"""Designs by this package and by a conic solver, side by side: a table.

Run: python -m benchmarks.design_table [--limit SECONDS] [--only NAME].

Each design is made in a process of its own, with one BLAS thread, a time limit and a memory limit:
one that is refused, or reaches a limit, says so in its row. `first` is the time of the first design
of the process, `again` the median of more of them, `peak` the memory of the whole process. The gap
is the certificate's; `above` is how much more noise ours has than the conic solver's.
"""

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from tests.oracles.exact import exact_sdp
from trailveil.designer import design
from trailveil.errors import TrailveilError
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, White
from trailveil.privacy.adversary import PLAIN, Adversary
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

SMOOTH = RBF(6.1) + White(0.1)
BOUND = loss_bound_for(1.0, 200.0)
STAY = 600.0
# Repetitions of a design until so many seconds are spent; one that takes as long is made once.
ENOUGH = 1.0
# Points up to which the conic solver is asked: beyond, it needs hours and tens of GB.
CONIC_POINTS = 60
GIB = 2**30


@dataclass(frozen=True)
class Question:
    """What is asked: the least noise for these secrets, bounds and adversaries."""

    prior: Prior
    secrets: Sequence[Secret]
    bounds: Sequence[float]
    adversaries: tuple[Adversary, ...] = (PLAIN,)


@dataclass(frozen=True)
class Row:
    """One row. group: rows that differ by n alone, whose slope is printed. aim: seconds, if any."""

    name: str
    points: int
    ask: Callable[[int], Question]
    group: str = ""
    aim: float | None = None


def values(*indices: int) -> Callable[[int], Question]:
    """Single recorded values of a smooth series."""

    def ask(count: int) -> Question:
        secrets = [Secret.at(float(index), recorded=True) for index in indices]
        return Question(Prior(SMOOTH, np.arange(float(count))), secrets, [8.0] * len(indices))

    return ask


def together(*indices: int) -> Callable[[int], Question]:
    """One compound secret."""

    def ask(count: int) -> Question:
        secret = Secret.at([float(index) for index in indices], recorded=True)
        return Question(Prior(SMOOTH, np.arange(float(count))), [secret], [8.0])

    return ask


def moving(speed: float) -> Kernel:
    """The default prior of movement, at another speed."""
    return IntegratedOU(speed, 60.0) + Constant(1e5) + White(2.0)


def ten(windows: Sequence[tuple[float, float]]) -> tuple[Adversary, ...]:
    """The plain one and who sees the stays; each alone, with what it knows, or how fast one is."""
    besides = [
        Adversary.knows_point(60.0, 10.0),
        Adversary.knows_path(300.0, 10.0),
        *(Adversary.believes(f"moves at {speed:g} m/s", moving(speed)) for speed in (1.0, 10.0)),
    ]
    bases = [PLAIN, Adversary.sees_stillness(windows)]
    return tuple(one for base in bases for one in (base, *(base & other for other in besides)))


def stays(number: int, step: float | None, *, wary: bool) -> Callable[[int], Question]:
    """Stays of ten minutes in an hour, or with `step` seconds from fix to fix."""

    def ask(count: int) -> Question:
        times = np.arange(float(count)) * (3600.0 / count if step is None else step)
        middles = times[-1] * (np.arange(number) + 0.5) / number
        windows = [(float(at) - STAY / 2, float(at) + STAY / 2) for at in middles]
        adversaries = ten(windows) if wary else (PLAIN,)
        secrets = [Secret.stay(*window) for window in windows]
        return Question(Prior(moving(3.0), times), secrets, [BOUND] * number, adversaries)

    return ask


LARGE = (10_000, 100_000, 1_000_000)
ROWS: tuple[Row, ...] = (
    Row("one secret", 50, values(24)),
    Row("compound of 2", 50, together(24, 25), aim=0.02),
    Row("compound of 3", 50, together(23, 24, 25), aim=0.02),
    Row("three secrets", 50, values(12, 24, 36)),
    Row("30 neighbouring secrets", 50, values(*range(10, 40))),
    Row("50 of 50", 50, values(*range(50))),
    Row("30 neighbouring secrets", 1_000, values(*range(485, 515)), aim=1.0),
    Row("one stay, the default set", 50, stays(1, None, wary=True)),
    Row("one stay, the default set", 200, stays(1, None, wary=True)),
    Row("one stay, the default set", 1_000, stays(1, None, wary=True), aim=1.0),
    Row("one secret, dense", 5_000, values(2_500)),
    Row("three secrets, dense", 5_000, values(1_250, 2_500, 3_750)),
    *(Row("one stay, Markov", n, stays(1, 5.0, wary=False), "one stay") for n in LARGE),
    *(Row("three stays, Markov", n, stays(3, 5.0, wary=False), "three stays") for n in LARGE),
    *(
        Row(
            *("three stays, ten adversaries, Markov", n, stays(3, 5.0, wary=True)),
            "ten adversaries",
            20.0 if n == LARGE[-1] else None,
        )
        for n in LARGE
    ),
)


def ours(question: Question) -> tuple[float, float | None]:
    """The noise of our design, and its gap."""
    made, certificate = design(
        question.prior,
        question.secrets,
        bounds=question.bounds,
        adversaries=question.adversaries,
    )
    return made.noise_trace, certificate.gap


def conic(question: Question) -> tuple[float, float | None]:
    """The noise of the conic solver's."""
    optimum = exact_sdp(
        question.prior,
        question.secrets,
        bounds=question.bounds,
        adversaries=question.adversaries,
        tight=any(secret.size > 1 for secret in question.secrets),
    )
    return optimum.value, None


def measured(question: Question, make: Callable[[Question], Any]) -> dict[str, Any]:
    """Noise, gap, times and peak memory of a design that is made in this process."""
    taken: list[float] = []
    noise, gap = 0.0, None
    while not taken or (sum(taken) < ENOUGH and taken[0] < ENOUGH):
        begun = time.perf_counter()
        noise, gap = make(question)
        taken.append(time.perf_counter() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    again = statistics.median(taken[1:]) if taken[1:] else None
    return {"noise": noise, "gap": gap, "first": taken[0], "again": again, "peak": peak * unit}


def child(number: int, maker: str, memory: float) -> dict[str, Any]:
    """One design of one row, or why there is none."""
    if sys.platform != "darwin":  # which knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (int(memory * GIB),) * 2)
    row = ROWS[number]
    try:
        return measured(row.ask(row.points), {"ours": ours, "conic": conic}[maker])
    except TrailveilError as error:
        return {"why": f"{type(error).__name__}: {str(error).split(',')[0]}"}
    except MemoryError:
        return {"why": f"more than {memory:g} GiB"}


def run(number: int, maker: str, limit: float, memory: float) -> dict[str, Any]:
    """The same in a process of its own."""
    if maker == "conic" and ROWS[number].points > CONIC_POINTS:
        return {"why": "too large"}
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    words = ["--child", str(number), maker, "--memory", str(memory)]
    try:
        done = subprocess.run(  # noqa: S603  # this module, and numbers of ours
            [sys.executable, "-m", "benchmarks.design_table", *words],
            env={**os.environ, **threads},
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {"why": f"over {limit:g} s"}
    if done.returncode != 0:
        if "memory allocation" in done.stderr:  # where what is not Python runs out of it
            return {"why": f"more than {memory:g} GiB"}
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return {"why": f"failed: {last[:80]}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def seconds(value: float | None) -> str:
    """A time, for people."""
    if value is None:
        return ""
    return f"{value:.2f} s" if value >= 1 else f"{1000 * value:.1f} ms"


def line(row: Row, own: dict[str, Any], other: dict[str, Any]) -> str:
    """One row of the table."""
    cells = [row.name, f"{row.points:,}"]
    if "why" in own:
        cells += [str(own["why"]), "", "", ""]
    else:
        gap = "not claimed" if own["gap"] is None else f"{own['gap']:.0e}"
        cells += [seconds(own["first"]), seconds(own["again"]), gap, f"{own['peak'] / GIB:.2f} GiB"]
    cells.append(str(other.get("why") or seconds(other["first"])))
    both = "why" not in own and "why" not in other
    cells.append(f"{own['noise'] / other['noise'] - 1:+.0e}" if both else "")
    met = "first" in own and row.aim is not None and (own["again"] or own["first"]) <= row.aim
    cells.append("" if row.aim is None else f"{seconds(row.aim)}: {'met' if met else 'missed'}")
    return f"| {' | '.join(cells)} |"


def slope(times: Sequence[tuple[int, float]]) -> str:
    """The exponent of n between the least and the most that were done."""
    if len(times) < 2:
        return "not known: fewer than two sizes were done"
    (few, quick), (many, slow) = times[0], times[-1]
    exponent = math.log(slow / quick) / math.log(many / few)
    return f"{exponent:.2f} from n = {few:,} to {many:,}"


@click.command()
@click.option("--limit", default=60.0, show_default=True, help="Seconds for one design.")
@click.option("--memory", default=6.0, show_default=True, help="GiB for one design.")
@click.option("--only", default="", help="Rows whose name begins so.")
@click.option("--child", "asked", type=(click.IntRange(0, len(ROWS) - 1), str), hidden=True)
def main(limit: float, memory: float, only: str, asked: tuple[int, str] | None) -> None:
    """Print the table."""
    if asked is not None:
        click.echo(json.dumps(child(*asked, memory)))
        return
    click.echo("| what | n | ours, first | again | gap | peak | cvxpy + Clarabel | above | aim |")
    click.echo("|---|---|---|---|---|---|---|---|---|")
    done: dict[str, list[tuple[int, float]]] = {row.group: [] for row in ROWS if row.group}
    for number, row in enumerate(ROWS):
        if not row.name.startswith(only):
            continue
        own, other = (run(number, maker, limit, memory) for maker in ("ours", "conic"))
        click.echo(line(row, own, other))
        if row.group and "why" not in own:
            done[row.group].append((row.points, own["first"]))
    for group, times in done.items():
        click.echo(f"\nSlope of time over n, {group}: {slope(times)}.")


if __name__ == "__main__":
    main()
