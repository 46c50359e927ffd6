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
from typing import TYPE_CHECKING, Any

import numpy as np

from trailveil.errors import said
from trailveil.gp.gaussian import FloatArray
from trailveil.plots import Ring, Shown, lines_of, map_figure, metres
from trailveil.plots.curves import Series, chances_figure, noise_figure, series_figure
from trailveil.plots.drawing import inline
from trailveil.release.plan import Plan
from trailveil.report.brief import in_short
from trailveil.report.guesses import (
    Guess,
    guesses,
    guesses_of_readings,
    guesses_of_visits,
    visits_of,
)
from trailveil.report.html import Page, rendered
from trailveil.report.parts import Cell, Picture, Section, Table, duration, paragraph
from trailveil.report.schema import METRES, READER, Guaranteed, ReleaseReport, of_any, unit_of
from trailveil.report.text import in_sections, length, noun, things
from trailveil.traces.projection import MICRO, Frame
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Stretch
from trailveil.traces.stated_times import in_words
from trailveil.traces.trace import NANOSECONDS, Trace

if TYPE_CHECKING:  # traces are released without it
    from trailveil.release.readings_release import ReadingsPlan

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


def public_page(report: ReleaseReport, released: Trace | Readings) -> bytes:
    """The page for others. report: of `record` with private=False. released: as it leaves."""
    report = of_any(report)
    if isinstance(released, Readings):
        return _page(report, [_public_chart(report, released)], _of_series(FOR_OTHERS))
    frame = Frame(report["frame"]["latitude"], report["frame"]["longitude"])
    size = report["worst"]["circle_68_m"]
    longest = float(np.max(np.ptp(metres(frame, released.positions), axis=0)))
    fits = size is not None and size <= _LARGEST * longest
    shown = Shown(frame, lines_of(frame, released), size=size if fits else None)
    words = _of_track(released, frame) + _of_size(report, size, drawn=fits)
    picture = Picture(inline(map_figure(shown), "map", "The released track", words), words)
    return _page(report, [Section("The released track", pictures=[picture])], FOR_OTHERS)


def private_page(report: ReleaseReport, plan: "Plan | ReadingsPlan", drawn: Any) -> bytes:
    """The page for the owner. report: of `record` with private=True, of this plan.

    drawn: what was released, at its recorded times.
    """
    report = of_any(report)
    if not isinstance(plan, Plan):
        spans = [stretch.seconds(plan.trace) for stretch in plan.request.stretches]
        pictures = [_private_chart(report, plan, drawn, spans), _noise(report, plan, spans)]
        return _page(report, pictures, _of_series(KEEP_IT))
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
    parts = [Stretch(row.label, row.guess.begin, row.guess.end) for row in drawn_rows]
    hidden = [recorded[part.rows(plan.trace)] for part in parts]
    track = Section(
        "The true and the released track",
        pictures=[picture, *_nearer(shown, hidden)],
        tables=[table] if rows else [],
    )
    parts = [finding.stretch for finding in plan.findings]
    if not plan.request.method.cuts:
        parts += [visit for visited in plan.visited for visit in visits_of(plan, visited)]
    spans = [part.seconds(plan.trace) for part in parts]
    moved = [_noise(report, plan, spans)] if plan.mechanism.max_std else []
    return _page(report, [track, *moved], KEEP_IT)


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
    how = {"things": things(unit_of(report))}
    return page_of(report, in_sections(report), numbers(report), [first, *drawn[1:]], lead, **how)


def page_of(
    report: Any,
    sections: Sequence[Section],
    table: Table,
    drawn: Sequence[Section],
    lead: str,
    things: str = "places",
) -> bytes:
    """A page: what is drawn, the map first, what is promised, and all that is said besides.

    report: of a release. sections: of it in words, what it is about, then the promise. table: of
    the promise. things: what is told apart.
    """
    about, promise, *others = sections
    right = 100 * (0.5 + report["worst"]["advantage"] / 2)
    words = (
        f"Between two {things}, the best guess is right {right:.0f} times in 100; a tossed coin is "
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
    worst, noise, unit = report["worst"], report["mechanism"], unit_of(report)
    many, size = ("Fixes", "A circle that is right") if unit == METRES else ("Readings", "Right")
    way = "" if unit == METRES else ", either way"
    rows = [
        *numbers_of(worst),
        _row(f"{size} in 68 of 100 cases{way}", worst["circle_68_m"], unit),
        (Cell(f"{many} released"), Cell(f"{noise['released_fixes']:,}", noise["released_fixes"])),
    ]
    if (silent := noise["withheld_fixes"]) is not None:
        rows.append((Cell(f"{many} withheld"), Cell(f"{silent:,}", silent)))
    for words, moved in (
        ("Moved on average (root mean square)", noise["rms_m"]),
        ("Moved where most (root mean square)", noise["largest_rms_m"]),
        ("Moved there by no more than, in 99 of 100 draws", noise["largest_99_m"]),
    ):
        if moved:  # nothing is moved by a cut
            rows.append(_row(words, moved, unit))
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


def _row(words: str, value: float | None, unit: str) -> tuple[Cell, ...]:
    return Cell(words), Cell("nothing is learnt" if value is None else length(value, unit), value)


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
        label = f"{row.label}, {row.name}" if row.name else row.label
        place = Cell(f"{latitude:.5f}, {longitude:.5f}")
        lines.append((Cell(label), _when(row.guess), place, _row("", row.radius, METRES)[1]))
    head = ("Circle", "When", "Best guess", "Radius")
    return Table("Where somebody looks, given the release", head, tuple(lines))


def _when(guess: Guess) -> Cell:
    begin, end = in_words(guess.begin), in_words(guess.end)
    return Cell(begin if guess.begin == guess.end else f"{begin} to {end}")


def _noise(
    report: ReleaseReport, plan: "Plan | ReadingsPlan", spans: Sequence[tuple[float, float]]
) -> Section:
    """The noise over time, and what is protected."""
    noise, seconds, unit = report["mechanism"], plan.trace.seconds, unit_of(report)
    spread = np.sqrt((2 if isinstance(plan, Plan) else 1) * plan.mechanism.variances)
    spread[~np.asarray(plan.mechanism.released)] = np.nan
    words = (
        f"How far the design moves each {noun(unit)} (root mean square): "
        f"{length(noise['rms_m'], unit)} on average, {length(noise['largest_rms_m'], unit)} where "
        "most; no line where nothing is released."
    )
    if spans:
        words += f" Shaded: what is protected ({len(spans)} of times and stays)."
    figure = noise_figure(seconds, spread, spans, unit if unit == METRES else "")
    svg = inline(figure, "noise", "The noise over time", words)
    return Section("The noise over time", pictures=[Picture(svg, words)])


def _of_series(lead: str) -> str:
    return lead.replace("track", "series")


def _public_chart(report: ReleaseReport, released: Readings) -> Section:
    """Released readings over time, which begins at the first, and beside them an interval.

    It has the size that the public report states, and is at no time of the chart.
    """
    size, unit = report["worst"]["circle_68_m"], unit_of(report)
    words = _in_a_sentence(released, unit)
    if size is not None:
        when = "any time" if report["target"].get("every_reading") else "a protected time"
        words += (
            f" At the right edge, at the scale of the chart: {length(size, unit)} either way. "
            f"The best guess of {READER}, of a value at {when}, is as wide. Where it is drawn says "
            "nothing."
        )
    figure = series_figure(Series(released.seconds, released.values, size=size))
    return _charted("The released readings", figure, words)


def _private_chart(
    report: ReleaseReport,
    plan: "ReadingsPlan",
    drawn: Readings,
    spans: Sequence[tuple[float, float]],
) -> Section:
    """The true and the released readings, and the best guess of each part."""
    unit, first = unit_of(report), int(plan.trace.times[0])
    marks, rows = [], []
    for guess in guesses_of_readings(plan, drawn):
        half = report["secrets"][guess.number - 1]["circle_68_m"]
        middle = ((guess.begin + guess.end) / 2 - first) / NANOSECONDS
        if half is not None:
            marks.append((middle, guess.place[0], half))
        label, value = Cell(str(guess.number)), Cell(length(guess.place[0], unit))
        rows.append((label, _when(guess), value, _row("", half, unit)[1]))
    seconds = np.asarray((drawn.times - first) / NANOSECONDS)
    true = (plan.trace.seconds, plan.trace.values)
    words = (
        f"{_in_a_sentence(drawn, unit)} Dashed: the true readings. Shaded: what is protected, with "
        f"the best guess of {READER}, of the value or of the mean, and the interval around it that "
        "is right in 68 of 100 cases."
    )
    head = ("Part", "When", "Best guess", "Either way")
    table = Table("What somebody thinks, given the release", head, tuple(rows))
    figure = series_figure(Series(seconds, drawn.values, true, spans, marks))
    section = _charted("The true and the released readings", figure, words)
    return replace(section, tables=[table] if rows else [])


def _charted(title: str, figure: Any, words: str) -> Section:
    return Section(title, pictures=[Picture(inline(figure, "series", title, words), words)])


def _in_a_sentence(shown: Readings, unit: str) -> str:
    """The chart in a sentence, of what is released alone."""
    values = (
        f"from {said(float(np.min(shown.values)), 4)} to {said(float(np.max(shown.values)), 4)}"
    )
    return (
        f"The released readings: {len(shown):,} over {duration(shown.duration)}, {values} {unit}."
    )
