"""The covariance figure of the paper: what the noise looks like, as heat maps and as draws.

Independent noise (on every point, on one secret, on two), and the noise for an RBF prior (effective
length scale 6.1: one value in the middle, two adjacent, all) and for a periodic one (1.1: one value
in the middle, 16 and 32, all): once the paper's mechanism, once our optimum. The draws are pictures
of noise, made from a seed: they protect nothing.
"""

from collections.abc import Iterator
from random import Random

import numpy as np

from trailveil.designer.columns import symmetric_root
from trailveil.gp.gaussian import FloatArray
from trailveil.plots import NoiseCase, covariances
from trailveil.studies.experiments.folder import Folder, table
from trailveil.studies.experiments.scenes import SCENES, mechanism

SCALE_OF = {"rbf": 6.1, "periodic": 1.1}
DESIGNS = {"paper": ("sdp", "the paper's mechanism"), "optimum": ("optimum", "our optimum")}
_DRAWS = 3
_SECRETS = {"basic": "one value", "compound": "two values", "all": "every value"}


def files(*, drawn: bool) -> list[str]:
    """The names of what is written."""
    names = ["covariances.csv", "covariances-draws.csv"]
    pictures = [f"covariances-{name}.{end}" for name in DESIGNS for end in ("png", "svg")]
    return names + pictures * drawn


def cases(design: str) -> list[NoiseCase]:
    """The columns of one picture: three of independent noise, six of the mechanism."""
    name = DESIGNS[design][0]
    noise_cases = [
        _case("independent\non every point", "rbf basic", "uniform"),
        _case("independent\non the secret", "rbf basic", "concentrated"),
        _case("independent\non both secrets", "rbf compound", "concentrated"),
    ]
    for scene in SCENES:
        kernel, secret = scene.split()
        shown = "RBF" if kernel == "rbf" else kernel
        noise_cases.append(_case(f"{shown}\n{_SECRETS[secret]}", scene, name))
    return noise_cases


def write(folder: Folder, *, drawn: bool, overwrite: bool) -> None:
    """Write the tables and, where `drawn`, the pictures."""
    cases_by_design = {design: cases(design) for design in DESIGNS}
    named = [
        (design, column.title.replace("\n", " "), column)
        for design, columns in cases_by_design.items()
        for column in columns
    ]
    values = (
        (*about, i, j, f"{case.covariance[i, j]:.10g}")
        for *about, case in named
        for i, j in np.ndindex(case.covariance.shape)
    )
    draws = (
        (*about, k, i, f"{case.samples[k, i]:.10g}")
        for *about, case in named
        for k, i in np.ndindex(case.samples.shape)
    )
    heads = (
        ("design", "case", "row", "column", "covariance"),
        ("design", "case", "draw", "index", "noise"),
    )
    contents = {"covariances.csv": table([heads[0], *values])}
    contents["covariances-draws.csv"] = table([heads[1], *draws])
    for name, content in [*contents.items(), *(_pictures(cases_by_design) if drawn else [])]:
        folder.write(name, content, overwrite=overwrite)


def _pictures(cases_by_design: dict[str, list[NoiseCase]]) -> Iterator[tuple[str, bytes]]:
    for design, columns in cases_by_design.items():
        title = f"The noise: {DESIGNS[design][1]}, beside independent noise"
        yield from covariances(f"covariances-{design}", columns, title)


def _case(title: str, scene_name: str, name: str) -> NoiseCase:
    scene = SCENES[scene_name]
    gamma = mechanism(scene, SCALE_OF[scene.kernel], name).covariance()
    normal = _normal(_DRAWS, scene.points)
    return NoiseCase(title, gamma, normal @ symmetric_root(gamma), scene.secret)


def _normal(count: int, size: int) -> FloatArray:
    """Standard normal numbers (count, size), the same for every case."""
    random = Random(0)  # noqa: S311 - a picture, and nothing that protects
    return np.array([[random.gauss() for _ in range(size)] for _ in range(count)])
