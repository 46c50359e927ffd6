"""A table of recordings: each file, whether it is protected or refused, and why.

    python -m benchmarks.real_files FOLDER [--mechanism noise]

Each file of a suffix that is read is cleaned and its ends are protected, in memory: nothing is
written, nothing remembered. Last come the reasons for refusals, and the slowest files.
"""

import argparse
import re
import time
from collections import Counter
from pathlib import Path

from trailveil.errors import TrailveilError
from trailveil.release.drawing import draw
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.loading import load
from trailveil.traces.selection import Chosen

FOLDER = Path(__file__).parents[2] / "shared" / "traces"


def outcome(path: Path, request: Request) -> tuple[str, str]:
    """One word, and what there is to say."""
    try:
        trace, cleaning = load(path, assume_utc=True)
        made = protect(trace, requested(trace, Chosen(), request))
        draw(made, bytes(32))
    except TrailveilError as error:
        return "refused", str(error).replace(str(path), path.name)
    lost = cleaning.recorded - cleaning.kept
    return "protected", f"{len(trace)} fixes" + (f", {lost} left out" if lost else "")


def reason(why: str) -> str:
    """A refusal without names, numbers and advice, so that alike ones count together."""
    words = re.sub(r"^\S+: |: \S+$", "", why.split(";")[0])
    return re.sub(r"[-+]?\d[\d.,:T+-]*", "N", words)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--mechanism", default="cut", choices=["cut", "noise", "both"])
    arguments = parser.parse_args()
    suffixes = {suffix for row in FORMATS for suffix in row.suffixes}
    request = Request((), method=Method(arguments.mechanism))
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    spent: dict[str, float] = {}
    for path in sorted(arguments.folder.rglob("*")):
        if path.is_file() and path.suffix.lower() in suffixes:
            name, began = str(path.relative_to(arguments.folder)), time.process_time()
            word, why = outcome(path, request)
            spent[name] = time.process_time() - began
            counts[word] += 1
            reasons.update([reason(why)] if word == "refused" else [])
            print(f"{name}\t{word}\t{spent[name]:.2f} s\t{why}", flush=True)
    for why, number in reasons.most_common():
        print(f"{number}\t{why}")
    for name in sorted(spent, key=spent.__getitem__, reverse=True)[:5]:
        print(f"{spent[name]:.2f} s\t{name}")
    total = ", ".join(f"{number} {word}" for word, number in counts.items()) or "no recordings"
    print(f"{total}, in {sum(spent.values()):.0f} s of processor time: {arguments.folder.name}")


if __name__ == "__main__":
    main()
