"""A checker of noise: what a design promises, recomputed from its file in exact arithmetic.

It shares no code with the designer, and uses nothing but Python's standard library, so that a
sceptic can read it whole. The mathematics: docs/paper.md, "Noise in continuous time". In short, of
each adversary and every curve phi that is 1 on the window (a false track),

    1 / Q  <=  |phi|^2 movement + |phi|^2 noise + |phi|^2 knowledge,     loss  =  1 / Q - 1 / P

where Q is the variance that a release leaves of the window's place, and P the one without it. So
every false track that a design names proves something. All numbers are fractions; the one function
that is not rational, exp, is enclosed.

A design is a JSON object: knots (seconds outward from the window), sides (2, or 1 where a recording
begins or ends with the window), bound (1 / m^2), even and odd (lower triangular factors of the
noise in metres: sums and differences of both sides), and adversaries with their false tracks.
"""

import decimal
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

Vector = list[Fraction]

_DIGITS = decimal.Context(prec=50)
# Cost is rounded up to multiples of this (1 / m^2), and intervals are halved this often at most.
_GRAIN, _HALVINGS = 2**80, 14


def check(design: dict[str, Any]) -> list[str]:
    """What is wrong with a design; empty where all that it promises is so.

    Raises KeyError, TypeError, ValueError or ZeroDivisionError for what is no design.
    """
    wrong = []
    knots = [Fraction(one) for one in design["knots"]]
    if design["sides"] not in (1, 2) or not all(a < b for a, b in pairwise(knots)) or knots[0]:
        return ["knots must grow from 0, on one side or two"]
    for adversary in design["adversaries"]:
        if not _holds(design, knots, adversary, Fraction(design["bound"])):
            wrong.append(f"not proved: {adversary['name']}")
    return wrong if design["adversaries"] else ["no adversary is named"]


def _holds(
    design: dict[str, Any], knots: Vector, adversary: dict[str, Any], bound: Fraction
) -> bool:
    """Whether the false tracks of an adversary prove a loss of at most `bound`."""
    tracks = [_track(design, knots, adversary, one) for one in adversary["tracks"]]
    if adversary["place"] is None:
        _, even, odd = tracks[0]
        cost = _product(design, knots, adversary, (even, odd), (even, odd))
        known = _known(adversary, design["sides"], None)
        return len(tracks) == 1 and cost <= bound + (1 / known if known else 0)
    # Tracks for places that are known from the first on, up to where all tracks have ended, and
    # one for those beyond, to which a known place makes no difference.
    *near, (_, even, odd) = tracks
    places = [one[0] for one in near]
    beyond = _product(design, knots, adversary, (even, odd), (even, odd)) <= bound
    whole = (
        len(near) > 1
        and places[0] <= adversary["place"]
        and places[-1] >= knots[-1]
        and all(a < b for a, b in pairwise(places))
        and all(any(one == p for p in places) for one in knots if places[0] < one)
    )
    return beyond and whole and all(
        _between(design, knots, adversary, bound, one, two) for one, two in pairwise(near)
    )


def _track(
    design: dict[str, Any], knots: Vector, adversary: dict[str, Any], stated: dict[str, Any]
) -> tuple[Fraction, Vector, Vector]:
    """A false track as it must be: 1 where nothing is assumed, 0 where the path is known."""
    even, odd = _vector(stated["even"]), _vector(stated["odd"])
    size = 2 * len(knots) - 3
    if len(even) != size or len(odd) != (size - 1 if design["sides"] == 2 else 0):
        raise ValueError("a false track must have a value and a slope at each knot")
    ways = [even] if not odd else [_plus(even, odd, 1), _plus(even, odd, -1)]
    steady, path = Fraction(adversary["steady"]), adversary["path"]
    if steady and steady not in knots or path is not None and Fraction(path) not in knots:
        raise ValueError("steady and path must end at knots")
    for way in ways:
        for i, knot in enumerate(knots[:-1]):
            value, slope = (way[0], Fraction(0)) if i == 0 else (way[2 * i - 1], way[2 * i])
            if knot <= steady and (value, slope) != (1, 0):
                raise ValueError("a false track must be 1 where nothing is assumed")
            if path is not None and knot >= Fraction(path) and (value, slope) != (0, 0):
                raise ValueError("a false track must be 0 where the path is known")
    return Fraction(stated["away"] or 0), even, odd


def _between(
    design: dict[str, Any],
    knots: Vector,
    adversary: dict[str, Any],
    bound: Fraction,
    one: tuple[Fraction, Vector, Vector],
    two: tuple[Fraction, Vector, Vector],
) -> bool:
    """Whether the bound holds for every place between two, with the tracks between theirs."""
    costs = [_product(design, knots, adversary, a[1:], b[1:]) for a, b in
             ((one, one), (one, two), (two, two))]
    costs = [Fraction(-(-x.numerator * _GRAIN // x.denominator), _GRAIN) for x in costs]
    # Bernstein coefficients, over the time between the places, of phi and of the whole cost.
    first, second = (_piece(knots, _plus(t[1], t[2], 1), one[0], two[0]) for t in (one, two))
    line = [Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]
    phi = [a + b for a, b in zip(_times(first, line[0]), _times(second, line[1]), strict=True)]
    seen = [x / Fraction(adversary["accuracy"]) ** 2 for x in _times(phi, phi)]
    cost = [a + b for a, b in zip(_raised(costs, 6), seen, strict=True)]
    return _below(adversary, design["sides"], bound, cost, one[0], two[0], _HALVINGS)


def _below(
    adversary: dict[str, Any],
    sides: int,
    bound: Fraction,
    cost: Vector,
    first: Fraction,
    last: Fraction,
    halvings: int,
) -> bool:
    """Whether cost - 1 / P <= bound between two places; P is convex, so below its chord."""
    chord = [_known(adversary, sides, first), _known(adversary, sides, last)]
    room = _raised([bound * x + 1 for x in chord], 8)
    if all(a <= b for a, b in zip(_times(cost, chord), room, strict=True)):
        return True
    if not halvings:
        return False
    rows = [cost]
    while len(rows[-1]) > 1:
        rows.append([(a + b) / 2 for a, b in pairwise(rows[-1])])
    halves = [row[0] for row in rows], [row[-1] for row in reversed(rows)]
    middle = (first + last) / 2
    return all(
        _below(adversary, sides, bound, half, a, b, halvings - 1)
        for half, (a, b) in zip(halves, pairwise((first, middle, last)), strict=True)
    )


def _known(adversary: dict[str, Any], sides: int, away: Fraction | None) -> Fraction:
    """An upper bound of P (m^2), the variance without a release; 0 where it is infinite."""
    end = adversary["path"] if away is None else away
    if end is None:
        return Fraction(0)
    speed, tau = Fraction(adversary["speed"]), Fraction(adversary["time_constant"])
    seconds = Fraction(end) - Fraction(adversary["steady"])
    fade = _exp_above(-seconds / tau)
    gone = 1 - fade
    open_end = 2 * tau * (seconds - tau * gone)
    if away is not None:
        return speed**2 * (open_end - (tau * gone) ** 2) + Fraction(adversary["accuracy"]) ** 2
    return speed**2 * (open_end - 2 * (tau * gone) ** 2 / (1 + fade)) / sides


def _exp_above(x: Fraction) -> Fraction:
    """A fraction a little above exp(x), for x <= 0. P grows with it."""
    near = _DIGITS.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))
    return Fraction(_DIGITS.exp(near)) * (1 + Fraction(1, 10**40)) if x else Fraction(1)


def _product(
    design: dict[str, Any],
    knots: Vector,
    adversary: dict[str, Any],
    one: Sequence[Vector],
    two: Sequence[Vector],
) -> Fraction:
    """The inner product of two tracks that belongs to |phi|^2 of movement and noise together."""
    speed, tau = Fraction(adversary["speed"]), Fraction(adversary["time_constant"])
    total = Fraction(0)
    for name, a, b in zip(("even", "odd"), one, two, strict=True):
        if a:
            first, second = _solve(design[name], a), _solve(design[name], b)
            total += sum((x * y for x, y in zip(first, second, strict=True)), Fraction(0))
            whole = [Fraction(0), *a] if name == "odd" else a, [Fraction(0), *b] if name == "odd" else b
            total += design["sides"] * tau / (2 * speed**2) * _moved(knots, tau, *whole)
    return total


def _moved(knots: Vector, tau: Fraction, a: Vector, b: Vector) -> Fraction:
    """The integral of a'' b'' + a' b' / tau^2 over one side: of quadratic and linear pieces."""
    total = Fraction(0)
    for (i, u), v in zip(enumerate(knots), knots[1:], strict=False):
        h = v - u
        bends = []
        for track in (a, b):
            (p, p1), (q, q1) = _at(track, i), _at(track, i + 1)
            # phi' = p1 + c1 z + c2 z^2, z in 0..1
            c1, c2 = 6 * (q - p) / h - 4 * p1 - 2 * q1, -6 * (q - p) / h + 3 * p1 + 3 * q1
            bends.append((p1, c1, c2))
        (a0, a1, a2), (b0, b1, b2) = bends
        total += (a1 * b1 + a1 * b2 + a2 * b1 + Fraction(4, 3) * a2 * b2) / h
        mixed = a0 * b0 + (a0 * b1 + a1 * b0) / 2 + (a0 * b2 + a2 * b0 + a1 * b1) / 3
        total += (mixed + (a1 * b2 + a2 * b1) / 4 + a2 * b2 / 5) * h / tau**2
    return total


def _at(track: Vector, knot: int) -> tuple[Fraction, Fraction]:
    """Value and slope of one side at a knot."""
    if knot == 0:
        return track[0], Fraction(0)
    return (track[2 * knot - 1], track[2 * knot]) if 2 * knot < len(track) else (Fraction(0),) * 2


def _piece(knots: Vector, track: Vector, first: Fraction, last: Fraction) -> Vector:
    """Bernstein coefficients of a track between two times within one piece."""
    if first >= knots[-1]:
        return [Fraction(0)] * 4
    i = max(j for j, knot in enumerate(knots) if knot <= first)
    h = knots[i + 1] - knots[i]
    (p, p1), (q, q1) = _at(track, i), _at(track, i + 1)
    points = [p, p + p1 * h / 3, q - q1 * h / 3, q]
    for at, left in (((first - knots[i]) / h, False), ((last - first) / (knots[i + 1] - first), True)):
        rows = [points]
        while len(rows[-1]) > 1:
            rows.append([(1 - at) * a + at * b for a, b in pairwise(rows[-1])])
        points = [row[0] for row in rows] if left else [row[-1] for row in reversed(rows)]
    return points


def _solve(factor: Sequence[Sequence[float]], right: Vector) -> Vector:
    """The solution of a lower triangular system, exactly."""
    found: Vector = []
    for row, value in zip(factor, right, strict=True):
        *before, diagonal = _vector(row[: len(found) + 1])
        found.append((value - sum(a * b for a, b in zip(before, found, strict=True))) / diagonal)
    return found


def _times(a: Vector, b: Vector) -> Vector:
    """Bernstein coefficients of a product."""
    m, n = len(a) - 1, len(b) - 1
    out = [Fraction(0)] * (m + n + 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y * _choose(m, i) * _choose(n, j) / _choose(m + n, i + j)
    return out


def _raised(a: Vector, more: int) -> Vector:
    """Bernstein coefficients of the same polynomial, of a higher degree."""
    return _times(a, [Fraction(1)] * (more + 1))


def _choose(n: int, k: int) -> Fraction:
    out = Fraction(1)
    for i in range(k):
        out = out * (n - i) / (i + 1)
    return out


def _vector(numbers: Sequence[float]) -> Vector:
    return [Fraction(one) for one in numbers]


def _plus(even: Vector, odd: Vector, sign: int) -> Vector:
    return [even[0], *(a + sign * b for a, b in zip(even[1:], odd or [Fraction(0)] * (len(even) - 1), strict=True))]
