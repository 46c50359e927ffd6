"""The standard streams and signals of a run, whatever state it was started in."""

import contextlib
import io
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

import click

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
