"""Commands called as click calls them: quicker than the program, and with the error at hand."""

from click.testing import CliRunner, Result

from trailveil.cli import cli
from trailveil.errors import TrailveilError


def run(*words: object, status: int | None = None) -> Result:
    """Call a command. status: what it must end with, if anything."""
    completed = CliRunner().invoke(cli, [*map(str, words)])
    assert status in (None, completed.exit_code), (completed.output, completed.exception)
    return completed


def done(*words: object) -> str:
    """What a command that succeeds prints."""
    return run(*words, status=0).stdout


def refused(*words: object) -> str:
    """The one line that a command is refused with."""
    error = run(*words).exception
    assert isinstance(error, TrailveilError), error
    assert "\n" not in str(error)
    return str(error)
