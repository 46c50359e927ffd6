"""Ball arithmetic: numbers that carry a bound of their own error, of any number of bits.

The numbers are those of Arb (python-flint), an optional extra: what a formula says of balls is true
of every number in them, so that a result is a proof and no estimate. Inputs are doubles and are
taken as they are, exactly. Source: Johansson (2017), Arb: efficient arbitrary-precision midpoint-
radius interval arithmetic.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import NumericalError, Unavailable, installing
from trailveil.gp.arithmetic import Arithmetic
from trailveil.gp.gaussian import FloatArray

Objects = NDArray[Any]


def load_flint() -> ModuleType:
    """The flint module; Unavailable, with the command that installs it, where it is missing."""
    try:
        import flint
    except ImportError as error:
        raise Unavailable(
            "a certificate must have ball arithmetic (python-flint), got an installation without; "
            f"say: {installing('certify')}"
        ) from error
    return flint


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Within it, every ball is computed with so many bits."""
    with load_flint().ctx.workprec(bits):
        yield


def working_bits() -> int:
    """The precision that is set."""
    return int(load_flint().ctx.prec)


@dataclass(frozen=True)
class Balls(Arithmetic):
    """Arithmetic on object arrays of balls, in the precision that is set."""

    @property
    def pi(self) -> Any:
        """Pi."""
        return load_flint().arb.pi()

    def number(self, value: float) -> Any:
        """The value, exactly."""
        return load_flint().arb(value)

    def numbers(self, values: FloatArray) -> Objects:
        """An array of doubles as an object array of balls, exactly."""
        arb = load_flint().arb
        balls = np.empty(values.shape, dtype=object)
        balls.ravel()[:] = [arb(value) for value in values.ravel().tolist()]
        return balls

    def each(self, name: str, x: Any) -> Any:
        """The method of this name of each ball."""
        function: Callable[[Any], Any] = lambda ball: getattr(ball, name)()  # noqa: E731  # ufunc
        return np.frompyfunc(function, 1, 1)(x)

    def remainder(self, x: Any, period: Any) -> Any:
        """x itself, which differs from the remainder by whole periods: bits pay for them."""
        return x + 0 * period

    def minimum(self, x: Any, other: Any) -> Any:
        """The smaller of the two: a ball that holds it, where the balls overlap."""
        return np.frompyfunc(lambda a, b: a.min(b), 2, 1)(x, other)


BALLS = Balls()


def matrix(rows: int, columns: int, entries: Sequence[Any]) -> Any:
    """A matrix of balls from its entries, row by row."""
    return load_flint().arb_mat(rows, columns, entries)


def matrix_of(values: FloatArray | Objects) -> Any:
    """A matrix of balls (n, m) that are the given doubles, exactly, or the given balls."""
    entries = values.ravel().tolist()
    return load_flint().arb_mat(*values.shape, *([entries] if entries else []))


def rows_of(balls: Any) -> list[list[Any]]:
    """The rows of a matrix of balls, as lists."""
    entries, width = balls.entries(), balls.ncols()
    return [entries[i * width : (i + 1) * width] for i in range(balls.nrows())]


def lines_of(balls: Any) -> list[Any]:
    """The rows of a matrix of balls (n, m), as n matrices (1, m)."""
    flint = load_flint()
    return [flint.arb_mat(1, balls.ncols(), row) for row in rows_of(balls)]


def stacked(lines: Sequence[Any], columns: int) -> Any:
    """Matrices (1, m) as the rows of one."""
    return load_flint().arb_mat(len(lines), columns, [v for row in lines for v in row.entries()])


def middle(balls: Any) -> Any:
    """The middles of a matrix of balls, as balls of no radius."""
    return balls.mid()


def floats(balls: Any) -> FloatArray:
    """The middles of a matrix of balls as doubles (n, m)."""
    values = np.array([float(entry) for entry in balls.entries()], dtype=np.float64)
    return values.reshape(balls.nrows(), balls.ncols())


def upper(ball: Any) -> float:
    """The least double that is surely not below any number of the ball."""
    return _outward(ball.upper(), math.inf)


def lower(ball: Any) -> float:
    """The largest double that is surely not above any number of the ball."""
    return _outward(ball.lower(), -math.inf)


def _outward(end: Any, direction: float) -> float:
    nearest = float(end)
    if math.isnan(nearest):
        raise undecided()
    exact = load_flint().arb(nearest)
    beyond = exact < end if direction > 0 else exact > end
    return math.nextafter(nearest, direction) if beyond else nearest


def within(radius: Any) -> Any:
    """The ball of all numbers of at most that size."""
    return load_flint().arb(0, radius.abs_upper())


def undecided() -> NumericalError:
    """What is raised where a ball is too wide for what it must show."""
    return NumericalError(
        "a certificate must have balls that are narrow, got one that holds every number; "
        "state a measurement noise (--noise-std) or an independent noise floor (--floor)"
    )
