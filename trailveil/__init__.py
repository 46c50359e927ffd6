"""Release a trace, or any series, with noise that hides what could be inferred from it.

`import trailveil as tv`: the names of `__all__` are the public interface. All else may change.
Each is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from trailveil.version import __version__

if TYPE_CHECKING:
    from trailveil import datasets, errors, kernels, plots, priors
    from trailveil.adversary import Adversary, exposure
    from trailveil.api import audit, protect, protect_frame, publish, read, read_readings, write
    from trailveil.composition import Release, compose
    from trailveil.designer import Certificate, design
    from trailveil.guarantee import Guarantee, loss_bound_for
    from trailveil.ledger import Ledger, open_ledger
    from trailveil.mechanism import Mechanism
    from trailveil.prior import Prior
    from trailveil.readings import Readings
    from trailveil.release import Plan
    from trailveil.request import Request
    from trailveil.secrets import Secret
    from trailveil.trace import Trace
    from trailveil.utility import compare

__all__ = [
    "Adversary",
    "Certificate",
    "Guarantee",
    "Ledger",
    "Mechanism",
    "Plan",
    "Prior",
    "Readings",
    "Release",
    "Request",
    "Secret",
    "Trace",
    "__version__",
    "audit",
    "compare",
    "compose",
    "datasets",
    "design",
    "errors",
    "exposure",
    "kernels",
    "loss_bound_for",
    "open_ledger",
    "plots",
    "priors",
    "protect",
    "protect_frame",
    "publish",
    "read",
    "read_readings",
    "write",
]
_HOMES = {
    "adversary": ("Adversary", "exposure"),
    "api": ("audit", "protect", "protect_frame", "publish", "read", "read_readings", "write"),
    "composition": ("Release", "compose"),
    "designer": ("Certificate", "design"),
    "guarantee": ("Guarantee", "loss_bound_for"),
    "ledger": ("Ledger", "open_ledger"),
    "mechanism": ("Mechanism",),
    "prior": ("Prior",),
    "readings": ("Readings",),
    "release": ("Plan",),
    "request": ("Request",),
    "secrets": ("Secret",),
    "trace": ("Trace",),
    "utility": ("compare",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("datasets", "errors", "kernels", "plots", "priors")


def __getattr__(name: str) -> object:
    """A public name. Raises AttributeError for another one."""
    if name in _MODULES:
        return import_module(f"trailveil.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"trailveil.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
