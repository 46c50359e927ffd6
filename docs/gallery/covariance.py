"""The noise itself.

Its covariance as a heat map, above draws from it. The noise is large around the secret value alone.
"""

import numpy as np

import trailveil as tv

prior = tv.Prior(tv.kernels.RBF(6.1) + tv.kernels.White(0.1), np.arange(50.0))
mechanism, certificate = tv.design(prior, [tv.Secret.at(24.0, recorded=True)], budget=1.0)
upper, lower = tv.plots.covariance(mechanism, samples=2, generator=np.random.default_rng(1))
upper.set_title(f"within {100 * certificate.gap:.1g} % of the optimum")
figure = upper.figure
