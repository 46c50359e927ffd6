"""Designs that ship: found whatever the last digit, proved, and those that are computed."""

import io
import json
import zipfile
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks._shipped_designs import TABLE, asked
from trailveil.designer import table, window
from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.table import key_of, noise_of, read, rounded_bound, write_table, written
from trailveil.designer.window import window_noise
from trailveil.privacy.checker import check
from trailveil.privacy.movement import Movement
from trailveil.release.request import Request
from trailveil.traces.activities import ACTIVITIES

HOURS_12 = 12 * 3600.0


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    table.forget()
    yield
    table.forget()


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be designed."""

    def refused(*_: object) -> WindowNoise:
        raise AssertionError("noise was designed that should be in the table: say make designs")

    monkeypatch.setattr(window, "window_noise", refused)


@pytest.mark.usefixtures("never")
def test_no_default_request_is_ever_designed() -> None:
    """For any length up to 12 h, at an end or in the middle, however a machine rounds."""
    request = Request(())
    for seconds in (*np.geomspace(1.0, HOURS_12, 7), HOURS_12 + 2 * request.uncertain):
        for sides in (1, 2):
            for factor in (1 - 9e-16, 1.0, 1 + 9e-16):
                noise = noise_of(seconds, sides, request.adversaries, request.bound * factor)
                assert noise.proof["sides"] == sides
                assert noise.proof["bound"] < request.bound * (1 - 9e-16)


def test_bounds_are_rounded_to_the_safe_side() -> None:
    for bound in np.random.default_rng(1).uniform(1e-9, 1.0, 1000).tolist():
        assert bound * (1 - 2e-11) < rounded_bound(bound) < bound


def test_the_table_is_whole_and_proved(pytestconfig: pytest.Config) -> None:
    """Of some designs (all with --full): each is what was asked for, by its proof."""
    every = [request for activity in ACTIVITIES for request in asked(activity)]
    requests = list({key_of(*request): request for request in every}.values())
    with zipfile.ZipFile(TABLE) as stored:
        assert len(stored.namelist()) == len(requests)
    step = 1 if pytestconfig.getoption("--full") else 41
    for length, sides, adversaries, bound in requests[::step]:
        data = table.shipped(key_of(length, sides, adversaries, bound))
        assert data is not None
        noise = read(data)
        proof = noise.proof
        assert check(proof) == []
        assert (proof["sides"], proof["bound"]) == (sides, bound)
        assert [adversary["name"] for adversary in proof["adversaries"]] == [
            adversary.name for adversary in adversaries
        ]
        for stated, who in zip(proof["adversaries"], adversaries, strict=True):
            assert Movement(stated["speed"], stated["time_constant"]) == who.movement
            assert (stated["steady"], stated["place"], stated["path"]) == (
                who.steady,
                who.place,
                who.path,
            )
        assert 0 <= noise.gap < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("sides", [1, 2])
def test_a_design_is_computed_again(sides: int) -> None:
    length, _, adversaries, bound = asked("walk")[5]
    data = table.shipped(key_of(length, sides, adversaries, bound))
    assert data is not None
    again, stored = window_noise(length, sides, adversaries, bound), read(data)
    # The least noise is unique, and each is within its gap of it.
    ours, theirs = again.even @ again.even.T, stored.even @ stored.even.T
    assert theirs[0, 0] == pytest.approx(ours[0, 0], rel=1e-3)
    for design in (again, stored):
        assert check(design.proof) == []


def test_what_is_written_is_read_to_the_last_digit() -> None:
    length, sides, adversaries, bound = asked("walk")[-1]
    data = table.shipped(key_of(length, sides, adversaries, bound))
    assert data is not None
    noise = read(data)
    assert written(noise) == data
    again = read(written(noise))
    assert np.array_equal(again.even, noise.even)
    assert again.proof == noise.proof
    assert json.dumps(again.proof) == json.dumps(noise.proof)
    assert noise.proof["even"] == noise.even.tolist()
    assert len(data) < 25_000
    first, second = io.BytesIO(), io.BytesIO()
    for out in (first, second):
        write_table(out, [("a", noise)])
    assert first.getvalue() == second.getvalue()
    assert len(first.getvalue()) < 8_000
