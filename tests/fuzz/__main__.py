"""Give mutated files to every reader, and to all of `trailveil protect`.

    python -m tests.fuzz --inputs 20000 --target all --seed 1 [--workers 2] [--save FOLDER]
    python -m tests.fuzz --target readers --seed 1 --replay 1234

Of an input that is no recording, nothing may come but one line that says so: no other error, no
warning, in bounded time and memory. It prints a table, and a line for each kind of fault with the
numbers that replay it; exit status 1 where there is any. Real recordings are mutated as well where
they are (../shared/traces, or --real FOLDER); a number means the same input only with the same
folder, or with --made.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path

from click import echo

from tests.fuzz import targets
from tests.fuzz.driver import Campaign, Found, Result, run, table
from tests.fuzz.seeds import REAL
from tests.fuzz.worker import FAULT, prepare


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--begin", type=int, default=0, help="the first number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--target", choices=("readers", "protect", "all"), default="all")
    parser.add_argument("--seconds", type=float, default=10.0, help="for one input")
    parser.add_argument("--mib", type=float, default=256.0, help="for one input")
    parser.add_argument("--real", type=Path, default=REAL if REAL.is_dir() else None)
    parser.add_argument("--made", action="store_true", help="mutate made-up files only")
    parser.add_argument("--save", type=Path, help="put the inputs of faults into this folder")
    parser.add_argument("--replay", type=int, metavar="N", help="run one input, here")
    return parser.parse_args()


def save(campaign: Campaign, number: int, folder: Path) -> None:
    """The files of an input, readable by their owner alone, and how it is replayed."""
    one = targets.made(campaign.group, campaign.seed, number, campaign.real)
    own = folder / f"{campaign.group}-{campaign.seed}-{number}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    own.mkdir(mode=0o700, exist_ok=True)
    words = " ".join(one.arguments or (one.target, one.kind, *one.wanted))
    for name, data in {**one.files, "arguments.txt": words.encode()}.items():
        path = own / name
        path.touch(mode=0o600)
        path.write_bytes(data)


def replay(campaign: Campaign, number: int) -> int:
    """Run one input in this process, and show the whole error."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        targets.warm(campaign.group)
        prepare(campaign.mib)
        one = targets.made(campaign.group, campaign.seed, number, campaign.real)
        echo(f"{one.target}: {one.kind}; {' '.join(one.arguments or one.wanted)}")
        try:
            echo(targets.run(one))
        except Exception:  # noqa: BLE001 - which one is what is asked
            traceback.print_exc()
            return 1
        finally:
            os.chdir("/")
    return 0


def told(found: Found) -> str:
    """A line for each kind of fault."""
    kinds: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for fault in found.faults:
        kinds[fault.target, fault.what].append(fault)
    return "\n".join(
        f"{len(ones)} x {target}: {what}; numbers {', '.join(str(one.number) for one in ones[:5])}"
        f" ({', '.join(sorted({one.kind for one in ones}))})"
        for (target, what), ones in kinds.items()
    )


def main() -> int:
    """Run what the arguments say."""
    stated = _arguments()
    campaign = Campaign(
        *(stated.target, stated.inputs, stated.seed, stated.workers, stated.seconds, stated.mib),
        real=None if stated.made else stated.real,
        begin=stated.begin,
    )
    if stated.replay is not None:
        return replay(campaign, stated.replay)
    began = time.monotonic()

    def tell(result: Result) -> None:
        if result.word == FAULT:
            echo(f"{result.number}: {result.target} {result.kind}: {result.what}", err=True)

    found = run(campaign, tell)
    echo(table(found))
    echo(f"\nseed {stated.seed}, {time.monotonic() - began:.0f} s")
    if found.faults:
        echo(told(found))
    with tempfile.TemporaryDirectory() as folder:
        here = Path.cwd()
        for one in found.faults if stated.save else ():
            os.chdir(folder)  # where an input is tried while it is made
            save(campaign, one.number, here / stated.save)
        os.chdir(here)
    return int(bool(found.faults))


if __name__ == "__main__":
    sys.exit(main())
