"""`trailveil design` against adversaries who know more, and with weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.rides import run

SETTING = (
    *("--points", "200", "--kernel", "integrated-ou", "--length-scale", "60", "--std", "3"),
    *("--noise-std", "2", "--level-std", "1e5", "--secret", "100", "--radius", "200"),
)


def designed(*more: str | Path) -> dict[str, Any]:
    done = run("design", *SETTING, *more, "--json")
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_robust_noise_is_more_and_leaves_each_adversary_something() -> None:
    plain, robust = (
        designed("--epsilon", "1", "--adversary", name) for name in ("plain", "robust")
    )
    assert robust["noise_trace"] > plain["noise_trace"]
    (secret,) = robust["secrets"]
    assert secret["epsilon"] <= 1.0
    assert len(secret["left"]) == 3
    assert robust["gap"] < 1e-3


def test_weights_are_read_and_checked(tmp_path: Path) -> None:
    weights = tmp_path / "weights.txt"
    np.savetxt(weights, np.where(np.arange(200) < 100, 5.0, 1.0))
    even, uneven = designed("--epsilon", "1"), designed("--epsilon", "1", "--weights", weights)
    assert uneven["noise_trace"] > even["noise_trace"]


@pytest.mark.parametrize("text", ["1 2 3", "0\n" * 200, "nan\n" * 200, "one"])
def test_bad_weights_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    weights = tmp_path / "weights.txt"
    weights.write_text(text, encoding="utf-8")
    done = run("design", *SETTING, "--epsilon", "1", "--weights", weights)
    assert done.returncode == 1
    assert "weights must be" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
