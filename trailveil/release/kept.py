"""Fields that were asked for leave with a release, but not near what is protected.

Nothing in them is protected, so they are reckoned to give the true path away wherever they are
kept. An adversary who knows the whole path, but for 5 minutes around each protected part, is one of
those whom noise is made against. Fields are left out for twice as long: whoever reads the path from
the rest, however well, is left with more metres than that adversary.

Where a part is protected by withholding alone, every place that is released is exact, and an
elevation or a temperature tells no more of it. So those stay. Fields of movement are left out there
as well: a speed at the edge of what is withheld tells how the way goes on.

Blanks tell when, to some minutes: they begin and end at whole five minutes since the first fix that
is released.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Refused
from trailveil.privacy.adversaries import Named
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

AROUND = 600.0
"""Seconds around a protected part in which no field is released."""

EDGES = 300.0
"""Seconds: fields are left out from a whole multiple of them to another: see above."""


MOVEMENT = frozenset({"speed", "course", "cadence", "power"})
"""Fields that tell how somebody moves on."""


def with_fields_left_out(
    trace: Trace,
    stretches: Sequence[Stretch],
    who: Iterable[Named],
    since: int,
    *,
    only: Collection[str] | None = None,
) -> Trace:
    """The trace without its fields around the stretches.

    since: time of the first fix that is released, nanoseconds since 1970. only: the names of those
    that are left out; None is all. Raises Refused where the
    trace has fields and the noise is not made against who knows the path.
    """
    names = {name for name, _ in trace.fields if only is None or name in only}
    if not (names and stretches):
        return trace
    if Named.PATH not in set(who):
        raise Refused(
            "kept fields must come with noise that is made against who knows the path, which they "
            "can give away, got other noise: add --adversary path, or leave --keep out (of a place "
            "with a name: trailveil place add --change)"
        )
    hidden = left_out(trace, stretches, since)
    fields = tuple(
        (name, np.where(hidden & (name in names), np.nan, values)) for name, values in trace.fields
    )
    return replace(trace, fields=fields)


def left_out(trace: Trace, stretches: Sequence[Stretch], since: int) -> NDArray[np.bool_]:
    """At which fixes (n,) of a trace no field is released; since: as above."""
    around, step = round(AROUND * NANOSECONDS), round(EDGES * NANOSECONDS)
    blank = np.zeros(len(trace), dtype=np.bool_)
    for stretch in stretches:
        begin = (stretch.begin - around - since) // step * step + since
        end = -((since - stretch.end - around) // step) * step + since
        blank |= (trace.times >= begin) & (trace.times <= end)
    return blank
