"""The contract of `trailveil design`: its JSON for every mechanism and kernel, and its refusals."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trailveil as tv
from trailveil.cli.targets import KERNELS
from trailveil.designer import Kind

Run = Callable[..., tuple[int, str, str]]

MORE = {"periodic": ("--period", "24"), "integrated-ou": ("--level-std", "100")}
SERIES = ("--points", "12", "--length-scale", "3", "--noise-std", "0.2")
NUMBER, WHOLE = (float,), (int,)
KEYS: dict[str, tuple[type, ...]] = {
    "mechanism": (str,),
    "points": WHOLE,
    "noise_trace": NUMBER,
    "rms": NUMBER,
    "max_std": NUMBER,
    "secrets": (list,),
    "gap": (float, type(None)),
    "solved_at": (float, type(None)),
    "seconds": NUMBER,
}
SECRET_KEYS: dict[str, tuple[type, ...]] = {
    "indices": (list,),
    "loss": NUMBER,
    "mu": NUMBER,
    "epsilon": NUMBER,
    "epsilon_paper": NUMBER,
    "interval": NUMBER,
}
# A mechanism, the secrets it is for, as options, and the indices that are reported.
MECHANISMS: dict[str, tuple[str, tuple[str, ...], list[list[int]]]] = {
    "optimal": ("optimal", ("--secret", "5"), [[5]]),
    "optimal, compound": ("optimal", ("--secret", "5,7"), [[5, 7]]),
    "optimal, mean": ("optimal", ("--mean", "3:5"), [[3, 4, 5]]),
    "optimal, difference": ("optimal", ("--difference", "3:8"), [[3, 8]]),
    "optimal, several": ("optimal", ("--secret", "2@2/0.5", "--secret", "9"), [[2], [9]]),
    "optimal, everywhere": ("optimal", ("--everywhere",), [[i] for i in range(12)]),
    "optimal, floor": ("optimal", ("--secret", "5", "--floor", "0.1"), [[5]]),
    "exact-block": ("exact-block", ("--secret", "5"), [[5]]),
    "uniform": ("uniform", ("--secret", "5", "--secret", "2"), [[5], [2]]),
    "concentrated": ("concentrated", ("--secret", "5"), [[5]]),
    "sdp-a": ("sdp-a", ("--secret", "5,6"), [[5, 6]]),
    "multiple-secrets": ("multiple-secrets", ("--secret", "2", "--secret", "9"), [[2], [9]]),
}


@pytest.fixture
def run(program: Run) -> Run:
    return partial(program, "design")


def of_kind(report: dict[str, Any], keys: dict[str, tuple[type, ...]]) -> None:
    for key, kinds in keys.items():
        assert type(report[key]) in kinds, key
        if type(report[key]) is float:
            assert np.isfinite(report[key]), key
            assert report[key] >= 0, key


def check(report: dict[str, Any], mechanism: str, indices: list[list[int]]) -> None:
    """Every key, its type, and what follows from the others."""
    of_kind(report, KEYS)
    assert report["mechanism"] == mechanism
    assert report["points"] == 12
    assert report["rms"] == pytest.approx((report["noise_trace"] / 12) ** 0.5, rel=1e-12)
    assert report["rms"] <= report["max_std"] * (1 + 1e-12)
    assert (report["gap"] is None) == (mechanism != "optimal")
    assert (report["solved_at"] == 1000.0) == (mechanism in {"sdp-a", "multiple-secrets"})
    assert [each["indices"] for each in report["secrets"]] == indices
    for secret in report["secrets"]:
        of_kind(secret, SECRET_KEYS)
        assert all(type(index) is int for index in secret["indices"])
        assert secret["epsilon"] == pytest.approx(2.5 * secret["mu"] ** 2, rel=1e-9)
        assert secret["epsilon"] <= secret["epsilon_paper"] * (1 + 1e-9)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("target", [("--budget", "0.3"), ("--epsilon", "40")])
def test_json_of_every_mechanism(run: Run, name: str, target: tuple[str, str]) -> None:
    mechanism, secrets, indices = MECHANISMS[name]
    if "@" in "".join(secrets) and target[0] == "--budget":
        target = ("--epsilon", "40")
    if mechanism == "concentrated" and target[0] == "--epsilon":
        target = ("--epsilon", "4000")  # less than this is told by the neighbours
    words = [*SERIES, "--kernel", "matern32", *secrets, "--mechanism", mechanism, *target, "--json"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert out.count("\n") == 1
    report = json.loads(out)
    check(report, mechanism, indices)
    if target[0] == "--budget":
        assert report["noise_trace"] == pytest.approx(0.3 * 12, rel=1e-9)
        return
    for secret in report["secrets"]:
        most = 0.5 if secret["indices"] == [2] and "several" in name else float(target[1])
        assert secret["epsilon"] <= most * (1 + 1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("secrets", [("--secret", "5"), ("--secret", "3,8"), ("--everywhere",)])
def test_json_of_every_kernel(run: Run, kernel: str, secrets: tuple[str, ...]) -> None:
    words = [*SERIES, "--kernel", kernel, *MORE.get(kernel, ()), *secrets, "--epsilon", "2"]
    status, out, err = run(*words, "--json")
    assert (status, err) == (0, "")
    indices = {"--everywhere": [[i] for i in range(12)], "5": [[5]], "3,8": [[3, 8]]}[secrets[-1]]
    check(json.loads(out), "optimal", indices)
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert out.startswith("optimal mechanism for 12 points")


def test_text_and_json_tell_the_same(run: Run) -> None:
    words = [*SERIES, "--kernel", "rbf", "--secret", "5", "--budget", "0.3"]
    report, text = json.loads(run(*words, "--json")[1]), run(*words)[1]
    assert f"epsilon {report['secrets'][0]['epsilon']:.6g}" in text
    assert f"trace {report['noise_trace']:.6g}" in text


GOOD = (*SERIES, "--kernel", "rbf")
ONE = (*GOOD, "--secret", "5")
BAD: dict[str, tuple[int, tuple[str, ...]]] = {
    "nothing": (2, ()),
    "no kernel": (2, (*SERIES, "--secret", "5", "--budget", "1")),
    "unknown kernel": (2, (*SERIES, "--kernel", "cubic", "--secret", "5", "--budget", "1")),
    "no length scale": (2, ("--points", "9", "--kernel", "rbf", "--secret", "5", "--budget", "1")),
    "no points": (2, ("--kernel", "rbf", "--length-scale", "3", "--secret", "5", "--budget", "1")),
    "points and times": (2, (*ONE, "--times", "times.txt", "--budget", "1")),
    "zero points": (2, (*ONE, "--points", "0", "--budget", "1")),
    "half a point": (2, (*ONE, "--points", "1.5", "--budget", "1")),
    "no secret": (2, (*GOOD, "--budget", "1")),
    "secret and everywhere": (2, (*ONE, "--everywhere", "--budget", "1")),
    "no target": (2, ONE),
    "two targets": (2, (*ONE, "--budget", "1", "--epsilon", "1")),
    "own and budget": (2, (*GOOD, "--secret", "5@1/1", "--budget", "1")),
    "no epsilon for all": (2, (*ONE, "--secret", "2@1/1")),
    "negative budget": (2, (*ONE, "--budget", "-1")),
    "infinite budget": (2, (*ONE, "--budget", "inf")),
    "budget of nan": (2, (*ONE, "--budget", "nan")),
    "zero epsilon": (2, (*ONE, "--epsilon", "0")),
    "negative radius": (2, (*ONE, "--epsilon", "1", "--radius", "-1")),
    "order of one": (2, (*ONE, "--epsilon", "1", "--order", "1")),
    "negative floor": (2, (*ONE, "--epsilon", "1", "--floor", "-1")),
    "negative noise": (2, (*ONE, "--budget", "1", "--noise-std", "-1")),
    "unknown mechanism": (2, (*ONE, "--budget", "1", "--mechanism", "magic")),
    "unknown adversary": (2, (*ONE, "--budget", "1", "--adversary", "everyone")),
    "unknown option": (2, (*ONE, "--budget", "1", "--colour")),
    "a word too many": (2, (*ONE, "--budget", "1", "more")),
    "period of rbf": (1, (*ONE, "--budget", "1", "--period", "3")),
    "periodic without": (1, (*SERIES, "--kernel", "periodic", "--secret", "5", "--budget", "1")),
    "index beyond": (1, (*GOOD, "--secret", "12", "--budget", "1")),
    "index below": (1, (*GOOD, "--secret", "-1", "--budget", "1")),
    "index twice": (1, (*GOOD, "--secret", "5,5", "--budget", "1")),
    "index no number": (1, (*GOOD, "--secret", "five", "--budget", "1")),
    "empty index": (1, (*GOOD, "--secret", "", "--budget", "1")),
    "huge index": (1, (*GOOD, "--secret", "9" * 30, "--budget", "1")),
    "mean of one": (1, (*GOOD, "--mean", "5", "--budget", "1")),
    "mean backwards": (1, (*GOOD, "--mean", "7:5", "--budget", "1")),
    "difference of three": (1, (*GOOD, "--difference", "1:2:3", "--budget", "1")),
    "own without epsilon": (1, (*GOOD, "--secret", "5@3", "--epsilon", "1")),
    "own radius of zero": (1, (*GOOD, "--secret", "5@0/1", "--epsilon", "1")),
    "own epsilon of nan": (1, (*GOOD, "--secret", "5@1/nan", "--epsilon", "1")),
    "no such times": (1, ("--times", "no.txt", *ONE[2:], "--budget", "1")),
    "times of words": (1, ("--times", "words.txt", *ONE[2:], "--budget", "1")),
    "times backwards": (1, ("--times", "backwards.txt", *ONE[2:], "--budget", "1")),
    "times of nothing": (1, ("--times", "empty.txt", *ONE[2:], "--budget", "1")),
    "times of bytes": (1, ("--times", "bytes.txt", *ONE[2:], "--budget", "1")),
    "times of a folder": (1, ("--times", ".", *ONE[2:], "--budget", "1")),
    "no such weights": (1, (*ONE, "--budget", "1", "--weights", "no.txt")),
    "weights of others": (1, (*ONE, "--budget", "1", "--weights", "backwards.txt")),
    "floor above budget": (1, (*ONE, "--budget", "1", "--floor", "2")),
    "two for sdp-a": (1, (*ONE, "--secret", "2", "--budget", "1", "--mechanism", "sdp-a")),
    "two for exact-block": (
        1,
        (*ONE, "--secret", "2", "--budget", "1", "--mechanism", "exact-block"),
    ),
    "compound for exact-block": (
        1,
        (*GOOD, "--secret", "2,3", "--budget", "1", "--mechanism", "exact-block"),
    ),
    "mean for sdp-a": (1, (*GOOD, "--mean", "2:3", "--budget", "1", "--mechanism", "sdp-a")),
    "everywhere concentrated": (
        1,
        (*GOOD, "--everywhere", "--budget", "1", "--mechanism", "concentrated"),
    ),
    "everywhere with a floor": (1, (*GOOD, "--everywhere", "--budget", "1", "--floor", "0.1")),
    "floor for uniform": (1, (*ONE, "--budget", "1", "--floor", "0.1", "--mechanism", "uniform")),
    "concentrated cannot": (1, (*ONE, "--epsilon", "0.01", "--mechanism", "concentrated")),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_one_line(run: Run, tmp_path: Path, name: str) -> None:
    for file, content in (
        ("words.txt", b"one\ntwo\n"),
        ("backwards.txt", b"3\n2\n1\n"),
        ("empty.txt", b""),
        ("bytes.txt", b"\xff\xfe\x00"),
    ):
        (tmp_path / file).write_bytes(content)
    expected, words = BAD[name]
    status, out, err = run(*words)
    assert status == expected, err
    assert out == ""
    assert "Traceback" not in err
    shown = [line for line in err.splitlines() if not line.startswith(("Usage:", "Try "))]
    assert len([line for line in shown if line.strip()]) == 1, err
    assert len(shown[-1]) > 10


def test_every_mechanism_and_kernel_is_met() -> None:
    assert {mechanism for mechanism, _, _ in MECHANISMS.values()} == {kind.value for kind in Kind}


CERTIFIED = (*SERIES, "--radius", "2", "--certify")


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
    pytest.importorskip("flint")
    status, out, err = run(*CERTIFIED, *words, "--json")
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
    pytest.importorskip("flint")
    status, out, err = run(*CERTIFIED, *words)
    assert status == 0, err
    (line,) = [line for line in out.splitlines() if "certified" in line]
    assert "epsilon <= " in line
    assert "an adversary who knows nothing besides; an adversary who knows one true place" in line
    assert "a recorded value, whichever one value is known" in line
    assert "128 bits" in line


def test_what_to_install_is_said_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    status, out, err = run(*CERTIFIED, "--kernel", "rbf", "--secret", "1", "--budget", "1")
    assert (status, out) == (1, "")
    assert err.strip().endswith(
        "say: pip install 'trailveil[certify]' (in a clone: pip install '.[certify]')"
    )
    assert len(err.strip().splitlines()) == 1


SETTING = (
    *("--points", "200", "--kernel", "integrated-ou", "--length-scale", "60", "--std", "3"),
    *("--noise-std", "2", "--level-std", "1e5", "--secret", "100", "--radius", "200"),
)


@pytest.fixture
def designed(run: Run) -> Callable[..., dict[str, Any]]:
    def design(*more: str) -> dict[str, Any]:
        status, out, err = run(*SETTING, "--epsilon", "1", *more, "--json")
        assert status == 0, err
        report: dict[str, Any] = json.loads(out)
        return report

    return design


def test_robust_noise_is_more_and_leaves_each_adversary_something(
    designed: Callable[..., dict[str, Any]],
) -> None:
    plain, robust = (designed("--adversary", name) for name in ("plain", "robust"))
    assert robust["noise_trace"] > plain["noise_trace"]
    (secret,) = robust["secrets"]
    assert secret["epsilon"] <= 1.0
    assert len(secret["left"]) == 3
    assert robust["gap"] < 1e-3


def test_weights_are_read_and_checked(designed: Callable[..., dict[str, Any]]) -> None:
    np.savetxt("weights.txt", np.where(np.arange(200) < 100, 5.0, 1.0))
    even, uneven = designed(), designed("--weights", "weights.txt")
    assert uneven["noise_trace"] > even["noise_trace"]


@pytest.mark.parametrize("text", ["1 2 3", "0\n" * 200, "nan\n" * 200, "one"])
def test_bad_weights_are_refused_in_one_line(run: Run, text: str) -> None:
    Path("weights.txt").write_text(text, encoding="utf-8")
    status, _, err = run(*SETTING, "--epsilon", "1", "--weights", "weights.txt")
    assert status == 1
    assert "weights must be" in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(("times", "loss"), [("1000", 184.324), ("1", 328.141)])
def test_the_paper_s_program_says_at_which_budget_it_was_solved(
    run: Run, times: str, loss: float
) -> None:
    series = ("--points", "50", "--kernel", "rbf", "--length-scale", "6.1", "--noise-std", "0.1")
    asked = ("--secret", "24,25", "--budget", "0.02", "--mechanism", "sdp-a")
    words = (*series, *asked, "--solved-at", times)
    report = json.loads(run(*words, "--json")[1])
    assert report["solved_at"] == float(times)
    assert report["secrets"][0]["loss"] == pytest.approx(loss, rel=1e-5)
    assert f"solved at {int(times):,} times the budget" in run(*words)[1]
    status, _, err = run(*series, *asked[:-1], "optimal", "--solved-at", times)
    assert status == 2
    assert "--solved-at must come with --mechanism multiple-secrets or sdp-a, got optimal" in err


def test_the_budget_is_per_point_here_and_of_all_points_in_python(run: Run) -> None:
    words = [*ONE, "--budget", "0.3"]
    described = json.loads(run(*words, "--json")[1])
    prior = tv.Prior(tv.kernels.RBF(3.0) + tv.kernels.White(0.2), np.arange(12.0))
    secret = tv.Secret.at(5.0, recorded=True)
    mechanism, certificate = tv.design(prior, [secret], budget=3.6)
    assert described["noise_trace"] == pytest.approx(mechanism.noise_trace)
    assert described["secrets"][0]["loss"] == pytest.approx(certificate.outcomes[0].loss.largest)
    assert "trace 3.6 (0.3 per point)" in run(*words)[1]
    status, _, err = run(*words, "--floor", "1")
    assert status == 1
    assert "of all points together must be above the 12 that is there already, got 3.6" in err
