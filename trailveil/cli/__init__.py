"""The command line: one file a command, each of which parses, calls and prints.

Commands are imported when they are asked for, so that `trailveil --help` is quick.
"""

import sys
from importlib import import_module
from typing import NoReturn

import click

from trailveil.cli.streams import STOPPED, close_output, prepare, say, say_wrong_usage
from trailveil.errors import TrailveilError
from trailveil.threads import keep_one_thread
from trailveil.version import __version__

# Name of the command: its module and function, and its one line in `trailveil --help`.
COMMANDS = {
    "protect": ("trailveil.cli.protect:protect", "Protect a recording: the main job."),
    "open": ("trailveil.cli.open:open_page", "The main job on a page, with a map."),
    "batch": ("trailveil.cli.batch:batch", "Protect many recordings: a fleet, a study."),
    "audit": ("trailveil.cli.audit:audit", "Does a released file give anything else away?"),
    "verify": ("trailveil.cli.verify:verify", "Does what a release promises hold? Prove it anew."),
    "design": ("trailveil.cli.design:design", "What would it cost? Design noise without a trace."),
    "fit": ("trailveil.cli.fit:fit", "Fit a prior to recordings."),
    "calibrate": ("trailveil.cli.calibrate:calibrate", "Does a prior hold on real recordings?"),
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
    context_settings={"help_option_names": ["-h", "--help"]},
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
            f"the numbers must be such that can be reckoned with, got "
            f"{type(error).__name__}: state none so large or so small",
            1,
        )
    sys.exit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> NoReturn:
    say(message)
    sys.exit(status)
