"""A checker of noise: what a design promises, recomputed from its file in exact arithmetic.

It shares no code with the designer and needs Python's standard library alone: a sceptic can read it
whole. The mathematics: docs/paper.md, "Noise in continuous time". Of each adversary, and each
curve phi that is 1 on the window (a false track),

    1 / Q  <=  |phi|^2 movement + |phi|^2 noise + |phi|^2 knowledge,     loss  =  1 / Q - 1 / P

where Q is the variance that a release leaves of the window's place, and P the one without it. So
every false track that a design names proves something. Numbers are fractions; exp is enclosed.

A design is an object: knots (seconds outward from the window), sides (2, or 1 where a recording
begins or ends with the window), bound (1 / m^2), even and odd (lower triangular factors of the
noise in metres: of the sum and the difference of both sides), and adversaries with false tracks.
"""

import decimal
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import comb
from typing import Any

Vector = list[Fraction]
ZERO, ONE = Fraction(0), Fraction(1)
# Costs are rounded up to multiples of 1 / _GRAIN; intervals are halved this often at most.
_DIGITS, _GRAIN, _HALVINGS = decimal.Context(prec=50), 2**90, 14


@dataclass(frozen=True)
class Track:
    """A false track. away: seconds to the place that is known. sides: (value, slope) at each knot.

    drawn: what the noise has to draw for it.
    """

    away: Fraction
    sides: tuple[list[tuple[Fraction, Fraction]], ...]
    drawn: Vector


def check(design: dict[str, Any]) -> list[str]:
    """What is wrong with a design; empty where all that it promises is proved.

    Raises KeyError, TypeError, ValueError or ZeroDivisionError for what is no design.
    """
    knots = _vector(design["knots"])
    if design["sides"] not in (1, 2) or knots[0] or any(a >= b for a, b in pairwise(knots)):
        return ["knots must grow from 0, and sides be 1 or 2"]
    found = [one["name"] for one in design["adversaries"] if not _holds(design, knots, one)]
    return [f"not proved: {one}" for one in found] if design["adversaries"] else ["no adversary"]


def _holds(design: dict[str, Any], knots: Vector, who: dict[str, Any]) -> bool:
    """Whether the false tracks of an adversary prove a loss of at most the bound."""
    bound, tracks = (
        Fraction(design["bound"]),
        [_track(design, knots, who, t) for t in who["tracks"]],
    )
    if who["place"] is None:
        (track,) = tracks
        known = ZERO if who["path"] is None else 1 / _variance(design, who, None)
        return _cost(knots, who, track, track) <= bound + known
    # One for each of some places, up to where all tracks have ended, and one for those beyond.
    *near, far = tracks
    places = [one.away for one in near]
    whole = places[0] <= who["place"] and places[-1] >= knots[-1]
    growing = all(a < b for a, b in pairwise(places))
    pieces = all(knot in places for knot in knots if knot > places[0])
    return (
        whole
        and growing
        and pieces
        and _cost(knots, who, far, far) <= bound
        and all(_between(design, knots, who, one, two) for one, two in pairwise(near))
    )


def _track(design: dict[str, Any], knots: Vector, who: dict[str, Any], stated: Any) -> Track:
    """A false track: 1 where nothing is assumed, 0 where the path is known, or ValueError."""
    even, odd = _vector(stated["even"]), _vector(stated["odd"])
    size = 2 * len(knots) - 3
    if len(even) != size or len(odd) != (size - 1 if design["sides"] == 2 else 0):
        raise ValueError("a false track must have a value and a slope at each knot")
    signs = (1, -1) if odd else (0,)
    sides = []
    for sign in signs:
        part = [even[0], ZERO, *even[1:], ZERO, ZERO]
        other = [ZERO, ZERO, *(odd or even[1:]), ZERO, ZERO]
        part = [a + sign * b for a, b in zip(part, other, strict=True)]
        sides.append(list(zip(part[::2], part[1::2], strict=True)))
    steady, path = Fraction(who["steady"]), who["path"]
    edges = {steady, steady if path is None else Fraction(path)}
    if not edges <= set(knots):
        raise ValueError("steady and path must end at knots")
    for side in sides:
        for knot, at in zip(knots, side, strict=True):
            if knot <= steady and at != (ONE, ZERO):
                raise ValueError("a false track must be 1 where nothing is assumed")
            if path is not None and knot >= path and at != (ZERO, ZERO):
                raise ValueError("a false track must be 0 where the path is known")
    drawn = _solved(design["even"], even) + _solved(design["odd"], odd)
    return Track(Fraction(stated["away"] or 0), tuple(sides), drawn)


def _cost(knots: Vector, who: dict[str, Any], one: Track, two: Track) -> Fraction:
    """The inner product of two tracks that belongs to |phi|^2 of movement and noise together."""
    tau = Fraction(who["time_constant"])
    moved = sum((_moved(knots, tau, a, b) for a, b in zip(one.sides, two.sides, strict=True)), ZERO)
    noise = sum((a * b for a, b in zip(one.drawn, two.drawn, strict=True)), ZERO)
    return noise + moved * tau / (2 * Fraction(who["speed"]) ** 2)


def _moved(knots: Vector, tau: Fraction, one: Any, two: Any) -> Fraction:
    """The integral of a'' b'' + a' b' / tau^2 over one side."""
    total = ZERO
    for i, (u, v) in enumerate(pairwise(knots)):
        h = v - u
        slopes = []
        for track in (one, two):
            (p, p1), (q, q1) = track[i], track[i + 1]
            # The slope is p1 + c1 z + c2 z^2 for z in 0..1.
            rise = 6 * (q - p) / h
            slopes.append((p1, rise - 4 * p1 - 2 * q1, 3 * p1 + 3 * q1 - rise))
        (a0, a1, a2), (b0, b1, b2) = slopes
        total += (a1 * b1 + a1 * b2 + a2 * b1 + Fraction(4, 3) * a2 * b2) / h
        mixed = a0 * b0 + (a0 * b1 + a1 * b0) / 2 + (a0 * b2 + a2 * b0 + a1 * b1) / 3
        total += (mixed + (a1 * b2 + a2 * b1) / 4 + a2 * b2 / 5) * h / tau**2
    return total


def _between(
    design: dict[str, Any], knots: Vector, who: dict[str, Any], one: Track, two: Track
) -> bool:
    """Whether the bound holds for each place between two, with the track between theirs."""
    costs = [_cost(knots, who, *pair) for pair in ((one, one), (one, two), (two, two))]
    costs = [Fraction(-(-x.numerator * _GRAIN // x.denominator), _GRAIN) for x in costs]
    # Bernstein coefficients, from place to place: of phi where it is known, and of the whole cost.
    ends = [_piece(knots, each.sides[0], one.away, two.away) for each in (one, two)]
    phi = [
        a + b
        for a, b in zip(_times(ends[0], [ONE, ZERO]), _times(ends[1], [ZERO, ONE]), strict=True)
    ]
    seen = [x / Fraction(who["accuracy"]) ** 2 for x in _times(phi, phi)]
    cost = [a + b for a, b in zip(_times(costs, [ONE] * 7), seen, strict=True)]
    return _below(design, who, cost, (one.away, two.away), _HALVINGS)


def _below(
    design: dict[str, Any],
    who: dict[str, Any],
    cost: Vector,
    places: tuple[Fraction, Fraction],
    halvings: int,
) -> bool:
    """Whether cost - 1 / P <= bound between two places; P is convex, so below its chord."""
    chord = [_variance(design, who, place) for place in places]
    room = _times([Fraction(design["bound"]) * x + 1 for x in chord], [ONE] * 9)
    if all(a <= b for a, b in zip(_times(cost, chord), room, strict=True)):
        return True
    middle = (places[0] + places[1]) / 2
    left, right = _split(cost, Fraction(1, 2))
    return bool(halvings) and all(
        _below(design, who, half, both, halvings - 1)
        for half, both in ((left, (places[0], middle)), (right, (middle, places[1])))
    )


def _variance(design: dict[str, Any], who: dict[str, Any], away: Fraction | None) -> Fraction:
    """P (m^2), or a little more: the variance without a release, of the place or path known."""
    speed, tau = Fraction(who["speed"]), Fraction(who["time_constant"])
    seconds = (Fraction(who["path"]) if away is None else away) - Fraction(who["steady"])
    near = _DIGITS.divide(*(decimal.Decimal(x) for x in (-seconds / tau).as_integer_ratio()))
    # P grows with it.
    fade = Fraction(_DIGITS.exp(near)) * (1 + Fraction(1, 10**40))
    gone = 1 - fade
    free = 2 * tau * (seconds - tau * gone)
    if away is not None:
        return speed**2 * (free - (tau * gone) ** 2) + Fraction(who["accuracy"]) ** 2
    return speed**2 * (free - 2 * (tau * gone) ** 2 / (1 + fade)) / Fraction(design["sides"])


def _piece(knots: Vector, side: Any, first: Fraction, last: Fraction) -> Vector:
    """Bernstein coefficients of a track between two times of one piece."""
    if first >= knots[-1]:
        return [ZERO] * 4
    i = max(j for j, knot in enumerate(knots) if knot <= first)
    h = knots[i + 1] - knots[i]
    (p, p1), (q, q1) = side[i], side[i + 1]
    rest = _split([p, p + p1 * h / 3, q - q1 * h / 3, q], (first - knots[i]) / h)[1]
    return _split(rest, (last - first) / (knots[i + 1] - first))[0]


def _split(points: Vector, at: Fraction) -> tuple[Vector, Vector]:
    """Bernstein coefficients before and after a share of the way (de Casteljau)."""
    rows = [points]
    while len(rows[-1]) > 1:
        rows.append([(1 - at) * a + at * b for a, b in pairwise(rows[-1])])
    return [row[0] for row in rows], [row[-1] for row in reversed(rows)]


def _solved(factor: Sequence[Sequence[float]], right: Vector) -> Vector:
    """The solution of a lower triangular system."""
    found: Vector = []
    for row, value in zip(factor, right, strict=True):
        *before, diagonal = _vector(row[: len(found) + 1])
        found.append((value - sum(a * b for a, b in zip(before, found, strict=True))) / diagonal)
    return found


def _times(a: Vector, b: Vector) -> Vector:
    """Bernstein coefficients of a product; with ones for b, of the same at a higher degree."""
    m, n = len(a) - 1, len(b) - 1
    out = [ZERO] * (m + n + 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y * comb(m, i) * comb(n, j) / comb(m + n, i + j)
    return out


def _vector(numbers: Sequence[float]) -> Vector:
    return [Fraction(one) for one in numbers]
