"""What the paper's experiments share: priors, secrets, budgets, the mechanisms compared.

A series of unit variance at whole numbers of time, so that length scales are the paper's effective
ones (length scale over sampling period). Source: the paper, section 6, and the authors' published
code.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trailveil.designer import design
from trailveil.designer.closed_form import concentrated, uniform
from trailveil.designer.paper import multiple_secrets, sdp_a
from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import RBF, Periodic
from trailveil.plots import Band
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

# Noise variance per point, of prior variance 1; for all secrets at once, for each of them.
BUDGET = 0.02
PERIOD = 24.0
POINTS = {"rbf": 50, "periodic": 48}
SCALES: dict[str, FloatArray] = {
    "rbf": np.sqrt(np.linspace(1.0, 100.0, 20)),
    "periodic": np.sqrt(np.linspace(0.25, 2.25, 20)),
}


# Quartiles of fitted effective length scales. Source: the paper's own fits, by the authors' recipe
# (`trailveil fit --recipe`, docs/paper.md).
BANDS = {
    "rbf": Band("GeoLife", 2.666, 6.103, 8.000),
    "periodic": Band("SML2010", 1.040, 1.097, 1.145),
}


@dataclass(frozen=True)
class FigureScene:
    """One family of priors and one secret of it.

    kernel: "rbf" or "periodic". secret: indices of one basic or compound secret; empty for every
    value as a basic secret of its own. factor: the authors design at this many times the budget and
    divide (trailveil.designer.paper).
    """

    kernel: str
    secret: tuple[int, ...]
    factor: float

    @property
    def points(self) -> int:
        """n, the number of points."""
        return POINTS[self.kernel]

    @property
    def scales(self) -> FloatArray:
        """The 20 length scales, their squares evenly spaced."""
        return SCALES[self.kernel]

    def prior(self, scale: float) -> Prior:
        """The prior of a length scale; of unit variance, and without measurement noise."""
        kernel = RBF(scale) if self.kernel == "rbf" else Periodic(scale, PERIOD)
        return Prior(kernel, np.arange(self.points, dtype=np.float64))


SCENES = {
    "rbf basic": FigureScene("rbf", (24,), 10.0),
    "rbf compound": FigureScene("rbf", (24, 25), 1_000.0),
    "rbf all": FigureScene("rbf", (), 10_000.0),
    "periodic basic": FigureScene("periodic", (24,), 10.0),
    "periodic compound": FigureScene("periodic", (16, 32), 10.0),
    "periodic all": FigureScene("periodic", (), 10_000.0),
}


def secret_of(scene: FigureScene, prior: Prior) -> Secret:
    """The secret of a scene: recorded values, one location each."""
    at = list(scene.secret) or list(range(scene.points))
    if len(at) == 1:
        return Secret.at(float(prior.times[at[0]]), recorded=True)
    return Secret.at(prior.times[at].tolist(), recorded=True)


MECHANISMS = ("sdp", "optimum", "uniform", "concentrated")


@lru_cache(maxsize=1_024)
def mechanism(scene: FigureScene, scale: float, name: str) -> Mechanism:
    """One of MECHANISMS for a scene: all of one scene and scale have the same trace.

    sdp: the paper's, SDP_A for one secret and Multiple Secrets for all. optimum: of least loss,
    over all noise of that trace. uniform, concentrated: independent noise on every point, or on the
    secret. Raises InvalidValue for another name, or `concentrated` where every point is a secret.
    """
    if name not in MECHANISMS or (name == "concentrated" and not scene.secret):
        raise InvalidValue(f"there must be a mechanism of this name here, got {name}")
    prior, trace = scene.prior(scale), BUDGET * scene.points
    if not scene.secret:
        # SDP_A has that budget for each value; what the cover of them needs is the trace of all.
        if name == "sdp":
            each = [(index,) for index in range(scene.points)]
            whole = trace * len(each)
            return multiple_secrets(prior, each, whole, factor=scene.factor).mechanism
        trace = mechanism(scene, scale, "sdp").noise_trace
    if name == "uniform":
        return uniform(prior, trace)
    if name == "concentrated":
        return concentrated(prior, np.array(scene.secret, dtype=np.intp), trace)
    if name == "sdp":
        return sdp_a(prior, scene.secret, trace, factor=scene.factor)
    secrets = [secret_of(scene, prior)] if scene.secret else None
    return design(prior, secrets, budget=trace)[0]
