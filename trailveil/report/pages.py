"""The report of a released trace as a page: one for others, one for its owner alone.

What the page for others may hold. It is made by `public_page` from two things only: the public
report (`record(..., private=False)`), and the fixes as they are released. Whatever is drawn or
written there is computed from these, so it tells nobody more than the two do. In particular:

- Circles. What an adversary is left with is a circle around where they look, and both depend on
  when the noise is: around a protected time it is wide and the guess is a smooth average, elsewhere
  it is narrow. A circle at each protected time would tell the times; circles at other times, too,
  if their radii or centres were those of this noise, since who can run the program finds the times
  that give just these. Circles of one size at evenly spread times would tell nothing, but would
  promise at each of these times what holds at protected ones only. So there is one circle, of the
  size that the public report states, beside the map at its scale, and at no place of it.
- Noise along the way: its size is largest at the protected times, so no picture and no metres of it
  are there (the public report leaves these out for the same reason).
- The limits, the grid and the scale of the map follow from the released fixes and from that size.
- Times: no time of day is written, of the recording or of anything else. When the fixes were is in
  the released file.

With noise for every place there are no protected times to tell, and the public report states the
metres of the noise; the page is made in the same way.

The page for the owner adds the true track, the protected times, a circle around the best guess at
each of them (trailveil.report.guesses), and the noise over time. It is marked as private.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trailveil.errors import said
from trailveil.gp.gaussian import FloatArray
from trailveil.plots import Ring, Shown, lines_of, map_figure, metres
from trailveil.plots.curves import chances_figure, noise_figure
from trailveil.plots.svg import inline
from trailveil.release.plan import Plan
from trailveil.report.brief import in_short
from trailveil.report.guesses import Guess, guesses, guesses_of_visits, visits_of
from trailveil.report.html import Page, rendered
from trailveil.report.parts import Cell, Picture, Section, Table, duration, paragraph
from trailveil.report.schema import Guaranteed, ReleaseReport
from trailveil.report.text import in_sections
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.stated_times import in_words
from trailveil.traces.trace import Trace

FOR_OTHERS = (
    "This page is for others. It holds nothing but what the released file and its public report "
    "hold: neither the true track nor the protected times. Elsewhere the released track can be the "
    "true one."
)
KEEP_IT = (
    "This page is for you alone. It shows your true track and the protected times. Do not publish "
    "it, do not send it, do not keep it beside the released file."
)


# How many times as long as the track the radius of a circle beside it may be.
_LARGEST = 2.0
# A circle is drawn again, nearer, where the track is so many times as long as its radius; so many.
_SMALL, _MOST_NEARER = 10.0, 8


@dataclass(frozen=True, slots=True)
class _Row:
    """A guess, what its circle is called, the name of its place if it has one, and its radius."""

    label: str
    name: str
    guess: Guess
    radius: float | None


def public_page(report: ReleaseReport, released: Trace) -> bytes:
    """The page for others. found: of `record` with private=False. released: as it leaves."""
    frame = Frame(report["frame"]["latitude"], report["frame"]["longitude"])
    size = report["worst"]["circle_68_m"]
    longest = float(np.max(np.ptp(metres(frame, released.positions), axis=0)))
    fits = size is not None and size <= _LARGEST * longest
    shown = Shown(frame, lines_of(frame, released), size=size if fits else None)
    words = _of_track(released, frame) + _of_size(report, size, drawn=fits)
    picture = Picture(inline(map_figure(shown), "map", "The released track", words), words)
    return _page(report, [Section("The released track", pictures=[picture])], FOR_OTHERS)


def private_page(report: ReleaseReport, plan: Plan, drawn: Trace) -> bytes:
    """The page for the owner. found: of `record` with private=True, of this plan.

    drawn: what was released, at its recorded times.
    """
    frame = plan.frame
    guessed = guesses(plan, drawn)
    radii = [secret["circle_68_joint_m"] for secret in report.get("secrets", [])]
    if plan.everywhere:
        radii = [report["worst"]["circle_68_m"]] * len(guessed)
    rows = [_Row(str(guess.number), "", guess, radii[guess.number - 1]) for guess in guessed]
    for number, (visited, place) in enumerate(
        zip(plan.visited, report["places"], strict=True), start=1
    ):
        size = place["left"][0]["circle_68_m"] if place["left"] else None
        if place["cut"]:  # among the protected parts
            continue
        rows += [
            _Row(f"P{number}", visited.place.name, guess, size)
            for guess in guesses_of_visits(plan, drawn, visited)
        ]
    drawn_rows = [row for row in rows if row.radius is not None]
    rings = [
        Ring(row.guess.place[0], row.guess.place[1], row.radius or 0.0, row.label)
        for row in drawn_rows
    ]
    recorded = metres(frame, plan.trace.positions)
    shown = Shown(frame, lines_of(frame, drawn), recorded, rings)
    words = (
        f"{_of_track(drawn, frame)} Dashed: your true track. Circles: where a stranger would look "
        "for you. A stranger knows how people move, and how this release was made. You are inside "
        "at most 68 times in 100."
    )
    picture = Picture(
        inline(map_figure(shown), "map", "The true and the released track", words), words
    )
    table = _where(frame, rows)
    hidden = [_during(plan.trace, recorded, row.guess) for row in drawn_rows]
    track = Section(
        "The true and the released track",
        pictures=[picture, *_nearer(shown, hidden)],
        tables=[table] if rows else [],
    )
    moved = [_noise(report, plan)] if plan.mechanism.max_std else []
    return _page(report, [track, *moved], KEEP_IT)


def _during(trace: Trace, places: FloatArray, guess: Guess) -> FloatArray:
    """Those of the places (n, 2) where somebody was while the part of a guess lasted."""
    return places[(trace.times >= guess.begin) & (trace.times <= guess.end)]


def _nearer(shown: Shown, hidden: Sequence[FloatArray]) -> list[Picture]:
    """A map around each circle that is small on that of the whole.

    hidden: of each circle the true places (k, 2), metres, which are on its map.
    """
    recorded = [] if shown.recorded is None else [shown.recorded]
    longest = float(np.max(np.ptp(np.concatenate([*shown.released, *recorded]), axis=0)))
    pictures = []
    for number, (ring, places) in enumerate(
        list(zip(shown.rings, hidden, strict=True))[:_MOST_NEARER]
    ):
        if _SMALL * ring.radius > longest:
            continue
        middle = np.array([[ring.east, ring.north]])
        around = np.concatenate([middle - ring.radius, middle + ring.radius, places])
        words = f"Nearer: circle {ring.name}, of {ring.radius:,.0f} m, and what is hidden."
        figure = map_figure(replace(shown, around=around))
        title = f"Circle {ring.name}, nearer"
        pictures.append(Picture(inline(figure, f"nearer{'abcdefgh'[number]}", title, words), words))
    return pictures


def _page(report: ReleaseReport, drawn: Sequence[Section], lead: str) -> bytes:
    below = [item for words in in_short(report) for item in paragraph(words)]
    first = replace(drawn[0], below=below)
    return page_of(report, in_sections(report), numbers(report), [first, *drawn[1:]], lead)


def page_of(
    report: Any, sections: Sequence[Section], table: Table, drawn: Sequence[Section], lead: str
) -> bytes:
    """A page: what is drawn, the map first, what is promised, and all that is said besides.

    report: of a release, of places or of readings. sections: of it in words, what it is about, then
    the promise. table: of the promise.
    """
    about, promise, *others = sections
    right = 100 * (0.5 + report["worst"]["advantage"] / 2)
    words = (
        f"Between two places, the best guess is right {right:.0f} times in 100; a tossed coin is "
        "right 50 times."
    )
    chances = inline(chances_figure(right), "chances", "How often a guess is right", words)
    promise = replace(promise, pictures=[Picture(chances, words)], tables=[table])
    prior = report["prior"]
    return rendered(
        Page(
            f"What {report['output']} promises",
            lead,
            [drawn[0], promise, *drawn[1:], *others],
            f"Made by Trailveil {report['trailveil']}. Prior: {prior['name']}, {prior['kernel']}.",
            report["private"],
            about.items,
        )
    )


def numbers(report: ReleaseReport) -> Table:
    """The figures of the report, as they stand in the JSON of it."""
    worst, noise = report["worst"], report["mechanism"]
    rows = [
        *numbers_of(worst),
        _metres_row("A circle that is right in 68 of 100 cases", worst["circle_68_m"]),
        (Cell("Fixes released"), Cell(f"{noise['released_fixes']:,}", noise["released_fixes"])),
    ]
    if (silent := noise["withheld_fixes"]) is not None:
        rows.append((Cell("Fixes withheld"), Cell(f"{silent:,}", silent)))
    for words, moved in (
        ("Moved on average (root mean square)", noise["rms_m"]),
        ("Moved where most (root mean square)", noise["largest_rms_m"]),
        ("Moved there by no more than, in 99 of 100 draws", noise["largest_99_m"]),
    ):
        if moved:  # nothing is moved by a cut
            rows.append(_metres_row(words, moved))
    return Table("The same in numbers", ("What", "How much"), tuple(rows))


def numbers_of(worst: Guaranteed) -> list[tuple[Cell, ...]]:
    """Rows of what a guarantee means."""
    return [
        (
            Cell(f"Epsilon (Renyi order {said(worst['order'])})"),
            Cell(f"{said(worst['epsilon'], 3)}", worst["epsilon"]),
        ),
        (Cell("mu"), Cell(f"{said(worst['mu'], 3)}", worst["mu"])),
        (
            Cell("Odds change by less than a factor of, in 99 of 100 cases"),
            Cell(f"{said(worst['odds_factor_99'], 2)}", worst["odds_factor_99"]),
        ),
        (
            Cell("Advantage of the best guess over a coin"),
            Cell(f"{said(worst['advantage'], 2)}", worst["advantage"]),
        ),
    ]


def _metres_row(words: str, value: float | None) -> tuple[Cell, ...]:
    return Cell(words), Cell("nothing is learnt" if value is None else f"{value:,.0f} m", value)


def _of_track(shown: Trace, frame: Frame) -> str:
    """The map in a sentence, of what is released alone."""
    places = metres(frame, shown.positions)
    wide, tall = np.ptp(places, axis=0) / 1000
    lines = lines_of(frame, shown)
    way = sum(float(np.sum(np.hypot(*np.diff(line, axis=0).T))) for line in lines) / 1000
    return (
        f"The released track: {len(shown):,} fixes over {duration(shown.duration)}, {wide:.1f} km "
        f"from west to east and {tall:.1f} km from south to north, {way:.1f} km of way."
    )


def _of_size(report: ReleaseReport, size: float | None, *, drawn: bool) -> str:
    if size is None:
        return " A stranger learns nothing of a protected place, so there is no circle."
    when = "any time" if "everywhere" in report else "a protected time"
    where = "Below the map, at its scale: " if drawn else "Too large to be drawn beside it: "
    return (
        f" {where}a circle of {size:,.0f} m. A stranger's best guess of the place at {when} is as "
        "wide. Where it is drawn says nothing."
    )


def _where(frame: Frame, rows: Sequence[_Row]) -> Table:
    """The circles in numbers: when, around which place, how wide."""
    lattice = [np.round(np.array(row.guess.place) * MICRO) for row in rows]
    at = frame.to_degrees(np.array(lattice).reshape(-1, 2).astype(np.int64)) / MICRO
    lines = []
    for row, (latitude, longitude) in zip(rows, at.tolist(), strict=True):
        guess = row.guess
        begin, end = in_words(guess.begin), in_words(guess.end)
        label = f"{row.label}, {row.name}" if row.name else row.label
        when = begin if guess.begin == guess.end else f"{begin} to {end}"
        nothing = row.radius is None
        wide = Cell("nothing is learnt" if nothing else f"{row.radius:,.0f} m", row.radius)
        lines.append((Cell(label), Cell(when), Cell(f"{latitude:.5f}, {longitude:.5f}"), wide))
    head = ("Circle", "When", "Best guess", "Radius")
    return Table("Where somebody looks, given the release", head, tuple(lines))


def _noise(report: ReleaseReport, plan: Plan) -> Section:
    """The noise over time, and what is protected."""
    noise, seconds = report["mechanism"], plan.trace.seconds
    spread = np.sqrt(2 * plan.mechanism.variances)
    spread[~np.asarray(plan.mechanism.released)] = np.nan
    parts = [finding.stretch for finding in plan.findings]
    if not plan.request.method.cuts:
        parts += [visit for visited in plan.visited for visit in visits_of(plan, visited)]
    spans = [part.seconds(plan.trace) for part in parts]
    words = (
        f"How far the design moves each fix (root mean square): {noise['rms_m']:,.0f} m on "
        f"average, {noise['largest_rms_m']:,.0f} m where most; no line where nothing is released."
    )
    if spans:
        words += f" Shaded: what is protected ({len(spans)} of times and stays)."
    svg = inline(noise_figure(seconds, spread, spans, "m"), "noise", "The noise over time", words)
    return Section("The noise over time", pictures=[Picture(svg, words)])
