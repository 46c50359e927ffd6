"""Noise for every place at once, on fixes that come one at a time.

The noise is a function of a secret and of the time, which forgets what is past. Each span of time
(`trailveil.gp.bridges`) has a secret and a state where it begins. The next secret is a keyed hash
of this one, from which this one cannot be computed. So whoever gets what is stored can draw the
noise from the span that it is in on, and none before; but where that span begins the noise is
known, and the nearer before it, the better.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue, Refused
from trailveil.gp.bridges import HALVINGS, SPAN, Bridges
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel, Matern12, Matern32, Sum
from trailveil.gp.randomness import derive, fresh_seed, normals
from trailveil.live.counting import Visits
from trailveil.live.lines import Fix
from trailveil.privacy.anytime import movement_of
from trailveil.privacy.movement import LONGEST_CUT
from trailveil.release.drawing import on_lattice
from trailveil.release.everywhere import assumed
from trailveil.release.public import Position
from trailveil.release.request import Request, check_target
from trailveil.traces.projection import EXTENT, MICRO, Frame, frame_for
from trailveil.traces.trace import NANOSECONDS

_AXES = 2


@dataclass(slots=True, eq=False, repr=False)
class LiveNoise:
    """The noise from a span of time on. span: its number; secret: 32 bytes; states: (2, d)."""

    bridges: Bridges
    span: int
    secret: bytes
    states: FloatArray
    _ends: FloatArray | None = None
    _path: tuple[tuple[int, FloatArray, FloatArray], ...] = ()

    @classmethod
    def begun(cls, kernel: Kernel, time: int, secret: bytes) -> "LiveNoise":
        """That of a stationary kernel, from a time on (ns)."""
        bridges = Bridges.of(kernel)
        states = bridges.first(_drawn(secret, "begin", bridges))
        return cls(bridges, time // SPAN, secret, states)

    @classmethod
    def restored(cls, kernel: Kernel, record: dict[str, Any]) -> "LiveNoise":
        """What `record` was made of."""
        states = np.array(record["states"], dtype=np.float64)
        return cls(Bridges.of(kernel), record["span"], bytes.fromhex(record["secret"]), states)

    @property
    def record(self) -> dict[str, Any]:
        """All that it depends on besides its kernel, JSON-able. It is secret."""
        return {
            "span": self.span,
            "secret": self.secret.hex(),
            "states": self.states.tolist(),
        }

    def advance(self, time: int) -> bool:
        """Forget all before the span of a time (ns); whether that is another than before."""
        first = self.span
        while self.span < time // SPAN:
            self.states = self._next()
            self.secret = derive(self.secret, [b"next span"])
            self.span += 1
            self._ends, self._path = None, ()
        return self.span != first

    def at(self, time: int) -> FloatArray:
        """Metres (2,), east and north, at a time (ns) in the span; InvalidValue elsewhere."""
        offset = time - self.span * SPAN
        if not 0 <= offset < SPAN:
            raise InvalidValue("a time must be in the span that noise was advanced to, got another")
        if self._ends is None:
            self._ends = self._next()
        before, behind = self.states, self._ends
        path: list[tuple[int, FloatArray, FloatArray]] = []
        for level in range(HALVINGS):
            below = HALVINGS - level
            if not offset & ((1 << below) - 1):
                break
            cell = offset >> (below - 1)
            if level < len(self._path) and self._path[level][0] == cell:
                _, before, behind = self._path[level]
            else:
                label = f"{level} {cell >> 1}"
                drawn = _drawn(self.secret, label, self.bridges)
                middle = self.bridges.middle(level, before, behind, drawn)
                before, behind = (middle, behind) if cell & 1 else (before, middle)
            path.append((cell, before, behind))
        self._path = tuple(path)
        return self.bridges.values(before)

    def _next(self) -> FloatArray:
        return self.bridges.next(self.states, _drawn(self.secret, "onward", self.bridges))


def _drawn(secret: bytes, label: str, bridges: Bridges) -> FloatArray:
    """Standard normals (2, d): a function of the secret and of what they are for."""
    size = bridges.weights.size
    return normals(secret, label, _AXES * size).reshape(_AXES, size)


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
