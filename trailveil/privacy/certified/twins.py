"""Rows that are one and the same value, whatever is drawn: only one of them can be inverted."""

import math
from collections.abc import Hashable

from trailveil.gp.balls import BALLS
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import Constant, Kernel, Periodic, Product, Scaled, Warped
from trailveil.privacy.mechanism import Mechanism


def distinct(kernel: Kernel, mechanism: Mechanism, times: FloatArray) -> list[int]:
    """The released rows, at times (r,), without those that are surely the same as one before.

    Those are rows at which every term of the kernel reads the same, on a clock that stands still or
    after a whole period, with the same noise.
    """
    rows = mechanism.rows
    if mechanism.floor > 0 or mechanism.process is not None:
        return list(range(rows.size))
    terms = [mechanism.factor[rows]]
    if mechanism.refinement is not None:
        terms += list(mechanism.refinement[:, rows])
    known: set[Hashable] = set()
    indices = []
    for i, time in enumerate(times.tolist()):
        key = (_read(kernel, time), *(term[i].tobytes() for term in terms))
        if key not in known:
            indices.append(i)
        known.add(key)
    return indices


def _read(kernel: Kernel, time: float) -> Hashable:
    """What a kernel depends on at a time: two times with the same have the same value there."""
    terms = kernel.terms()
    if len(terms) > 1:
        return tuple(_read(term, time) for term in terms)
    reading: Hashable = time
    match kernel:
        case Constant():
            reading = ()
        case Periodic(period=period):
            reading = math.fmod(time, period)
        case Scaled(inner, _):
            reading = _read(inner, time)
        case Product(one, other):
            reading = _read(one, time), _read(other, time)
        case Warped(_, clock):
            reading = str(clock(BALLS.number(time)).man_exp())
    return reading
