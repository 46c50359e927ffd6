"""What its owner must see of a release at once: stops that are left, and what is not as assumed.

All of it tells where or how somebody moved: it is for the owner alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from functools import lru_cache

import numpy as np

from trailveil.errors import Refused, said
from trailveil.release.plan import Finding, Plan, cuts_of, released_rows
from trailveil.release.request import Request
from trailveil.traces.projection import MICRO
from trailveil.traces.selection import Stretch
from trailveil.traces.stops import LASTS, WITHIN, Interval, stays
from trailveil.traces.trace import NANOSECONDS, Trace

# Metres and a share of the pace: who comes no further without a fix, and no faster, may have
# stopped. Seconds: of less, a speed says little.
_GAP, _SLOW, _SAYS_LITTLE = 500.0, 0.5, 60.0
# Of the metres that are left of a part: cuts are of whole seconds.
_AS_WELL = 0.99
# How often a slower pace is tried, and m/s that may be stated.
_TRIES, _LEAST_FLOOR = 20, 0.02
_REACHES = (
    "Fixes seem smoothed, repeated or filled in over {seconds:.0f} s. Released fixes beside the "
    "cut then tell of what is cut: add --uncertain {seconds:.0f}, or export the track without that."
)


def heed(plan: Plan) -> list[str]:
    """What to see at once, a sentence or two each: what is hidden less well than is said first."""
    return [] if plan.everywhere else [*_of_pace(plan), *reaching(plan), *stops_left(plan)]


def owners_alone(plan: Plan) -> list[str]:
    """What is hidden less well than is said, by where and how somebody moved."""
    return [*_of_pace(plan), *_of_standing(plan)]


def protected(plan: Plan) -> list[Stretch]:
    """All protected parts, the visits to places with names among them."""
    around = [part for common in plan.common for part in common.around]
    return [*(finding.stretch for finding in plan.findings), *around]


def reaching(plan: Plan) -> list[str]:
    """Whether a fix may be computed of others that are beyond what is uncertain."""
    reach = plan.structure.reach
    if not plan.request.method.cuts or reach <= plan.request.uncertain:
        return []
    return [_REACHES.format(seconds=np.ceil(reach))]


def stops_left(plan: Plan) -> list[str]:
    """Sentences on stops that are all_stays, and gaps that may be one, in no protected part."""
    if plan.everywhere:
        return []
    trace, parts = plan.trace, protected(plan)
    released = trace.times[plan.mechanism.rows]
    all_stays = _stays_of(trace)
    open_stays = [
        (end - begin) / NANOSECONDS / 60
        for begin, end in all_stays
        if not any(part.begin <= end and begin <= part.end for part in parts)
        and np.any((released >= begin) & (released <= end))
    ]
    sentences = []
    if open_stays:
        ends = (min(open_stays), max(open_stays))
        how_long = " to ".join(dict.fromkeys(f"{length:.0f}" for length in ends))
        times, count = f"{how_long} min at one place", len(open_stays)
        if count > 1:  # of stays, which may all be at one place
            times = f"{count} times, for {how_long} min"
        advice = "add --stops auto --replace, unless somebody has this file already."
        sentences.append(f"You also stopped {times}: {_to_hide(plan, all_stays, advice)}")
    return sentences + _of_gaps(plan)


@lru_cache(maxsize=1)
def _stays_of(trace: Trace) -> list[Interval]:
    """The stays of a trace, found once: a page shows one recording again and again."""
    return stays(trace)


def _of_gaps(plan: Plan) -> list[str]:
    """The longest gap between two released fixes in which somebody hardly moved."""
    trace, rows = plan.trace, plan.mechanism.rows
    seconds = np.diff(trace.seconds[rows])
    metres = np.hypot(*(np.diff(plan.lattice[rows], axis=0) / MICRO).T)
    slow = metres < np.minimum(_GAP, _SLOW * plan.request.slowest.speed * seconds)
    # Without a fix between them: what is cut is no gap. A nearer pair is a stop that is found.
    slow &= (np.diff(rows) == 1) & (seconds >= LASTS) & (metres > WITHIN)
    if not np.any(slow):
        return []
    worst = np.flatnonzero(slow)[np.argmax(seconds[slow])]
    within = np.ceil(metres[worst] / 100) * 100
    advice = f"add --stops auto --stops-within {within:.0f} --replace."
    return [
        f"There is no fix for {seconds[worst] / 60:.0f} min, between two that are "
        f"{metres[worst]:.0f} m apart. If you stopped there, "
        f"{_to_hide(plan, stays(trace, float(within)), advice)}"
    ]


def _to_hide(plan: Plan, stops: Sequence[Interval], advice: str) -> str:
    """The advice to hide stops as well, where that leaves any of the recording."""
    parts = (Stretch("a stay that was found", begin, end) for begin, end in stops)
    more = replace(plan.request, stretches=(*plan.request.stretches, *parts))
    return advice if _leaves_some(plan, more) else "do not publish it: to hide that leaves nothing."


def _of_pace(plan: Plan) -> list[str]:
    """The slowest way through what is cut, where it is slower than what is reckoned with."""
    if not plan.request.method.cuts:
        return []
    slower = min(_slower(plan, plan.request, [part.cut for part in plan.findings]), default=None)
    if slower is None:
        return []
    speed, pace = slower
    return [
        f"You moved at {_digits(speed)} m/s beside what is hidden, slower than the {said(pace, 3)} "
        f"m/s that the cut reckons with: it hides less than is said here. {_slow_enough(plan)}"
    ]


def _slower(
    plan: Plan, request: Request, cuts: Sequence[float | None]
) -> list[tuple[float, float]]:
    """Of each way through what is cut that is slower than is reckoned with, its pace and that.

    cuts: seconds beyond each part in which nothing is released.
    """
    return [
        (speed, pace)
        for part, cut in zip(plan.findings, cuts, strict=True)
        if not _within_another(plan, part)
        for pace in [request.paces.around(part.stretch, part.sides).speed]
        for speed in _speeds(plan, part.stretch, cut)
        if speed < pace
    ]


def _within_another(plan: Plan, part: Finding) -> bool:
    """Whether a longer part hides all of this one as well: then no way beside this one counts."""
    inner = part.stretch
    return any(
        outer.begin <= inner.begin
        and inner.end <= outer.end
        and outer.end - outer.begin > inner.end - inner.begin
        and other.deviation >= _AS_WELL * part.deviation
        for other in plan.findings
        for outer in [other.stretch]
    )


def _slow_enough(plan: Plan) -> str:
    """How to state a pace that holds: a slower one cuts longer, where somebody was slower still."""
    request = plan.request
    slower = _slower(plan, request, [part.cut for part in plan.findings])
    for _ in range(_TRIES):
        floor = float(_digits(min(speed for speed, _ in slower)))
        if floor < _LEAST_FLOOR:
            break
        request = replace(request, floor=floor, middle=None)
        if not _leaves_some(plan, request):
            break
        cuts = [(cut or 0.0) + request.uncertain for cut in cuts_of(plan.trace, request)[1]]
        slower = _slower(plan, request, cuts)
        if not slower:
            return f"Add --floor {floor:g} --replace, unless somebody has this file already."
    return "No pace that holds leaves any of the recording: do not publish it."


def _digits(speed: float) -> str:
    """A speed in three digits, rounded down: as a floor, it holds."""
    text = f"{Decimal(repr(speed)).normalize():f}"
    size = Decimal(1).scaleb(Decimal(text).adjusted() - 2)
    return f"{Decimal(text).quantize(size, ROUND_DOWN).normalize():f}"


def _leaves_some(plan: Plan, request: Request) -> bool:
    """Whether a request leaves any of the recording."""
    try:
        return released_rows(plan.trace, request, plan.common).size > 1
    except Refused:
        return False


def slowest_way(plan: Plan) -> float:
    """Metres a second on the slowest way through what is cut; infinite for none."""
    parts = (part for part in plan.findings if not _within_another(plan, part))
    speeds = [speed for part in parts for speed in _speeds(plan, part.stretch, part.cut)]
    return min(speeds, default=float("inf"))


def _speeds(plan: Plan, part: Stretch, cut: float | None) -> list[float]:
    """Metres of way a second, before and after a part, over what is cut."""
    times, reach = plan.trace.times, round((cut or 0.0) * NANOSECONDS)
    sides = (
        (times >= part.begin - reach) & (times <= part.begin),
        (times >= part.end) & (times <= part.end + reach),
    )
    speeds = []
    for side in sides:
        rows = np.flatnonzero(side)
        seconds = float(np.ptp(plan.trace.seconds[rows])) if rows.size > 1 else 0.0
        if seconds >= _SAYS_LITTLE:
            steps = np.diff(plan.lattice[rows], axis=0) / MICRO
            speeds.append(float(np.sum(np.hypot(*steps.T))) / seconds)
    return speeds


def _of_standing(plan: Plan) -> list[str]:
    """Where the person stood still near a part, and is taken to move.

    A cut reckons with movement as long as it lasts; noise as far as its curves reach.
    """
    longest, is_part, still = 0.0, False, _stays_of(plan.trace)
    parts = protected(plan)
    for index, finding in enumerate(plan.findings):
        part = finding.stretch
        noise = plan.designs[index].knots.end if plan.designs else 0.0
        reach = round(max(finding.cut or 0.0, noise) * NANOSECONDS)
        for begin, end in still:
            apart = begin > part.end or end < part.begin
            near = min(end, part.end + reach) - max(begin, part.begin - reach)
            minutes = near / NANOSECONDS / 60 if apart else 0.0
            if minutes > longest:
                longest = minutes
                is_part = any(other.begin <= end and begin <= other.end for other in parts)
    if longest < 1:
        return []
    words = f"You stood still for {longest:.0f} min near a protected part, where the promise "
    words += "takes you to move. Someone who knows that you did not comes nearer than is said here"
    if plan.designs:
        return [f"{words}: use --mechanism cut."]
    return [f"{words}: {'protect both as one (--between)' if is_part else 'add --stops auto'}."]
