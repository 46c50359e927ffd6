"""Rules of single traces: what a table of them may say, and what it does."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.batch.fleets import batch, fleet
from trailveil.batch.rules import RuleChange, Rules, read_rules
from trailveil.traces.formats import read


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_rule_replaces_what_it_states_and_nothing_else(tmp_path: Path) -> None:
    table = written(
        tmp_path / "rules.csv",
        "trace,from,to,radius,epsilon\na,start+1m,start+2m,,\nb,start+1m,,300,\nc,,,,0.5\n",
    )
    changes = read_rules(table)
    rules = Rules()
    a, b, c = (changes[name].over(rules) for name in "abc")
    assert a.chosen.between == (("start+1m", "start+2m"),)
    assert (a.request, b.chosen.at, b.request.radius) == (rules.request, ("start+1m",), 300.0)
    assert (c.chosen, c.request.epsilon) == (rules.chosen, 0.5)
    assert len({rule.statement for rule in (rules, a, b, c)}) == 4


def test_parquet_says_the_same_as_csv(tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"trace": ["a", "b"], "radius": [None, 300.0]}
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "rules.parquet")
    assert read_rules(tmp_path / "rules.parquet") == {
        "a": RuleChange(),
        "b": RuleChange(radius=300.0),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("trace,radius\na,1\na,2\n", "each trace must have one rule, got two of a: row 2 of"),
        ("trace,color\na,red\n", "got another, 'color'"),
        ("radius\n1\n", "must have the column trace"),
        ("trace,trace\na,a\n", "each once"),
        ("trace,to\na,start+1m\n", "a from where it has a to, got another: row 1"),
        ("trace,radius\na,wide\n", "a radius that is a number above 0"),
        ("trace,radius\na,nan\n", "a radius that is a number above 0"),
        ("trace,radius\n,1\n", "the name of a trace"),
        ("trace,radius\na,1,2\n", "as many cells as there are columns"),
        ("trace\nnone.gpx\n", "rules must be of traces that are there, got one of none.gpx"),
    ],
)
def test_tables_that_cannot_be_meant_are_one_line_before_any_work(
    tmp_path: Path, text: str, expected: str
) -> None:
    rides = fleet(tmp_path / "rides", 1)
    table = written(tmp_path / "rules.csv", text)
    done = batch(rides, "-o", tmp_path / "out", "--rules", table)
    assert done.returncode == 1
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_trace_with_a_rule_is_protected_by_it_and_the_others_are_not(tmp_path: Path) -> None:
    rides, out = fleet(tmp_path / "rides", 2), tmp_path / "out"
    table = written(tmp_path / "rules.csv", "trace,from\np1/r0001.gpx,start+2m\n")
    assert batch(rides, "-o", out, "--rules", table).returncode == 0
    # Withheld is 30 s around what is protected: both ends, and of one three fixes besides.
    first = read(out / "p0" / "r0000.private.gpx").times
    second = read(out / "p1" / "r0001.private.gpx").times
    recorded = [read(rides / f"p{i}" / f"r000{i}.gpx").times for i in range(2)]
    assert recorded[0][0] < first[0] < first[-1] < recorded[0][-1]
    ends = {*recorded[1][:2], *recorded[1][-2:]}
    assert set(recorded[1]) - set(second) == ends | set(recorded[1][3:6])


@pytest.mark.slow
def test_a_time_that_cannot_be_is_repeated_nowhere(tmp_path: Path, user_folders: Path) -> None:
    """Of each way in which it cannot be: not in what is said, nor in what is kept of it."""
    rides, out = fleet(tmp_path / "rides", 7, people=7), tmp_path / "out"
    stays = (
        ("2024-05-14T21:43:56Z", ""),
        ("2024-05-15T07:42:31Z", "2024-05-15T07:41:17Z"),
        ("21:43:56", ""),
        ("21:99:56", ""),
        ("2024-10-27T02:43:56", ""),
        ("nonsense 21:43", ""),
        ("2024-03-31T02:43:56", "start+5m"),
    )
    rows = [f"p{i}/r{i:04}.gpx,{begin},{end}\n" for i, (begin, end) in enumerate(stays)]
    table = written(tmp_path / "rules.csv", "trace,from,to\n" + "".join(rows))
    for zone in ((), ("--tz", "Europe/Berlin")):
        done = batch(rides, "-o", out, "--rules", table, "--json", *zone)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 7
        stored = [path.read_bytes() for path in (user_folders / "state").rglob("*.sqlite")]
        assert any(b"must be within the recording, got one outside" in data for data in stored)
        for said in (done.stdout.encode(), done.stderr.encode(), *stored):
            assert not re.search(rb"43:56|42:31|41:17|99:56|nonsense|02:43|07:40", said)
