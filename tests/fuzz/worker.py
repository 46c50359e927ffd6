"""One process that runs inputs in the order of their numbers, each in bounded time and memory.

    python -m tests.fuzz.worker MODULE GROUP SEED BEGIN STEP END SECONDS MIB [REAL]

It says a line of JSON for each: number, target, kind, outcome, seconds, peak in KiB, and for a
fault what and where. Seconds are of the processor: the machine may be busy. Whoever started it
looks at the clock as well, for what waits, or holds the interpreter.
MODULE has `made`, `run` and `warm` (tests.fuzz.targets).
"""

import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final, NoReturn

from tests.fuzz.judging import Fault

FAULT: Final = "fault"
_HEADROOM = 512 * 2**20
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class TookTooLong(BaseException):
    """The time of an input is over. No Exception, so that no reader takes it for damage."""


def _ring(_: int, __: FrameType | None) -> NoReturn:
    raise TookTooLong


def memory(name: str) -> int:
    """KiB of a line of the status of this process, such as VmRSS; of the whole run elsewhere."""
    try:
        text = _STATUS.read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(text.split(f"{name}:")[1].split()[0])


def _forget_peak() -> None:
    if _RESET.exists():
        _RESET.write_text("5")


def place_of(error: BaseException) -> str:
    """The innermost line of this repository that an error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/trailveil/" in frame.filename]
    last = (own or frames)[-1]
    return f"{'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"


def outcome(plan: ModuleType, one: Any, seconds: float, mib: float) -> list[Any]:
    """Target, kind, outcome, seconds, peak and what was wrong, of an input."""
    _forget_peak()
    before, began = memory("VmRSS"), time.process_time()
    word, what = FAULT, ""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        word = plan.run(one)
        signal.setitimer(signal.ITIMER_PROF, 0)
    except TookTooLong as error:
        what = f"took more than {seconds:g} s at {place_of(error)}"
    except Fault as error:
        what = f"{error} from {place_of(error)}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is a fault and is told
        what = f"{type(error).__name__} at {place_of(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    took, peak = time.process_time() - began, max(0, memory("VmHWM") - before)
    if word != FAULT and peak > mib * 1024:
        word, what = FAULT, f"took more than {mib:g} MiB"
    return [one.target, one.kind, word, round(took, 4), peak, what]


def prepare(mib: float) -> None:
    """Warnings are errors, clocks ring, and memory ends."""
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _ring)
    most = memory("VmSize") * 1024 + int(mib * 2**20) + _HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: Sequence[str]) -> None:
    """Run the numbers from BEGIN on, before END, by STEP."""
    module, group, seed, begin, step, end, seconds, mib, *real = arguments
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    plan = import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        plan.warm(group)
        prepare(float(mib))
        told.write("\n")  # it is ready
        told.flush()
        for number in range(int(begin), int(end), int(step)):
            one = plan.made(group, int(seed), number, Path(real[0]) if real else None)
            found = outcome(plan, one, float(seconds), float(mib))
            told.write(json.dumps([number, *found]) + "\n")
            told.flush()
        os.chdir("/")
    told.close()


if __name__ == "__main__":
    main(sys.argv[1:])
