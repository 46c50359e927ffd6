"""Arrays come back from their bytes bit by bit, and other bytes are refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trailveil.errors import InvalidValue
from trailveil.files.arrays import from_bytes, to_bytes


def arrays() -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(3)
    ends = np.iinfo(np.int64)
    return {
        "times": 1_715_672_400_000_000_000 + 5 * np.arange(1000) * 10**9,
        "ends": np.array([ends.min, ends.max, 0, ends.min, -1, ends.max]),
        "small": np.array([255, 0, 7], dtype=np.uint8),
        "yes": random.random((4, 3)) < 0.5,
        "odd": np.array([-0.0, np.nan, np.inf, 5e-324, 1e308]),
        "factor": random.normal(size=(30, 7))[::2],
        "big": np.array([[1, 2], [3, 4]], dtype=">i4"),
        "none": np.empty((0, 2), dtype=np.int64),
        "one": np.array(3.5),
    }


def test_what_is_read_is_what_was_stored() -> None:
    stored = arrays()
    read, more = from_bytes(to_bytes(stored) + b"more")
    assert more == b"more"
    assert list(read) == list(stored)
    for name, array in stored.items():
        assert read[name].shape == array.shape
        assert read[name].dtype == array.dtype.newbyteorder("<")
        assert read[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


def test_even_times_take_next_to_nothing() -> None:
    assert len(to_bytes({"times": arrays()["times"]})) < 200


@pytest.mark.parametrize("damage", ["cut", "other", "empty", "squeezed"])
def test_other_bytes_are_refused(damage: str) -> None:
    data = to_bytes(arrays())
    other = {
        "cut": data[:-1],
        "other": b"PK" + data[2:],
        "empty": b"",
        "squeezed": data[:12] + b"\0" * 20 + data[32:],
    }
    with pytest.raises(InvalidValue, match="as they were stored"):
        from_bytes(other[damage])


def test_text_is_no_array_of_numbers() -> None:
    with pytest.raises(InvalidValue, match="must be of numbers"):
        to_bytes({"name": np.array(["a"])})
