"""What a release tells with all before it, in a report: objects, and lines of text."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from trailveil.errors import said
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.report.parts import Item, Section, count_of, listed
from trailveil.report.schema import LedgerReport, PlaceReport, PlaceTotal

if TYPE_CHECKING:  # the ledger is shown without what designs releases
    from trailveil.ledger.accounting import Account
    from trailveil.ledger.places import OfPlace
    from trailveil.release.places import Visited
    from trailveil.release.plan import Plan

# An epsilon above this is of all that can be told.
_ALL = 1e9

CANNOT_KNOW = (
    "The ledger counts what was released with Trailveil on this machine, under this name. It "
    "cannot know what other apps, machines, photos or people published of the same places."
)


def place_of(plan: "Plan", visited: "Visited") -> PlaceReport:
    """A place with a name that a recording visits; not where it is."""
    place, away = visited.place, visited.away(plan.trace)
    first, last = int(plan.trace.times[0]), int(plan.trace.times[-1])
    return {
        "name": place.name,
        "visits": sum(begin <= last and end >= first for begin, end in visited.intervals),
        "fixes": int((away == 0).sum()),
        "withheld": int((~np.asarray(plan.mechanism.released) & (away == 0)).sum()),
        "cut": plan.request.method.cuts,
        "radius_m": place.radius,
        "epsilon": place.epsilon,
        "order": place.order,
        "ways": place.ways,
        "moved_m": 0.0 if plan.request.method == "cut" else float(2**0.5 * place.noise.std),
        "left": []
        if plan.request.method.cuts
        else [
            {
                "adversary": facing.adversary,
                "circle_68_m": CIRCLE_68 * facing.posterior,
                "circle_68_before_m": CIRCLE_68 * facing.prior if isfinite(facing.prior) else None,
            }
            for facing in place.noise.exposures
        ],
    }


def counted(account: "Account") -> LedgerReport:
    """An account as an object; None for an epsilon of all that can be told."""
    radius, order, deviation = account.stated
    return {
        "subject": account.subject,
        "releases": account.releases,
        "overlapping": account.overlapping,
        "epsilon": account.epsilon,
        "total": _or_all(max(account.total, account.known)),
        "radius_m": radius,
        "known": _or_all(account.known),
        "times": _or_all(account.times),
        "if_one_place": _or_all(account.one_place),
        "if_one_place_circle_68_m": _circle_of(account.one_place, radius, order),
        "finest": account.finest or None,
        "finest_circle_68_m": (CIRCLE_68 * deviation or None) if account.finest else None,
        "places": [told_of(place) for place in account.places],
        "cannot_know": CANNOT_KNOW,
    }


def _circle_of(epsilon: float, radius: float, order: float) -> float | None:
    """Metres of the 68 % circle around a place of which so much is told."""
    return CIRCLE_68 * radius * (order / 2 / epsilon) ** 0.5 if 0 < epsilon < _ALL else None


def told_of(account: "OfPlace") -> PlaceTotal:
    """What is told of a place with a name, as an object."""
    return {
        "name": account.name,
        "releases": account.releases,
        "epsilon": _or_all(account.alone),
        "total": _or_all(account.total),
        "at_most": _or_all(account.at_most),
        "circle_68_m": CIRCLE_68 * account.after if isfinite(account.after) else None,
        "stated": account.stated,
        "visits": account.visits,
        "visits_left": account.more if account.visits else None,
        "ways": account.moved,
        "ways_left": None if account.visits else account.more,
    }


def place_sections(places: Sequence[PlaceReport]) -> list[Section]:
    """What is said of the places with names."""
    if not places:
        return []
    if places[0]["cut"]:
        return [_of_cuts(places)]
    lines: list[Item] = []
    for place in places:
        held = f", {place['withheld']} fixes withheld" if place["withheld"] else ""
        lines += listed(
            "- ",
            [
                f"{place['name']}: {count_of(place['visits'], 'visit')}, {place['fixes']} "
                f"fixes{held}; moved by {place['moved_m']:,.0f} m on average. However often it is "
                f"visited, by up to {count_of(place['ways'], 'way')} to and from it:"
            ],
        )
        lines += listed(
            "   - ",
            [
                f"{exposure['adversary']}: their best guess is a circle of "
                f"{exposure['circle_68_m']:,.0f} m"
                + ("" if before is None else f" ({before:,.0f} m without your tracks)")
                for exposure in place["left"]
                for before in [exposure["circle_68_before_m"]]
            ],
        )
    title = "Places with names, moved by the same at every visit of every recording"
    return [Section(title, lines)]


def _of_cuts(places: Sequence[PlaceReport]) -> Section:
    moved = "" if not places[0]["moved_m"] else "; what is left is moved by the same at every visit"
    items = [
        f"{place['name']}: {count_of(place['visits'], 'visit')}, each cut so long that "
        f"{place['ways']} together tell at most epsilon {said(place['epsilon'])} of it, at "
        f"{said(place['radius_m'])} m"
        for place in places
    ]
    return Section(f"Places with names: every visit is cut{moved}", listed("- ", items))


def total_sections(account: LedgerReport | None) -> list[Section]:
    """What is said of the ledger."""
    if account is None:
        return []
    finest, radius = account["finest"], said(account["radius_m"])
    far = "" if finest is None else f" at {radius} m, the radius of {finest}"
    whole = (
        ""
        if account["releases"] == 1
        else f"; with all {account['releases']} of them, of any one time or place with a name: "
        f"{_epsilon(account['known'])}{far}"
    )
    items = [f"this release: epsilon {said(account['epsilon'], 3)}{whole}"]
    if account["finest"] is not None:
        items.append(all_versions(account))
    elif account["times"] != 0:
        items.append(
            "protected times of this one, with what was released beside them: "
            f"{_epsilon(account['times'])}"
        )
    if account["if_one_place"] != 0:
        items.append(
            "if all protected parts without a name, within a degree or so, are one place, visited "
            f"again and again: {_epsilon(account['if_one_place'])}{far} (name places that come "
            "back: trailveil place add)"
        )
    items += [
        place_words(place)
        + ("" if place["circle_68_m"] is None else f", {place['circle_68_m']:,.0f} m are left")
        + if_there(place)
        for place in account["places"]
    ]
    whose = "" if account["subject"] == "me" else f" of {account['subject']}"
    title = f"In total, of {count_of(account['releases'], 'release')}{whose}"
    return [Section(title, listed("- ", items))]


def all_versions(account: LedgerReport) -> str:
    """What all versions of the recording tell together."""
    circle = account["finest_circle_68_m"]
    left = "" if circle is None else f": a stranger's best guess is a circle of {circle:,.0f} m"
    finest = account["finest"]
    return f"somebody who has all versions of this recording knows what {finest} tells{left}"


def place_words(place: PlaceTotal) -> str:
    """What is told of a place with a name, and what remains of what was stated."""
    if not place["visits"]:
        releases = count_of(place["releases"], "release")
        return (
            f"{place['name']}, {releases} by {said(place['ways'], 3)} ways, each of its own: "
            f"{_epsilon(place['total'])} of {said(place['stated'], 3)}; "
            f"{count_of(place['ways_left'] or 0, 'way')} left, and any number by a way that was "
            "taken before"
        )
    return (
        f"{place['name']}, after {count_of(place['visits'], 'visit')}, each by a way of its own: "
        f"{_epsilon(place['total'])} of {said(place['stated'], 3)}; "
        f"{count_of(place['visits_left'] or 0, 'visit')} left"
    )


def if_there(place: PlaceTotal) -> str:
    """What is told of a place with a name if parts without one were there, too."""
    if place["at_most"] == place["total"]:
        return ""
    return f"; {_epsilon(place['at_most'])} if the parts without a name are there, too"


def used_up(ledger: LedgerReport | None) -> list[str]:
    """What to see first of each place with a name of which more is told than was stated."""
    return [
        f"{place['name']} is used up: do not publish. "
        + (
            "All releases together tell where it is."
            if place["circle_68_m"] is None or place["total"] is None
            else "From all releases together, a stranger's best guess of it is a circle of "
            f"{place['circle_68_m']:,.0f} m."
        )
        for place in (ledger["places"] if ledger else [])
        if _is_past(place["total"], place["stated"])
    ]


def _is_past(total: float | None, stated: float) -> bool:
    """Whether more is told than was stated; total: None for all that can be told."""
    return total is None or total > stated * (1 + 1e-6)


def past_what_was_stated(places: Sequence["OfPlace"]) -> list[str]:
    """A warning for each place with a name of which more is told than was stated."""
    return [
        f"{place.name}: {counted} may tell {_epsilon(_or_all(place.total))} of it, and "
        f"{said(place.stated, 3)} was stated for {place.ways}. Each further visit by a "
        "new way tells more: --total-epsilon refuses it; `trailveil place add --change` "
        f"with more --ways makes later {later}."
        for place in places
        for counted, later in [
            (count_of(place.visits, "visit"), "cuts longer")
            if place.visits
            else (f"{said(place.moved, 3)} ways", "noise hold for more")
        ]
        if _is_past(place.total, place.stated)
    ]


def _epsilon(value: float | None) -> str:
    return "all that can be told" if value is None else f"epsilon {said(value, 3)}"


def _or_all(value: float) -> float | None:
    return None if value > _ALL else value
