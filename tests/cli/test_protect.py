"""`trailveil protect` as a process: stopped at every step, in odd places, with odd names."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Sweep
from tests.rides import PATIENCE, command, environment, ride, run, written
from trailveil.cli import main
from trailveil.cli import waiting as module
from trailveil.cli.waiting import waiting

TRACE = ride(30, 30.0)
# Runs the program, and sends it a signal at the Nth of the steps that change a file system.
STOPPED = """
import os, signal, sys
from pathlib import Path
left, number = int(sys.argv.pop(1)), int(sys.argv.pop(1))
# It is ignored where tests run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)
def watched(function):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)
        return function(*arguments, **options)
    return call
for owner, name in ((os, "fsync"), (os, "link"), (os, "replace"), (os, "chmod"), (os, "unlink")):
    setattr(owner, name, watched(getattr(owner, name)))
from trailveil.cli import main
try:
    main()
finally:
    print("left", left, file=sys.stderr)
"""
MOST_STEPS = 24

pytestmark = pytest.mark.slow

# Of a quarter of an hour something is left.
AT_ONCE = ("--radius", "20", "--activity", "drive")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return written(folder / "ride.gpx", TRACE)


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """The program in this process: quicker than one of its own, and the same but for signals."""
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def called(*words: str | Path) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["trailveil", *(os.fspath(word) for word in words)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(words, ended.value.code, *capfd.readouterr())

    return called


def refused(process: subprocess.CompletedProcess[str], status: int = 1) -> str:
    assert process.returncode == status, process.stderr
    assert "Traceback" not in process.stderr
    assert process.stdout == ""
    if status == 1:
        assert len(process.stderr.splitlines()) == 1
    return process.stderr


def stopped_at(step: int, number: int, source: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-c",
            STOPPED,
            str(step),
            str(number),
            "protect",
            os.fspath(source),
            *AT_ONCE,
        ],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_at_any_step(number: int, source: Path, sweep: Sweep) -> None:
    data, output = source.read_bytes(), source.with_name("ride.private.gpx")
    whole = None
    steps = 0
    for step in sweep(range(1, MOST_STEPS), short=9):
        output.unlink(missing_ok=True)
        completed = stopped_at(step, number, source)
        assert source.read_bytes() == data
        if output.exists():  # whole, and the same each time
            assert output.read_bytes().endswith(b"</gpx>\n")
            assert whole in (None, output.read_bytes())
            whole = output.read_bytes()
        files = {path.name for path in source.parent.iterdir()} - {"ride.gpx", "ride.private.gpx"}
        if number == signal.SIGKILL:
            assert all(name.startswith(".trailveil-") for name in files)
            for name in files:
                (source.parent / name).unlink()
        else:
            assert files == set()
            assert "Traceback" not in completed.stderr
        if completed.returncode == 0:
            break
        steps += 1
    assert steps >= 3  # it was stopped in earnest
    assert run("protect", source, *AT_ONCE, "--overwrite").returncode == 0
    assert whole in (None, output.read_bytes())


def test_of_two_different_runs_at_once_one_wins(source: Path) -> None:
    """With noise: of two cuts, the longer one tells nothing that the shorter one has not told."""
    outputs = [source.with_name(f"{i}.gpx") for i in (1, 2)]
    noise = ("--mechanism", "noise")
    runs = [
        subprocess.Popen(
            command("protect", source, *AT_ONCE, *noise, "-o", output, "--epsilon", str(i)),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, output in enumerate(outputs, start=1)
    ]
    errors = [run.communicate(timeout=PATIENCE)[1] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 1], errors
    for process, output, error in zip(runs, outputs, errors, strict=True):
        assert output.exists() == (process.returncode == 0)
        assert ("must be released once" in error) == (process.returncode == 1)


PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


# Names that are hard wherever they are in the plain locale alone, which takes none for granted.
@pytest.mark.parametrize(
    ("name", "locale"),
    [
        ("my ride.gpx", PLAIN),
        ("a\nb.gpx", PLAIN),
        ("-x.gpx", PLAIN),
        ("\u00fc\u6f22.gpx", PLAIN),
        ("\u00fc\u6f22.gpx", {}),
        ("\udcff.gpx", PLAIN),
        ("\udcff.gpx", {}),
    ],
)
def test_names_and_locales(name: str, locale: dict[str, str], source: Path) -> None:
    path = source.with_name(name)
    path.write_bytes(source.read_bytes())
    words = [os.fsencode(word) for word in ("protect", "--json", *AT_ONCE, "--", os.fspath(path))]
    for status in (0, 1):
        completed = subprocess.run(
            [os.fsencode(word) for word in command()] + words,
            env=environment(locale),
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
        assert completed.returncode == status, completed.stderr
        if status == 0:
            assert json.loads(completed.stdout)["output"]
        else:
            assert b"must not exist yet" in completed.stderr
            assert len(completed.stderr.splitlines()) == 1
    assert path.with_name(path.stem + ".private.gpx").exists()


def test_text_is_printed_whatever_the_locale(source: Path) -> None:
    path = source.with_name("\u00fc.gpx")
    path.write_bytes(source.read_bytes())
    completed = run("protect", path, *AT_ONCE, env=PLAIN)
    assert completed.returncode == 0, completed.stderr
    assert "Not protected: " in completed.stdout


def test_a_reader_that_has_gone(source: Path) -> None:
    for target, status in (("| true", 0), (">/dev/full", 1), (">&-", 0)):
        output = source.with_name("out.gpx")
        line = " ".join(
            [
                f"'{word}'"
                for word in command("protect", source, *AT_ONCE, "-o", output, "--overwrite")
            ]
        )
        completed = subprocess.run(
            ["bash", "-c", f"{line} {target}"],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert "Traceback" not in completed.stderr
        assert "Exception ignored" not in completed.stderr
        assert completed.returncode == status, target
        assert output.exists()


def test_a_disk_that_is_full(source: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); "
    completed = subprocess.run(
        [
            sys.executable,
            "-c",
            limit + "from trailveil.cli import main; main()",
            "protect",
            source,
            *AT_ONCE,
        ],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert "the ledger must be writable" in refused(completed)
    assert [path.name for path in source.parent.iterdir()] == ["ride.gpx"]
    # What never appeared is not remembered: another release is no second one.
    assert run("protect", source, *AT_ONCE, "--epsilon", "2").returncode == 0


def test_places_that_are_none(source: Path, tmp_path: Path, call: Call) -> None:
    cases: list[tuple[tuple[str | Path, ...], str]] = [
        ((tmp_path,), "got a directory"),
        ((".",), "got a folder"),
        ((tmp_path / "none.gpx",), "a file that exists"),
        ((source / "x.gpx",), "error 'Not a directory'"),
        ((tmp_path / ("x" * 300 + ".gpx"),), "File name too long"),
        ((source, "-o", tmp_path), "got the suffix"),
        ((source, "-o", tmp_path / "none" / "a.gpx"), "a folder that exists"),
        ((source, "-o", "/proc/a.gpx"), "must be writable"),
        ((source, "-o", source.with_name("a.txt")), "got the suffix"),
        ((source, "-o", source), "a file of its own"),
        ((source, "--report", source), "a file of its own"),
        (
            (source, "-o", source.with_name("a.gpx"), "--report", source.with_name("A.GPX")),
            "its own",
        ),
        ((source, "--report", "/dev/null", "--overwrite"), "got a device"),
        ((source, "--private-report", source.with_name("a.html")), "PRIVATE"),
        ((source, "--private-report", source.with_name("a.json")), "PRIVATE"),
        ((source, "--private-report", source.with_name("PRIVATE.txt")), "must be a page"),
    ]
    for words, what in cases:
        line = refused(call("protect", *words, *AT_ONCE))
        assert re.search(what, line), line
    assert [path.name for path in source.parent.iterdir()] == ["ride.gpx"]


def test_no_home(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for env in (
        {"XDG_STATE_HOME": os.fspath(tmp_path / "file" / "x")},
        {"XDG_STATE_HOME": "/proc/x"},
    ):
        assert "the state folder must be usable" in refused(
            run("protect", source, *AT_ONCE, env=env)
        )
    bare = {"XDG_STATE_HOME": "", "LOCALAPPDATA": "", "HOME": os.fspath(tmp_path / "new")}
    assert run("protect", source, *AT_ONCE, env=bare).returncode == 0
    assert (tmp_path / "new" / ".local" / "state" / "trailveil" / "key").exists()


@pytest.mark.parametrize("option", ["--radius", "--epsilon", "--order", "--withhold"])
@pytest.mark.parametrize("value", ["nan", "inf", "-1", "x", "1e400"])
def test_numbers_that_are_none(option: str, value: str, source: Path, call: Call) -> None:
    completed = call("protect", source, "--activity", "drive", option, value)
    assert completed.returncode in (1, 2)
    assert "Traceback" not in completed.stderr
    assert not source.with_name("ride.private.gpx").exists()


def test_a_report_for_others(source: Path) -> None:
    report = source.with_name("report.json")
    completed = run("protect", source, *AT_ONCE, "--at", "start+5m", "--report", report, "--json")
    assert completed.returncode == 0, completed.stderr
    public, private = json.loads(report.read_bytes()), json.loads(completed.stdout)
    assert not public["private"]
    assert private["private"]
    assert "2024-05-14" not in report.read_text(encoding="utf-8")
    assert "2024-05-14" in completed.stdout
    assert "must not exist yet" in refused(
        run("protect", source, *AT_ONCE, "-o", source.with_name("b.gpx"), "--report", report)
    )


# Work that ends so many seconds later, or once something was shown of it.
WAITS = """
import sys, threading
from trailveil.cli import waiting as module
shown, echo = threading.Event(), module.click.echo
def told(*words, **options):
    echo(*words, **options)
    shown.set()
module.click.echo, module._PATIENCE = told, float(sys.argv[1])
with module.waiting("thinking"):
    shown.wait(float(sys.argv[2]))
"""


def on_a_terminal(patience: float, work: float) -> bytes:
    """What `waiting` shows on a terminal of work, in seconds, with such patience."""
    words = [sys.executable, "-c", WAITS, str(patience), str(work)]
    parent, child = pty.openpty()
    subprocess.run(words, env=environment(), stderr=child, check=True)
    os.close(child)
    shown = b""
    try:
        while piece := os.read(parent, 4096):
            shown += piece
    except OSError:
        pass  # so a terminal ends
    os.close(parent)
    return shown


def test_waiting_is_shown_on_a_terminal_only_and_only_when_it_is_long(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert re.search(rb"thinking: \d+ s", on_a_terminal(0.3, PATIENCE))
    assert on_a_terminal(3600.0, 0.5) == b""
    monkeypatch.setattr(module, "_PATIENCE", 0.0)
    with waiting("thinking"):
        time.sleep(0.5)
    assert capfd.readouterr() == ("", "")
