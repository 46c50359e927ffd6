"""How much of the program a command loads."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST = 50
EXAMPLES = [
    line.removeprefix("$ trailveil ")
    for line in (ROOT / "docs/commands/design.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("$ trailveil design")
]
COUNT = """
import sys
from trailveil.cli import main
try:
    main()
finally:
    print(sum(name.split(".")[0] == "trailveil" for name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize("example", EXAMPLES)
def test_design_loads_few_modules(example: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", COUNT, *shlex.split(example)]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert int(done.stderr.split()[-1]) <= MOST
