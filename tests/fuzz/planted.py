"""Targets with faults, so that the driver is seen to find every kind: by number."""

import os
import time
import warnings
from pathlib import Path
from signal import SIG_BLOCK, SIGPROF, pthread_sigmask

from tests.fuzz.inputs import Input
from tests.fuzz.judging import ACCEPTED, judged
from trailveil.errors import UnreadableInput

FAULTS = ("sound", "lookup", "hang", "hog", "warning", "told", "traceback", "killed", "deaf")


def made(group: str, seed: int, number: int, real: Path | None) -> Input:
    """An input whose kind is the name of a fault."""
    return Input("planted", FAULTS[number % len(FAULTS)], {"input.gpx": b"46.123456,7.654321"})


def run(one: Input) -> str:
    """Do what the kind says."""
    if one.kind == "lookup":
        raise KeyError(one.kind)
    if one.kind == "hang":
        while True:
            time.process_time()
    if one.kind == "hog":
        return ACCEPTED if len(b"x" * 300_000_000) else ""
    if one.kind == "warning":
        warnings.warn("shown to whoever runs it", RuntimeWarning, stacklevel=1)
    if one.kind == "killed":
        os.kill(os.getpid(), 9)
    if one.kind == "deaf":
        pthread_sigmask(SIG_BLOCK, {SIGPROF})
        time.sleep(600)
    texts = {"told": "must be a number, got 46.123456", "traceback": "Traceback\n..."}
    return judged(lambda: _refused(texts[one.kind]), one.content) if one.kind in texts else ACCEPTED


def _refused(text: str) -> None:
    raise UnreadableInput(text)


def warm(group: str) -> None:
    """There is nothing to import."""
