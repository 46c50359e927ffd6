"""What a report must warn of, and what it says is not protected: in plain words, for everyone."""

from collections.abc import Sequence

from trailveil.errors import said
from trailveil.privacy.adversaries import Named
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.movement import Matern, Movement, movement_of
from trailveil.release.cutting import AROUND
from trailveil.release.plan import Plan
from trailveil.release.request import Method
from trailveil.report import everywhere
from trailveil.report.ledger import CANNOT_KNOW
from trailveil.report.owner_warnings import owners_alone, protected, reaching, stops_left
from trailveil.report.parts import duration
from trailveil.report.schema import KeptField
from trailveil.traces.cleaning import Cleaning
from trailveil.traces.fields import NAME, TYPE
from trailveil.traces.retiming import AS_RECORDED, Retiming

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
_UNTIMED = (
    "The recording had no times. The promise is for somebody who moved as the times that were "
    "stated say (--every): was it slower, more is learnt than is said here."
)
_JUMPS = (
    "The recording jumps, faster than anybody moves. Nothing is promised of protected times near a "
    "jump: no prior expects it."
)
_MISSING = (
    "Fixes without a usable time or place were left out. If they were the first or the last of the "
    "recording, its start and end here are those of the fixes that remain."
)
# Metres: steps of some fixes that a report speaks of.
_WIDE = 10.0
ASSUMED = (
    "Exact structure: the promise assumes that no fix was filled in, repeated on the way, snapped "
    "to a map or recorded by distance. Independent noise hides rounding, and filters of up to 30 s."
)
"""What a promise assumes of a recording."""


def warnings(
    plan: Plan,
    cleaning: Cleaning | None,
    fields: Sequence[KeptField],
    *,
    further: bool,
    private: bool,
) -> list[str]:
    """What to know before publishing, of the fields that leave first.

    further: the recording was released before. private: what depends on where the protected times
    lie, how many they are and whether they are stays may be told; a report for others has what
    holds of all of these.
    """
    sentences = _of_fields(plan, fields)
    sentences += _of_composition(plan, further=further, private=private)
    if plan.everywhere:
        sentences += everywhere.warnings(plan)
    else:
        sentences += _of_adversaries(plan)
        sentences += owners_alone(plan) if private else []
        by_place = any(finding.stretch.by_place for finding in plan.findings)
        if plan.common or plan.request.returns or by_place:
            sentences.append(_BY_PLACE)
    return [*sentences, *_of_structure(plan), *_of_cleaning(cleaning)]


def _of_structure(plan: Plan) -> list[str]:
    """What is exact in the recording, where no noise, or not this cut, hides it."""
    exact, some, method = plan.structure, plan.coarse, plan.request.method
    sentences = reaching(plan)
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


def not_protected(
    plan: Plan, fields: Sequence[KeptField], *, private: bool, retiming: Retiming
) -> list[str]:
    """What the promise does not cover. private: what concerns single parts may be told."""
    leaving = [
        f"{_subject(field)} of {field['fixes']} fixes, kept as it was recorded: {field['tells']}."
        for field in fields
        if field["fixes"]
    ]
    of_times = _of_times(retiming)
    if plan.request.method is not Method.CUT or plan.common:
        of_times = [ASSUMED, *of_times]
    if plan.everywhere:
        return [*leaving, *everywhere.not_protected(plan), *of_times]
    that = "That" if retiming.drop else "The times of the fixes, and that"
    sentences = [
        "Every other part of the track: it is released as it was recorded, or hardly moved.",
        f"{that} there was a recording; its frame (the whole degree nearest its middle: "
        f"{plan.frame.latitude}, {plan.frame.longitude}) counts as public.",
    ]
    if not plan.request.returns and plan.findings:
        sentences.append(
            "Other visits to a protected place, and ways past it: they were not looked for "
            "(--no-returns), and leave as recorded."
        )
    parts, times = protected(plan), plan.trace.times
    starts = any(part.begin <= times[0] for part in parts)
    if private and not (starts and any(part.end >= times[-1] for part in parts)):
        sentences.append(
            "The start or the end of the recording: it is in none of the protected parts. If "
            "somebody could live there, leave --no-ends out."
        )
    return [*leaving, *sentences, *(stops_left(plan) if private else []), *of_times]


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
        words += "; and when it was, to someone who has seen you on the way, or other traces of it"
    return [
        f"{words}. The promise holds at the recorded times, whether somebody knows them or not: "
        "changing them afterwards adds nothing to it."
    ]


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
    if cleaning is None:
        return []
    missing = cleaning.untimed or cleaning.unset_clock or cleaning.bad_positions
    signs = ((cleaning.assigned_times, _UNTIMED), (cleaning.jumps, _JUMPS), (missing, _MISSING))
    return [words for holds, words in signs if holds]


def _left_to_readers(plan: Plan) -> float | None:
    """Metres: the 68 % circle that who knows the path is left with, of the worst protected part.

    None where all that is protected are places with names.
    """
    others = {adversary.name for adversary in plan.request.adversaries if adversary.path is None}
    exposures = [
        exposure
        for part in plan.findings
        for exposure in part.exposures
        if exposure.adversary not in others
    ]
    return CIRCLE_68 * min(exposure.posterior for exposure in exposures) if exposures else None


def _subject(field: KeptField) -> str:
    if field["unit"] is None:
        return f"The {field['field']} of the track"
    return f"{_spoken(field['field']).capitalize()} ({field['unit']})"


def _of_fields(plan: Plan, fields: Sequence[KeptField]) -> list[str]:
    """What to know of the fields that leave, the worst first, and of those that do not."""
    leave = [each["field"] for each in fields if each["fixes"] and each["field"] != TYPE]
    sentences = []
    if {"speed", "course"} <= {*leave}:
        sentences.append(
            "SPEED AND COURSE ARE BOTH KEPT. Added up from any true place on, they give the whole "
            "true path back wherever they are kept: the noise there hides nothing. Keep one of "
            "them, or neither."
        )
    if "elevation" in leave and plan.mechanism.noise_trace:
        sentences.append(
            "Elevation is kept: in hills its profile, found on a map, gives the true path back "
            "wherever it is kept."
        )
    if NAME in leave:
        leave.remove(NAME)
        sentences.append(
            "The name of the track is kept: read it before you publish, it can name a place, a "
            "person or a day."
        )
    if leave and not plan.mechanism.noise_trace:
        sentences.append(
            f"What is kept ({', '.join(map(_spoken, leave))}) leaves with each released fix, whose "
            "place is released as it is; speed, course, cadence and power only from "
            f"{duration(AROUND)} beyond each cut on. A field can still tell what came "
            "before: a heart rate, of a climb. Epsilon and odds are not said of that."
        )
    elif leave:
        worst = _left_to_readers(plan)
        sentences.append(
            f"What is kept ({', '.join(map(_spoken, leave))}) is not protected, and reckoned to "
            f"tell the true path. It is left out within {duration(AROUND)} of each protected part, "
            "and a little more: where it is missing tells when that is, to some minutes. An "
            "adversary who reads the path from the rest learns about what one who knows the path "
            "does"
            + (f" ({worst:,.0f} m at worst, right in 68 of 100 cases)" if worst else "")
            + ". Epsilon and odds are not said of them."
        )
    for field in fields:
        name = _spoken(field["field"])
        if not field["recorded"]:
            stating = (
                "the recording states none that is known" if name == TYPE else "no fix states it"
            )
            sentences.append(f"No {name} is released: it was to be kept, but {stating}.")
        elif not field["fixes"]:
            sentences.append(
                f"No {name} is released: it was to be kept, but every fix that states it is "
                f"withheld, or within {duration(AROUND)} or a little more of what is hidden."
            )
    return sentences


def _spoken(name: str) -> str:
    return name.replace("_", " ")
