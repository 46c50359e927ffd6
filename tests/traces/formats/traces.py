"""Traces to write, drawn by hypothesis or made, and a sample file of each format."""

import io
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from trailveil.traces.fields import FIELDS
from trailveil.traces.formats import write
from trailveil.traces.formats.table import Format
from trailveil.traces.projection import MICRO
from trailveil.traces.trace import Trace

LATITUDES = st.integers(-90 * MICRO, 90 * MICRO)
LONGITUDES = st.integers(-180 * MICRO, 180 * MICRO - 1)
MOMENTS = st.integers(-(2**62), 2**62)


@st.composite
def traces(draw: st.DrawFn) -> tuple[Trace, np.ndarray]:
    """A trace whose segments all have fixes, interleaved in time, and its positions as integers."""
    times = sorted(draw(st.sets(MOMENTS, min_size=1, max_size=12)))
    count = len(times)
    grid = np.array(
        draw(st.lists(st.tuples(LATITUDES, LONGITUDES), min_size=count, max_size=count))
    )
    parts = draw(st.integers(1, count))
    further = draw(
        st.lists(st.integers(0, parts - 1), min_size=count - parts, max_size=count - parts)
    )
    segments = draw(st.permutations([*range(parts), *further]))
    steps = draw(st.lists(st.booleans(), min_size=parts - 1, max_size=parts - 1))
    tracks = tuple(int(number) for number in np.cumsum([0, *steps]))
    return Trace(np.array(times), grid / MICRO, np.array(segments), tracks), grid


@st.composite
def traces_with_fields(draw: st.DrawFn) -> tuple[Trace, np.ndarray]:
    """The same with some fields, stated at some fixes and impossible at others."""
    trace, grid = draw(traces())
    odd = st.sampled_from([np.nan, np.inf, -np.inf, 1e308, -1e6])
    fields = [
        (name, draw(st.lists(odd | st.floats(least, most), min_size=len(grid), max_size=len(grid))))
        for name in sorted(draw(st.sets(st.sampled_from(sorted(FIELDS)))))
        for least, most in [(FIELDS[name].least, FIELDS[name].most)]
    ]
    return replace(trace, fields=tuple((name, np.array(numbers)) for name, numbers in fields)), grid


def timed(trace: Trace, row: Format) -> Trace:
    """The trace, at times that a format has room for."""
    if not row.whole_seconds:
        return trace
    return replace(trace, times=(START + 7 * np.arange(len(trace))) * 10**9)


def written(trace: Trace, suffix: str, grid: np.ndarray | None = None) -> bytes:
    """What a format writes of a trace."""
    stream = io.BytesIO()
    write(trace, stream, suffix, grid=grid)
    return stream.getvalue()


START = 1_714_548_600  # 2024-05-01T07:30:00Z
COUNT = 40
SECONDS = START + 5 * np.arange(COUNT)
PLACES = np.array([[46_123_456 + 100 * i, 7_654_321 + 200 * i] for i in range(COUNT)]) / MICRO
TRACE = Trace(SECONDS * 10**9, PLACES, np.zeros(COUNT, dtype=np.intp), (0,))
