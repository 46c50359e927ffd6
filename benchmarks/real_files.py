"""A table of recordings: each file, whether it is protected or refused, and why.

    python -m benchmarks.real_files FOLDER [--adversary still]

Each file of a suffix that is read is cleaned and its ends are protected, in memory: nothing is
written, nothing remembered. By default against the plain adversary and who sees stillness, which
takes minutes for hundreds of files; --adversary default makes the noise as `protect` does.
"""

import argparse
import time
from collections import Counter
from pathlib import Path

from trailveil.adversaries import named
from trailveil.drawing import draw
from trailveil.errors import TrailveilError
from trailveil.formats.table import FORMATS
from trailveil.loading import load
from trailveil.protecting import requested
from trailveil.release import plan
from trailveil.request import Request
from trailveil.selection import Chosen

FOLDER = Path(__file__).parents[2] / "shared" / "traces"


def outcome(path: Path, request: Request) -> tuple[str, str]:
    """One word, and what there is to say."""
    try:
        trace, cleaning = load(path, assume_utc=True)
        made = plan(trace, requested(trace, Chosen(), request))
        draw(made, bytes(32))
    except TrailveilError as error:
        return "refused", str(error).replace(str(path), path.name)
    lost = cleaning.recorded - cleaning.kept
    return "protected", f"{len(trace)} fixes" + (f", {lost} left out" if lost else "")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--adversary", default="still")
    arguments = parser.parse_args()
    suffixes = {suffix for row in FORMATS for suffix in row.suffixes}
    request = Request((), who=named([arguments.adversary]))
    counts: Counter[str] = Counter()
    began = time.monotonic()
    for path in sorted(arguments.folder.rglob("*")):
        if path.is_file() and path.suffix.lower() in suffixes:
            word, why = outcome(path, request)
            counts[word] += 1
            print(f"{path.relative_to(arguments.folder)}\t{word}\t{why}", flush=True)
    told = ", ".join(f"{number} {word}" for word, number in counts.items()) or "no recordings"
    print(f"{told}, in {time.monotonic() - began:.0f} s: {arguments.folder.name}")


if __name__ == "__main__":
    main()
