"""Fields that were asked for leave with a release, but not near what is protected.

Nothing in them is protected, so they are reckoned to give the true path away wherever they are
kept. Somebody who knows the path, but for the minutes around each protected part, is one of those
whom noise is made against: so that much is left out around each, and a release with fields tells
its reader no more than that adversary is granted.

Blanks tell when: to about five minutes, as they begin and end at whole ones since the first fix.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.adversaries import Named
from trailveil.errors import Refused
from trailveil.selection import Stretch
from trailveil.trace import NANOSECONDS, Trace

AROUND = 300.0
"""Seconds around a protected part in which no field is released: those in which who knows the path
(`trailveil.adversary.knows_the_path`) does not know it."""


def with_fields_left_out(trace: Trace, stretches: Sequence[Stretch], who: Iterable[Named]) -> Trace:
    """The trace without its fields around the stretches.

    Raises Refused where it has fields and the noise is not made against who knows the path.
    """
    if not trace.fields:
        return trace
    if Named.PATH not in set(who):
        raise Refused(
            "kept fields must come with noise that is made against who knows the path, which they "
            "can give away, got other noise: add --adversary path, or leave --keep out"
        )
    hidden = left_out(trace, stretches)
    fields = tuple((name, np.where(hidden, np.nan, values)) for name, values in trace.fields)
    return replace(trace, fields=fields)


def left_out(trace: Trace, stretches: Sequence[Stretch]) -> NDArray[np.bool_]:
    """At which fixes (n,) of a trace no field is released."""
    first, step = int(trace.times[0]), round(AROUND * NANOSECONDS)
    found = np.zeros(len(trace), dtype=np.bool_)
    for one in stretches:
        begin = (one.begin - step - first) // step * step + first
        end = -((first - one.end - step) // step) * step + first
        found |= (trace.times >= begin) & (trace.times <= end)
    return found
