"""A series as a function of the time has the law of its kernel, whenever it is asked for."""

import numpy as np
import pytest

from trailveil.errors import InvalidValue
from trailveil.gp.bridges import HALVINGS, SPAN, Bridges
from trailveil.gp.kernels import IntegratedOU, Kernel, Matern12, Matern32, Matern52, Sum, White
from trailveil.live import moving
from trailveil.live.moving import LiveNoise

KERNEL = Matern12(60.0, 269.7) + Matern32(120.0, 298.8) + Matern32(30720.0, 321.9)
BEGIN = 386_000 * SPAN
# Ends of a span, whole seconds, neighbours by a nanosecond, the next spans.
TIMES = [BEGIN + t for t in (0, 1, 10**9, 61 * 10**9, 3 * 10**12 + 7, 3 * 10**12 + 8, SPAN - 1)]
TIMES += [BEGIN + t for t in (SPAN, SPAN + 5 * 10**9, 3 * SPAN + 123_456_789)]


class _Basis:
    """Draws that are kept apart: row r of any state says how it depends on the r-th normal."""

    def __init__(self, size: int) -> None:
        self.rows, self.size, self.known = 0, size, dict[tuple[bytes, str], int]()

    def drawn(self, secret: bytes, label: str, bridges: Bridges) -> np.ndarray:
        d = bridges.weights.size
        at = self.known.setdefault((secret, label), self.rows)
        if at == self.rows:
            self.rows += d
        whole = np.zeros((self.size, d))
        whole[at : at + d] = np.eye(d)
        return whole


@pytest.mark.parametrize("kernel", [KERNEL, Matern12(60.0, 2.0), Sum((Matern52(300.0, 3.0),))])
def test_the_law_is_exactly_that_of_the_kernel(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = Bridges.of(kernel).weights.size
    basis = _Basis(size * (len(TIMES) * HALVINGS + 10))
    monkeypatch.setattr(moving, "_drawn", basis.drawn)
    noise = LiveNoise.begun(kernel, BEGIN, bytes(32))
    rows = []
    for time in TIMES:
        noise.advance(time)
        rows.append(noise.at(time))
    seconds = (np.array(TIMES) - BEGIN) / 1e9
    truth = kernel(seconds, seconds)
    assert np.max(np.abs(np.array(rows) @ np.array(rows).T - truth)) < 1e-9 * truth[0, 0]


def test_draws_have_the_covariance_of_the_batch() -> None:
    """20,000 draws under secrets of their own, two coordinates each, against the batch law."""
    times = [BEGIN + k * SPAN // 64 for k in (0, 1, 2, 4, 8, 40, 63, 64, 72)]
    draws = []
    for i in range(10_000):
        noise = LiveNoise.begun(KERNEL, BEGIN, i.to_bytes(32, "big"))
        values = []
        for time in times:
            noise.advance(time)
            values.append(noise.at(time))
        draws.append(np.array(values))
    seconds = (np.array(times) - BEGIN) / 1e9
    truth = KERNEL(seconds, seconds)
    scale = np.sqrt(np.diagonal(truth))
    flat = np.concatenate(draws, axis=1) / scale[:, None]  # (9, 20000)
    count = flat.shape[1]
    correlation = truth / np.outer(scale, scale)
    # An entry has the standard error sqrt((1 + rho^2) / n); 45 of them, 6 errors: 1e-7 in all.
    errors = np.sqrt((1 + correlation**2) / count)
    assert np.max(np.abs(flat @ flat.T / count - correlation) / errors) < 6
    # Whitened, the squares are chi-square: their mean is 1 to sqrt(2 / (9 n)); 6 errors: 2e-9.
    white = np.linalg.solve(np.linalg.cholesky(correlation), flat)
    assert abs(np.mean(white**2) - 1) < 6 * np.sqrt(2 / white.size)
    # East and north are independent: a correlation has the standard error sqrt(1 / n).
    east, north = np.array(draws).transpose(2, 1, 0)
    both = np.mean(east * north, axis=1) / scale**2
    assert np.max(np.abs(both)) < 6 / np.sqrt(len(draws))


def test_a_moment_has_one_value_however_it_is_come_to() -> None:
    secret = b"s" * 32
    noise = LiveNoise.begun(KERNEL, BEGIN, secret)
    values = {}
    for time in TIMES:
        noise.advance(time)
        values[time] = noise.at(time)
    again = LiveNoise.begun(KERNEL, BEGIN, secret)
    for time in sorted(TIMES, key=lambda t: (t // SPAN, -t)):  # backwards within a span
        again.advance(time)
        assert np.array_equal(again.at(time), values[time])
    assert len({tuple(value) for value in values.values()}) == len(TIMES)
    for time in TIMES:  # from what was stored on the way
        noise = LiveNoise.begun(KERNEL, BEGIN, secret)
        noise.advance(time)
        restored = LiveNoise.restored(KERNEL, noise.record)
        assert np.array_equal(restored.at(time), values[time])


def test_what_is_past_is_forgotten() -> None:
    noise = LiveNoise.begun(KERNEL, BEGIN, b"s" * 32)
    before = noise.record
    noise.advance(BEGIN + SPAN)
    assert before["secret"] not in str(noise.record)
    with pytest.raises(InvalidValue, match="must be in the span"):
        noise.at(BEGIN + 1)


@pytest.mark.parametrize("kernel", [IntegratedOU(3.0, 60.0), Matern12(1.0, 1.0) + White(1.0)])
def test_no_other_kernel_has_bridges(kernel: Kernel) -> None:
    with pytest.raises(InvalidValue, match="sum of Matern kernels"):
        Bridges.of(kernel)
