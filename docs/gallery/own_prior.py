"""A prior and a secret of your own.

Any covariance matrix and mean, such as of a model that you fitted elsewhere. The secret is the
difference between noon and midnight of a day in a room.
"""

import numpy as np

import trailveil as tv

hours = np.arange(0.0, 24.0, 0.5)
apart = np.abs(hours[:, None] - hours)
K = 4 * np.exp(-((np.sin(np.pi * apart / 24) / 0.7) ** 2)) + 0.05 * np.eye(hours.size)
prior = tv.Prior.from_covariance(K, mean=20 + 3 * np.sin(2 * np.pi * (hours - 8) / 24), times=hours)
secret = tv.Secret.difference(12.0, 0.0)
mechanism, _ = tv.design(prior, [secret], budget=2.0)

rng = np.random.default_rng(1)
true = prior.draw(rng)
noise = rng.multivariate_normal(np.zeros(hours.size), mechanism.covariance())
axes = tv.plots.posterior(prior, mechanism, true + noise, truth=true)
figure = axes.figure
