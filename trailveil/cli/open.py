"""`trailveil open IN`: choose what to protect on a page that this machine alone serves."""

import webbrowser
from pathlib import Path
from typing import Any

import click

from trailveil.cli.options import owning, timing
from trailveil.errors import Unavailable, installing
from trailveil.files.keys import load_key
from trailveil.ledger import user_ledger
from trailveil.ledger.identity import ME
from trailveil.page.app import basemap
from trailveil.page.opened import Opened, opened
from trailveil.traces.formats.table import check_writable, default_output

EXAMPLE = """Examples:

\b
  trailveil open
  trailveil open ride.gpx
  trailveil open ride.gpx --no-browser --port 8765"""

# What `protect` is told by the same option.
_SAME = {
    "output": "-o",
    "zone": "--tz",
    "every": "--every",
    "assume_utc": "--assume-utc",
    "key": "--key",
    "subject": "--subject",
    "limit": "--total-epsilon",
}


@click.command("open", epilog=EXAMPLE)
@click.argument("source", metavar="[IN]", required=False, type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: IN.private.SUFFIX.")
@timing
@owning
@click.option(
    "--port",
    type=click.IntRange(1024, 65535),
    help="Where on this machine it is served; default: any that is free.",
)
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option(
    "--basemap",
    "template",
    metavar="URL",
    help="Fetch a map, such as https://HOST/{z}/{x}/{y}.png: its server learns roughly where.",
)
def open_page(source: Path | None, **options: Any) -> None:
    """Choose on a map what to protect, see what it costs, and save the release.

    The page is served on this machine, to one browser, and no file leaves it. What is saved is what
    trailveil protect writes. Without IN the page asks for a file, and saves the release in this
    folder. It ends with its button Done, with Ctrl-C, or after an idle hour.
    """
    try:
        from trailveil.page.serving import serve
    except ImportError as error:
        raise Unavailable(
            "the page must have a server (starlette, uvicorn), got an installation without; say: "
            f"{installing('page')}"
        ) from error
    tiles = None if options["template"] is None else basemap(options["template"])
    output: Path | None = options["output"]
    if source is None:
        recording = None
    else:
        recording = _opened(source, output or default_output(source), options)
        # That it exists is no reason not to look: the page asks before it is replaced.
        check_writable(recording.output, *recording.read, overwrite=True)
    if tiles is not None:
        click.echo(f"--basemap: {tiles.notice}")

    def choose(name: str, content: bytes) -> Opened:
        file = Path(name)
        target = output or default_output(file, content)
        check_writable(target, overwrite=True)
        return _opened(file, target, options, content)

    def ready(address: str) -> None:
        click.echo(f"Open for you alone, once: {address}\nCtrl-C ends it.")
        if not options["no_browser"]:
            webbrowser.open(address)

    try:
        serve(recording, ready, choose=choose, port=options["port"] or 0, basemap=tiles)
    except KeyboardInterrupt:
        click.echo()
    click.echo("Ended.")


def _opened(
    source: Path, output: Path, options: dict[str, Any], content: bytes | None = None
) -> Opened:
    key_file: Path | None = options["key"]
    return opened(
        *(source, output, user_ledger()),
        content=content,
        assume_utc=options["assume_utc"],
        zone=options["zone"],
        every=options["every"],
        subject=options["subject"],
        key=None if key_file is None else load_key(key_file),
        key_file=key_file,
        limit=options["limit"],
        options=_words(options),
    )


def _words(options: dict[str, Any]) -> tuple[str, ...]:
    """The options that `protect` shares, as they were stated."""
    words: list[str] = []
    for name, option in _SAME.items():
        value = options[name]
        if value is True:
            words.append(option)
        elif value not in (None, False) and (name, value) != ("subject", ME):
            words += [option, f"{value}"]
    return tuple(words)
