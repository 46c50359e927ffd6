"""Deviates are normal to the far tail, streams are apart, a key binds everything it is given."""

import hashlib
import hmac
from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from trailveil.errors import InvalidValue
from trailveil.gp import randomness
from trailveil.gp.randomness import SEED_BYTES, derive, deviates, fresh_seed, normals

SEED = bytes(range(32))
# What a fair sampler would fail with this probability, were the seed drawn anew.
FALSE_ALARM = 1e-6


@pytest.mark.parametrize("label", ["east factor", "north factor", "east floor"])
def test_deviates_are_standard_normal(label: str) -> None:
    assert kstest(normals(SEED, label, 200_000), "norm").pvalue > FALSE_ALARM


def test_their_squares_have_no_memory() -> None:
    drawn = normals(SEED, "x", 100_001)
    for series in (drawn, drawn**2, np.abs(drawn)):
        centred = (series - series.mean()) / series.std()
        # Under independence, lag-1 correlations are N(0, 1/n): 4.9 deviations is one in a million.
        assert abs(np.mean(centred[1:] * centred[:-1])) < 4.9 / np.sqrt(100_000)


@pytest.mark.parametrize("word", [0, 1, 2, 3, 2**20, 2**40 + 1, 2**62, 2**63 + 1, 2**64 - 4])
def test_a_word_is_a_sign_and_a_tail(word: int) -> None:
    deviate = float(deviates(np.array([word], dtype=np.uint64))[0])
    with mpmath.workdps(40):
        tail = (mpmath.mpf(word >> 1) + mpmath.mpf("0.5")) / mpmath.mpf(2) ** 64
        quantile = float(mpmath.sqrt(2) * mpmath.erfinv(2 * tail - 1))
    assert deviate == pytest.approx(-quantile if word & 1 else quantile, rel=1e-13, abs=1e-15)


def test_tails_reach_to_1e_19_on_both_sides() -> None:
    lowest, highest = deviates(np.array([0, 1], dtype=np.uint64))
    assert lowest == -highest
    assert highest > 9.0


def test_rare_deviates_come_as_often_as_they_should() -> None:
    count = 2_000_000
    sizes = np.abs(normals(SEED, "tail", count))
    for limit, chance in ((3.0, 2.6998e-3), (4.0, 6.3342e-5), (4.5, 6.7953e-6)):
        expected = count * chance
        assert abs(np.sum(sizes > limit) - expected) < 4.9 * np.sqrt(expected)


def test_seed_and_label_decide() -> None:
    assert np.array_equal(normals(SEED, "a", 50), normals(SEED, "a", 50))
    streams = [normals(seed, label, 4000) for seed in (SEED, bytes(32)) for label in ("a", "b", "")]
    for stream, other in combinations(streams, 2):
        assert abs(np.corrcoef(stream, other)[0, 1]) < 4.9 / np.sqrt(4000)
        assert not np.isin(stream, other).any()


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_blocks_join_without_repeating(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(randomness, "_CHUNK", 64)
    drawn = normals(SEED, "x", count)
    assert drawn.shape == (count,)
    assert np.unique(drawn).size == count
    assert np.array_equal(drawn, normals(SEED, "x", 1000)[:count])


def test_fresh_seeds_differ() -> None:
    seeds = {fresh_seed() for _ in range(100)}
    assert len(seeds) == 100
    assert {len(seed) for seed in seeds} == {SEED_BYTES}


def test_derive_is_hmac_sha256_of_parts_with_lengths() -> None:
    message = b"\0\0\0\0\0\0\0\2ab\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1c"
    expected = hmac.new(SEED, message, hashlib.sha256).digest()
    assert derive(SEED, [b"ab", b"", b"c"]) == expected


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_no_two_lists_of_parts_are_confused(parts: list[bytes], other: list[bytes]) -> None:
    assert (derive(SEED, parts) == derive(SEED, other)) == (parts == other)


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_short_keys_are_refused(length: int) -> None:
    with pytest.raises(InvalidValue, match="must be 32 bytes, got"):
        derive(bytes(length), [])
    with pytest.raises(InvalidValue, match="must be 32 bytes, got"):
        normals(bytes(length), "x", 1)
