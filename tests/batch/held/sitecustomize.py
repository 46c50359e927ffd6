"""For child processes of tests: whoever reads a file that is held back waits until it is not."""

import os
import sys
import time
from typing import Any


def _wait(event: str, about: tuple[Any, ...]) -> None:
    # Only `trailveil.files.source.load` waits: others look at the first bytes alone.
    if event == "open" and sys._getframe(1).f_code.co_name == "load":  # who opens it
        folder, name = os.path.split(os.fspath(about[0]))
        while os.path.exists(os.path.join(folder, f".{name}.held")):  # noqa: PTH110, PTH118  # begins early
            time.sleep(0.02)


sys.addaudithook(_wait)
