"""Results of functions of one's own are used again only if nothing has changed that they name."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from trailveil.studies.comparing import compare
from trailveil.studies.comparing.fingerprint import fingerprint

SHIFTS = {
    "a constant": """
SIGMA = {}
def shift(case, random):
    return case.placed_at(case.metres + SIGMA)
""",
    "a helper": """
def moved(metres):
    return metres + {}
def shift(case, random):
    return case.placed_at(moved(case.metres))
""",
    "a closure": """
def outer(sigma):
    return lambda case, random: case.placed_at(case.metres + sigma)
shift = outer({})
""",
    "a default": """
def shift(case, random, sigma={}):
    return case.placed_at(case.metres + sigma)
""",
    "an array": """
import numpy as np
SIGMA = np.full(2, {})
def shift(case, random):
    return case.placed_at(case.metres + SIGMA)
""",
    "an object": """
from functools import partial
class Shift:
    def __init__(self, sigma):
        self.sigma = sigma
    def __call__(self, case, random):
        return case.placed_at(case.metres + self.sigma)
SHIFT = Shift({})
shift = partial(SHIFT)
""",
    "a cached helper": """
from functools import cache
@cache
def sigma():
    return {}
def shift(case, random):
    return case.placed_at(case.metres + sigma())
""",
    "a helper of a module": """
from types import ModuleType
helpers = ModuleType("helpers")
helpers.SIGMA = {}
def shift(case, random):
    return case.placed_at(case.metres + helpers.SIGMA)
""",
    "a method of a class": """
class Shift:
    @staticmethod
    def by():
        return {}
def shift(case, random):
    return case.placed_at(case.metres + Shift.by())
""",
}


def shift_of(text: str, by: float) -> Any:
    names: dict[str, Any] = {"__name__": "mine"}
    exec(text.format(by), names)
    return names["shift"]


@pytest.mark.parametrize("text", SHIFTS.values(), ids=SHIFTS)
def test_a_fingerprint_holds_the_values_that_a_function_names(text: str) -> None:
    """The text of the function is the same: what it names differs."""
    once, again, other = (fingerprint(shift_of(text, by)) for by in (3.0, 3.0, 40.0))
    assert once == again != other


@pytest.mark.parametrize("name", ["a constant", "a helper"])
def test_results_are_used_again_only_for_the_same_values(name: str, tmp_path: Path) -> None:
    stated: dict[str, Any] = {"data": ["prior"], "mechanisms": [], "attacks": []}
    stated |= {"metrics": ["moved"], "data-of": {"prior": {"traces": 1}}}

    def moved(by: float) -> float:
        shift = {"shift": shift_of(SHIFTS[name], by)}
        results = compare(stated, folder=tmp_path, mechanisms=shift)
        return results.line(mechanism="shift", metric="moved").value

    for by, files in ((3.0, 1), (40.0, 2), (3.0, 2)):
        assert moved(by) == pytest.approx(by * 2**0.5, rel=0.01)
        assert len(list(tmp_path.glob("*.json"))) == files


def test_what_cannot_be_digested_is_never_taken_for_the_same() -> None:
    lock = Lock()

    def locked() -> object:
        return lock

    def imported() -> object:
        import tests.studies.comparing.samples

        return tests

    for function in (locked, imported):
        assert fingerprint(function) != fingerprint(function)


def test_a_fingerprint_is_the_same_in_another_process() -> None:
    """What is hashed by chance in a process, such as the order of a set, does not count."""
    program = (
        "from tests.studies.comparing.test_running import east, last;"
        "from trailveil.studies.comparing.fingerprint import fingerprint as of;"
        "print(of(east), of(last), of(lambda x: x in {'a', 'b', 'c', 'd'}))"
    )
    root = Path(__file__).parents[3]
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
