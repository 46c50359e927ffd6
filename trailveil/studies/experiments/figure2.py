"""Figure 2 of the paper: how uncertain an adversary is left, against the effective length scale.

Eight panels, each `published` (the authors' jitter and all) and `exact`. Beside the paper's curves
stands our optimum of the same trace. In panels d and h the adversary's length scale is 0.5 and 1.5
times the mechanism's: neither mechanism was made for such an adversary, and both are judged by its
prior. The optimum has the least privacy loss; for one value, and for all, that is the widest
interval as well, for a compound secret it need not be. Posterior intervals are

    one value           2 sqrt(Q)
    several together    2 sqrt(mineig Q)
    each of all         2 sqrt(mean of the variances)

Source: the paper, section 6. The authors add 1e-6 of the mean variance to the diagonals of prior
and noise before they invert, and some of their curves rest on it: `published` does so, `exact` adds
nothing and computes in as many digits as that takes.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh

from trailveil.designer.paper import posterior_as_published
from trailveil.gp.gaussian import FloatArray
from trailveil.plots import Chart, Line, charts
from trailveil.privacy.loss import loss_matrix, marginal_losses
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import Prior
from trailveil.studies.experiments.folder import Folder, Values, table
from trailveil.studies.experiments.scenes import BANDS, SCENES, FigureScene, mechanism, secret_of

COMPUTED = {"published": "as published", "exact": "exact"}
NAMES = {
    "sdp": "paper's mechanism",
    "optimum": "our optimum",
    "uniform": "independent, on every point",
    "concentrated": "independent, on the secret",
}


@dataclass(frozen=True)
class Curve:
    """A mechanism seen by an adversary whose length scale is `adversary` times the mechanism's."""

    mechanism: str
    adversary: float = 1.0

    @property
    def name(self) -> str:
        """The name of its column: sdp, sdp_adversary_0.5."""
        return self.mechanism + ("" if self.adversary == 1 else f"_adversary_{self.adversary:g}")

    @property
    def label(self) -> str:
        """What the legend says."""
        if self.adversary == 1:
            return NAMES[self.mechanism]
        return f"{NAMES[self.mechanism]}, adversary at {self.adversary:g} $\\ell$"


@dataclass(frozen=True)
class Panel:
    """A panel: its letter, title, scene (by name) and curves."""

    letter: str
    title: str
    scene: str
    curves: tuple[Curve, ...]


_BASELINES = (Curve("uniform"), Curve("concentrated"))
_BOTH = (Curve("sdp"), Curve("optimum"))
_MISLED = tuple(Curve(name, at) for at in (1.0, 0.5, 1.5) for name in ("sdp", "optimum"))
PANELS = {
    panel.letter: panel
    for panel in (
        Panel("a", "RBF, one value", "rbf basic", (*_BOTH, *_BASELINES)),
        Panel("b", "RBF, two values at once", "rbf compound", (*_BOTH, *_BASELINES)),
        Panel("c", "RBF, every value", "rbf all", (*_BOTH, Curve("uniform"))),
        Panel("d", "RBF, another adversary", "rbf basic", _MISLED),
        Panel("e", "periodic, one value", "periodic basic", (*_BOTH, *_BASELINES)),
        Panel("f", "periodic, two values at once", "periodic compound", (*_BOTH, *_BASELINES)),
        Panel("g", "periodic, every value", "periodic all", (*_BOTH, Curve("uniform"))),
        Panel("h", "periodic, another adversary", "periodic basic", _MISLED),
    )
}


@dataclass(frozen=True)
class Point:
    """One interval: what there is to compute. computed: a key of COMPUTED."""

    scene: str
    scale: float
    curve: Curve
    computed: str


@dataclass(frozen=True)
class Choice:
    """What is asked for. panels: letters. computed: of COMPUTED. scales: how many of the 20."""

    panels: tuple[str, ...] = tuple(PANELS)
    computed: tuple[str, ...] = tuple(COMPUTED)
    scales: int = 20

    def scales_of(self, panel: Panel) -> list[float]:
        """The length scales of a panel, evenly chosen, first and last among them."""
        every = SCENES[panel.scene].scales
        at = np.round(np.linspace(0, every.size - 1, self.scales)).astype(int)
        return [float(every[i]) for i in at]

    def points(self) -> list[Point]:
        """Every interval that is drawn, once each."""
        points = {
            Point(panel.scene, scale, curve, computed): None
            for panel in (PANELS[letter] for letter in self.panels)
            for scale in self.scales_of(panel)
            for curve in panel.curves
            for computed in self.computed
        }
        return list(points)

    def files(self, *, drawn: bool) -> list[str]:
        """The names of what is written."""
        endings = ["csv", *(["png", "svg"] if drawn else [])]
        names = [f"figure2-{letter}.{ending}" for letter in self.panels for ending in endings]
        names.append("figure2-bands.csv")
        if drawn and len(self.panels) == len(PANELS):
            names += [f"figure2-{curve}.{end}" for curve in self.computed for end in ("png", "svg")]
        return names


Watch = Callable[[list[Point]], Iterable[Point]]


def compute(point: Point) -> Values:
    """The interval (of prior variance 1) of one point, and the trace of its noise."""
    scene = SCENES[point.scene]
    noise = mechanism(scene, point.scale, point.curve.mechanism)
    adversary = scene.prior(point.scale * point.curve.adversary)
    of = published if point.computed == "published" else exact
    return {"interval": of(scene, adversary, noise), "noise_trace": noise.noise_trace}


def run(folder: Folder, choice: Choice, watch: Watch) -> int:
    """Compute what is missing, each point kept at once; how many. watch: shows progress."""
    todo = [point for point in choice.points() if folder.find(asdict(point)) is None]
    for point in watch(todo):
        folder.keep(asdict(point), compute(point))
    return len(todo)


def write(folder: Folder, choice: Choice, *, drawn: bool, overwrite: bool) -> None:
    """Write the tables and, where `drawn`, the pictures, of points that are all computed."""
    for name, content in _contents(folder, choice, drawn=drawn):
        folder.write(name, content, overwrite=overwrite)


def at_median(folder: Folder, choice: Choice) -> list[dict[str, Any]]:
    """Of each panel, the intervals at the length scale nearest to the median of the fits."""
    panels = []
    for panel in (PANELS[letter] for letter in choice.panels):
        median = BANDS[SCENES[panel.scene].kernel].median
        scale = min(choice.scales_of(panel), key=lambda scale: abs(scale - median))
        for computed in choice.computed:
            intervals_of = {
                curve.name: _found(folder, panel, scale, curve, computed)["interval"]
                for curve in panel.curves
            }
            about = {"panel": panel.letter, "computed": COMPUTED[computed], "length_scale": scale}
            panels.append({**about, "intervals": intervals_of})
    return panels


def _contents(folder: Folder, choice: Choice, *, drawn: bool) -> Iterator[tuple[str, bytes]]:
    for letter in choice.panels:
        yield f"figure2-{letter}.csv", _table(folder, choice, PANELS[letter])
    yield "figure2-bands.csv", _bands(choice)
    if not drawn:
        return
    for letter in choice.panels:
        panel = PANELS[letter]
        both = [_chart(folder, choice, panel, name, COMPUTED[name]) for name in choice.computed]
        yield from charts(f"figure2-{letter}", [both], f"{letter}) {panel.title}")
    if len(choice.panels) < len(PANELS):
        return
    for computed in choice.computed:
        every = [
            _chart(folder, choice, panel, computed, f"{panel.letter}) {panel.title}")
            for panel in PANELS.values()
        ]
        title = f"What an adversary is left with, equal noise in each panel: {COMPUTED[computed]}"
        yield from charts(f"figure2-{computed}", [every[:4], every[4:]], title)


def _table(folder: Folder, choice: Choice, panel: Panel) -> bytes:
    columns = ["computed", "length_scale", "noise_trace", *(curve.name for curve in panel.curves)]
    rows = []
    for computed in choice.computed:
        for scale in choice.scales_of(panel):
            intervals = [_found(folder, panel, scale, curve, computed) for curve in panel.curves]
            numbers = [
                scale,
                intervals[0]["noise_trace"],
                *(interval["interval"] for interval in intervals),
            ]
            rows.append([COMPUTED[computed], *(f"{number:.10g}" for number in numbers)])
    return table([columns, *rows])


def _bands(choice: Choice) -> bytes:
    kernels = dict.fromkeys(SCENES[PANELS[letter].scene].kernel for letter in choice.panels)
    rows = [
        (kernel, b.name, b.low, b.median, b.high) for kernel in kernels for b in [BANDS[kernel]]
    ]
    return table([["kernel", "source", "low", "median", "high"], *rows])


def _found(folder: Folder, panel: Panel, scale: float, curve: Curve, computed: str) -> Values:
    values = folder.find(asdict(Point(panel.scene, scale, curve, computed)))
    if values is None:
        raise LookupError(f"panel {panel.letter} is not computed at length scale {scale}")
    return values


def _chart(folder: Folder, choice: Choice, panel: Panel, computed: str, title: str) -> Chart:
    scales = np.array(choice.scales_of(panel))
    lines = [
        Line(
            curve.label,
            scales,
            np.array(
                [_found(folder, panel, s, curve, computed)["interval"] for s in scales.tolist()]
            ),
            curve.mechanism,
            curve.adversary,
        )
        for curve in panel.curves
    ]
    return Chart(
        title,
        r"effective length scale $\ell$",
        "posterior interval (2 sigma)",
        lines,
        BANDS[SCENES[panel.scene].kernel],
    )


JITTER = 1e-6


def published(scene: FigureScene, prior: Prior, mechanism: Mechanism) -> float:
    """The interval as the authors' code computes it. prior: of the adversary."""
    at = scene.secret or tuple(range(scene.points))
    after = posterior_as_published(
        prior.covariance, mechanism.covariance(), np.array(at, dtype=np.intp), jitter=JITTER
    )
    if not scene.secret:
        return _mean_interval(np.diagonal(after))
    return 2.0 * float(np.sqrt(eigh(after, eigvals_only=True)[0]))


def exact(scene: FigureScene, prior: Prior, mechanism: Mechanism) -> float:
    """The interval of this prior and this noise, nothing added. prior: of the adversary.

    0 where a value of the secret is released without noise under another index (a period later).
    """
    secret = secret_of(scene, prior)
    if not scene.secret:
        spread = np.diagonal(prior.variance(secret))
        return _mean_interval(1.0 / (1.0 / spread + marginal_losses(prior, secret, mechanism)))
    if _given_away(scene, prior, mechanism):
        return 0.0
    before = np.linalg.inv(prior.variance(secret))
    after = before + loss_matrix(prior, secret, mechanism).matrix
    return 2.0 / float(np.sqrt(eigh(after, eigvals_only=True)[-1]))


def _mean_interval(variances: FloatArray) -> float:
    return 2.0 * float(np.sqrt(np.mean(variances)))


def _given_away(scene: FigureScene, prior: Prior, mechanism: Mechanism) -> bool:
    """Whether a point released as it is always has the same value as one of the secret."""
    bare = np.flatnonzero(mechanism.variances == 0.0)
    secret_times = prior.times[list(scene.secret)]
    variance = prior.kernel.diagonal(secret_times)[:, None]  # the same everywhere
    return bool(np.any(prior.kernel(secret_times, prior.times[bare]) == variance))
