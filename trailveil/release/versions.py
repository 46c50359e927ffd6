"""Versions of one recording that tell together what the finest of them tells.

Of cuts, all is exact: a coarser version releases no fix that a finer one does not. Of noise, the
coarser one is the finer one with independent noise added, see `trailveil.designer.nesting`. Noise
after a cut is a coarser version of a cut, and of noise; a cut and noise are versions of neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trailveil.errors import InvalidValue, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import LARGEST_STD, Mechanism
from trailveil.release.cutting import Window
from trailveil.release.layers import Layer
from trailveil.release.plan import Plan, with_common
from trailveil.release.request import Method, Request

if TYPE_CHECKING:
    from trailveil.designer.random_curves import WindowNoise
    from trailveil.privacy.knowledge import Knowledge

MOST_VERSIONS = 8
"""Of one recording, at once."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version by its name, and what is asked of it; of no part yet."""

    name: str
    request: Request


def in_order(versions: Sequence[Version]) -> list[Version]:
    """The finest first. Raises InvalidValue for names that are none, and Refused for a mixture."""
    check_names([version.name for version in versions])
    methods = {version.request.method for version in versions}
    if Method.EVERYWHERE in methods:
        raise Refused(
            "versions must be cuts or noise for stated parts, got --everywhere: its noise is one "
            "process, of which no second version is reckoned"
        )
    if {Method.CUT, Method.NOISE} <= methods:
        raise not_nested("a cut and noise")
    # Where both are as wide, noise after a cut is the coarser one.
    return sorted(versions, key=lambda each: (each.request.variance, each.request.method != "cut"))


def check_names(names: Sequence[str]) -> None:
    """Raise InvalidValue for names of versions that no file and no report can bear."""
    usable = all(name.isidentifier() and name.isascii() and len(name) <= 40 for name in names)
    if not usable or len(set(names)) < len(names) or not 1 <= len(names) <= MOST_VERSIONS:
        got = ", ".join(ascii(name[:40]) for name in names[: MOST_VERSIONS + 1])
        raise InvalidValue(
            f"versions must be 1 to {MOST_VERSIONS}, each with a name of its own in letters, "
            f"digits and _, got {got or 'none'}"
        )


def not_nested(got: str) -> Refused:
    """What is said of versions of which neither is a function of the other and of noise."""
    return Refused(
        f"each version must hold nothing that a finer one does not, got {got}: state the same "
        "--mechanism for all, or --mechanism both for the coarser ones"
    )


def layer_of(plan: Plan) -> Layer | None:
    """The noise of a plan as it is drawn; None for a cut alone, or noise that is no version's."""
    if plan.layer is not None:
        return plan.layer
    if not plan.designs:
        return None
    law = _law(plan)
    about = plan.identity[2:]
    return Layer(about, law, _spans(plan), plan.designs, plan.request.noise_bound, law.factor)


def coarser(plan: Plan, base: Layer) -> Plan:
    """A plan whose noise is that of a finer version and independent noise besides.

    plan: designed alone. Raises Refused where parts, times or fixes do not nest.
    """
    from trailveil.designer.nesting import added, widened

    _check_alike(plan, base)
    if np.any(np.asarray(plan.mechanism.released) & ~np.asarray(base.law.released)):
        raise not_nested("one that releases fixes which the finer one withholds")
    noises = [
        widened(finer, design, asked)
        for finer, design, asked in zip(base.noises, plan.designs, _asked(plan), strict=True)
    ]
    fresh = [added(noise, finer) for noise, finer in zip(noises, base.noises, strict=True)]
    return _drawn_from(plan, (base, None), noises, _columns(plan, fresh), 0.0)


def finer(plan: Plan, base: Layer) -> Plan:
    """A plan whose noise is a share of that of a published, coarser version and noise besides.

    plan: designed alone. Raises Refused where parts, times or fixes do not nest, or no share holds.
    """
    from trailveil.designer.nesting import narrowed

    _check_alike(plan, base)
    _check_released(plan, base)
    noises, share = narrowed(base.noises, plan.designs, _asked(plan))
    fresh = np.asarray((share * (1 - share)) ** 0.5 * base.law.factor)
    return _drawn_from(plan, (None, base), noises, fresh, share)


def between(plan: Plan, below: Layer, above: Layer) -> Plan:
    """A plan whose noise is between those of two published versions, and noise besides.

    plan: designed alone. below: the finer one, and above: the coarser, with none between. Raises as
    `finer` does.
    """
    from trailveil.designer.nesting import added, mixed

    for base in (below, above):
        _check_alike(plan, base)
        _check_released(plan, base)
    noises, share = mixed(below.noises, above.noises, plan.designs, _asked(plan))
    more = [added(*pair) for pair in zip(above.noises, below.noises, strict=True)]
    fresh = np.asarray((share * (1 - share)) ** 0.5 * _columns(plan, more))
    return _drawn_from(plan, (below, above), noises, fresh, share)


def as_before(plan: Plan, layer: Layer) -> Plan:
    """A plan that was designed alone, drawn from the same versions as a layer of one was."""
    if layer.finer is not None and layer.coarser is not None:
        return between(plan, layer.finer, layer.coarser)
    if layer.coarser is not None:
        return finer(plan, layer.coarser)
    return plan if layer.finer is None else coarser(plan, layer.finer)


def _check_released(plan: Plan, base: Layer) -> None:
    """Refuse a version before a published coarser one that has other fixes."""
    if np.any(np.asarray(plan.mechanism.released) != np.asarray(base.law.released)):
        raise Refused(
            "a version that is finer than a published one must release the same fixes, got one "
            "that releases other fixes, as with a cut and noise: state all versions in one run, "
            "with --replace if nobody has the earlier ones"
        )


def _drawn_from(
    plan: Plan,
    bases: tuple[Layer | None, Layer | None],
    noises: "Sequence[WindowNoise]",
    fresh: FloatArray,
    share: float,
) -> Plan:
    """A plan with noise of these layers, a finer and a coarser one, and fresh noise."""
    law = Mechanism(plan.mechanism.times, _columns(plan, noises), released=plan.mechanism.released)
    alone = replace(plan, mechanism=law, designs=tuple(noises), common=())
    whole = with_common(alone, plan.common)
    if whole.mechanism.max_std > LARGEST_STD:
        raise Refused(
            f"the noise must stay below {LARGEST_STD / 1000:g} km, got more: state a smaller radius"
        )
    law, rows = _law(whole), plan.mechanism.rows
    for base in filter(None, bases):
        further = law.independent_variances[rows] - base.law.independent_variances[rows]
        # That of a published coarser one is shared whole: with more, they would not nest.
        if np.any(further < 0) or (base is bases[1] and np.any(further > 0)):
            raise Refused(
                "versions must have the same independent noise, got one with other noise: state "
                "the same --prior for all"
            )
    sides = zip((b"coarser than", b"finer than"), bases, strict=True)
    about = [part for side, base in sides if base for part in (side, *base.about)]
    layer = Layer(
        (*plan.identity[2:], *about, *law.fingerprint),
        law,
        _spans(plan),
        tuple(noises),
        plan.request.noise_bound,
        fresh,
        *bases,
        share,
    )
    return replace(whole, layer=layer)


def _law(plan: Plan) -> Mechanism:
    """The noise of a plan but for what is common to several releases."""
    columns = plan.mechanism.factor[:, : plan.own_columns]
    return replace(plan.mechanism, factor=columns)


def _check_alike(plan: Plan, base: Layer) -> None:
    """Refuse versions whose noise is not around the same windows of the same fixes."""
    same = plan.mechanism.times.shape == base.law.times.shape
    ours = np.array(_spans(plan)).reshape(-1, 2)
    theirs = np.array(base.windows).reshape(-1, 2)
    if not (same and ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=0, atol=1e-6)):
        raise Refused(
            "versions with noise must protect the same parts of the same fixes, got others: state "
            "the same times and --uncertain for all"
        )


def _spans(plan: Plan) -> tuple[tuple[float, float], ...]:
    sure = plan.request.uncertain
    parts = [finding.stretch.seconds(plan.trace) for finding in plan.findings]
    return tuple((begin - sure, end + sure) for begin, end in parts)


def _windows(plan: Plan) -> list[Window]:
    sure = plan.request.uncertain
    return [Window.of(plan.trace, finding.stretch, sure) for finding in plan.findings]


def _columns(plan: Plan, noises: "Sequence[WindowNoise]") -> FloatArray:
    from trailveil.designer.random_curves import together

    return together(plan.trace.seconds, _spans(plan), noises)


def _asked(plan: Plan) -> "list[tuple[float, int, tuple[Knowledge, ...], float]]":
    from trailveil.designer.table import asked_of
    from trailveil.release.plan import asked_of_noise

    return [asked_of(*each) for each in asked_of_noise(_windows(plan), plan.request)]
