"""What several releases tell together.

One recording, protected anew each time: fresh noise is averaged away, so epsilon grows.
"""

import numpy as np
from matplotlib.figure import Figure

import trailveil as tv

kernel = tv.kernels.RBF(6.1) + tv.kernels.White(0.1)
prior = tv.Prior(kernel, np.arange(50.0))
secret = tv.Secret.at(24.0, recorded=True)
bound = tv.loss_bound_for(0.5, radius=0.1, order=5)
mechanism, _ = tv.design(prior, [secret], bounds=[bound], floor=1e-3)

counts = range(1, 9)
epsilons = []
for count in counts:
    loss = tv.compose(kernel, [tv.Release(mechanism, "ride")] * count).loss(secret)
    epsilons.append(tv.Guarantee(mu=np.sqrt(loss.largest) * 0.1, order=5).epsilon)

figure = Figure(figsize=(4, 2.6), layout="constrained")
axes = figure.add_subplot(xlabel="releases", ylabel="epsilon in total")
axes.plot(counts, epsilons, "o-")
