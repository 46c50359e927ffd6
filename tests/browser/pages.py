"""`trailveil open` as a real process, for a browser."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.rides import PATIENCE, command, environment


@dataclass
class Opened:
    """A running page: its process, the address that opens it once, and what it said first."""

    process: subprocess.Popen[str]
    address: str
    said: str

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return self.address.split("/?")[0]

    def rest(self) -> str:
        """What it says until it ends by itself, errors included."""
        return self.process.communicate(timeout=PATIENCE)[0]


@contextmanager
def opened(source: Path | None, *options: str) -> Iterator[Opened]:
    """The program on a recording, stopped at the end if it still runs."""
    with subprocess.Popen(
        command("open", *([] if source is None else [source]), "--no-browser", *options),
        env=environment({"PYTHONUNBUFFERED": "1"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        said = ""
        try:
            for line in process.stdout or ():
                said += line
                if found := re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line):
                    yield Opened(process, found[0], said)
                    break
            else:
                raise AssertionError(f"the page did not open: {said}")
        finally:
            if process.poll() is None:
                process.kill()
