"""For child processes of tests: whoever opens a file that is held back waits until it is not."""

import os
import sys
import time
from typing import Any


def _wait(event: str, about: tuple[Any, ...]) -> None:
    if event == "open" and not isinstance(about[0], int):
        folder, name = os.path.split(os.fspath(about[0]))
        while os.path.exists(os.path.join(folder, f".{name}.held")):  # noqa: PTH110, PTH118  # begins early
            time.sleep(0.02)


sys.addaudithook(_wait)
