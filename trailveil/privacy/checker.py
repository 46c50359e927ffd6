"""A checker of noise: what a design promises, recomputed from its file in exact arithmetic.

It shares no code with the designer and needs the standard library alone, with the laws of movement
in trailveil.privacy.exact. Of each adversary, and each curve phi that is 1 on the window:

    1 / Q  <=  |phi|^2 movement + |phi|^2 noise + |phi|^2 knowledge,     loss  =  1 / Q - 1 / P

where Q is the variance that a release leaves of the window's place, and P the one without it. So
every false track that a design names proves something (docs/paper.md, "Noise in continuous time").

A design has knots (seconds outward from the window), sides (2, or 1 where a recording begins or
ends with the window), bound (1 / m^2), even and odd (lower triangular factors of the noise, metres:
of the sum and the difference of both sides), and adversaries with false tracks.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from math import comb, lcm
from operator import add, mul
from typing import Any, NamedTuple

from trailveil.privacy.exact import ExactMovement

Vector = list[Fraction]
ZERO, ONE = Fraction(0), Fraction(1)
# Costs are rounded up to 1 / _GRAIN, intervals halved so often.
_GRAIN, _HALVINGS = 2**90, 12
# What squares of phi, phi' and phi'' make of values and slopes at both ends of a piece.
_VALUE, _SLOPE = ((156, 22, 54, -13), (22, 4, 13, -3)), ((36, 3, -36, 3), (3, 4, -3, -1))
_BEND = ((12, 6, -12, 6), (6, 4, -6, 2))


def check(design: dict[str, Any]) -> list[str]:
    """What is wrong with a design; empty where all that it promises is proved."""
    try:
        gaps = [(design["adversaries"][i]["name"], places) for i, places in unproved(design)]
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [f"no design: {error!r}"]
    return [f"not proved: {name} {[float(x) for x in at] or ''}".strip() for name, at in gaps]


def unproved(design: dict[str, Any]) -> Iterator[tuple[int, Vector]]:
    """Each adversary (its number), and between which places (s), whose loss may be over the bound.

    Raises ArithmeticError, LookupError, TypeError or ValueError for what is no design.
    """
    _must(len(design["adversaries"]) > 0, "there must be an adversary")
    for number, stated in enumerate(design["adversaries"]):
        who = StatedAdversary(design, stated)
        # Where a place is known: a track for each of some places, and one for those far away.
        *near, far = (who.track(track) for track in stated["tracks"])
        if who.cost(far, far) > who.bound + who.known:
            yield number, []
        if who.place:
            places = [track.away for track in near]
            _must(places[0] == who.place, "places must begin where one is known from on")
            beyond = {knot for knot in who.knots if knot > who.place}
            _must(beyond <= {*places} and who.knots[-1] <= places[-1], "they must have all knots")
        pairs = ((a, b) for a, b in pairwise(near) if not who.holds_between(a, b))
        yield from ((number, [a.away, b.away]) for a, b in pairs)


def _must(so: bool, what: str) -> None:
    if not so:
        raise ValueError(what)


class _Track(NamedTuple):
    """A false track: values and slopes at all knots, of half the sum of both sides, the difference.

    force: how the cost of movement grows with each. drawn: what the noise has to draw for it.
    """

    away: Fraction
    curve: Vector
    force: Vector
    drawn: Vector


class StatedAdversary:
    """An adversary as a design states it, with the numbers of that design."""

    def __init__(self, design: dict[str, Any], stated: dict[str, Any]) -> None:
        self.accuracy, self.steady = Fraction(stated["accuracy"]), Fraction(stated["steady"])
        self.knots, self.bound = [*map(Fraction, design["knots"])], Fraction(design["bound"])
        self.sides, self.movement = design["sides"], ExactMovement(stated, design["sides"])
        self.factors = [[[*map(Fraction, row)] for row in design[x]] for x in ("even", "odd")]
        known = {x: Fraction(stated[x]) for x in ("place", "path") if stated[x] is not None}
        self.place, self.path = known.get("place"), known.get("path")
        _must(len(known) < 2 and all(x > self.steady for x in known.values()), "one may be known")
        _must(min(self.bound, self.accuracy) > 0, "sizes must be above 0")
        _must(self.sides == 1 + bool(self.factors[1]), "sides must be 2 where there is an odd part")
        _must(all(a < b for a, b in pairwise(self.knots)) and not self.knots[0], "knots must grow")
        _must({self.steady, self.path or ZERO} <= {*self.knots}, "edges must be at knots")
        lower = (x[i:] == [ZERO] * (len(f) - i) for f in self.factors for i, x in enumerate(f, 1))
        _must(all(lower), "factors of noise must be lower triangular")
        before = self.path and self.movement.given_path(self.path - self.steady)
        self.known = self.movement.known if before is None else 1 / before
        self.pieces = [(v - u, self._pulls(v - u)) for u, v in pairwise(self.knots)]

    def track(self, stated: dict[str, Any]) -> _Track:
        """A false track that is 1 where nothing is assumed, and 0 where the path is known."""
        even, odd = ([*map(Fraction, stated[part])] for part in ("even", "odd"))
        drawn = [_solved(*each) for each in zip(self.factors, (even, odd), strict=True)]
        odd, end = odd or [ZERO] * len(even[1:]), [ZERO, ZERO]
        sums, less = [even[0], ZERO, *even[1:], *end], end + odd + end
        for knot, *at in zip(self.knots, sums[::2], sums[1::2], less[::2], less[1::2], strict=True):
            _must(knot > self.steady or at == [ONE, ZERO, ZERO, ZERO], "a track must begin with 1")
            _must(not self.path or knot < self.path or not any(at), "a track must end with 0")
        force = self._force(sums) + self._force(less)
        return _Track(Fraction(stated["away"] or 0), sums + less, force, drawn[0] + drawn[1])

    def _pulls(self, h: Fraction) -> list[Vector]:
        """How half of the cost of a piece grows with value and slope at its first end."""
        a, b, c = map(mul, self.movement.costs, (h / 420, 1 / h / 30, 1 / h**3))
        rows = ([*zip(_VALUE[i], _SLOPE[i], _BEND[i], strict=True)] for i in (0, 1))
        return [[a * x + b * y + c * z for x, y, z in row] for row in rows]

    def _force(self, curve: Vector) -> Vector:
        """Half of the derivatives of the cost of movement on one side."""
        out = [ZERO] * len(curve)
        for i, (h, (value, slope)) in enumerate(self.pieces):
            p, p1, q, q1 = curve[2 * i : 2 * i + 4]
            first, last = [p, h * p1, q, h * q1], [q, -h * q1, p, -h * p1]
            for at, step, ends in ((2 * i, h, first), (2 * i + 2, -h, last)):
                out[at] += _dot(value, ends)
                out[at + 1] += step * _dot(slope, ends)
        return out

    def cost(self, first: _Track, two: _Track) -> Fraction:
        """The product of two tracks that belongs to |phi|^2 of movement and noise, rounded up."""
        moved = self.movement.inside + self.sides * _dot(first.curve, two.force)
        exact = moved + _dot(first.drawn, two.drawn)
        return Fraction(-(-exact.numerator * _GRAIN // exact.denominator), _GRAIN)

    def holds_between(self, first: _Track, two: _Track) -> bool:
        """Whether the bound holds for each place between two, with the track between theirs."""
        _must(first.away < two.away, "places must grow")
        # Bernstein coefficients, from place to place: of phi where it is known, and of the cost.
        shapes = ((first, [ONE, ZERO]), (two, [ZERO, ONE]))
        parts = [_times(self._piece(x, first.away, two.away), shape) for x, shape in shapes]
        phi = [sum(x) / self.accuracy for x in zip(*parts, strict=True)]
        costs = [self.cost(first, first), self.cost(first, two), self.cost(two, two)]
        cost = [*map(add, _times(costs, [ONE] * 7), _times(phi, phi))]
        return self._below(cost, [first.away, two.away], _HALVINGS)

    def _below(self, cost: Vector, places: Vector, halvings: int) -> bool:
        """Whether cost - 1 / P <= bound between two places. P grows, or is below its chord."""
        ends = [self.movement.given_place(x - self.steady, self.accuracy) for x in places]
        chord = ends if self.movement.convex else ends[1:] * 2
        room = _times([self.bound * x + 1 for x in chord], [ONE] * 9)
        if all(a <= b for a, b in zip(_times(cost, chord), room, strict=True)):
            return True
        parts = pairwise([places[0], sum(places, ZERO) / 2, places[1]])
        halves = zip(_split(cost, ONE / 2), parts, strict=True)
        return halvings > 0 and all(self._below(x, [*at], halvings - 1) for x, at in halves)

    def _piece(self, track: _Track, begin: Fraction, end: Fraction) -> Vector:
        """Bernstein coefficients of one side of a track between two times of one piece."""
        if begin >= self.knots[-1]:
            return [ZERO] * 4
        i, size = max(j for j, knot in enumerate(self.knots) if knot <= begin), 2 * len(self.knots)
        p, p1, q, q1 = (track.curve[j] + track.curve[size + j] for j in range(2 * i, 2 * i + 4))
        u, h = self.knots[i], self.knots[i + 1] - self.knots[i]
        later = _split([p, p + p1 * h / 3, q - q1 * h / 3, q], (begin - u) / h)[1]
        return _split(later, (end - begin) / (u + h - begin))[0]


def _split(points: Vector, at: Fraction) -> tuple[Vector, Vector]:
    """Bernstein coefficients before and after a share of the way (de Casteljau)."""
    rows = [points]
    while len(rows[-1]) > 1:
        rows.append([(1 - at) * a + at * b for a, b in pairwise(rows[-1])])
    return [row[0] for row in rows], [row[-1] for row in reversed(rows)]


def _times(a: Vector, b: Vector) -> Vector:
    """Bernstein coefficients of a product; with ones for b, of the same at a higher degree."""
    m, n = len(a) - 1, len(b) - 1
    a, b = ([x * comb(len(v) - 1, i) for i, x in enumerate(v)] for v in (a, b))
    parts = ((a[max(0, i - n) : i + 1], b[max(0, i - m) : i + 1][::-1]) for i in range(m + n + 1))
    return [_dot(*part) / comb(m + n, i) for i, part in enumerate(parts)]


def _solved(factor: Sequence[Vector], right: Vector) -> Vector:
    """The solution of a lower triangular system."""
    vector: Vector = []
    for row, value in zip(factor, right, strict=True):
        vector.append((value - _dot(row, vector)) / row[len(vector)])
    return vector


def _dot(a: Iterable[Fraction], b: Iterable[Fraction]) -> Fraction:
    """The sum of products: as of `mul` and `sum`, but reduced once, which takes the time."""
    terms = zip(a, b, strict=False)
    parts = [(x.numerator * y.numerator, x.denominator * y.denominator) for x, y in terms]
    whole = lcm(*(v for _, v in parts))
    return Fraction(sum(n * (whole // v) for n, v in parts), whole)
