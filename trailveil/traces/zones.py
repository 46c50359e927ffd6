"""The time zone of a recording, by where it is: for times that people read and write.

Borders are simplified to a few hundred metres (tzfpy), so a zone counts only where all of a
recording has it. No host is asked.
"""

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from trailveil.traces.trace import Trace

# Fixes that are looked up: each takes microseconds, but a recording may have millions.
_LOOKED_UP = 50


def zone_of(trace: Trace) -> ZoneInfo | None:
    """The zone that all of a trace is in; None where there are several, or none is known."""
    from tzfpy import get_tz

    rows = np.unique(np.linspace(0, len(trace) - 1, min(len(trace), _LOOKED_UP)).astype(int))
    extremes = (*trace.positions.argmin(axis=0), *trace.positions.argmax(axis=0))
    places = trace.positions[[*rows, *extremes]]
    names = {get_tz(float(longitude), float(latitude)) for latitude, longitude in places}
    if len(names) != 1:
        return None
    name = names.pop()
    if not name or name.startswith("Etc/"):  # at sea nobody says what clocks show
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None  # the zones of this machine are older than those of the library
