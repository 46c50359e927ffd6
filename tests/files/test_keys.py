"""With one key the same request is the same release, wherever; two requests share no draw."""

import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy.stats import norm

from tests.rides import ride
from trailveil.cli import cli
from trailveil.errors import Refused, TrailveilError, UnwritableOutput
from trailveil.files.keys import load_key, new_key
from trailveil.ledger import open_ledger
from trailveil.ledger.commit import check_released, publish, seed_of
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

TRACE = ride(30, 30.0)


def planned(trace: Trace = TRACE, at: str = "start+5m", epsilon: float = 1.0) -> Plan:
    asked = Request((), epsilon=epsilon, who=(), method=Method.NOISE)
    return protect(trace, requested(trace, Chosen((at,), ends=False), asked))


def moved(plan: Plan, key: bytes) -> NDArray[np.int64]:
    """What a draw moved each fix by (n, 2), in micrometres."""
    seed = seed_of(key, plan.identity)
    _, grid = draw(plan, seed)
    return plan.frame.to_lattice(grid / 1e6) - plan.lattice


def test_a_key_is_private_new_and_read_as_it_was_made(tmp_path: Path) -> None:
    first, second = tmp_path / "first.key", tmp_path / "second.key"
    new_key(first)
    new_key(second)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    assert load_key(first) == load_key(first)
    assert load_key(first) != load_key(second)
    assert len(load_key(first)) == 32
    before = first.read_bytes()
    with pytest.raises(UnwritableOutput, match="no key is replaced"):
        new_key(first)
    assert first.read_bytes() == before
    link = tmp_path / "link.key"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UnwritableOutput, match="no key is replaced"):
        new_key(link)


def test_windows_line_ends_make_no_other_key(tmp_path: Path) -> None:
    new_key(tmp_path / "a.key")
    other = tmp_path / "b.key"
    other.write_bytes((tmp_path / "a.key").read_bytes().replace(b"\n", b"\r\n"))
    other.chmod(0o600)
    assert load_key(other) == load_key(tmp_path / "a.key")


def _open_to_others(path: Path) -> None:
    path.chmod(0o640)


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def _of_another_kind(path: Path) -> None:
    path.write_bytes(b"0" * 64)


def _gone(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("spoil", [_open_to_others, _cut_short, _of_another_kind, _gone])
def test_a_key_that_is_none_is_refused_and_not_told(
    spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "my.key"
    new_key(path)
    secret = path.read_text().splitlines()[1]
    spoil(path)
    with pytest.raises(TrailveilError) as refused:
        load_key(path)
    assert not any(secret[i : i + 8] in str(refused.value) for i in range(56))


def test_one_key_is_one_release_on_every_machine(tmp_path: Path) -> None:
    plan, key = planned(), bytes(range(32))
    released = set()
    for number in range(200):
        ledger = open_ledger(tmp_path / f"state{number % 3}")
        output = tmp_path / f"{number}.gpx"
        assert not publish(plan, ledger, output, key=key).further
        released.add(output.read_bytes())
    assert len(released) == 1


def test_another_key_or_none_is_another_release_and_refused(tmp_path: Path) -> None:
    plan, ledger = planned(), open_ledger(tmp_path / "state")
    publish(plan, ledger, tmp_path / "a.gpx", key=bytes(32))
    for key in (None, b"\1" * 32):
        with pytest.raises(Refused, match="--again"):
            check_released(ledger, plan, again=False, key=key)
        with pytest.raises(Refused, match="--again"):
            publish(plan, ledger, tmp_path / "b.gpx", key=key)
        assert not (tmp_path / "b.gpx").exists()
    check_released(ledger, plan, again=False, key=bytes(32))


@pytest.mark.parametrize(
    "other",
    [
        lambda: planned(epsilon=2.0),
        lambda: planned(at="start+6m"),
        lambda: planned(ride(30, 30.0, seed=2)),
        lambda: planned(ride(30, 30.0, begin=1_715_672_401)),
    ],
    ids=["epsilon", "time", "places", "times"],
)
def test_two_requests_under_one_key_share_no_draw(other: Callable[[], Plan]) -> None:
    """The correlation of 200 keys' noise at one fix: a share of it would be a correlation of 1.

    Falsely alarmed once in 10^6: of 200 independent pairs it is about normal, 1/sqrt(200) wide.
    """
    first_plan, two = planned(), other()
    keys = [number.to_bytes(32, "big") for number in range(200)]
    row = 10
    first = np.array([moved(first_plan, key)[row, 0] for key in keys])
    second = np.array([moved(two, key)[row, 0] for key in keys])
    assert abs(np.corrcoef(first, second)[0, 1]) < norm.isf(0.5e-6) / np.sqrt(len(keys))
    assert np.std(first) > 1e6


def test_the_command_makes_a_key_and_protect_takes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.rides import written

    source = written(tmp_path / "ride.gpx", TRACE)
    made_key = CliRunner().invoke(cli, ["key", "new", str(tmp_path / "my.key")])
    assert made_key.exit_code == 0
    secret = (tmp_path / "my.key").read_text().splitlines()[1]
    assert secret not in made_key.output
    releases = []
    for state in ("one", "two"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state))
        words = ["protect", str(source), "-o", str(tmp_path / f"{state}.gpx")]
        words += ["--key", str(tmp_path / "my.key"), "--at", "start+5m", "--mechanism", "noise"]
        done = CliRunner().invoke(cli, [*words, "--report", str(tmp_path / f"{state}.json")])
        assert done.exit_code == 0, done.output
        assert secret not in done.output
        releases.append((tmp_path / f"{state}.gpx").read_bytes())
        assert secret not in (tmp_path / f"{state}.json").read_text()
    assert releases[0] == releases[1]


@pytest.mark.parametrize("option", ["-o", "--report"])
@pytest.mark.parametrize("target", ["my.key", "prior.json"])
def test_a_run_writes_over_no_key_and_no_prior(
    option: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.rides import written
    from trailveil.privacy.priors import BUILT_IN, to_json

    monkeypatch.chdir(tmp_path)
    written(Path("ride.gpx"), TRACE)
    new_key(Path("my.key"))
    Path("prior.json").write_text(to_json(BUILT_IN["walk"]))
    Path("link.gpx").symlink_to(target)
    name = "link.gpx" if option == "-o" else target
    before = Path(target).read_bytes()
    words = ["protect", "ride.gpx", "--key", "my.key", "--prior", "prior.json", "--overwrite"]
    words += ["--mechanism", "noise"]
    done = CliRunner().invoke(cli, [*words, option, name])
    assert isinstance(done.exception, UnwritableOutput), done.output
    assert "named already" in str(done.exception)
    assert Path(target).read_bytes() == before
