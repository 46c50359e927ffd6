"""What a report must warn of, and what it says is not protected: in plain words, for everyone."""

import numpy as np

from trailveil.privacy.adversaries import Named
from trailveil.privacy.movement import Matern, Movement, movement_of
from trailveil.release.plan import Plan
from trailveil.release.request import Method
from trailveil.report import everywhere
from trailveil.report.ledger import CANNOT_KNOW
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.retiming import AS_RECORDED, Retiming
from trailveil.traces.stops import stays
from trailveil.traces.trace import NANOSECONDS
from trailveil.wording import said

# The same for whom it was chosen by, and however often: it is in reports for others, too.
_BY_PLACE = (
    "Some protected times were chosen by where you were, or such times were looked for. "
    "That choice depends on the recording, so epsilon is a figure there and not a guarantee. When "
    "the cut or the noise begins and ends tells that you were at the edge of a protected place "
    "then, how many such visits there were, how long they took, and that the rest was none. "
    "--everywhere tells none of that. Stated times (--between, --at) that do not depend on the "
    "recording give a guarantee with --no-ends --no-returns."
)

_MAP = (
    "A street map can undo noise: the shape of the released track, laid over the streets, shows "
    "where you were. Only --mechanism cut keeps its word against a map."
)

_FILLED_IN = (
    "Many fixes lie on straight lines at a steady pace, as if filled in. No noise hides a line that"
    " is longer than the noise: leave such fixes out."
)
_REPEATS = (
    "Many positions are repeated on the way. That tells how the noise changes, and no noise hides "
    "it: leave repeated fixes out."
)
_ON_A_MAP = (
    "Many fixes lie on straight lines, as if snapped to a map. An adversary with that map learns "
    "more than is said here: noise does not hide a road."
)
_BY_DISTANCE = (
    "The fixes are a fixed distance apart, so their times tell the speed all along. Noise does not "
    "hide that: record by time."
)
_AT_ONE_SPEED = (
    "The speed is {speed:.0f} m/s all along, as if simulated. An adversary who expects that comes "
    "nearer than is said here. Noise does not hide it: use --mechanism cut."
)
_SOME_ON_A_GRID = (
    "{count} fixes lie on steps of {metres:.0f} m, coarser than the others. The independent noise "
    "at each fix is as wide, to hide that. Leave these fixes out, or use --mechanism cut."
)
_SMOOTHED = (
    "Your track seems smoothed over {seconds:.0f} s. Noise hides a filter of up to 30 s: an "
    "adversary who knows a longer one comes nearer than is said here. Use --mechanism cut."
)
_REACHES = (
    "Fixes seem smoothed, repeated or filled in over {seconds:.0f} s. Released fixes beside the "
    "cut then tell of what is cut: add --uncertain {seconds:.0f}, or export the track without that."
)
# Metres: steps of some fixes that a report speaks of.
_WIDE = 10.0
ASSUMED = (
    "Exact structure: the promise assumes that no fix was filled in, repeated on the way, snapped "
    "to a map or recorded by distance. Independent noise hides rounding, and filters of up to 30 s."
)
"""What a promise assumes of a recording."""


def warnings(plan: Plan, cleaning: Cleaning | None, *, further: bool, private: bool) -> list[str]:
    """What to know before publishing.

    further: the recording was released before. private: what depends on where the protected times
    lie, how many they are and whether they are stays may be told; a report for others has what
    holds of all of these.
    """
    if plan.everywhere:
        of_prior = everywhere.warnings(plan)
        return [
            *_of_composition(plan, further=further, private=private),
            *of_prior,
            *_of_structure(plan),
            *_of_cleaning(cleaning),
        ]
    sentences = _of_composition(plan, further=further, private=private)
    sentences += _of_adversaries(plan)
    if private:
        sentences += _of_standing(plan)
    if (
        plan.common
        or plan.request.returns
        or any(finding.stretch.by_place for finding in plan.findings)
    ):
        sentences.append(_BY_PLACE)
    return [*sentences, *_of_structure(plan), *_of_cleaning(cleaning)]


def _of_standing(plan: Plan) -> list[str]:
    """Where the person stood still near a part, and is taken to move.

    A cut reckons with movement as long as it lasts; noise as far as its curves reach.
    """
    longest, still = 0.0, stays(plan.trace)
    for index, finding in enumerate(plan.findings):
        part = finding.stretch
        noise = plan.designs[index].knots.end if plan.designs else 0.0
        reach = round(max(finding.cut or 0.0, noise) * NANOSECONDS)
        for begin, end in still:
            apart = begin > part.end or end < part.begin
            near = min(end, part.end + reach) - max(begin, part.begin - reach)
            longest = max(longest, near / NANOSECONDS / 60 if apart else 0.0)
    if longest < 1:
        return []
    words = f"You stood still for {longest:.0f} min near a protected part, where the promise "
    words += "takes you to move. Someone who knows that you did not comes nearer than is said here"
    return [words + (": use --mechanism cut." if plan.designs else ": add --stops auto.")]


def _of_structure(plan: Plan) -> list[str]:
    """What is exact in the recording, where no noise, or not this cut, hides it."""
    exact, some, method = plan.structure, plan.coarse, plan.request.method
    reaches = exact.reach > plan.request.uncertain
    sentences = [_REACHES.format(seconds=np.ceil(exact.reach))] if method.cuts and reaches else []
    if method is Method.CUT and not plan.common:
        return sentences
    signs = (
        (exact.filled_in, _FILLED_IN),
        (exact.smoothed, _SMOOTHED.format(seconds=exact.window)),
        (exact.repeats, _REPEATS),
        (exact.on_a_map, _ON_A_MAP),
        (exact.apart, _BY_DISTANCE),
        (exact.speed, _AT_ONE_SPEED.format(speed=exact.speed)),
        (some.metres > _WIDE, _SOME_ON_A_GRID.format(count=some.count, metres=some.metres)),
    )
    return [*sentences, *(words for holds, words in signs if holds)]


def not_protected(plan: Plan, *, private: bool, retiming: Retiming = AS_RECORDED) -> list[str]:
    """What the promise does not cover. private: what concerns single parts may be told."""
    of_times = _of_times(retiming)
    if plan.request.method is not Method.CUT or plan.common:
        of_times = [ASSUMED, *of_times]
    if plan.everywhere:
        return [*everywhere.not_protected(plan), *of_times]
    times = "That" if retiming.drop else "The times of the fixes, and that"
    sentences = [
        "Every other part of the track: it is released as it was recorded, or hardly moved.",
        f"{times} there was a recording; its frame (the whole degree "
        f"nearest its middle: {plan.frame.latitude}, {plan.frame.longitude}) counts as public.",
    ]
    if not plan.request.returns and plan.findings:
        sentences.append(
            "Other visits to a protected place, and ways past it: they were not looked for "
            "(--no-returns), and leave as recorded."
        )
    if private and not _holds_both_ends(plan):
        sentences.append(
            "The start or the end of the recording: it is in none of the protected parts. If "
            "somebody could live there, leave --no-ends out."
        )
    return [*sentences, *(stops_left(plan) if private else []), *of_times]


def stops_left(plan: Plan) -> list[str]:
    """A sentence on the stops that are found in the recording, and are in no protected part."""
    if plan.everywhere:
        return []
    parts = [finding.stretch for finding in plan.findings]
    parts += [part for common in plan.common for part in common.around]
    released = plan.trace.times[plan.mechanism.rows]
    minutes = [
        (end - begin) / NANOSECONDS / 60
        for begin, end in stays(plan.trace)
        if not any(part.begin <= end and begin <= part.end for part in parts)
        and np.any((released >= begin) & (released <= end))
    ]
    if not minutes:
        return []
    places = "one place" if len(minutes) == 1 else f"{len(minutes)} places"
    how_long = " to ".join(
        dict.fromkeys(f"{length:.0f}" for length in (min(minutes), max(minutes)))
    )
    return [f"You also stopped {how_long} min at {places}: add --stops auto."]


def _of_times(retiming: Retiming) -> list[str]:
    """What rounded or shifted times still tell."""
    if retiming == AS_RECORDED:
        return []
    if retiming.drop:
        return [
            "The order of the fixes: where you recorded at a steady step, their number tells how "
            "long everything took. The promise holds at the recorded times, whether somebody knows "
            "them or not: leaving them out adds nothing to it."
        ]
    words = "How long everything took" + ("" if retiming.step is None else ", about")
    if retiming.shift:
        words += "; and when it was, to who has seen the person on the way, or other traces of it"
    return [
        f"{words}. The promise holds at the recorded times, whether somebody knows them or not: "
        "changing them afterwards adds nothing to it."
    ]


def _holds_both_ends(plan: Plan) -> bool:
    """Whether both ends are protected."""
    parts = [finding.stretch for finding in plan.findings]
    parts += [part for common in plan.common for part in common.around]
    if not parts:
        return False
    first, last = int(plan.trace.times[0]), int(plan.trace.times[-1])
    begins, ends = min(part.begin for part in parts), max(part.end for part in parts)
    return begins <= first and last <= ends


def _of_composition(plan: Plan, *, further: bool, private: bool) -> list[str]:
    sentences = []
    further = further and private  # others learn here only what the release tells them
    if further and plan.request.method is Method.CUT and not plan.common:
        sentences.append(
            "This recording was released before, in another way. Its releases together tell all "
            "that is in any of them, as the ledger counts; where one of them had noise, they can "
            "give its protected places away to a few metres."
        )
    elif further:
        sentences.append(
            "This recording was released before with other noise. Two different releases together "
            "can give its protected places away to a few metres, and nothing said here holds for "
            "both together. Choosing the nicer of two draws counts as using both."
        )
    sentences.append(CANNOT_KNOW)
    if plan.common:
        sentences.append(
            "A place with a name is moved by the same at every visit: someone who learns one true "
            "place near it, on one ride, learns how all rides are moved there. What is "
            "said of it holds for visits by the stated ways: each further way tells more, as the "
            "ledger counts. What is said of places that are known does not hold for an outing on "
            "which the noise of two visits meets."
        )
    if len(plan.findings) > 1 or (plan.findings and not private):
        sentences.append(
            "Each protected part is counted by itself here, but for cuts at both ends that may be "
            "one place. Where other parts are one place, an adversary who knows that learns more "
            "than epsilon says: give the place a name (trailveil place add), and its visits are "
            "reckoned together."
        )
    return sentences


def _of_adversaries(plan: Plan) -> list[str]:
    """What the noise or the cut takes for granted."""
    request = plan.request
    sentences = [] if request.method is Method.CUT and not plan.common else [_MAP]
    sentences.append(
        f"This holds if you moved at least {request.slowest.speed:g} m/s on average away from what "
        "is protected. If you hardly moved there, protect that as a stay, or state a slower "
        "--activity or --floor."
    )
    if request.method in (Method.NOISE, Method.BOTH):
        sentences.append(
            "With noise, the shape of the track within a protected part stays visible: someone "
            "who learns one true place in it, or two near it, learns the rest of it."
        )
        if {Named.POINT, Named.PATH} & set(request.who):
            sentences.append(_of_usual(movement_of(request.kernel)))
        if Named.POINT not in request.who:
            sentences.append(
                "An adversary who learns one true place near a protected time can undo most of the "
                "noise: it was not made against them. Leave --adversary out."
            )
    sentences += everywhere.of_prior(plan)
    return sentences


def _of_usual(usual: Movement | Matern) -> str:
    """What the adversaries who know something expect of the person."""
    whose = "Someone who knows a true place or your path is taken to expect"
    slower = "If you are slower, they know more, with your track or without."
    if isinstance(usual, Movement):
        return f"{whose} {said(usual.speed)} m/s of you (--prior). {slower}"
    middle = "do not know" if usual.levels else "know"
    return (
        f"{whose} that you are within {said(usual.std)} m of a middle that they {middle} "
        f"(--prior). {slower}"
    )


def _of_cleaning(cleaning: Cleaning | None) -> list[str]:
    sentences = []
    if cleaning and cleaning.assigned_times:
        sentences.append(
            "The recording had no times. The promise is for somebody who moved as the times that "
            "were stated say (--every): was it slower, more is learnt than is said here."
        )
    if cleaning and cleaning.jumps:
        sentences.append(
            "The recording jumps, faster than anybody moves. Nothing is promised of protected "
            "times near a jump: no prior expects it."
        )
    if not cleaning or not (cleaning.untimed or cleaning.unset_clock or cleaning.bad_positions):
        return sentences
    return [
        *sentences,
        "Fixes without a usable time or place were left out. If they were the first or the last of "
        "the recording, its start and end here are those of the fixes that remain.",
    ]
