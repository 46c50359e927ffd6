"""Every option of every command, found from click itself, given what it must not be given."""

import io
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from tests.conftest import Sweep
from tests.rides import ride, written
from trailveil.batch.inputs import find
from trailveil.cli import cli, main
from trailveil.errors import Unavailable
from trailveil.studies.experiments import covariances, figure2, nyc

LIMIT = 20  # seconds of processor time that any of these may take
QUICK = ("--activity", "drive", "--radius", "1")
KERNEL = ("--kernel", "rbf", "--length-scale", "2")
DESIGN = ("--points", "5", *KERNEL, "--secret", "2", "--budget", "1")
# Words that make a run of a command, which ends soon: slow ones end in an output that is a file.
# A command that is not here is run without any.
BASES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "protect": (QUICK, ["ride.gpx"]),
    "audit": ((), ["ride.gpx", "other.gpx"]),
    "verify": ((), ["report.json", "ride.gpx", "other.gpx"]),
    "design": (DESIGN, []),
    "fit": (["-o", "taken/prior.json"], ["ride.gpx"]),
    "calibrate": (["--kernel", "none"], ["ride.gpx"]),
    "reproduce covariances": (["--csv-only", "--out", "taken"], []),
    "reproduce figure2": (["--csv-only", "--out", "taken"], []),
    "reproduce nyc": (["--csv-only", "--out", "taken"], []),
    "place add": (["--near", "nowhere"], ["home"]),
    "place remove": ([], ["home"]),
    "ledger export": ([], ["out.jsonl"]),
    "key new": ([], ["new.key"]),
    "demo": (["-o", "taken"], []),
    "open": (["--no-browser"], ["ride.gpx"]),
    "batch": ([*QUICK, "-o", "taken"], ["ride.gpx"]),
    "compare": (["-o", "taken"], ["settings.toml"]),
    "ledger import": ([], ["ride.gpx"]),
}
TEXTS = [
    *("", "nan", "inf", "-inf", "-1", "0", "1e308", "1e-308", "5e-324", "9" * 400, "x", "5"),
    *("\u00e9\u6f22", "a\nb", "\x1b[31mred", "x" * 10_000, "\udcff", "--", "-", "1:2:3", "1,2,3"),
    *("nan,nan,nan", "1e308,1e308,1e308", "0@1/0", "0@1e308/1e308", "%s{}", "  ", ".."),
]
FILES = [
    *("none.gpx", "none/none.gpx", "folder", "pipe", "loop", "loop/x.gpx", "link.gpx", "hard.gpx"),
    *("ride.gpx", "empty", "noise", "deep.json", "dangling", "ride.gpx/x", "x" * 300, "x" * 5000),
    *("/dev/zero", "/dev/full", "/dev/null", "/proc/x.gpx", "", ".", "..", "-", "/", "\udcff.gpx"),
    *("a\nb\x1b[31m.gpx", "-x.gpx", "dev-full.json"),
]


def commands(of: click.Command = cli, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its name."""
    if not isinstance(of, click.Group):
        yield name, of
        return
    context = click.Context(of)
    for list_command in of.list_commands(context):
        command = of.get_command(context, list_command)
        assert command is not None
        yield from commands(command, f"{name} {list_command}".strip())


def cases(name: str, command: click.Command) -> Iterator[list[str]]:
    """A run for each wrong value of each parameter of a command."""
    options, arguments = BASES.get(name, ((), ()))
    places = [each.name for each in command.params if each.param_type_name == "argument"]
    for parameter in command.params:
        is_file = isinstance(parameter.type, click.Path) or parameter.name in ("prior", "priors")
        for value in FILES if is_file else TEXTS:
            words, values = list(options), list(arguments)
            if parameter.name in places:
                values[places.index(parameter.name)] = value
            elif isinstance(parameter, click.Option) and parameter.is_flag:
                words += [f"{parameter.opts[-1]}={value}"]
            else:
                words += [parameter.opts[-1], *[value] * parameter.nargs]
            yield [*name.split(), *words, "--", *values]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    source = written(folder / "ride.gpx", ride(12, 60.0))
    (folder / "other.gpx").write_bytes(source.read_bytes())
    (folder / "report.json").write_text("{}")
    (folder / "folder").mkdir()
    for name, data in (("taken", b"x"), ("empty", b""), ("noise", bytes(range(256)) * 9)):
        (folder / name).write_bytes(data)
    (folder / "deep.json").write_text("[" * 100_000, encoding="utf-8")
    os.mkfifo(folder / "pipe")
    for name, target in (("loop", "loop"), ("link.gpx", "ride.gpx"), ("dangling", "nowhere")):
        (folder / name).symlink_to(target)
    (folder / "dev-full.json").symlink_to("/dev/full")
    (folder / "hard.gpx").hardlink_to(source)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))  # of live
    for module in (covariances, nyc):  # a minute's work each, where the folder is a good one
        monkeypatch.setattr(module, "write", no_work)
    monkeypatch.setattr(figure2, "run", no_work)
    monkeypatch.setattr("trailveil.cli.demo.simulated_day", no_work)
    monkeypatch.setattr("trailveil.release.place_noise.place_noise", no_work)
    monkeypatch.setattr("trailveil.page.serving.serve", no_work)
    monkeypatch.setattr("trailveil.cli.batch._engine", no_work)
    monkeypatch.setattr("trailveil.cli.batch.find", found_here)
    return folder


def found_here(sources: Sequence[str], *more: Any) -> Any:
    """What a batch finds, but for all of the machine and other tests' folders."""
    return no_work() if {*map(str, sources)} & {"/", ".."} else find(sources, *more)


def no_work(*_: Any, **__: Any) -> None:
    """In place of what takes long; all that comes before is done."""
    raise Unavailable("the work must not be done here")


def ended(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """The status of a run in this process, as the shell would have it."""
    monkeypatch.setattr(sys, "argv", ["trailveil", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_wrong_arguments(
    name: str,
    command: click.Command,
    here: Path,
    sweep: Sweep,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = {path.name for path in here.iterdir()}
    source = (here / "ride.gpx").read_bytes()
    for words in sweep(list(cases(name, command)), short=40):
        began = time.process_time()
        status = ended(words, monkeypatch)
        errors = capfd.readouterr().err
        shown = [word[:60] for word in words]
        assert time.process_time() - began < LIMIT, shown
        assert status in (0, 1, 2), shown
        assert "Traceback" not in errors, shown
        assert "\x1b[31mr" not in errors, shown
        assert len(errors) < 2000, shown
        if status == 1:
            assert len(errors.splitlines()) == 1, (shown, errors)
        assert "48.13" not in errors, shown  # where the ride is
        assert "11.57" not in errors, shown
        created = {path.name for path in here.iterdir()} - before
        files = {name for name in created if (here / name).is_file()}
        assert not any(name.startswith(".trailveil-") for name in files), shown
        if status:
            assert files == set(), shown
        for entry in created:  # which the next run is not to meet
            if entry in files:
                (here / entry).unlink()
            else:
                shutil.rmtree(here / entry)
        assert (here / "ride.gpx").read_bytes() == source, shown


def test_a_place_with_spaces_is_not_repeated(
    here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["--near", "48.137,", "11.575,100"], ["-48.137,11.575,100"]):
        for command in (["place", "add", "home"], ["protect", "ride.gpx"]):
            assert ended([*command, *words], monkeypatch) == 2
            errors = capfd.readouterr().err
            assert "without spaces" in errors
            assert "11.575" not in errors


@pytest.mark.parametrize("subject", ["\udcff", "a\nb", "\x1b[31mred", "", "x" * 101])
def test_a_subject_that_cannot_be_printed(
    subject: str, here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended(["protect", "ride.gpx", *QUICK, "--subject", subject], monkeypatch) == 2
    assert "must be of 1 to 100 characters that can be printed" in capfd.readouterr().err
    assert not (here / "ride.private.gpx").exists()


@pytest.mark.parametrize(
    "option", ["--floor", "--steady-for", "--slow-for", "--withhold", "--radius"]
)
def test_a_number_that_is_none_is_wrong_usage(
    option: str, here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("nan", "inf", "-1"):
        assert ended(["protect", "ride.gpx", option, value], monkeypatch) == 2
        assert option in capfd.readouterr().err
    assert ended(["protect", "ride.gpx", option, "100m"], monkeypatch) == 2
    assert "must be a number, without a unit, got '100m'" in capfd.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--slow-for", "30"),
        ("--steady-for", "20"),
        ("--adversary", "plain"),
        ("--prior", "walk"),
        ("--slow-for", "30", "--version", "friends", "--radius", "50"),
    ],
)
def test_what_a_cut_does_not_reckon_with_is_not_passed_over(
    words: tuple[str, ...],
    here: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would promise the same metres to somebody whom it does not hide."""
    assert ended(["protect", "ride.gpx", *words], monkeypatch) == 2
    assert f"{words[0]} must come with --mechanism noise or both" in capfd.readouterr().err
    noisy = ["--mechanism", "both", *words]
    assert ended(["protect", "ride.gpx", *noisy], monkeypatch) != 2


@pytest.mark.parametrize("value", ["1e308", "1e31", "1e-308", "5e-324", "1e-31"])
def test_numbers_whose_squares_are_none(
    value: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for option in ("--std", "--budget", "--length-scale", "--floor", "--noise-std"):
        assert ended(["design", *DESIGN, option, value], monkeypatch) == 2
        assert "is not between 1e-30 and 1e+30" in capfd.readouterr().err
