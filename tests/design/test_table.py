"""Designs that are kept: found again by all that they depend on, and read as they were written."""

import json

import numpy as np
import pytest

from trailveil.design import table
from trailveil.design.table import key_of, noise_of, read, shaped_for, written
from trailveil.design.window import window_noise
from trailveil.privacy.checker import check
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.movement import Movement

WHO = (Knowledge("a stranger", Movement(1.0, 60.0), steady=240),)
BOUND = 1e-5


@pytest.mark.parametrize("sides", [1, 2])
def test_what_is_written_is_read_again(sides: int) -> None:
    noise = window_noise(120.0, sides, WHO, BOUND)
    again = read(json.loads(json.dumps(written(noise))))
    assert again.proof == noise.proof
    assert again.gap == noise.gap
    assert check(again.proof) == []
    before, after = np.array([0.0, 9.0, 0.0]), np.array([0.0, 0.0, 700.0])
    np.testing.assert_array_equal(again.columns(before, after), noise.columns(before, after))


def test_lengths_are_shaped_in_steps() -> None:
    assert [shaped_for(x) for x in (0.0, 60.0, 1e9)] == [60, 60, shaped_for(86_400.0)]
    for seconds in np.geomspace(60, 80_000, 50):
        assert 1 / 1.13 < shaped_for(seconds) / seconds < 1.13
        assert shaped_for(shaped_for(seconds)) == shaped_for(seconds)


def test_a_key_is_of_all_that_a_design_depends_on() -> None:
    other = (Knowledge("a stranger", Movement(1.0, 60.0), steady=241),)
    keys = {
        key_of(60.0, 2, WHO, BOUND),
        key_of(75.0, 2, WHO, BOUND),
        key_of(60.0, 1, WHO, BOUND),
        key_of(60.0, 2, other, BOUND),
        key_of(60.0, 2, WHO, BOUND * (1 + 1e-15)),
    }
    assert len(keys) == 5


def test_a_shipped_design_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = written(window_noise(120.0, 2, WHO, BOUND))
    key = key_of(shaped_for(118.0), 2, WHO, BOUND)
    monkeypatch.setattr(table, "_shipped", lambda: {key: {**kept, "gap": 0.123}})
    assert noise_of(118.0, 2, WHO, BOUND).gap == 0.123
    assert noise_of(118.0, 1, WHO, BOUND).gap < 0.01


def test_a_design_is_made_once() -> None:
    assert noise_of(118.0, 2, WHO, BOUND) is noise_of(119.0, 2, WHO, BOUND)
