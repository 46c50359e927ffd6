"""Stated times are seconds: what has a unit of its own would give a wrong guarantee."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import trailveil as tv
from trailveil.errors import InvalidValue

ANY: Any = tv
KERNEL = tv.kernels.Matern32(60.0) + tv.kernels.White(0.1)
SECONDS = np.arange(5.0) * 60
STAMPS = pd.date_range("2024-05-14", periods=5, freq="min")
PRIOR = tv.Prior(KERNEL, SECONDS)
BARE = np.zeros((5, 0))
TAKERS: dict[str, Callable[[Any], object]] = {
    "Prior": lambda times: ANY.Prior(KERNEL, times),
    "Prior.from_covariance": lambda times: ANY.Prior.from_covariance(np.eye(5), times),
    "kernels.Tabulated": lambda times: ANY.kernels.Tabulated(times, np.eye(5)),
    "a kernel": lambda times: KERNEL(times, times),
    "Mechanism": lambda times: ANY.Mechanism(times, BARE, 1.0),
    "Adversary.knows": lambda times: ANY.Adversary.knows(np.ones(5), times, 1.0),
    "Secret": lambda times: ANY.Secret("basic", times, np.eye(5)),
    "Secret.at": ANY.Secret.at,
    "Secret.mean": ANY.Secret.mean,
    "Secret.of": lambda times: ANY.Secret.of(np.ones(5), times),
    "Secret.difference": lambda times: ANY.Secret.difference(times[0], times[1]),
    "Secret.stay": lambda times: ANY.Secret.stay(times[0], times[1]),
    "Adversary.sees_stillness": lambda times: ANY.Adversary.sees_stillness([(times[0], times[1])]),
}


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize(
    "times",
    [
        STAMPS,
        STAMPS.tz_localize("UTC"),
        STAMPS.to_numpy(),
        (STAMPS - STAMPS[0]).to_numpy(),
        pd.Series(STAMPS),
        list(STAMPS.to_pydatetime()),
        list(STAMPS - STAMPS[0]),
        [str(second) for second in SECONDS],
    ],
    ids=["index", "zone", "datetime64", "timedelta64", "series", "datetimes", "timedeltas", "text"],
)
def test_times_that_are_no_seconds_are_refused(name: str, times: Any) -> None:
    TAKERS[name](SECONDS.astype(int))
    with pytest.raises(InvalidValue, match="seconds"):
        TAKERS[name](times)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (SECONDS * [1, 1, 1, 1, np.nan], "finite"),
        (SECONDS[::-1], "strictly increasing"),
        (SECONDS * [1, 0, 1, 1, 1], "strictly increasing"),
    ],
)
def test_times_are_finite_and_in_order(times: Any, words: str) -> None:
    for take in (TAKERS["Prior"], TAKERS["Mechanism"]):
        with pytest.raises(InvalidValue, match=f"times must be {words}"):
            take(times)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("parts", [{"floor": 1.0}, {"process": KERNEL * 2.0}])
def test_a_mechanism_is_judged_at_the_times_of_its_prior(
    parts: dict[str, Any], *, recorded: bool
) -> None:
    secret = tv.Secret.at(120.0, recorded=recorded)
    assert tv.exposure(PRIOR, secret, tv.Mechanism(SECONDS, BARE, **parts)).loss > 0
    for times in (SECONDS / 60, SECONDS + 1e-6):
        noise = tv.Mechanism(times, BARE, **parts)
        with pytest.raises(InvalidValue, match="must have the times of the prior"):
            tv.exposure(PRIOR, secret, noise)
        with pytest.raises(InvalidValue, match="must have the times of the prior"):
            tv.plots.posterior(PRIOR, noise, np.zeros(5))
