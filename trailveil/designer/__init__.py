"""Designing the noise: closed forms, baselines, the paper's programs; `design` chooses.

Noise around a window (`trailveil.designer.window`, `.table`) needs none of these: they are imported
when they are asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trailveil.designer.designer import (
        LARGEST_GAP,
        PAPER_FACTOR,
        PAPERS,
        Certificate,
        Kind,
        Outcome,
        design,
    )

__all__ = ["LARGEST_GAP", "PAPERS", "PAPER_FACTOR", "Certificate", "Kind", "Outcome", "design"]


def __getattr__(name: str) -> object:
    """A public name of the designer. Raises AttributeError for another one."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("trailveil.designer.designer"), name)
