"""The gallery: each example is run as somebody would run it, and shows what it draws."""

import ast
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "gallery"
ORDER = (
    *("cut", "noise", "price"),
    *("posterior", "covariance", "trade_off", "own_prior", "many_releases"),
)
# What is added to an example: its picture, with no date in it.
_SAVE = '\nfigure.savefig("picture.svg", metadata={"Date": None})\n'


def gallery(folder: Path) -> str:
    """A section for each example, as Markdown; the pictures are written to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        pictures = dict(zip(ORDER, pool.map(picture, ORDER), strict=True))
    for name, drawn in pictures.items():
        (folder / f"{name}.svg").write_bytes(drawn)
    return "\n\n".join(_section(name) for name in ORDER) + "\n"


def picture(name: str) -> bytes:
    """The picture of an example, which runs in a process, a folder and a home of its own.

    Raises RuntimeError with its last line where it fails.
    """
    program = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8") + _SAVE
    with tempfile.TemporaryDirectory() as home:
        homes = {"HOME": home, "XDG_DATA_HOME": home, "XDG_STATE_HOME": home, "MPLCONFIGDIR": home}
        root = {"PYTHONPATH": str(EXAMPLES.parents[1]), "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(  # noqa: S603 - our own examples
            [sys.executable, "-c", program],
            cwd=home,
            env=os.environ | homes | root,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()[-1]
            raise RuntimeError(f"the example {name} must run, got: {said}")
        return (Path(home) / "picture.svg").read_bytes()


def _section(name: str) -> str:
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    title, _, words = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    code = source.split('"""', 2)[2].strip()
    shown = f'<img src="gallery/{name}.svg" alt="{title}">'
    return f"## {title.rstrip('.')}\n\n{words.strip()}\n\n{shown}\n\n```python\n{code}\n```"
