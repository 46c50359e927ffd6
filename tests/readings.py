"""What is asked of a release of readings, in the tests."""

from typing import Any

from trailveil.gp.kernels import Kernel
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Stretch


def readings_request(
    stretches: tuple[Stretch, ...], radius: float, kernel: Kernel, **more: Any
) -> Request:
    """Noise for some stretches of a temperature, or for all of it."""
    return Request(
        stretches, radius, kernel=kernel, unit="degC", **{"method": Method.NOISE, **more}
    )
