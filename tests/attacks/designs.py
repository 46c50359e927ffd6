"""Releases of a mechanism that is stated, with what it leaves each adversary: nothing is sought."""

from collections.abc import Sequence

import numpy as np

from trailveil.adversaries import DEFAULT, Named
from trailveil.crops import crops
from trailveil.demands import judged
from trailveil.gaussian import FloatArray
from trailveil.guarantee import Guarantee
from trailveil.mechanism import Mechanism
from trailveil.projection import frame_for
from trailveil.release import Finding, Plan, Request
from trailveil.selection import Stretch
from trailveil.trace import Trace


def bumps(times: FloatArray, middle: float) -> Mechanism:
    """Smooth noise of hundreds of metres around a time, some of it common, and 5 m everywhere."""
    away = (times - middle)[:, None]
    widths, shifts = np.array([300.0, 900.0, 200.0]), np.array([0.0, 0.0, 150.0])
    heights = np.array([500.0, 300.0, 150.0])
    return Mechanism(times, heights * np.exp(-(((away - shifts) / widths) ** 2) / 2), 25.0)


def designed(
    trace: Trace,
    begin: int,
    end: int,
    mechanism: Mechanism,
    who: Sequence[Named] = DEFAULT,
) -> Plan:
    """A release of fixes begin to end (inclusive), with what is left, judged as protect judges."""
    stretch = Stretch("part", int(trace.times[begin]), int(trace.times[end]))
    request = Request((stretch,), who=tuple(who))
    spans = [stretch.seconds(trace)]
    (crop,) = crops(request.kernel, trace.seconds, spans, request.target.deviation)
    left = tuple(judged(crop, mechanism, 0, request.target))
    mu = request.radius * max(one.loss for one in left) ** 0.5
    inside = stretch.rows(trace)
    finding = Finding(stretch, int(inside.sum()), 0, Guarantee(mu), left[0].after, left)
    frame = frame_for(trace.positions)
    lattice = frame.to_lattice(trace.positions)
    return Plan(trace, frame, lattice, request, mechanism, (finding,))
