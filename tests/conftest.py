"""What holds for every test: no network, no real user folder, the same examples every time."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
T = TypeVar("T")

# A test that passes once passes always. To search for more: HYPOTHESIS_PROFILE=search.
settings.register_profile("dev", derandomize=True, deadline=None, database=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("dev"), max_examples=40)
settings.register_profile("search", deadline=None, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "dev"))

# The tests change the home folder; matplotlib would build its list of fonts anew in each.
os.environ.setdefault("MPLCONFIGDIR", str(ROOT / ".pytest_cache" / "matplotlib"))
os.environ["MPLBACKEND"] = "agg"
# Else each process that a test starts compiles all that it imports: twice as long, or thrice.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PROJ_NETWORK"] = "OFF"


class Sweep(Protocol):
    """Shortens a sweep, see the fixture of that name."""

    def __call__(self, values: Sequence[T], short: int = 5) -> Sequence[T]:
        """All of the values, or about `short` of them, first and last among them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run every sweep at full length")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether sweeps run at full length: with --full, and always outside continuous integration."""
    return bool(request.config.getoption("--full")) or os.environ.get("CI") != "true"


@pytest.fixture(scope="session")
def sweep(full: bool) -> Sweep:
    """Shortens a sweep in continuous integration, evenly: `for scale in sweep(scales, short=4)`."""

    def shorten(values: Sequence[T], short: int = 5) -> Sequence[T]:
        if full or len(values) <= short:
            return values
        last = len(values) - 1
        return [values[round(i * last / (short - 1))] for i in range(short)]

    return shorten


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference figures and real recordings, which is not part of the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs the reference data and recordings of ../shared, which are not here")
    return SHARED


@pytest.fixture(autouse=True)
def user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for each test, so that none reads or writes what a real user released."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("STATE", "CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    for name in ("APPDATA", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home / name.lower()))
    return home


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    """Run the program with some words, in a folder of its own: exit status, stdout, stderr.

    In this process: quicker than one of its own, and the same but for signals.
    """
    from trailveil.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)

    def once(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["trailveil", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capfd.readouterr()

    return once


def _is_here(host: str) -> bool:
    try:
        return ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return host in ("", "localhost")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing under test may reach for another machine."""

    def guard(name: str) -> None:
        original = getattr(socket.socket, name)

        def guarded(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_here(address[0]):
                raise AssertionError(f"a test must not use the network, tried {address!r}")
            return original(self, address)

        monkeypatch.setattr(socket.socket, name, guarded)

    guard("connect")
    guard("connect_ex")
    resolve = socket.getaddrinfo

    def guarded_resolve(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host is not None and not _is_here(os.fsdecode(host)):
            raise AssertionError(f"a test must not use the network, tried to look up {host!r}")
        return resolve(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", guarded_resolve)
