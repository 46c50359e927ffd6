"""Files of numbers, such as times and weights."""

from pathlib import Path

import numpy as np

from trailveil.errors import UnreadableInput
from trailveil.files.source import load, named
from trailveil.gp.gaussian import FloatArray


def numbers_in(path: Path | None, option: str) -> FloatArray | None:
    """The numbers of a file, one a line; None for no file. Raises UnreadableInput."""
    if path is None:
        return None
    try:
        text = load(path).decode()
        return np.array([float(word) for word in text.split()], dtype=np.float64)
    except ValueError as error:
        raise UnreadableInput(
            f"{option} must be a readable file of one number a line, got {named(path)}"
        ) from error
