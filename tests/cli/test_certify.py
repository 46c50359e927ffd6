"""`--certify` of design and protect: what is printed, and what is refused in one line."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rides import ride, written
from trailveil import cli

pytest.importorskip("flint")

Run = Callable[..., tuple[int, str, str]]
SERIES = ("--points", "12", "--length-scale", "3", "--noise-std", "0.2", "--radius", "2")
AT = ("--at", "start+15m", "--adversary", "plain", "--certify")


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
    found = json.loads(out)
    for one in found["secrets"]:
        assert one["epsilon_certified"] <= one["epsilon"] * (1 + 1e-9)
        assert one["epsilon_certified"] >= one["epsilon"] * (1 - 1e-6)
    told = found["certificate"]
    assert told["epsilon"] == max(one["epsilon_certified"] for one in found["secrets"])
    assert told["against"] == ["plain"]
    assert told["bits"] >= 128
    assert 0 <= told["radius"] < 1e-9


def test_design_says_so_in_words(run: Run) -> None:
    words = ("--kernel", "matern32", "--secret", "5", "--epsilon", "1", "--adversary", "robust")
    status, out, err = run("design", *SERIES, *words, "--certify")
    assert status == 0, err
    (line,) = [one for one in out.splitlines() if "certified" in one]
    assert "epsilon <= " in line
    assert "against who knows nothing besides; who knows one true place" in line
    assert "a recorded value, whichever one value is known" in line
    assert "128 bits" in line


def test_protect_says_what_is_proved(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "ride.gpx", ride(60, 30.0))
    status, out, err = run("protect", "ride.gpx", *AT, "--report", "told.json", "--json")
    assert status == 0, err
    found, told = json.loads(out), json.loads((tmp_path / "told.json").read_text())
    assert found["certificate"]["epsilon"] <= found["worst"]["epsilon"] * (1 + 1e-9)
    assert found["certificate"]["what"] == ["the place at each protected time"]
    # Others read what was asked for, and nothing that differs with the times.
    assert told["certificate"] == {
        "epsilon": 1.0,
        "order": 5.0,
        "against": ["plain"],
        "what": ["every protected part"],
    }
    status, out, err = run("protect", "ride.gpx", *AT, "--overwrite")
    assert status == 0, err
    assert "What is proved" in out
    assert "certified: epsilon <= 0.99" in out or "certified: epsilon <= 1 " in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--everywhere", "--certify"), "got --everywhere"),
        (("--column", "x", "--unit", "degC", "--certify"), "--certify must be for traces"),
    ],
)
def test_protect_refuses_what_cannot_be_proved(
    run: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    written(tmp_path / "ride.gpx", ride(20, 30.0))
    status, out, err = run("protect", "ride.gpx", *words)
    assert status in (1, 2)
    assert told in err
    assert out == ""
    assert not (tmp_path / "ride.private.gpx").exists()


@pytest.mark.parametrize("command", ["design", "protect"])
def test_what_to_install_is_said_first(
    run: Run, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    written(tmp_path / "ride.gpx", ride(20, 30.0))
    words: tuple[str, ...] = ("ride.gpx", *AT)
    if command == "design":
        words = (*SERIES, "--kernel", "rbf", "--secret", "1", "--budget", "1", "--certify")
    status, out, err = run(command, *words)
    assert (status, out) == (1, "")
    assert err.strip().endswith("say: pip install 'trailveil[certify]'")
    assert len(err.strip().splitlines()) == 1
