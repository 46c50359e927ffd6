"""Release a trace, or any series, with noise that hides what could be inferred from it."""

from trailveil.version import __version__

__all__ = ["__version__"]
