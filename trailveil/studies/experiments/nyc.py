"""The paper's picture of a day in New York: a path, three sensitive times, and how well they hide.

The day is simulated (no recording of the paper's is published): eight hours of fixes every five
minutes, each coordinate an independent Gaussian process with the median length scale of the paper's
GeoLife fits. Three releases add noise of the same mean squared error: independent, by the paper's
Multiple Secrets, and our optimum: the least loss of the worst of the three. Around each sensitive
time the adversary who knows the prior draws a circle that holds the true place with probability
68 %.

Noise and path come from a seed, for a picture: they protect nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from trailveil.designer import design
from trailveil.designer.closed_form import uniform
from trailveil.designer.columns import symmetric_root
from trailveil.designer.paper import multiple_secrets
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, White
from trailveil.plots import PlaneMap, maps
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior, observe
from trailveil.privacy.secrets import Secret
from trailveil.studies.experiments.folder import Folder, table
from trailveil.studies.experiments.scenes import BANDS

PERIOD = 300.0  # seconds between fixes
COUNT = 97  # fixes: eight hours
DEVIATION = 1_500.0  # metres, of each coordinate under the prior
MEASURED = 5.0  # metres, measurement noise
NOISE = 300.0  # metres, root mean square noise of each coordinate
SENSITIVE = (18, 52, 80)  # indices
# The authors' factor for several secrets: see trailveil.designer.paper.
_FACTOR = 10_000.0
TITLES = {
    "independent": "independent noise",
    "paper": "the paper's Multiple Secrets",
    "optimum": "our optimum",
}


@dataclass(frozen=True, slots=True, eq=False)
class NycRelease:
    """One release of the day, and what an adversary makes of it.

    released: (n, 2) metres. secrets: the true places (3, 2). estimates: posterior means (3, 2).
    deviations: posterior standard deviations of a coordinate (3,).
    """

    mechanism: Mechanism
    released: FloatArray
    secrets: FloatArray
    estimates: FloatArray
    deviations: FloatArray


def prior() -> Prior:
    """The prior of one coordinate, in metres and seconds."""
    kernel = RBF(BANDS["rbf"].median * PERIOD, DEVIATION) + White(MEASURED)
    return Prior(kernel, np.arange(COUNT, dtype=np.float64) * PERIOD)


def mechanisms(day: Prior) -> dict[str, Mechanism]:
    """Three mechanisms of one trace, by the keys of TITLES."""
    total = COUNT * NOISE**2
    secrets = [Secret.at(day.times[i], recorded=True) for i in SENSITIVE]
    indices = [(index,) for index in SENSITIVE]
    return {
        "independent": uniform(day, total),
        "paper": multiple_secrets(day, indices, total, factor=_FACTOR, exactly=True).mechanism,
        "optimum": design(day, secrets, budget=total)[0],
    }


def releases() -> tuple[FloatArray, dict[str, NycRelease]]:
    """The true path (n, 2) in metres, and its three releases."""
    random = Random(5)  # noqa: S311 - a picture, and nothing that protects
    day = prior()
    path = symmetric_root(day.covariance) @ _normal(random)
    normal = _normal(random)
    by_name = {}
    for name, mechanism in mechanisms(day).items():
        released = path + symmetric_root(mechanism.covariance()) @ normal
        observation = observe(day, mechanism)
        posteriors = [
            observation.posterior(Secret.at(day.times[i], recorded=True)) for i in SENSITIVE
        ]
        by_name[name] = NycRelease(
            mechanism,
            released,
            path[list(SENSITIVE)],
            np.array([posterior.weights[:, 0] @ released for posterior in posteriors]),
            np.array([float(np.sqrt(posterior.covariance[0, 0])) for posterior in posteriors]),
        )
    return path, by_name


def files(*, drawn: bool) -> list[str]:
    """The names of what is written."""
    return ["nyc-path.csv", "nyc-circles.csv", *(["nyc.png", "nyc.svg"] if drawn else [])]


def write(folder: Folder, *, drawn: bool, overwrite: bool) -> None:
    """Write the tables and, where `drawn`, the pictures."""
    path, releases_by_name = releases()
    circles: list[tuple[str, ...]] = [
        ("release", "index", "true_east", "true_north", "east", "north", "radius")
    ]
    for name, release in releases_by_name.items():
        radii = CIRCLE_68 * release.deviations
        rows = np.column_stack([release.secrets, release.estimates, radii])
        circles += [
            (name, str(index), *_metres(row)) for index, row in zip(SENSITIVE, rows, strict=True)
        ]
    columns = [
        f"{name}_{axis}" for name in ("true", *releases_by_name) for axis in ("east", "north")
    ]
    places = np.hstack([path, *(one.released for one in releases_by_name.values())])
    fixes = [(f"{time:g}", *_metres(row)) for time, row in zip(prior().times, places, strict=True)]
    contents = [
        ("nyc-path.csv", table([["seconds", *columns], *fixes])),
        ("nyc-circles.csv", table(circles)),
        *(_pictures(path, releases_by_name) if drawn else []),
    ]
    for name, content in contents:
        folder.write(name, content, overwrite=overwrite)


def _pictures(
    path: FloatArray, releases_by_name: dict[str, NycRelease]
) -> Iterator[tuple[str, bytes]]:
    shown = [
        PlaneMap(
            TITLES[name],
            release.released / 1000,
            release.secrets / 1000,
            release.estimates / 1000,
            CIRCLE_68 * release.deviations / 1000,
        )
        for name, release in releases_by_name.items()
    ]
    title = f"A simulated day, three sensitive times, {NOISE:.0f} m of noise (rms) in each release"
    yield from maps("nyc", shown, path / 1000, "km", title)


def _metres(row: FloatArray) -> list[str]:
    return [f"{value:.3f}" for value in row]


def _normal(random: Random) -> FloatArray:
    return np.array([[random.gauss() for _ in range(2)] for _ in range(COUNT)])
