"""The floors of activities: on simulated movement the estimator finds the floor that is known."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.activity_floors import (
    ALONE,
    ALONG,
    ENDS,
    MIDDLE,
    TOLD,
    Part,
    cases,
    floor_of,
    lower_bound,
    main,
    rounded_down,
    table,
)
from tests.studies.datasets.geolife_files import HEADER

STEP, TAU = 5.0, 60.0


def moving(speed: float, people: int, steps: int, seed: int) -> list[Part]:
    """People whose velocity is Ornstein-Uhlenbeck: steps of half a second, seen every 5 s."""
    random = np.random.default_rng(seed)
    fine, parts = 0.5, []
    often = round(STEP / fine)
    fades = np.exp(-fine / TAU)
    for number in range(people):
        velocity = random.normal(0, speed, 2)
        kicks = random.normal(0, speed * (1 - fades**2) ** 0.5, (steps * often, 2))
        speeds = np.empty_like(kicks)
        for i, kick in enumerate(kicks):
            velocity = velocity * fades + kick
            speeds[i] = velocity
        places = np.cumsum(speeds, axis=0)[::often] * fine
        parts.append(Part(f"p{number}", "walk", np.arange(0, steps * STEP, STEP), places))
    return parts


def test_a_known_floor_is_recovered() -> None:
    parts = moving(1.5, people=25, steps=400, seed=1)
    for where in (ALONG, MIDDLE):
        for wait in (120, 300):
            noise_cases = cases(parts, where, wait)
            rms, circle = noise_cases[TOLD].speeds(noise_cases[TOLD].weights())
            # 25 people with 3 to 5 independent legs of 2 coordinates each, or more: 6 %; speeds
            # over 10 s in place of at once add 2 % to the error.
            assert rms == pytest.approx(1.5, rel=0.18)
            assert circle == pytest.approx(1.5, rel=0.25)
            # Told less, it can only be further off.
            assert noise_cases[ALONE].speeds(noise_cases[ALONE].weights())[0] > rms
            assert noise_cases[TOLD].share_within(1.5, 1) == pytest.approx(0.68, abs=0.12)
            assert noise_cases[TOLD].share_within(1.5, 0.25) < 0.16
    used = [cases(parts, ALONG, wait)[TOLD] for wait in (120, 300)]
    assert lower_bound(used, 100) < floor_of(used)
    assert lower_bound(used, 100) == pytest.approx(1.5, rel=0.25)


def test_steady_ways_give_more_away_on_both_sides_than_on_one() -> None:
    random = np.random.default_rng(2)
    times = np.arange(0, 400 * STEP, STEP)
    parts = []
    for number in range(10):
        turn = random.uniform(0, 2 * np.pi)
        line = times[:, None] * [np.cos(turn), np.sin(turn)]
        parts.append(Part(f"p{number}", "walk", times, line + random.normal(0, 1, line.shape)))
    steady, both = (cases(parts, where, 300)[TOLD] for where in (ALONG, MIDDLE))
    assert both.speeds(both.weights())[0] < 0.1 * steady.speeds(steady.weights())[0]


def test_people_count_once_and_standing_is_not_leaving() -> None:
    often, seldom = moving(1.0, 1, 4000, 3)[0], moving(3.0, 1, 400, 4)[0]
    seldom = Part("q", "walk", seldom.times, seldom.places)
    cases_found = cases([often, seldom], ALONG, 120)[TOLD]
    expected = ((1.0**2 + 3.0**2) / 2) ** 0.5
    assert cases_found.speeds(cases_found.weights())[0] == pytest.approx(expected, rel=0.3)
    still = np.concatenate([np.zeros((60, 2)), np.arange(100)[:, None] * [5.0, 0.0]])
    part = Part("s", "walk", np.arange(0, 160 * STEP, STEP), still)
    metres = part.left_at()
    assert metres is not None
    assert metres == pytest.approx(66 * STEP, abs=STEP)
    assert cases([part], ENDS, 60)
    assert rounded_down(0.9299) == 0.92
    assert rounded_down(12.9) == 12.0


def test_it_reads_a_folder_and_tells_no_position(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, part in enumerate(moving(1.2, 6, 200, 5)):
        folder = tmp_path / "Data" / f"00{number}" / "Trajectory"
        folder.mkdir(parents=True)
        lines = [
            f"{40 + y / 1e5:.6f},{116 + x / 1e5:.6f},0,100,0,2008-10-23,"
            f"{2 + int(t) // 3600:02d}:{int(t) // 60 % 60:02d}:{int(t) % 60:02d}"
            for t, (x, y) in zip(part.times, part.places, strict=True)
        ]
        (folder / "1.plt").write_text(HEADER + "\r\n".join(lines) + "\r\n")
        (folder.parent / "labels.txt").write_text(
            "Start Time\tEnd Time\tTransportation Mode\n"
            "2008/10/23 02:00:00\t2008/10/23 09:00:00\twalk\n"
        )
    main([str(tmp_path), "-o", str(tmp_path / "out.json"), "--draws", "5"])
    cases_found = json.loads((tmp_path / "out.json").read_text())["activities"]
    assert cases_found["walk"]["people"] == 6
    assert cases_found["walk"]["floors"]["end"]["bound"] > 0
    assert "| walk | 6 | 6 |" in capsys.readouterr().out
    assert "116." not in (tmp_path / "out.json").read_text()
    assert table(moving(1.0, 2, 100, 6), 5)["floors"]["end"]["bound"] is None
