"""What is asked of a trace of a batch: the options of one release, without whose it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from trailveil.release.request import Request
from trailveil.traces.formats import MOST_POINTS
from trailveil.traces.retiming import AS_RECORDED, Retiming
from trailveil.traces.selection import Chosen


@dataclass(frozen=True, slots=True)
class Rules:
    """How to read a trace, what of it to protect, how, and what becomes of its times.

    chosen: what to protect. request: how much, of no part yet. assume_utc, zone, every, most, keep:
    as of `trailveil.traces.loading.load`.
    """

    chosen: Chosen = field(default_factory=Chosen)
    request: Request = field(default_factory=lambda: Request(()))
    retiming: Retiming = AS_RECORDED
    keep: Sequence[str] = ()
    assume_utc: bool = False
    zone: ZoneInfo | None = None
    every: float | None = None
    most: int = MOST_POINTS

    @property
    def statement(self) -> bytes:
        """All of it that the outcome depends on. It holds stated times and places: a secret."""
        chosen = self.chosen
        near = [(circle.latitude, circle.longitude, circle.metres) for circle in chosen.near]
        stated = (chosen.at, chosen.between, str(chosen.zone), near, chosen.stops)
        further = (chosen.returns, chosen.ends)
        reading = (self.assume_utc, str(self.zone), self.every, self.most, tuple(self.keep))
        return repr((stated, further, self.request.design, self.retiming, reading)).encode()
