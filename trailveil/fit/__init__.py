"""Parameters of a prior from data, by maximum likelihood. Takes arrays: traces come from below."""

from trailveil.fit.families import FAMILIES, Family, Parameter
from trailveil.fit.likelihood import Series, log_likelihood
from trailveil.fit.search import Fit, fit
from trailveil.fit.windows import cut

__all__ = [
    "FAMILIES",
    "Family",
    "Fit",
    "Parameter",
    "Series",
    "cut",
    "fit",
    "log_likelihood",
]
