"""What an adversary thinks at each time.

The line is the best guess of somebody who knows the prior, the noise and the release. The band is
one standard deviation either way.
"""

import numpy as np

import trailveil as tv

prior = tv.Prior(tv.kernels.RBF(6.1) + tv.kernels.White(0.1), np.arange(50.0))
secret = tv.Secret.at(24.0, recorded=True)
mechanism, _ = tv.design(prior, [secret], budget=1.0)

rng = np.random.default_rng(1)
true = prior.draw(rng)
noise = rng.multivariate_normal(np.zeros(50), mechanism.covariance())
axes = tv.plots.posterior(prior, mechanism, true + noise, truth=true)
figure = axes.figure
