"""Noise for every place at once, on fixes that come one at a time."""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue, Refused
from trailveil.gp.kernels import Kernel, Matern12, Matern32, Sum
from trailveil.gp.randomness import fresh_seed
from trailveil.live.counting import Visits
from trailveil.live.lines import Fix
from trailveil.live.noise import LiveNoise
from trailveil.privacy.anytime import movement_of
from trailveil.privacy.movement import LONGEST_CUT
from trailveil.release.drawing import on_lattice
from trailveil.release.everywhere import assumed
from trailveil.release.public import Position
from trailveil.release.request import Request, check_target
from trailveil.traces.projection import EXTENT, MICRO, Frame, frame_for
from trailveil.traces.trace import NANOSECONDS

_DAY = LONGEST_CUT * NANOSECONDS
_KERNELS = {"Matern12": Matern12, "Matern32": Matern32}


@dataclass(slots=True, eq=False, repr=False)
class Moving:
    """Moves every fix. noise: of both coordinates, the same as that of a recorded release."""

    frame: Frame
    kernel: Kernel
    noise: LiveNoise

    @classmethod
    def begun(cls, request: Request, fix: Fix) -> "Moving":
        """Design the noise of a stream that begins with this fix; its frame is public."""
        from trailveil.designer.everywhere import noise_everywhere  # a restart needs no design

        check_target(request)
        who = assumed(math.inf, request)
        kernel = noise_everywhere(movement_of(request.kernel), who, request.bound).kernel
        frame = frame_for([(fix.latitude, fix.longitude)])
        return cls(frame, kernel, LiveNoise.begun(kernel, fix.time, fresh_seed()))

    @classmethod
    def restored(cls, record: dict[str, Any]) -> "Moving":
        """What `record` was made of."""
        kernel = Sum(tuple(_KERNELS[name](*numbers) for name, *numbers in record["kernel"]))
        return cls(Frame(*record["frame"]), kernel, LiveNoise.restored(kernel, record["noise"]))

    @property
    def record(self) -> dict[str, Any]:
        """All that a restart must know, JSON-able. It is secret."""
        return {
            "frame": [self.frame.latitude, self.frame.longitude],
            "kernel": [
                [type(term).__name__, term.length_scale, term.std]
                for term in self.kernel.terms()
                if isinstance(term, Matern12 | Matern32)
            ],
            "noise": self.noise.record,
        }

    def take(self, fix: Fix) -> list[Fix]:
        """The fix, moved. Raises InvalidValue for one too far from where the stream began."""
        lattice = self.frame.to_lattice([(fix.latitude, fix.longitude)])
        if float(np.hypot(*(lattice[0] / MICRO))) > EXTENT:
            raise InvalidValue(
                f"a fix must be within {EXTENT / 1000:g} km of the whole degree nearest the first "
                "fix of the stream, got one farther away: begin another stream (--name)"
            )
        moved = lattice + on_lattice(self.noise.at(fix.time))
        latitude, longitude = (self.frame.to_degrees(moved)[0] / MICRO).tolist()
        return [replace(fix, latitude=latitude, longitude=longitude, moved=True)]

    @staticmethod
    def reckon_with(public: tuple[Position, ...], time: int) -> None:
        """Refuse noise within a day of what is public already. time: of a fix (ns)."""
        at = bisect_left(public, time, key=lambda position: position.when)
        nearest = min(
            (abs(each.when - time) for each in public[max(at - 1, 0) : at + 1]), default=_DAY
        )
        if nearest < _DAY:
            raise Refused(
                "nothing can be hidden any more: noise for every place must be a day from what is "
                "public already, got less: leave --everywhere out, or begin a day later"
            )

    def advance(self, fix: Fix) -> bool:
        """Go on to the time of a fix; whether what must be saved is another now."""
        return self.noise.advance(fix.time)

    @property
    def visits(self) -> dict[bytes, Visits]:
        """None is told apart."""
        return {}

    @property
    def rms(self) -> float:
        """Metres that a fix is moved by (root mean square)."""
        return float(np.sqrt(2 * self.kernel.diagonal([0.0])[0]))
