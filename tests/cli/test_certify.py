"""`--certify` of design: what is printed, and what is refused in one line.

`protect` proves its noise always, in exact arithmetic: see tests/cli/test_verify.py.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trailveil import cli

pytest.importorskip("flint")

Run = Callable[..., tuple[int, str, str]]
SERIES = ("--points", "12", "--length-scale", "3", "--noise-std", "0.2", "--radius", "2")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run the program in a folder of its own: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def once(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trailveil", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        status = 0 if end.value.code is None else end.value.code
        captured = capsys.readouterr()
        return status if isinstance(status, int) else -1, captured.out, captured.err

    return once


@pytest.mark.parametrize(
    "words",
    [
        ("--kernel", "rbf", "--secret", "5", "--mean", "2:4", "--epsilon", "1"),
        ("--kernel", "matern32", "--secret", "5,6@3/2", "--epsilon", "1"),
        ("--kernel", "integrated-ou", "--level-std", "100", "--difference", "2:9", "--budget", "9"),
        ("--kernel", "matern12", "--everywhere", "--budget", "0.1"),
        ("--kernel", "matern52", "--secret", "1", "--budget", "2", "--mechanism", "uniform"),
    ],
)
def test_design_proves_every_secret(run: Run, words: tuple[str, ...]) -> None:
    status, out, err = run("design", *SERIES, *words, "--certify", "--json")
    assert status == 0, err
    report = json.loads(out)
    for secret in report["secrets"]:
        assert secret["epsilon_certified"] <= secret["epsilon"] * (1 + 1e-9)
        assert secret["epsilon_certified"] >= secret["epsilon"] * (1 - 1e-6)
    certificate = report["certificate"]
    assert certificate["epsilon"] == max(each["epsilon_certified"] for each in report["secrets"])
    assert certificate["against"] == ["plain"]
    assert certificate["bits"] >= 128
    assert 0 <= certificate["radius"] < 1e-9


def test_design_says_so_in_words(run: Run) -> None:
    words = ("--kernel", "matern32", "--secret", "5", "--epsilon", "1", "--adversary", "robust")
    status, out, err = run("design", *SERIES, *words, "--certify")
    assert status == 0, err
    (line,) = [splitline for splitline in out.splitlines() if "certified" in splitline]
    assert "epsilon <= " in line
    assert "against who knows nothing besides; who knows one true place" in line
    assert "a recorded value, whichever one value is known" in line
    assert "128 bits" in line


def test_what_to_install_is_said_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    words = (*SERIES, "--kernel", "rbf", "--secret", "1", "--budget", "1", "--certify")
    status, out, err = run("design", *words)
    assert (status, out) == (1, "")
    assert err.strip().endswith(
        "say: pip install 'trailveil[certify]' (in a clone: pip install '.[certify]')"
    )
    assert len(err.strip().splitlines()) == 1
