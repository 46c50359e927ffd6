"""Whether one noise is another one and independent noise besides, in exact arithmetic.

Two versions of a recording tell together what the finer tells if the coarser noise has the law of
the finer noise plus independent noise. For random curves between knots that is so if and only if
the difference of their covariances is positive semidefinite, in coefficients of a space that holds
both (docs/paper.md, "Versions"). It needs the standard library alone, as the checker of noise does.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import lcm

Matrix = list[list[Fraction]]
ZERO, ONE = Fraction(0), Fraction(1)


def nests(
    finer: tuple[Sequence[int], Sequence[Sequence[float]]],
    coarser: tuple[Sequence[int], Sequence[Sequence[float]]],
    *,
    odd: bool = False,
) -> bool:
    """Whether the coarser noise has more covariance than the finer, in every direction.

    Each by the knots (seconds) of its curves and a factor by rows of value at the edge, then value
    and slope at each inner knot. The coarser has all knots of the finer. odd: of the difference of
    both sides, which is 0 at the edge and has no first row.
    """
    knots, factor = finer
    first = int(odd)
    rows = [row[first:] for row in embedding(knots, coarser[0])[first:]]
    return is_positive(_less(_gram(_exact(coarser[1])), _gram(_product(rows, _exact(factor)))))


def embedding(knots: Sequence[int], finer: Sequence[int]) -> Matrix:
    """The coefficients on more knots of each curve on some: exact. Beyond the last all is 0."""
    size = 2 * len(knots) - 3
    rows = [[ONE, *[ZERO] * (size - 1)]]
    for u in finer[1:-1]:
        rows += _at(knots, u)
    return rows


def _at(knots: Sequence[int], u: int) -> Matrix:
    """Value and slope at a time of each curve between knots: two rows."""
    whole = [[ZERO] * (2 * len(knots)) for _ in range(2)]
    if u < knots[-1]:
        i = max(j for j, knot in enumerate(knots) if knot <= u)
        h = Fraction(knots[i + 1] - knots[i])
        z = (u - knots[i]) / h
        rise = 6 * z * (1 - z) / h
        whole[0][2 * i : 2 * i + 4] = [
            (1 + 2 * z) * (1 - z) ** 2,
            h * z * (1 - z) ** 2,
            z**2 * (3 - 2 * z),
            -h * z**2 * (1 - z),
        ]
        whole[1][2 * i : 2 * i + 4] = [-rise, (1 - z) * (1 - 3 * z), rise, z * (3 * z - 2)]
    return [[row[0], *row[2:-2]] for row in whole]


def is_positive(matrix: Matrix) -> bool:
    """Whether a symmetric matrix is positive definite: all leading minors, in whole numbers."""
    unit = lcm(*(x.denominator for row in matrix for x in row))
    rows = [[int(x * unit) for x in row] for row in matrix]
    last = 1
    for k in range(len(rows)):
        pivot = rows[k][k]
        if pivot <= 0:
            return False
        for i in range(k + 1, len(rows)):  # Bareiss: each division is exact
            head = rows[i][k]
            rows[i] = [
                (pivot * x - head * y) // last for x, y in zip(rows[i], rows[k], strict=True)
            ]
        last = pivot
    return True


def _exact(factor: Sequence[Sequence[float]]) -> Matrix:
    return [[Fraction(x) for x in row] for row in factor]


def _product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b, strict=True))
    return [[_dot(row, column) for column in columns] for row in a]


def _gram(factor: Matrix) -> Matrix:
    return [[_dot(row, other) for other in factor] for row in factor]


def _less(a: Matrix, b: Matrix) -> Matrix:
    return [[x - y for x, y in zip(*rows, strict=True)] for rows in zip(a, b, strict=True)]


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True) if x and y), ZERO)
