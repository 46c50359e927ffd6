"""`trailveil place add|list|remove`: places that come back, with names."""

import json
from dataclasses import replace
from typing import Any

import click
import numpy as np

from trailveil.cli.options import WithPlaces
from trailveil.cli.parameters import ABOVE_ONE, POSITIVE, printable
from trailveil.cli.waiting import waiting
from trailveil.errors import Refused, said
from trailveil.gp.randomness import fresh_seed
from trailveil.ledger import ID_BYTES, Ledger, user_ledger
from trailveil.ledger.book import Book
from trailveil.ledger.places import added, load_places, save_places
from trailveil.privacy.adversaries import named as known_as
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.privacy.movement import least_cut
from trailveil.privacy.priors import BUILT_IN
from trailveil.release.design_cache import DesignCache
from trailveil.release.place_noise import DEFAULT_WAYS, MOST_WAYS
from trailveil.release.places import Place, designed
from trailveil.release.request import NOISE_AGAINST, Request
from trailveil.report.parts import count_of
from trailveil.traces.activities import ACTIVITIES
from trailveil.traces.visits import circle

EXAMPLE = """Examples:

\b
  trailveil place add home --near 45.7399,-32.9167,150 --radius 300
  trailveil place list
  trailveil place remove home"""


@click.group(epilog=EXAMPLE)
def place() -> None:
    """Name places that come back, such as home: all visits of one are reckoned together.

    Where they are is kept on this machine, in a file of yours alone.
    """


@place.command(
    cls=WithPlaces,
    epilog="Example: trailveil place add home --near 45.7399,-32.9167,150 --radius 300 --epsilon 1",
)
@click.argument("name", callback=printable)
@click.option("--near", required=True, metavar="LAT,LON,METRES", help="Where it is, and how wide.")
@click.option("--radius", type=POSITIVE, default=100.0, help="Metres.")
@click.option("--epsilon", type=POSITIVE, default=1.0, help="Privacy loss.")
@click.option("--order", type=ABOVE_ONE, default=5.0, help="Renyi order.")
@click.option(
    "--ways",
    type=click.IntRange(1, MOST_WAYS),
    default=DEFAULT_WAYS,
    help="Visits that the cut holds for together; for noise, ways to and from it.",
)
@click.option(
    "--withhold",
    type=POSITIVE,
    metavar="SECONDS",
    help="Release nothing this near a visit, at least.",
)
@click.option(
    "--adversary",
    "who",
    multiple=True,
    type=click.Choice(["default", *(adversary.value for adversary in NOISE_AGAINST)]),
    help="Whom the noise is made against, as of protect. Default: all.",
)
@click.option(
    "--prior", type=click.Choice(sorted(BUILT_IN)), default="default", help="How you move."
)
@click.option("--change", is_flag=True, help="State a place anew; its noise is drawn anew.")
def add(**options: Any) -> None:
    """Name a place: from now on each visit of it is cut so long that all hold together.

    With --mechanism noise, each recording that visits it is moved by the same there.
    """
    ledger = user_ledger()
    stated = Place(
        options["name"],
        circle(options["near"]),
        options["radius"],
        options["epsilon"],
        options["order"],
        options["ways"],
        options["withhold"],
        options["prior"],
        known_as(options["who"] or ("default",)),
        fresh_seed()[:ID_BYTES],
    )
    added(load_places(ledger), stated, change=options["change"])  # or refused, before the work
    with waiting("designing the noise that all visits share"):
        added_place = designed(stated, DesignCache.of(ledger.folder, ledger.key))
    with ledger.open() as book:  # two of these at once do not lose each other's place
        before = load_places(ledger)
        places = added(before, added_place, change=options["change"])
        save_places(ledger, places)
        ident = places[-1].ident  # of a place that was there before, if there was one
        anew = any(known.ident == ident and not known.gone for known in before)
        uncounted = 0 if anew else _uncounted(book, ident)
    click.echo(
        f"Added {added_place.name}. Each visit of it is cut, so that "
        f"{count_of(added_place.ways, 'visit')} together tell at most epsilon "
        f"{said(added_place.epsilon)} of it, at {said(added_place.radius)} m; `trailveil ledger "
        "show` says how many are left. So many minutes before and after a visit at an end of a "
        "recording are cut, by the activity and by --ways (more where a recording goes on after "
        "it):"
    )
    for ways in sorted({1, added_place.ways, 10, MOST_WAYS}):
        click.echo(f"  {count_of(ways, 'visit')}: {_in_words(cut_minutes(added_place, ways))}")
    click.echo(
        "With --mechanism noise, recordings that visit it are moved by "
        f"{2**0.5 * added_place.noise.std:,.0f} m there (root mean square), by the same each time, "
        f"and by less the longer before and after: {_at(added_place, 600)} ten minutes and "
        f"{_at(added_place, 3600)} an hour from it. However often it is visited, by up to "
        f"{count_of(added_place.ways, 'way')}, a stranger's best guess is a circle of "
        f"{CIRCLE_68 * added_place.noise.exposures[0].posterior:,.0f} m. A street map can undo "
        "noise."
    )
    if uncounted:
        click.echo(_not_counted(added_place.name, uncounted), err=True)


@place.command("list", epilog="Example: trailveil place list --json")
@click.option("--where", is_flag=True, help="Say where they are, too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def list_places(*, where: bool, as_json: bool) -> None:
    """List the places that have names; where they are only if asked."""
    described = [
        _told(load_place, where=where)
        for load_place in load_places(user_ledger())
        if not load_place.gone
    ]
    if as_json:
        click.echo(json.dumps({"places": described}))
        return
    for entry in described:
        at = f" at {entry['near']}" if where else ""
        click.echo(
            f"{entry['name']}{at}: radius {said(entry['radius_m'])} m, epsilon "
            f"{said(entry['epsilon'])} (order {said(entry['order'])}), "
            f"{count_of(entry['ways'], 'way')}, cut by {_in_words(entry['cut_min'])}; "
            f"{_moved(entry['moved_m'])}"
        )
    if not described:
        click.echo("No place has a name yet: trailveil place add --help")


@place.command(epilog="Example: trailveil place remove home")
@click.argument("name")
@click.option("--forget", is_flag=True, help="Forget where it was as well.")
def remove(name: str, *, forget: bool) -> None:
    """Remove a place. Later visits are no longer protected.

    Where it was is kept, so that a place named there again is counted with it; --forget drops that.
    """
    ledger = user_ledger()
    with ledger.open():
        _remove(ledger, name, forget=forget)
    click.echo(
        f"Removed {name}."
        + (" What was released of it is counted no longer with what comes." if forget else "")
    )


def _remove(ledger: Ledger, name: str, *, forget: bool) -> None:
    places = load_places(ledger)
    if not any(place.name == name and (forget or not place.gone) for place in places):
        raise Refused(
            f"a place must be one that has a name, got none of the name {name!r}: see `trailveil "
            "place list`"
        )
    others = [place for place in places if place.name != name]
    gone = [replace(place, gone=True) for place in places if place.name == name]
    save_places(ledger, others if forget else [*others, *gone])


def _uncounted(book: Book, ident: bytes) -> int:
    """How many releases of tracks stand that do not count for a place of this ident."""
    rows = (row for row in book.standing() if not row.series)
    return sum(all(place != ident for place, _ in row.marked) for row in rows)


def _not_counted(name: str, count: int) -> str:
    """A warning that so many releases came before a place had its name."""
    return (
        f"{count_of(count, 'release')} came before this name. Visits of {name} in them do not "
        "count for it: fewer visits are left than will be said. From its next visit on, `trailveil "
        "ledger show` says what all tell if the hidden parts of those releases are there."
    )


def cut_minutes(place: Place, ways: int) -> dict[str, float | None]:
    """Minutes beyond a visit at an end of a recording that are cut, by activity.

    For so many visits together; None for more than a day.
    """
    minutes: dict[str, float | None] = {}
    for name, floor in ACTIVITIES.items():
        asked = Request((), floor=floor)
        try:
            seconds = least_cut(asked.slowest, place.variance * ways / place.ways, 1)
        except Refused:
            minutes[name] = None
        else:
            minutes[name] = max(seconds + asked.uncertain, place.withhold or 0.0) / 60
    return minutes


def _in_words(minutes: dict[str, float | None]) -> str:
    listed = ", ".join(
        f"{name} {'over a day' if length is None else f'{length:.0f}'}"
        for name, length in minutes.items()
    )
    return f"{listed} min"


def _moved(metres: float | None) -> str:
    return (
        "no noise (of an earlier version: state it anew with --change)"
        if metres is None
        else f"by noise moved by {metres:,.0f} m"
    )


def _at(place: Place, seconds: float) -> str:
    size = float(np.linalg.norm(place.noise.at(np.array([seconds]), [(0.0, 0.0)])))
    return f"{2**0.5 * size:,.0f} m"


def _told(place: Place, *, where: bool) -> dict[str, Any]:
    at = place.circle
    described = {
        "name": place.name,
        "radius_m": place.radius,
        "epsilon": place.epsilon,
        "order": place.order,
        "ways": place.ways,
        "withhold_s": place.withhold,
        "prior": place.prior,
        "adversaries": [who.value for who in place.who],
        "cut_min": cut_minutes(place, place.ways),
        "moved_m": None if place.designed_noise is None else float(2**0.5 * place.noise.std),
    }
    return (
        {**described, "near": f"{at.latitude},{at.longitude},{said(at.metres)}"}
        if where
        else described
    )
