"""Run a comparison that is killed before its third portion: python -m ... SETTINGS FOLDER."""

import os
import signal
import sys
from pathlib import Path

from trailveil.studies.comparing import compare, running

if __name__ == "__main__":
    done = running.run_portion
    count = 0

    def dying(*given: object) -> object:
        global count  # noqa: PLW0603 - of this process, which ends
        count += 1
        if count > 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return done(*given)  # type: ignore[arg-type]  # as they came

    running.run_portion = dying  # type: ignore[assignment]  # dies in the end
    compare(Path(sys.argv[1]), folder=sys.argv[2])
