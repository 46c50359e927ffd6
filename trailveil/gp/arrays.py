"""Arrays of numbers as callers state them: checked, in double precision, and never of dates."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trailveil.errors import InvalidValue


def numbers_in(name: str, values: ArrayLike, instead: str = "give numbers") -> NDArray[np.float64]:
    """An array of stated numbers. Raises InvalidValue for dates, text, and rows of other lengths.

    name: in the error, with "must be". instead: what to do next.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidValue(f"{name}, got rows of different lengths: {instead}") from None
    if array.dtype.kind not in "iuf":
        got = type(values).__name__ if array.dtype.kind == "O" else array.dtype
        raise InvalidValue(f"{name}, got {got}: {instead}")
    return array.astype(np.float64, copy=False)


def seconds_in(values: ArrayLike) -> NDArray[np.float64]:
    """Stated times, as `numbers_in` has them: what holds a unit of its own is not seconds."""
    return numbers_in("times must be seconds", values, "subtract the first, in seconds")


def read_only(values: ArrayLike) -> NDArray[np.float64]:
    """A copy in double precision that nobody can write to."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def increasing_times(values: ArrayLike) -> NDArray[np.float64]:
    """Times (n,), read-only; InvalidValue unless they are finite and strictly increasing."""
    times = read_only(seconds_in(values))
    if times.ndim != 1 or times.size == 0:
        raise InvalidValue(f"times must be one number a fix, got shape {times.shape}")
    check_increasing(times)
    return times


def check_increasing(times: NDArray[np.float64]) -> None:
    """Raise InvalidValue unless times (n,) are finite and strictly increasing."""
    if not np.all(np.isfinite(times)):
        raise InvalidValue("times must be finite, got infinite or missing ones")
    if np.any(np.diff(times) <= 0):
        raise InvalidValue("times must be strictly increasing, got two out of order or equal")
