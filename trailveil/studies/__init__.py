"""Studies: priors from data, how good they are, mechanisms compared, the paper reproduced.

`compare` compares mechanisms (docs/commands/compare.md); what it takes of a mechanism or an attack
is in `Case`, `Disclosure`, `Sighting` and `Clues`. Each is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trailveil.studies.comparing import compare
    from trailveil.studies.comparing.cases import Case, Clues, Disclosure, Sighting

__all__ = ["Case", "Clues", "Disclosure", "Sighting", "compare"]


def __getattr__(name: str) -> object:
    """A public name. Raises AttributeError for another one."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "comparing" if name == "compare" else "comparing.cases"
    return getattr(import_module(f"trailveil.studies.{home}"), name)
