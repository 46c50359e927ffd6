"""`trailveil audit --attack`: a table of what attacks make of a release; exit 1 where one wins."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from tests.cli.commands import run
from tests.rides import gpx, ride, stated_key, written
from trailveil.checks.attacks import worlds
from trailveil.checks.attacks.registry import ATTACKS
from trailveil.errors import Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.mechanism import Mechanism
from trailveil.traces.streets.town import as_trace, town, town_ride, write_example

pytestmark = pytest.mark.slow

DESIGN = ("--no-ends", "--at", "start+10m", "--no-returns", "--mechanism", "noise")


@pytest.fixture(autouse=True)
def the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every random number is that of every other run, and so is every verdict."""
    monkeypatch.setattr(worlds, "fresh", lambda: np.random.default_rng(17))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A ride of 20 minutes, and a release of it made by protect."""
    folder = tmp_path_factory.mktemp("pair")
    original, release = folder / "ride.gpx", folder / "shared.gpx"
    original.write_bytes(gpx(ride(60, 20.0)))
    key = stated_key(folder / "key")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        completed = run("protect", original, "-o", release, *DESIGN, "--key", key)
    assert completed.exit_code == 0, completed.output
    return original, release


def attack(pair: tuple[Path, Path], *words: str | Path) -> Result:
    return run("audit", *pair, *DESIGN, "--draws", "100", *words)


def test_all_attacks_are_tried_and_none_wins(pair: tuple[Path, Path]) -> None:
    completed = attack(pair, "--attack", "all", "--json")
    assert completed.exit_code == 0, completed.output
    record = json.loads(completed.stdout)
    assert record["clean"] is True
    assert record["beaten"] == 0
    by_name = {attack["attack"]: attack for attack in record["attacks"]}
    assert list(by_name) == [name for name, row in ATTACKS.items() if not row.needs]
    best = by_name["posterior"]
    assert best["part"] == 1
    assert best["verdict"] == "holds"
    assert best["file"] > 0
    assert best["simulated"]["count"] == 100
    assert best["simulated"]["low"] < best["promised"] < best["simulated"]["high"]
    assert by_name["repeated"]["promised"] is None
    claims = record["hypotheses"]
    assert [claim["way"] for claim in claims] == [
        "east",
        "north",
        "north-east",
    ] * 2  # moving, and still
    assert all(0 < claim["mu_least"] <= claim["mu_claimed"] for claim in claims)
    text = attack(pair, "--attack", "all").stdout
    assert "Attacks on protected part 1:" in text
    assert "releases of each told apart: mu is at least" in text


def test_no_place_and_no_time_is_told(pair: tuple[Path, Path]) -> None:
    completed = attack(pair, "--attack", "all", "--attack", "hypotheses")
    for secret in ("48.1", "11.5", "07:5", "2024"):
        assert secret not in completed.output


def test_an_attack_that_wins_is_a_loud_failure(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise is a third of what it was designed to be."""
    noises = worlds.noises

    def less(
        mechanism: Mechanism, shape: tuple[int, ...], generator: np.random.Generator
    ) -> FloatArray:
        return noises(mechanism, shape, generator) / 3

    monkeypatch.setattr(worlds, "noises", less)
    completed = attack(pair, "--attack", "posterior")
    assert completed.exit_code == 1
    assert "BEATEN" in completed.stdout
    assert isinstance(completed.exception, Refused)
    assert re.match(r"no attack must come nearer .*, got [1-4] that did", str(completed.exception))


def test_noise_that_is_not_of_the_design_is_a_loud_failure(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """The very release, every other fix 33 m further north; and another design than it was made by.

    All of them that much further are within what smooth noise does; each has 2 m of its own.
    """
    original, release = pair
    record = json.loads(attack(pair, "--attack", "average", "--json").stdout)
    (noise,) = record["noise"]
    assert noise["as_designed"] is True
    moved, steps = tmp_path / "moved.gpx", itertools.cycle((0.0, 3e-4))
    text = release.read_text()
    moved.write_text(
        re.sub(r'lat="([0-9.]+)"', lambda m: f'lat="{float(m[1]) + next(steps):.6f}"', text)
    )
    for completed in (
        run("audit", original, moved, *DESIGN, "--draws", "100", "--attack", "average"),
        attack(pair, "--attack", "average", "--radius", "400"),
    ):
        assert isinstance(completed.exception, Refused)
        assert "the noise of a released file must be that of its design" in str(completed.exception)
        assert "is NOT that of the design around part 1" in completed.stdout


def test_an_earlier_track_is_used(pair: tuple[Path, Path], tmp_path: Path) -> None:
    record = json.loads(
        attack(pair, "--attack", "known-paths", "--track", pair[0], "--json").stdout
    )
    (tried,) = record["attacks"]
    assert tried["attack"] == "known-paths"
    assert tried["verdict"] in {"not promised", "nothing to go by"}


def test_a_file_of_another_design_is_attacked_alone(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    """Somebody else's tool left out fixes: nothing is promised or known of its noise."""
    original, _ = pair
    lines = gpx(ride(60, 20.0)).decode().splitlines()
    remaining = [line for i, line in enumerate(lines) if "<trkpt" not in line or not 25 < i < 40]
    other = tmp_path / "cut.gpx"
    other.write_text("\n".join(remaining))
    words = ("--no-ends", "--at", "start+10m", "--attack", "all", "--draws", "100")
    completed = run("audit", original, other, *words)
    assert "so what is promised of it is not known" in completed.stderr
    assert "edges" in completed.stdout
    assert "posterior" not in completed.stdout


def test_two_files_that_are_not_of_one_recording(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.gpx"
    other.write_bytes(gpx(ride(60, 20.0, begin=1_600_000_000, seed=4, at=(51.0, 7.0))))
    completed = run("audit", pair[0], other, *DESIGN, "--attack", "all")
    assert isinstance(completed.exception, Refused)
    assert "both files must be of one recording, got 0 of 60" in str(completed.exception)
    assert "\n" not in str(completed.exception)
    other.write_bytes(gpx(ride(60, 20.0, seed=4, at=(11.0, 7.0))))
    completed = run("audit", pair[0], other, *DESIGN, "--attack", "all")
    assert "got released fixes in another part of the world" in str(completed.exception)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--attack", "guess"), "--attack must be one of all, posterior"),
        (("--track", "ride.gpx"), "--track must come with --attack"),
        (("--attack", "all", "--draws", "5"), "--draws"),
        (("--attack", "map"), "--attack map must come with --streets FILE"),
        (("--streets", "town.osm"), "--streets must come with --attack"),
        (("--attack", "average", "--streets", "town.osm"), "must come with --attack map"),
    ],
)
def test_wrong_usage(pair: tuple[Path, Path], words: tuple[str, ...], expected: str) -> None:
    completed = run("audit", *pair, "--no-ends", "--at", "start+10m", *words)
    assert completed.exit_code == 2
    assert expected in completed.stderr


def test_a_map_finds_what_noise_hides_and_not_what_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, the_same_draws: None
) -> None:
    """The streets of the made-up town; streets of elsewhere are refused; nothing tells a place."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_example(tmp_path)
    ride, shared = tmp_path / "town-ride.gpx", tmp_path / "shared.gpx"
    asked = ("--no-ends", "--at", "07:40", "--tz", "UTC", "--no-returns")
    assert run("protect", ride, "-o", shared, *asked).exit_code == 0
    mapped = ("--attack", "map", "--draws", "100", "--streets")
    completed = run("audit", ride, shared, *asked, *mapped, tmp_path / "town.geojson", "--json")
    assert completed.exit_code == 0, completed.output
    (tried,) = json.loads(completed.stdout)["attacks"]
    assert (tried["attack"], tried["verdict"]) == ("map", "holds")
    assert tried["file"] > tried["promised"] > 238  # 158 m in each coordinate
    elsewhere = tmp_path / "elsewhere.geojson"
    elsewhere.write_text('{"type":"LineString","coordinates":[[1,1],[2,2]]}')
    completed = run("audit", ride, shared, *asked, *mapped, elsewhere)
    assert isinstance(completed.exception, Refused)
    assert "streets must cover the track, got 0% of its fixes" in str(completed.exception)


@pytest.mark.slow
def test_a_map_undoes_noise_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, the_same_draws: None
) -> None:
    """A fix every 20 s is enough: the riders that are tried take as long as there are fixes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_example(tmp_path)
    ride = written(tmp_path / "ride.gpx", as_trace(*town_ride(town(), seed=3, step=20.0)))
    shared = tmp_path / "shared.gpx"
    asked = ("--no-ends", "--at", "07:40", "--tz", "UTC", "--no-returns", "--mechanism", "noise")
    assert run("protect", ride, "-o", shared, *asked).exit_code == 0
    mapped = ("--attack", "map", "--draws", "100", "--streets", tmp_path / "town.geojson")
    completed = run("audit", ride, shared, *asked, *mapped)
    assert completed.exit_code == 1
    assert "BEATEN" in completed.stdout
    assert "a map undoes noise" in str(completed.exception)


def test_an_attack_that_is_not_tried_is_refused(pair: tuple[Path, Path]) -> None:
    words = ("--everywhere", "--adversary", "plain", "--attack", "average", "--draws", "100")
    completed = run("audit", *pair, *words)
    assert isinstance(completed.exception, Refused)
    assert "name posterior or kalman" in str(completed.exception)


def test_a_prior_of_another_version(pair: tuple[Path, Path], tmp_path: Path) -> None:
    prior = tmp_path / "prior.json"
    prior.write_text('{"trailveil_prior": 99}')
    completed = attack(pair, "--attack", "posterior", "--prior", prior)
    assert completed.exit_code == 1
    assert "prior" in str(completed.exception)
    assert "\n" not in str(completed.exception)
