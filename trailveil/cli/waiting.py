"""What only a terminal shows: sketches, colours, and what a long step does after two seconds."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import click

_PATIENCE = 2.0
_PERIOD = 0.2


def on_terminal(*, colours: bool = False) -> bool:
    """Whether stdout is a terminal that can show a sketch, or colours unless NO_COLOR is set."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return False
    if colours:
        return not os.environ.get("NO_COLOR")
    with contextlib.suppress(UnicodeEncodeError, LookupError):
        return bool("\u28ff\u2588".encode(sys.stdout.encoding))
    return False


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on stderr what is running and for how long."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(what, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(what: str, done: threading.Event) -> None:
    started = time.monotonic()
    shown = False
    while not done.wait(_PERIOD):
        elapsed = time.monotonic() - started
        if elapsed >= _PATIENCE:
            click.echo(f"\r{what}: {elapsed:.0f} s", nl=False, err=True)
            shown = True
    if shown:
        click.echo("\r" + " " * (len(what) + 12) + "\r", nl=False, err=True)


def watched(items: Iterable[Any], count: int, label: str) -> Iterator[Any]:
    """Pass items on, and show a progress bar on a terminal's stderr once it takes long.

    It says how many there are a second, and how long the rest takes.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    begin, bar = time.monotonic(), None

    def rate(done: int | None) -> str | None:
        return None if done is None else f"{done / (time.monotonic() - begin):.3g} a second"

    with contextlib.ExitStack() as open_bars:
        for done, item in enumerate(items, 1):
            yield item
            if bar is not None:
                bar.update(1, done)
            elif time.monotonic() - begin > _PATIENCE and done < count:
                progress: Any = click.progressbar(
                    range(count), label=label, file=sys.stderr, item_show_func=rate
                )
                bar = open_bars.enter_context(progress)
                bar.update(done, done)
