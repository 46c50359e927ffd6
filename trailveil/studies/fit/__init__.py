"""Parameters of a prior from data, by maximum likelihood. Takes arrays: traces come from below."""

from trailveil.studies.fit.families import FAMILIES, Family, Parameter
from trailveil.studies.fit.likelihood import FitSeries, cut, log_likelihood
from trailveil.studies.fit.search import Fit, fit

__all__ = [
    "FAMILIES",
    "Family",
    "Fit",
    "FitSeries",
    "Parameter",
    "cut",
    "fit",
    "log_likelihood",
]
