"""A rerun, any number of workers and a run that was killed give the same tables."""

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.batch.test_cluster import cluster
from tests.studies.comparing.cases import drawn
from trailveil.cli import cli
from trailveil.errors import InvalidValue, NumericalError, Refused, Unavailable
from trailveil.report.comparison import text_of
from trailveil.studies.comparing import compare, rivals, running
from trailveil.studies.comparing.cases import Case, Clues, Disclosure, Sighting
from trailveil.studies.comparing.settings import settings_of
from trailveil.studies.comparing.tables import ATTACKS, MECHANISMS, METRICS

SETTINGS = """
data = ["people"]
mechanisms = ["cut", "planar-laplace"]
attacks = ["place", "repeated", "learned", "heat-map", "zone-circle", "known-paths"]
metrics = ["moved"]
[data-of.people]
people = 8
days = 3
step = 60.0
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS, encoding="utf-8")
    return file


def tables(settings: Path, **options: Any) -> tuple[str, str]:
    results = compare(settings, **options)
    return "".join(results.csv()), "".join(results.summary())


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The tables, reckoned by one process once."""
    file = tmp_path_factory.mktemp("expected") / "settings.toml"
    file.write_text(SETTINGS, encoding="utf-8")
    return tables(file)


def test_a_rerun_gives_the_same_tables(settings: Path, expected: tuple[str, str]) -> None:
    assert tables(settings) == expected


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_tables(
    settings: Path, expected: tuple[str, str]
) -> None:
    assert tables(settings, workers=2) == expected


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_and_gives_the_same_tables(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: tuple[str, str]
) -> None:
    folder = tmp_path / "done"
    module = "tests.studies.comparing.killed"
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", module, str(settings), str(folder)]
    killed = subprocess.run(command, cwd=root, check=False, timeout=300)
    assert killed.returncode == -9
    assert len(list(folder.glob("*.json"))) == 2
    run = running.run_portion
    portions: list[object] = []

    def counted(comparison: Any, portion: Any) -> Any:
        portions.append(portion)
        return run(comparison, portion)

    monkeypatch.setattr(running, "run_portion", counted)
    resumed = tables(settings, folder=folder)
    # Two data portions under each of two mechanisms.
    assert len(portions) == 4 - 2
    assert resumed == expected


@pytest.mark.slow
def test_a_cluster_gives_the_same_tables(
    settings: Path, tmp_path: Path, expected: tuple[str, str]
) -> None:
    with cluster(tmp_path / "cluster") as (address, _, _):
        assert tables(settings, scheduler=address) == expected


def test_other_settings_reckon_anew_what_they_concern(tmp_path: Path) -> None:
    stated: dict[str, Any] = {"data": ["prior"], "attacks": ["stays"], "metrics": ["moved"]}
    stated |= {"data-of": {"prior": {"traces": 3}}, "mechanisms": ["identity", "planar-laplace"]}
    compare(stated, folder=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 2
    compare({**stated, "mechanism": {"planar-laplace": {"epsilon": 0.1}}}, folder=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 3
    compare({**stated, "seed": 5}, folder=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 5


def east(case: Case, random: np.random.Generator, *, metres: float = 100.0) -> object:
    """A mechanism of a researcher."""
    return case.placed_at(case.metres + metres * random.standard_normal(2))


def last(released: Sighting, known: Clues) -> object:
    """An attack of a researcher."""
    return np.repeat(released.metres[-1:], len(known.spans), axis=0)


@pytest.mark.slow
def test_mechanisms_and_attacks_of_ones_own_run_on_workers() -> None:
    stated: dict[str, Any] = {"data": ["people"], "mechanisms": ["identity"]}
    stated |= {"attacks": ["stays"]}
    stated |= {"metrics": ["moved"], "data-of": {"people": {"people": 4, "days": 1}}}
    added: dict[str, Any] = {"mechanisms": {"east": east}, "attacks": {"last": last}}
    both = [compare(stated, **added, workers=n) for n in (1, 2)]
    assert "".join(both[0].csv()) == "".join(both[1].csv())
    line = both[0].line(mechanism="identity", attack="last", metric="error_m", secret="home #2")
    assert line.value < 30.0


def test_all_of_the_tables_can_be_sent_to_workers() -> None:
    for function in {**MECHANISMS, **ATTACKS, **METRICS}.values():
        assert pickle.loads(pickle.dumps(function)) == function


def test_what_cannot_be_sent_to_workers_is_refused_in_words() -> None:
    stated = {"data": ["prior"], "attacks": ["stays"]}
    with pytest.raises(InvalidValue, match=r"must stand at the top of a file .* got 'mine'"):
        compare(stated, attacks={"mine": lambda released, known: None}, workers=2)


def deadly(released: Sighting, known: Clues) -> object:
    del released, known
    os.kill(os.getpid(), signal.SIGKILL)
    return None


@pytest.mark.slow
def test_a_worker_that_dies_ends_the_run_with_one_line() -> None:
    stated: dict[str, Any] = {"data": ["prior"], "mechanisms": ["identity"], "attacks": ["stays"]}
    stated["data-of"] = {"prior": {"traces": 2}}
    with pytest.raises(Unavailable, match="got one that died"):
        compare(stated, attacks={"deadly": deadly}, workers=2)


def refusing(case: Case, random: np.random.Generator) -> object:
    del random
    if case.name == "1":
        raise Refused("must not")
    return case.trace


def failing(released: Sighting, known: Clues) -> object:
    del known
    if released.case.name == "0":
        raise NumericalError("no digits")
    return np.zeros((2, 2))


def test_refusals_and_failures_are_counted() -> None:
    cases = drawn(4)
    stated = {"data": ["mine"], "mechanisms": ["no"], "attacks": ["fails"], "metrics": ["moved"]}
    settings = settings_of(stated)
    results = compare(
        settings,
        data={"mine": lambda: cases},
        mechanisms={"no": refusing},
        attacks={"fails": failing},
    )
    assert results.line(metric="refused").value == 0.25
    assert results.line(metric="failed").value == pytest.approx(1 / 3)
    assert results.line(metric="error_m", secret="stay").values == 2


def withheld(case: Case, random: np.random.Generator) -> object:
    raise Refused("nothing is left")


def test_what_is_refused_is_listed() -> None:
    """Three of four by one mechanism, that is judged on the others; all by another."""
    cases = drawn(4)
    stated = {"data": ["mine"], "mechanisms": [], "attacks": ["stays"], "metrics": ["moved"]}
    both = {"no": refusing, "none": withheld}
    lines = text_of(compare(stated, data={"mine": lambda: cases}, mechanisms=both))
    assert [line.split()[0] for line in lines] == ["mine:", "no", "none"]
    assert lines[1].endswith("; refused 1 of 4")
    assert lines[2].endswith("  refused 4 of 4")


def careless(case: Case, random: np.random.Generator) -> None:
    """A mechanism that forgets to return what it made."""


def test_a_mechanism_that_returns_no_trace_is_named() -> None:
    stated = {"data": ["prior"], "mechanisms": [], "data-of": {"prior": {"traces": 1}}}
    with pytest.raises(InvalidValue, match=r"careless must return a trace or a .*, got NoneType"):
        compare(stated, mechanisms={"careless": careless})


def singular(case: Case, random: np.random.Generator) -> Disclosure:
    """A mechanism that factorises what has no factor."""
    np.linalg.cholesky(-np.eye(2))
    return rivals.nothing(case, random)


def test_a_mechanism_that_cannot_be_computed_is_a_refusal() -> None:
    """As a solver says it, for one recording of many: the others go on."""
    stated = {"data": ["prior"], "mechanisms": ["singular"], "attacks": ["stays"]}
    results = compare(
        {**stated, "data-of": {"prior": {"traces": 2}}}, mechanisms={"singular": singular}
    )
    assert results.line(mechanism="singular", metric="refused").value == 1.0


def test_a_wrong_parameter_is_no_refusal() -> None:
    stated: dict[str, Any] = {"data": ["prior"], "attacks": ["stays"]}
    stated |= {"mechanisms": ["planar-laplace"]}
    stated |= {"data-of": {"prior": {"traces": 1}}, "mechanism": {"planar-laplace": {"epsilon": 0}}}
    with pytest.raises(InvalidValue, match="epsilon must be"):
        compare(stated)


def test_an_attack_must_say_a_place_for_each_secret() -> None:
    with pytest.raises(InvalidValue, match=r"wrong must return places of shape \(2, 2\), got \(3,"):
        compare(
            {"data": ["mine"], "mechanisms": ["identity"], "attacks": [], "metrics": []},
            data={"mine": lambda: drawn(1)},
            attacks={"wrong": lambda released, known: np.zeros((3, 2))},
        )


def test_a_metric_must_return_a_number() -> None:
    with pytest.raises(InvalidValue, match="metric wrong must return a number, got NoneType"):
        compare(
            {"data": ["mine"], "mechanisms": ["identity"], "attacks": [], "metrics": []},
            data={"mine": lambda: drawn(1)},
            metrics={"wrong": lambda case, released: None},
        )


def test_a_data_set_must_hold_recordings_of_different_names() -> None:
    for cases, what in (((), "none"), ((*drawn(1), *drawn(1)), "a name twice")):
        with pytest.raises(InvalidValue, match=what):
            compare({"data": ["mine"]}, data={"mine": lambda cases=cases: cases})


@pytest.mark.slow
def test_the_command_writes_tables_and_a_page(settings: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["compare", str(settings), "-o", str(out), "--workers", "1"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "planar-laplace" in done.output
    names = {path.name for path in out.iterdir()}
    assert names == {"done", "index.html", "results.parquet", "summary.csv"}
    page = (out / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert "Circles that hold 68 %" in page
    first = {name: (out / name).read_bytes() for name in names - {"done"}}
    again = CliRunner().invoke(cli, [*arguments, "--csv"], catch_exceptions=False)
    assert again.exit_code == 0
    assert {name: (out / name).read_bytes() for name in first} == first
    assert (out / "results.csv").read_text(encoding="utf-8").startswith("data,mechanism,")
