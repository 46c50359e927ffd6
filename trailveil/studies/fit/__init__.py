"""Parameters of a prior from data, by maximum likelihood. Takes arrays: traces come from below."""

from trailveil.studies.fit.likelihood import (
    FAMILIES,
    Family,
    FitSeries,
    Parameter,
    cut,
    log_likelihood,
)
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
