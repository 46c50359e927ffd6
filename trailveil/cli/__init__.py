"""The command line: one file a command, each of which parses, calls and prints.

Commands are imported when they are asked for, so that `trailveil --help` is quick.
"""

import contextlib
import io
import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click

from trailveil.errors import TrailveilError
from trailveil.gp.threads import keep_one_thread
from trailveil.version import __version__

# Name of the command: its module and function, and its one line in `trailveil --help`.
COMMANDS = {
    "protect": ("trailveil.cli.protect:protect", "Protect a recording: the main job."),
    "open": ("trailveil.cli.open:open_page", "The main job on a page, with a map."),
    "batch": ("trailveil.cli.batch:batch", "Protect many recordings: a fleet, a study."),
    "live": ("trailveil.cli.live:live", "Protect fixes as they come, line by line."),
    "audit": ("trailveil.cli.audit:audit", "Does a released file give anything else away?"),
    "verify": ("trailveil.cli.verify:verify", "Does what a release promises hold? Prove it anew."),
    "design": ("trailveil.cli.design:design", "What would it cost? Design noise without a trace."),
    "fit": ("trailveil.cli.fit:fit", "Fit a prior to recordings."),
    "calibrate": ("trailveil.cli.calibrate:calibrate", "Does a prior hold on real recordings?"),
    "compare": ("trailveil.cli.compare:compare", "Which mechanism protects best, at what cost?"),
    "reproduce": ("trailveil.cli.reproduce:reproduce", "The paper's figures, computed anew."),
    "place": ("trailveil.cli.place:place", "Name places that come back, such as home."),
    "ledger": ("trailveil.cli.ledger:ledger", "What was released, and what it adds up to."),
    "key": ("trailveil.cli.key:key", "Make a key that makes releases repeatable."),
    "demo": ("trailveil.cli.demo:demo", "The main job end to end, on a day it makes up."),
}


class LazyGroup(click.Group):
    """A group whose commands are known by name and imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command; None where there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        keep_one_thread()  # before numpy is loaded
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), name)
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Example: trailveil protect ride.gpx",
)
@click.version_option(__version__, prog_name="trailveil")
def cli() -> None:
    """Release a location trace, or any series, so that what is sensitive in it cannot be inferred.

    Exit status: 0 done, 1 refused (one line on stderr says why and what to do), 2 wrong usage.
    """


def main() -> NoReturn:
    """Run the command line; every error raised on purpose becomes one line on stderr."""
    prepare()
    try:
        # Without standalone mode click returns the status of an Exit in place of raising it.
        status = cli.main(prog_name="trailveil", standalone_mode=False)
    except click.ClickException as error:
        say_wrong_usage(error)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _fail(STOPPED, 130)
    except TrailveilError as error:
        _fail(str(error), 1)
    except BrokenPipeError:
        close_output()  # whoever read the output has closed it: leave quietly
        sys.exit(1)
    except OSError as error:
        close_output()
        _fail(f"the report must be printable, got the error '{error.strerror}'", 1)
    except MemoryError:
        _fail("the computation must fit in memory, got more than this machine has: shorten it", 1)
    except ArithmeticError as error:
        _fail(
            f"the numbers must be such that can be reckoned with, got {type(error).__name__}: "
            "state none so large or so small",
            1,
        )
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> NoReturn:
    say(message)
    sys.exit(status)


STOPPED = "stopped; no file was left half-written"
"""What is said of a run that was told to end."""

_LONGEST = 600  # characters of what is said of wrong usage, which repeats what was typed


def prepare() -> None:
    """Print any name in any locale, and leave nothing behind when told to end."""
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _end)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is signal.SIG_DFL:  # nohup ignores it
        signal.signal(hangup, _end)


def say(message: str) -> None:
    """One line on stderr, where anybody listens."""
    line = "".join(c if c.isprintable() else "?" for c in " ".join(map(_short, message.split())))
    with contextlib.suppress(OSError):
        click.secho(f"trailveil: {line}", fg="red", err=True)


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else word[:_LONGEST] + "..."


def say_wrong_usage(error: click.ClickException) -> None:
    """The usage and what is wrong with it, with nothing in it that a terminal would act on."""
    text = io.StringIO()
    error.show(text)
    lines = text.getvalue().splitlines()
    shown = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]
    if len(shown[-1]) > _LONGEST:
        shown[-1] = shown[-1][:_LONGEST] + "..."
    with contextlib.suppress(OSError):
        click.echo("\n".join(shown), err=True)


def close_output() -> None:
    """Let no flush complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_what_is_closed() -> None:
    """Give a stream that is closed the null device: the next file opened would take its number."""
    for number, mode in enumerate(("r", "w", "w")):
        try:
            os.fstat(number)
        except OSError:
            taken = os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
            if taken != number:
                os.dup2(taken, number)
                os.close(taken)
    if sys.stdin is None:
        sys.stdin = _null(0, "r")
    if sys.stdout is None:
        sys.stdout = _null(1, "w")
    if sys.stderr is None:
        sys.stderr = _null(2, "w")


def _null(number: int, mode: str) -> io.TextIOWrapper:
    raw = io.FileIO(number, mode, closefd=False)
    buffer = io.BufferedReader(raw) if mode == "r" else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, encoding="utf-8", errors="backslashreplace")


def _end(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # once is enough: what is begun is cleared away now
    with contextlib.suppress(OSError):  # not through a stream, which may be in the act of writing
        os.write(2, f"trailveil: {STOPPED}\n".encode())
    sys.exit(128 + number)
