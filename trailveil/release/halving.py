"""What would leave half of a recording, where a cut leaves less: public numbers, tried in turn."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trailveil.errors import Refused
from trailveil.release.common import Common
from trailveil.release.plan import of_one_place, released_rows
from trailveil.release.request import Request
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.trace import Trace


def leaving_half(
    trace: Trace, request: Request, common: Sequence[Common] = (), slowest: float = math.inf
) -> tuple[str, ...]:
    """The options that would leave half of the fixes: the largest radius, the slowest activity.

    None where half is left as it is, where there is no cut, where none of them would, and of a
    recording of one place. What is tried depends on when the fixes and the protected parts are.
    """

    def leaves_half(other: Request) -> bool:
        try:
            return 2 * released_rows(trace, other, common).size >= len(trace)
        except Refused:
            return False

    if not request.method.cuts or of_one_place(trace) or leaves_half(request):
        return ()
    found = (
        next((words for words, other in tried if leaves_half(other)), None)
        for tried in (_smaller(request), _faster(request, slowest))
    )
    return tuple(words for words in found if words is not None)


def _smaller(request: Request) -> Iterator[tuple[str, Request]]:
    """Nine tenths of the metres that were asked for, eight, and so on."""
    for tenths in range(9, 0, -1):
        if request.leave is not None:
            metres = float(f"{request.leave * tenths / 10:.2g}")
            yield f"--leave {metres:g}", replace(request, leave=metres)
        else:
            metres = float(f"{request.radius * tenths / 10:.2g}")
            yield f"--radius {metres:g}", replace(request, radius=metres)


def _faster(request: Request, slowest: float) -> Iterator[tuple[str, Request]]:
    """Each activity that is faster, the slowest first; none that the recording is slower than."""
    for name, floor in ACTIVITIES.items():
        if request.slowest.speed < floor <= slowest:
            other = replace(request, floor=floor, middle=MIDDLE[name])
            yield f"--activity {name} (if you were never slower)", other
