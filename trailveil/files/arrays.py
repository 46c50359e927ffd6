"""Named arrays as bytes, made and read in little time.

Whole numbers, which are mostly times and row numbers that go up evenly, are stored as differences
and compressed; floating point is stored as it is: compressing it takes long and saves a twentieth.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue

_MAGIC = b"TVA1"
_SIZES = struct.Struct("<4sII")


def to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays of whole numbers, booleans or floating point, of any shape, by their names.

    Raises InvalidValue for one of another kind.
    """
    heads, whole, floating = [], [], []
    for name, array in arrays.items():
        plain = np.ascontiguousarray(array)
        kind = plain.dtype.kind
        if kind not in "biuf":
            raise InvalidValue(f"arrays must be of numbers, got {plain.dtype}: {name}")
        heads.append([name, plain.dtype.newbyteorder("<").str, np.shape(array)])
        little = plain.astype(plain.dtype.newbyteorder("<"), copy=False).ravel()
        if kind == "f":
            floating.append(little.tobytes())
        else:
            whole.append(little.tobytes() if kind == "b" else _steps(little).tobytes())
    head = json.dumps(heads).encode()
    squeezed = zlib.compress(b"".join((head, *whole)), 1)
    return b"".join((_SIZES.pack(_MAGIC, len(head), len(squeezed)), squeezed, *floating))


def from_bytes(data: bytes) -> tuple[dict[str, NDArray[Any]], bytes]:
    """The arrays that `to_bytes` made the beginning of `data` of, and what comes after them.

    Raises InvalidValue for bytes that it did not make.
    """
    try:
        return _read(data)
    except (ValueError, TypeError, LookupError, struct.error, zlib.error) as error:
        raise InvalidValue("arrays must be as they were stored, got others") from error


def _read(data: bytes) -> tuple[dict[str, NDArray[Any]], bytes]:
    magic, length, size = _SIZES.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError
    squeezed, floats = zlib.decompress(data[_SIZES.size : _SIZES.size + size]), _SIZES.size + size
    whole, arrays = length, {}
    for name, kind, shape in json.loads(squeezed[:length]):
        dtype, count = np.dtype(kind), int(np.prod(shape, dtype=np.int64))
        if dtype.kind == "f":
            array = np.frombuffer(data, dtype, count, floats)
            floats += array.nbytes
        else:
            array = np.frombuffer(squeezed, dtype, count, whole)
            whole += array.nbytes
            if dtype.kind != "b":
                array = np.cumsum(array, dtype=dtype)
        arrays[name] = array.reshape(shape)
    return arrays, data[floats:]


def _steps(values: NDArray[Any]) -> NDArray[Any]:
    """The first value and the differences (n,); they wrap around, and so does their sum."""
    steps = values.copy()
    steps[1:] -= values[:-1]
    return steps
