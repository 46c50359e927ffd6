"""The options of a batch: those that its page lists, and those of `protect` mean the same."""

import ast
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.batch.fleets import AT_ONCE, DAY, batch, fleet, outputs
from tests.rides import BEGIN, ROOT, gpx, ride, written
from trailveil.batch.frame import protect_frame
from trailveil.batch.rules import Rules
from trailveil.cli import cli
from trailveil.errors import InvalidValue
from trailveil.files.keys import new_key
from trailveil.release.request import Method, Request
from trailveil.traces.frames import to_frame
from trailveil.traces.selection import Chosen

PAGE = (ROOT / "docs" / "commands" / "batch.md").read_text(encoding="utf-8")


def options_of(name: str) -> dict[str, click.Parameter]:
    """The options of a command, by their longest names."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {
        max(option.opts, key=len): option
        for option in command.params
        if isinstance(option, click.Option)
    }


NOT_OF_MANY = {"--explain", "--column", "--unit", "--report", "--private-report", "--replace"}
NOT_OF_MANY |= {"--version"}
# The same, said of many.
OF_OUTPUTS = {"--again", "--json", "--output", "--overwrite"}


def test_the_page_says_which_options_there_are_and_which_differ_from_protect() -> None:
    protect, of_batch = options_of("protect"), options_of("batch")
    rows = re.findall(r"^\| (`-.*?) \|", PAGE, flags=re.MULTILINE)
    table = {option for row in rows for option in re.findall(r"`(--[a-z-]+)", row)}
    assert table - set(protect) == set(of_batch) - set(protect)
    assert "It has no reports, no versions, no options for readings and no `--replace`." in PAGE
    assert set(protect) - set(of_batch) == NOT_OF_MANY
    assert "as [`trailveil protect`](protect.md) does with the same options" in PAGE
    for name in set(of_batch) & set(protect) - OF_OUTPUTS:
        assert of_batch[name].to_info_dict() == protect[name].to_info_dict(), name


# What no batch comes to: photos, places and versions that are stated.
NOT_IN_BATCH = {"traces/formats/exif.py", "ledger/places.py", "ledger/versions.py"}


def said_in(path: Path) -> set[str]:
    """All texts of a module, a letter for each value in them; those of documentation as well."""
    texts = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            texts.add("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
    return texts


def test_no_advice_names_an_option_that_a_batch_has_not() -> None:
    """But of another command, which is then named; two have a condition of their own."""
    known = {*options_of("batch"), "--replace", "--column"}
    for folder in ("batch", "files", "ledger", "release", "traces"):
        for path in sorted((ROOT / "trailveil" / folder).rglob("*.py")):
            if path.relative_to(ROOT / "trailveil").as_posix() in NOT_IN_BATCH:
                continue
            for text in said_in(path):
                own = re.sub(r"trailveil (?!batch)[a-z]+[^,;:)]*|--[^;:,]*\(of .*?\)", "", text)
                others = set(re.findall(r"--[a-z][a-z-]+", own)) - known
                assert not others, (path, text)
                assert "(-o)" not in own, (path, text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--everywhere", "--adversary", "plain"),
        (*AT_ONCE, "--near", "48.137,11.575,50", "--round-times", "60", "--shift-times"),
        (*AT_ONCE, "--at", "start+2m", "--every", "20", "--max-points", "12"),
    ],
)
def test_an_option_does_what_it_does_in_protect(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, source, out = tmp_path / "key", tmp_path / "ride.gpx", tmp_path / "out"
    new_key(key)
    text = gpx(ride(12, 30.0))
    source.write_bytes(re.sub(b"<time>.*?</time>", b"", text) if "--every" in words else text)
    for name, more in (("protect", (out / "alone.gpx",)), ("batch", (out, "--workers", "1"))):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / name))
        out.mkdir(exist_ok=True)
        given = [name, source, "-o", *more, "--key", key, *words]
        done = CliRunner().invoke(cli, [*map(str, given)])
        assert done.exit_code == 0, done.output
    assert len(set(outputs(out).values())) == 1
    assert len(outputs(out)) == 2


def test_everywhere_and_a_table_of_rules_or_times_are_not_both_meant(tmp_path: Path) -> None:
    rides, rules = fleet(tmp_path / "rides", 1), tmp_path / "rules.csv"
    rules.write_text("trace,radius\np0/r0000.gpx,300\n")
    words = ["batch", rides, "-o", tmp_path / "out", "--everywhere", "--rules", rules]
    done = CliRunner().invoke(cli, [*map(str, words)])
    assert done.exit_code == 2
    assert "--rules must come without --everywhere" in done.stderr
    assert not (tmp_path / "out").exists()
    both = Rules(Chosen(at=("start+1m",), ends=False), Request((), method=Method.EVERYWHERE))
    with pytest.raises(InvalidValue, match="state times or --everywhere, not both"):
        protect_frame(to_frame(ride(12, 30.0)), key=bytes(32), rules=both)


@pytest.mark.slow
def test_a_name_that_the_output_has_no_place_for_is_refused(tmp_path: Path) -> None:
    """As of protect: of one recording where its format is its own, of all where it is stated."""
    rides, out = fleet(tmp_path / "rides", 1), tmp_path / "out"
    table = to_frame(ride(12, 30.0, begin=BEGIN + 9 * DAY)).drop(columns=["track", "segment"])
    table.to_csv(rides / "other.csv", index=False)
    keep = ("--keep", "name")
    some = batch(rides, "-o", out, "--whole-files", *keep)
    assert some.returncode == 1
    assert some.stderr.startswith("other.csv: the output must be GPX, KML, KMZ or GeoJSON")
    assert some.stderr.count("\n") == 1
    assert set(outputs(out)) == {"p0/r0000.private.gpx"}
    written(rides / "more.gpx", ride(12, 30.0, begin=BEGIN + 8 * DAY))
    none = batch(rides, "-o", tmp_path / "none", "--suffix", ".csv", "--whole-files", *keep)
    assert (none.returncode, none.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "none").exists()
