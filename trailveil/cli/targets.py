"""What `trailveil design` is asked for: times, a kernel, secrets, and how much of each."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from trailveil.cli.parameters import LARGEST
from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import load, named
from trailveil.gp.gaussian import FloatArray
from trailveil.gp.kernels import (
    RBF,
    Constant,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    White,
)
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.privacy.prior import Prior
from trailveil.privacy.secrets import Secret

_STATIONARY: dict[str, Callable[[float, float], Kernel]] = {
    "rbf": RBF,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
}
KERNELS = ("rbf", "periodic", "matern12", "matern32", "matern52", "integrated-ou")


@dataclass(frozen=True, slots=True)
class Asked:
    """A secret as it was asked for, with its own radius and epsilon where it has them."""

    indices: tuple[int, ...]
    secret: Secret
    radius: float | None
    epsilon: float | None


def kernel_of(options: dict[str, Any], times: FloatArray) -> Kernel:
    """The kernel, with measurement noise and a level where they are not zero.

    For integrated-ou, length_scale is the time constant and std that of the velocity. Raises
    InvalidValue for a period that is missing or out of place, and for a number out of range.
    """
    name, scale, std = options["kernel"], options["length_scale"], options["std"]
    if (name == "periodic") != (options["period"] is not None):
        raise InvalidValue("--period must be given for the periodic kernel, and only for it")
    kernel: Kernel
    if name in _STATIONARY:
        kernel = _STATIONARY[name](scale, std)
    elif name == "periodic":
        kernel = Periodic(scale, options["period"], std)
    else:
        kernel = IntegratedOU(std, scale, float(times[0]) if times.size else 0.0)
    if options["level_std"] > 0:
        kernel = kernel + Constant(options["level_std"])
    return kernel + White(options["noise_std"]) if options["noise_std"] > 0 else kernel


def numbers_in(path: Path | None, option: str) -> FloatArray | None:
    """The numbers of a file, one a line; None for no file. Raises UnreadableInput."""
    if path is None:
        return None
    try:
        text = load(path).decode()
        return np.array([float(word) for word in text.split()], dtype=np.float64)
    except ValueError as error:
        raise UnreadableInput(
            f"{option} must be a readable file of one number a line, got {named(path)}"
        ) from error


def times_of(options: dict[str, Any]) -> FloatArray:
    """The times (n,) that were stated, or 0, 1, 2, ... Raises wrong usage, or UnreadableInput."""
    if (options["points"] is None) == (options["times"] is None):
        raise click.UsageError("give either --points or --times")
    if options["times"] is None:
        return np.arange(options["points"], dtype=np.float64)
    times = numbers_in(options["times"], "--times")
    return np.empty(0) if times is None else times


def asked_of(options: dict[str, Any], prior: Prior) -> list[Asked]:
    """The secrets that were stated. Raises InvalidValue for indices that the prior has not."""
    parts = [_compound(text, prior) for text in options["secrets"]]
    parts += [_pair(text, prior, "mean") for text in options["means"]]
    parts += [_pair(text, prior, "difference") for text in options["differences"]]
    if not parts:
        raise click.UsageError("give a --secret, a --mean, a --difference or --everywhere")
    return parts


def _compound(text: str, prior: Prior) -> Asked:
    body, radius, epsilon = _own(text)
    indices = _indices(body.split(","), text, prior)
    times = prior.times[list(indices)]
    when = times[0] if len(indices) == 1 else times.tolist()
    return Asked(indices, Secret.at(when, recorded=True), radius, epsilon)


def _pair(text: str, prior: Prior, kind: str) -> Asked:
    body, radius, epsilon = _own(text)
    ends = _indices(body.split(":"), text, prior)
    if len(ends) != 2:  # a pair
        raise InvalidValue(f"--{kind} must be two indices A:B, got {text}")
    first, last = ends
    if kind == "difference":
        secret = Secret.difference(prior.times[first], prior.times[last], recorded=True)
        return Asked(ends, secret, radius, epsilon)
    if first > last:
        raise InvalidValue(f"--mean must be A:B with A before B, got {text}")
    inside = tuple(range(first, last + 1))
    return Asked(inside, Secret.mean(prior.times[first : last + 1], recorded=True), radius, epsilon)


def _own(text: str) -> tuple[str, float | None, float | None]:
    """The secret, its own radius and its own epsilon, of SECRET[@RADIUS/EPSILON]."""
    body, at, bound = text.partition("@")
    if not at:
        return body, None, None
    radius, slash, epsilon = bound.partition("/")
    try:
        numbers = float(radius), float(epsilon)
    except ValueError as error:
        raise InvalidValue(f"a secret's own figures must be @RADIUS/EPSILON, got {text}") from error
    if not slash or not all(1 / LARGEST <= number <= LARGEST for number in numbers):
        raise InvalidValue(
            f"a secret's own radius and epsilon must be positive, and at most {LARGEST:g}, got "
            f"{text}"
        )
    return body, *numbers


def _indices(words: list[str], text: str, prior: Prior) -> tuple[int, ...]:
    try:
        indices = tuple(int(word) for word in words)
    except ValueError as error:
        raise InvalidValue(f"indices must be whole numbers, got {text}") from error
    if any(not 0 <= index < prior.times.size for index in indices):
        raise InvalidValue(f"indices must be from 0 to {prior.times.size - 1}, got {text}")
    if len(set(indices)) != len(indices):
        raise InvalidValue(f"indices of one secret must differ, got {text}")
    return indices


def bounds_of(options: dict[str, Any], asked: list[Asked] | None) -> list[float]:
    """The most that each secret may lose, of its own radius and epsilon where it has them."""
    pairs = [(part.epsilon, part.radius) for part in asked] if asked else [(None, None)]
    return [
        loss_bound_for(epsilon or options["epsilon"], radius or options["radius"], options["order"])
        for epsilon, radius in pairs
    ]
