"""Release a trace, or any series, with noise that hides what could be inferred from it.

`import trailveil as tv`: the names of `__all__` are the public interface. All else may change.
Each is imported when it is first asked for.
"""

from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING

from trailveil.version import __version__

if TYPE_CHECKING:
    from trailveil import errors, plots, studies
    from trailveil.api import audit, protect, protect_frame, publish, read, read_readings, write
    from trailveil.checks.utility import compare
    from trailveil.designer import Certificate, design
    from trailveil.gp import kernels
    from trailveil.ledger import Ledger, open_ledger
    from trailveil.live.lines import Fix
    from trailveil.live.stream import Stream
    from trailveil.privacy import priors
    from trailveil.privacy.adversary import Adversary, exposure
    from trailveil.privacy.composition import Release, compose
    from trailveil.privacy.guarantee import Guarantee, loss_bound_for
    from trailveil.privacy.mechanism import Mechanism
    from trailveil.privacy.prior import Prior
    from trailveil.privacy.secrets import Secret
    from trailveil.release.plan import Plan
    from trailveil.release.request import Request
    from trailveil.studies import datasets
    from trailveil.traces.readings import Readings
    from trailveil.traces.trace import Trace

__all__ = [
    "Adversary",
    "Certificate",
    "Fix",
    "Guarantee",
    "Ledger",
    "Mechanism",
    "Plan",
    "Prior",
    "Readings",
    "Release",
    "Request",
    "Secret",
    "Stream",
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
    "studies",
    "write",
]
_HOMES = {
    "api": ("audit", "protect", "protect_frame", "publish", "read", "read_readings", "write"),
    "checks.utility": ("compare",),
    "designer": ("Certificate", "design"),
    "ledger": ("Ledger", "open_ledger"),
    "live.lines": ("Fix",),
    "live.stream": ("Stream",),
    "privacy.adversary": ("Adversary", "exposure"),
    "privacy.composition": ("Release", "compose"),
    "privacy.guarantee": ("Guarantee", "loss_bound_for"),
    "privacy.mechanism": ("Mechanism",),
    "privacy.prior": ("Prior",),
    "privacy.secrets": ("Secret",),
    "release.plan": ("Plan",),
    "release.request": ("Request",),
    "traces.readings": ("Readings",),
    "traces.trace": ("Trace",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {
    "datasets": "studies.datasets",
    "errors": "errors",
    "kernels": "gp.kernels",
    "plots": "plots",
    "priors": "privacy.priors",
    "studies": "studies",
}


def __getattr__(name: str) -> object:
    """A public name. Raises AttributeError for another one."""
    if name in _MODULES:
        return import_module(f"trailveil.{_MODULES[name]}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"trailveil.{_HOME[name]}"), name)
    if isinstance(value, FunctionType):
        from trailveil.errors import python_errors

        value = python_errors()(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return __all__
