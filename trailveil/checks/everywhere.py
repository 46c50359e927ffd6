"""Whether what a report of --everywhere promises holds, and whether a release is a draw of it.

The losses are computed anew from the noise that the report states, on the grids that such noise is
designed on, and by the same code (`trailveil.privacy.anytime`): no other proof of them is known.
"""

from collections.abc import Iterator
from math import isclose, isfinite
from typing import Any

import numpy as np
from scipy.linalg import eigh

from trailveil.checks.verifying import as_large, of_fixes, plausible_draw, step_width
from trailveil.errors import TrailveilError
from trailveil.gp.kernels import Matern12, Matern32
from trailveil.privacy.anytime import Assumed, PriorMovement, worst
from trailveil.privacy.guarantee import CIRCLE_68, Guarantee
from trailveil.privacy.promises import Check, meanings
from trailveil.traces.projection import MICRO, Frame, placed
from trailveil.traces.trace import Recording, Trace

_ROUNDING = 1 + 1e-9
# Relative: losses are computed by sums in floating point.
_COMPUTED = 1e-6
# Fixes that are held against the law of the noise together, at most.
_MOST_FIXES = 1000
# Processes of a noise, and speeds, at most.
_MOST_TERMS = 32

_DAMAGE = ArithmeticError, AttributeError, LookupError, TypeError, ValueError
_MOVEMENT = ("speed_m_s", "time_constant_s", "white_m2", "level_m2")


def promised(report: dict[str, Any]) -> Iterator[Check]:
    """Check what a private report says of noise for every place. Damage is what fails."""
    try:
        yield from _checked(report)
    except (*_DAMAGE, TrailveilError) as error:
        yield Check(f"the report is whole (got {type(error).__name__} where it was read)", False)


def _noise(report: dict[str, Any]) -> list[Matern12 | Matern32]:
    """The processes whose sum the noise is."""
    terms = report["everywhere"]["noise"]
    if len(terms) > _MOST_TERMS:
        raise ValueError(terms)
    return [
        (Matern12 if term["smoothness"] == 0.5 else Matern32)(term["length_scale_s"], term["std_m"])
        for term in terms
    ]


def _checked(report: dict[str, Any]) -> Iterator[Check]:
    said, target, frame = report["everywhere"], report["target"], report["frame"]
    order, scale = float(target["order"]), 1 + float(frame["scale_error"])
    radius, wide = float(target["radius_m"]) * scale, scale / (1 + Frame.SCALE_ERROR)
    kernels, movement = _noise(report), said["movement"]
    person = PriorMovement(*(float(movement[name]) for name in _MOVEMENT))
    know = len(said["left"]) > 1
    stay = float(said["longest_stay_s"])
    assumed = Assumed(tuple(map(float, said["speeds_m_s"][:_MOST_TERMS])), stay, know=know)
    units = [type(kernel)(kernel.length_scale, 1.0) for kernel in kernels]
    variances = np.array([kernel.std**2 for kernel in kernels])
    most = worst(person, assumed, units, variances)
    yield Check(
        "every kind of adversary is reckoned with",
        [each.kind for each in most] == [each["adversary"] for each in said["left"]],
    )
    for computed, stated in zip(most, said["left"], strict=False):
        epsilon = order / 2 * radius**2 * computed.exposure.loss
        circle = CIRCLE_68 * computed.exposure.posterior / wide
        yield Check(
            f"{computed.kind}: epsilon {stated['epsilon']:.4g} is no less than computed anew",
            epsilon <= stated["epsilon"] * (1 + _COMPUTED),
        )
        holds = isclose(stated["circle_68_m"], circle, rel_tol=_COMPUTED)
        if isfinite(computed.exposure.prior):
            before = CIRCLE_68 * computed.exposure.prior / wide
            holds = holds and isclose(stated["circle_68_before_m"], before, rel_tol=_COMPUTED)
        yield Check(f"{computed.kind}: {stated['circle_68_m']:.4g} m are left, as computed", holds)
    whole = report["worst"]
    largest = max(each["epsilon"] for each in said["left"])
    yield Check(
        f"the worst epsilon is {whole['epsilon']:.4g}, at most what was asked for",
        largest <= whole["epsilon"] * _ROUNDING <= target["epsilon"] * _ROUNDING**2,
    )
    mu = Guarantee(float(whole["mu"]), order)
    yield Check("mu gives its epsilon", isclose(mu.epsilon, whole["epsilon"], rel_tol=1e-9))
    for what, holds in meanings(whole, float(whole["mu"]), order).items():
        yield Check(f"mu gives its {what}", holds)
    size = float(np.sum(variances) + float(report["mechanism"]["independent_m"]) ** 2)
    moved = report["mechanism"]["rms_m"]
    yield Check(f"fixes are moved by {moved:.4g} m", isclose(moved**2, 2 * size, rel_tol=1e-6))


def compared_everywhere(
    report: dict[str, Any], original: Trace, released: Recording
) -> Iterator[Check]:
    """Check a released file against its recording: every fix, moved by a draw of the noise.

    Raises as `trailveil.checks.verifying.compared` does.
    """
    nothing = np.zeros(len(original), dtype=np.bool_)
    rows, checks = of_fixes(report, original, released, nothing, nothing)
    yield from checks
    if not all(check.holds for check in checks):
        return
    step = float(report["mechanism"]["grid_deg"])
    frame, lattice = placed(original.positions)
    moved = (frame.to_lattice(released.positions) - lattice[rows]) / MICRO
    some = np.unique(np.linspace(0, len(rows) - 1, _MOST_FIXES).astype(np.intp))
    seconds = original.seconds[rows[some]]
    law = np.sum([kernel(seconds, seconds) for kernel in _noise(report)], axis=0)
    independent = float(report["mechanism"]["independent_m"])
    # Directions that rounding hides are left out: their variance is less than this.
    hidden = len(law) * np.finfo(np.float64).eps * float(np.trace(law))
    variances, axes = eigh(law, subset_by_value=(hidden, np.inf))
    factor = axes * np.sqrt(variances)
    rounding = step_width(step)
    width = float(np.linalg.norm([rounding / 3**0.5, independent, hidden**0.5]))
    yield from plausible_draw(factor, moved[some], width)
    yield as_large(factor, moved[some], rounding, independent)
