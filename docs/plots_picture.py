"""Draws docs/images/plots.png: the pictures of docs/plots.md, by its own examples. Run.

Python docs/plots_picture.py.
"""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from trailveil.plots import covariance, posterior, trace, trade_off
from trailveil.release.drawing import draw

HERE = Path(__file__).parent
TARGET = HERE / "images" / "plots.png"
# For a picture of an invented day only: a seed that is known protects nothing.
SEED = bytes(32)


def main() -> None:
    """Run the examples for what they make, and draw it side by side."""
    made: dict[str, Any] = {}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in re.findall(r"```python\n(.*?)```", (HERE / "plots.md").read_text(), re.DOTALL):
            exec(block, made)  # noqa: S102 - our own examples
        os.chdir(before)
    plan = made["made"]
    released, _ = draw(plan, SEED)
    figure = Figure(figsize=(10.5, 6.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.1, 1])
    upper_left, lower_left = left.subplots(2, 1, height_ratios=[1.5, 1])
    trace(made["day"], released, ax=upper_left)
    east = plan.frame.to_lattice(released.positions)[:, 0] / 1e6
    prior = made["Prior"](plan.request.kernel, made["day"].seconds)
    posterior(prior, plan.mechanism, east, truth=made["true"], ax=lower_left)
    lower_left.set_ylabel("metres east")
    heat, draws, cost = right.subplots(3, 1, height_ratios=[1.3, 1, 1])
    covariance(plan.mechanism, generator=np.random.default_rng(1), ax=(heat, draws))
    trade_off(made["designed"], [0.25, 0.5, 1, 2, 4], ax=cost)
    figure.savefig(TARGET, dpi=90, metadata={"Software": None})


if __name__ == "__main__":
    main()
