"""The noise of a live release: a function of a secret and of the time, which forgets what is past.

Each span of time (`trailveil.gp.bridges`) has a secret and a state where it begins. The next secret
is a keyed hash of this one, from which this one cannot be computed. So whoever gets what is stored
can draw the noise from the span that it is in on, and none before; but where that span begins the
noise is known, and the nearer before it, the better.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from trailveil.errors import InvalidValue
from trailveil.gp.bridges import HALVINGS, SPAN, Bridges
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Kernel
from trailveil.gp.randomness import derive, normals

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
