"""Privacy against error, for two mechanisms.

The least mean squared error of each that gives an epsilon, for values 0.1 apart.
"""

import numpy as np

import trailveil as tv

prior = tv.Prior(tv.kernels.RBF(6.1) + tv.kernels.White(0.1), np.arange(50.0))


def by(kind):
    """How a mechanism of a kind is designed for an epsilon."""

    def designed(epsilon):
        bound = tv.loss_bound_for(epsilon, radius=0.1, order=5)
        secret = tv.Secret.at(24.0, recorded=True)
        return tv.design(prior, [secret], bounds=[bound], mechanism=kind)[0]

    return designed


kinds = {name: by(name) for name in ("uniform", "optimal")}
axes = tv.plots.trade_off(kinds, [0.25, 0.5, 1, 2, 4], squared=True, unit="")
figure = axes.figure
