"""The best that a Gaussian adversary can do: the posterior mean, of any prior it believes in."""

from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np

from trailveil.checks.attacks.contract import (
    Background,
    Estimate,
    Evidence,
    Filter,
    required_mechanism,
)
from trailveil.errors import InvalidValue
from trailveil.gp.arrays import numbers_in
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism
from trailveil.privacy.prior import NOTHING_KNOWN, Prior, SideInformation, observe
from trailveil.privacy.secrets import Secret


def posterior_mean(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """The mean of each secret given the release and the true places, and its deviation.

    Of the kernel and the adversary of `known`: where they are how the recording came about and how
    the noise did, no attack is better. The mean of the prior is flat: it says nothing of where on
    the map all of it lies. Source: Rasmussen and Williams, Gaussian Processes, eq. 2.25.
    Raises InvalidValue where the mechanism is not known, or is of other fixes.
    """
    mechanism = required_mechanism(known)
    if mechanism.rows.size != view.times.size:
        raise InvalidValue(
            f"the mechanism must release {view.times.size} fixes, got {mechanism.rows.size}"
        )
    true, data = known.true, view.places
    information = NOTHING_KNOWN
    if true is not None and true.times.size:
        information = SideInformation(true.times, true.accuracy)
        data = np.concatenate([data, true.places], axis=1)
    if not data.shape[1]:
        return (None,) * len(known.secrets)
    origin = data.mean(axis=(0, 1))
    estimates: list[Estimate | None] = []
    for secret in known.secrets:
        of_secret = _filter(secret, mechanism, information, known)
        places = of_secret.level * origin + np.einsum("i,dia->da", of_secret.weights, data - origin)
        estimates.append(Estimate(places, of_secret.deviation))
    return tuple(estimates)


def _filter(
    secret: Secret, mechanism: Mechanism, information: SideInformation, known: Background
) -> Filter:
    """What becomes of data: it depends on times and noise alone, and so may be at hand."""
    if known.filters is None:
        return _computed(secret, mechanism, information, known)
    key = (known.kernel, known.adversary, *_identity(secret, mechanism, information))
    if key not in known.filters:
        known.filters[key] = _computed(secret, mechanism, information, known)
    return known.filters[key]


def _computed(
    secret: Secret, mechanism: Mechanism, information: SideInformation, known: Background
) -> Filter:
    judge = known.adversary.judging(Prior(known.kernel, mechanism.times), secret)
    observed = observe(judge, mechanism, information, independent=True)
    posterior = observed.posterior(replace(secret, window=None))
    deviation = float(np.sqrt(posterior.covariance[0, 0]))
    return Filter(posterior.weights[:, 0], float(secret.level[0]), deviation)


def _identity(
    secret: Secret, mechanism: Mechanism, information: SideInformation
) -> tuple[Any, ...]:
    """All that is in them: numbers by a digest, a process by itself."""
    arrays = (secret.times, secret.weights, information.times, mechanism.times, mechanism.factor)
    digest = blake2b(digest_size=16)
    for array in (*arrays, mechanism.released, mechanism.independent, mechanism.refinement):
        if array is not None:
            digest.update(repr(array.shape).encode() + array.tobytes())
    numbers = (secret.recorded, secret.window, information.accuracy, mechanism.floor)
    return (*numbers, mechanism.process, digest.digest())


def posterior_over_time(
    prior: Prior, mechanism: Mechanism, released: FloatArray, at: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The mean and deviation (k,) of the series at times (k,), given what is released of it (m,).

    Of an adversary who knows the mean of the prior (between two fixes, on the line between theirs)
    and no true place. at: seconds, in order. O(m k) of memory. Raises InvalidValue where the shapes
    do not fit. Source: Rasmussen and Williams, Gaussian Processes, eq. 2.38.
    """
    values = numbers_in("released must be numbers", released)
    if values.shape != mechanism.rows.shape:
        raise InvalidValue(
            f"released must have {mechanism.rows.size} values, got shape {values.shape}"
        )
    secret = Secret.at(at)
    posterior = observe(prior, mechanism, independent=True).posterior(secret)
    level = np.zeros(prior.times.size) if prior.mean is None else np.asarray(prior.mean)
    mean = np.interp(secret.times, prior.times, level)
    mean += posterior.weights.T @ (values - level[mechanism.rows])
    return mean, np.sqrt(np.diagonal(posterior.covariance))


def repeated_releases(view: Evidence, known: Background) -> tuple[Estimate | None, ...]:
    """As `posterior_mean`, of the average of several releases with independent noise.

    Raises InvalidValue where there is no other release.
    """
    if known.others is None or not known.others.shape[1]:
        raise InvalidValue("averaging must have further releases, got none")
    count = 1 + known.others.shape[1]
    together = (view.places + known.others.sum(axis=1)) / count
    less = required_mechanism(known).scaled(1.0 / count)
    return posterior_mean(Evidence(view.times, together), replace(known, mechanism=less))
