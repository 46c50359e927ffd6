"""What is said of noise for every place at once: who was reckoned with, what each is left with."""

from typing import TYPE_CHECKING, Any

import numpy as np

from trailveil.errors import said
from trailveil.gp.kernels import Kernel, Matern12, Matern32
from trailveil.privacy.guarantee import CIRCLE_68, Guarantee
from trailveil.privacy.priors import BUILT_IN
from trailveil.release.plan import Plan

if TYPE_CHECKING:
    from trailveil.privacy.anytime import Assumed


def _assumed(plan: Plan) -> "Assumed":
    from trailveil.release.everywhere import assumed  # most reports are of stated times

    return assumed(float(plan.trace.seconds[-1]), plan.request)


def promise(plan: Plan) -> tuple[Guarantee, float]:
    """The guarantee at any time against all; metres left to who has no idea of the place."""
    loss = max(case.exposure.loss for case in plan.everywhere)
    plain = next(one for one in plan.everywhere if one.kind == "plain")
    return _guarantee(plan, loss), float(plain.exposure.loss**-0.5)


def left(plan: Plan) -> dict[str, Any]:
    """The longest stay, and the worst case of each kind of adversary."""
    from trailveil.privacy.anytime import movement_of

    who, person = _assumed(plan), movement_of(plan.request.kernel)
    return {
        "longest_stay_s": who.longest_stay,
        "speeds_m_s": list(who.speeds),
        "least_rms_m": _least(plan, who),
        "noise": _noise(plan),
        "movement": {
            "speed_m_s": person.std,
            "time_constant_s": person.time_constant,
            "white_m2": person.white,
            "level_m2": person.level,
        },
        "left": [
            {
                "adversary": one.kind,
                "knows": _knows(one.kind, who),
                "epsilon": _guarantee(plan, one.exposure.loss).epsilon,
                "speed_m_s": one.speed,
                "stay_s": one.stay,
                "circle_68_m": CIRCLE_68 * one.exposure.posterior,
                "circle_68_before_m": _finite(CIRCLE_68 * one.exposure.prior),
            }
            for one in plan.everywhere
        ],
    }


def _finite(metres: float) -> float | None:
    return metres if np.isfinite(metres) else None


def _noise(plan: Plan) -> list[dict[str, float]]:
    """The processes whose sum the noise is."""
    kernel = plan.mechanism.process
    terms = kernel.terms() if isinstance(kernel, Kernel) else []
    return [
        {
            "smoothness": 0.5 if isinstance(term, Matern12) else 1.5,
            "length_scale_s": term.length_scale,
            "std_m": term.std,
        }
        for term in terms
        if isinstance(term, Matern12 | Matern32)
    ]


def _least(plan: Plan, who: "Assumed") -> float:
    """Metres (root mean square) that no noise which holds all this is below."""
    from trailveil.designer.least_stationary import least_variance  # most reports need none
    from trailveil.privacy.anytime import movement_of

    person, kernel = movement_of(plan.request.kernel), plan.mechanism.process
    if not isinstance(kernel, Kernel):
        return 0.0
    return float(np.sqrt(2 * least_variance(person, who, plan.request.bound, kernel)))


def adversaries(plan: Plan) -> list[str]:
    """Who was reckoned with, in words."""
    who = _assumed(plan)
    speeds = ", ".join(f"{said(speed)}" for speed in who.speeds)
    found = [
        f"knows how people move (the prior, at {speeds} m/s) and how the noise was made, but no "
        "place"
    ]
    if who.know:
        found += [_knows(kind, who) for kind in ("point", "path")]
    if who.longest_stay > 0:
        found.append(
            "is any of these, and sees besides that the person stood still, for any time up to "
            f"{said(who.longest_stay / 3600, 3)} h"
        )
    return found


def _knows(kind: str, who: "Assumed") -> str:
    known = {
        "plain": "knows no place",
        "point": f"knows one true place {said(who.point_away)} s or more away, to "
        f"{said(who.accuracy)} m",
        "path": (
            f"knows the true path but for {said(who.path_away / 60)} min before and after, to "
            f"{said(who.accuracy)} m every second"
        ),
    }
    return known[kind]


def warnings(plan: Plan) -> list[str]:
    """What to know of the adversaries and the prior before publishing."""
    who = _assumed(plan)
    found = [
        "The prior is how people move on average: of a person who moves otherwise, more may be "
        "learnt than is said here."
    ]
    if not who.know:
        found.insert(
            0,
            "The noise was not made against somebody who knows a true place, the path or another "
            "speed, or sees that you stood still: they learn far more. Leave --adversary plain "
            "out.",
        )
    return [*found, *of_prior(plan)]


def of_prior(plan: Plan) -> list[str]:
    """What a prior from a file calls for."""
    if plan.request.kernel in [spec.kernel for spec in BUILT_IN.values()]:
        return []
    return [
        "The prior comes from a file. If it was fitted on this recording it depends on what is "
        "protected, and epsilon is a figure and not a guarantee."
    ]


def not_protected(plan: Plan) -> list[str]:
    """What the promise does not cover."""
    who = _assumed(plan)
    found = [
        "What several times tell together: the way from one to another, the mean of a longer time, "
        "a place that was visited more than once.",
        "Places, against somebody who knows two true places or more near them.",
    ]
    if who.longest_stay > 0:
        found.insert(0, f"A stay of more than {said(who.longest_stay / 3600, 3)} h at one place.")
    return [
        *found,
        "The times of the fixes, and that there was a recording; its frame (the whole degree "
        f"nearest its middle: {plan.frame.latitude}, {plan.frame.longitude}) counts as public.",
    ]


def _guarantee(plan: Plan, loss: float) -> Guarantee:
    radius = plan.request.radius * plan.request.scale
    return Guarantee(radius * float(np.sqrt(loss)), plan.request.order)
