"""The report of released readings as a page: see trailveil.report.pages, whose rules hold here.

In place of a map there is a chart over time, which begins at the first released reading, and in
place of a circle an interval: in the page for others of the size that the public report states, and
beside the chart, at no time of it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trailveil.errors import said
from trailveil.plots.curves import Series, noise_figure, series_figure
from trailveil.plots.svg import inline
from trailveil.release.readings_release import ReadingsPlan
from trailveil.report.guesses import guesses_of_readings
from trailveil.report.pages import KEEP_IT, numbers_of, page_of
from trailveil.report.parts import Cell, Picture, Section, Table, duration
from trailveil.report.readings import in_sentences_readings
from trailveil.traces.readings import Readings
from trailveil.traces.stated_times import in_words
from trailveil.traces.trace import NANOSECONDS

_FOR_OTHERS = (
    "This page is for others to read. It is made of the released file and the public report alone, "
    "and holds nothing that these two do not hold: the true readings are not in it, and which "
    "times are protected is not told. Away from these the released ones can be close to the true."
)


def public_page_readings(found: dict[str, Any], released: Readings) -> bytes:
    """The page for others. found: of `record_readings` with private=False."""
    size, unit = found["worst"]["interval_68"], found["target"]["unit"]
    shown = Series(released.seconds, released.values, size=size)
    words = _of_series(released, unit)
    if size is not None:
        when = "any time" if found["target"]["every_reading"] else "a protected time"
        words += (
            f" At the right edge, at the scale of the chart: {said(size, 3)} {unit} either way. "
            f"Somebody who knows how such readings vary can narrow down a value at {when} to an "
            "interval of this size around a guess of theirs. Where it is drawn says nothing."
        )
    picture = Picture(inline(series_figure(shown), "series", "The released readings", words), words)
    section = Section("The released readings", pictures=[picture])
    return _page(found, [section], _FOR_OTHERS)


def private_page_readings(found: dict[str, Any], plan: ReadingsPlan, drawn: Readings) -> bytes:
    """The page for the owner. found: of `record_readings` with private=True, of this plan."""
    readings, unit = plan.readings, found["target"]["unit"]
    first = int(readings.times[0])
    guessed = guesses_of_readings(plan, drawn)
    halves = [one["interval_68"] for one in found.get("secrets", [])]
    marks, rows = [], []
    for one in guessed:
        half = halves[one.number - 1]
        middle = ((one.begin + one.end) / 2 - first) / NANOSECONDS
        if half is not None:
            marks.append((middle, one.place[0], float(half)))
        begin, end = in_words(one.begin), in_words(one.end)
        when = begin if one.begin == one.end else f"{begin} to {end}"
        wide = "nothing is learnt" if half is None else f"{said(half, 3)} {unit}"
        guess = Cell(f"{said(one.place[0], 3)} {unit}")
        rows.append((Cell(str(one.number)), Cell(when), guess, Cell(wide, half)))
    spans = [stretch.seconds(readings) for stretch in plan.request.stretches]
    seconds = np.asarray((drawn.times - first) / NANOSECONDS)
    true = (readings.seconds, readings.values)
    shown = Series(seconds, drawn.values, true, spans, marks)
    words = (
        f"{_of_series(drawn, unit)} Dashed: the true readings. Shaded: what is protected, with the "
        "best guess of somebody who knows how such readings vary, of the value or of the mean, and "
        "the interval around it that is right in 68 of 100 cases."
    )
    title = "The true and the released readings"
    picture = Picture(inline(series_figure(shown), "series", title, words), words)
    head = ("Part", "When", "Best guess", "Either way")
    table = Table("What somebody thinks, given the release", head, tuple(rows))
    section = Section(title, pictures=[picture], tables=[table] if rows else [])
    return _page(found, [section, _noise(found, plan, spans)], KEEP_IT.replace("track", "readings"))


def _page(found: dict[str, Any], drawn: Sequence[Section], lead: str) -> bytes:
    return page_of(found, in_sentences_readings(found), _numbers(found), drawn, lead)


def _numbers(found: dict[str, Any]) -> Table:
    worst, noise, unit = found["worst"], found["mechanism"], found["target"]["unit"]
    rows = [
        *numbers_of(worst),
        _in_unit("Right in 68 of 100 cases, either way", worst["interval_68"], unit),
        (Cell("Readings released"), _count(noise["released_readings"])),
        (Cell("Readings withheld"), _count(noise["withheld_readings"])),
    ]
    for entry, words in (
        ("rms", "Moved on average (root mean square)"),
        ("largest_std", "Moved where most (root mean square)"),
        ("largest_99", "Moved there by no more than, in 99 of 100 draws"),
    ):
        if noise[entry] is not None:
            rows.append(_in_unit(words, noise[entry], unit))
    return Table("The same in numbers", ("What", "How much"), tuple(rows))


def _count(number: int) -> Cell:
    return Cell(f"{number:,}", number)


def _in_unit(words: str, value: float | None, unit: str) -> tuple[Cell, ...]:
    shown = "nothing is learnt" if value is None else f"{said(value, 3)} {unit}"
    return Cell(words), Cell(shown, value)


def _of_series(shown: Readings, unit: str) -> str:
    """The chart in a sentence, of what is released alone."""
    low, high = float(np.min(shown.values)), float(np.max(shown.values))
    length = duration(float(shown.seconds[-1]))
    values = f"from {said(low, 4)} to {said(high, 4)} {unit}"
    return f"The released readings: {len(shown):,} over {length}, {values}."


def _noise(
    found: dict[str, Any], plan: ReadingsPlan, spans: Sequence[tuple[float, float]]
) -> Section:
    noise, unit = found["mechanism"], found["target"]["unit"]
    spread = np.sqrt(plan.mechanism.variances)
    spread[~np.asarray(plan.mechanism.released)] = np.nan
    words = (
        f"How far the design moves each reading (standard deviation): {said(noise['rms'], 3)} "
        f"{unit} on "
        f"average, {said(noise['largest_std'], 3)} {unit} where most; no line where nothing is "
        "released."
    )
    figure = noise_figure(plan.readings.seconds, spread, spans, "")
    svg = inline(figure, "noise", "The noise over time", words)
    return Section("The noise over time", pictures=[Picture(svg, words)])
