"""`trailveil open` as a command: its options, and what it refuses before anything is served."""

import builtins
import socket
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.rides import ride, written
from trailveil.cli import cli
from trailveil.errors import TrailveilError
from trailveil.page import serving

TRACE = ride(24, 60.0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "ride.gpx", TRACE)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, dict[str, Any]]]:
    """What would be served, and how."""
    calls: list[tuple[Any, dict[str, Any]]] = []

    def serve(source: Any, ready: Any, **options: Any) -> None:
        ready("http://127.0.0.1:1/?token=t")
        calls.append((source, options))

    monkeypatch.setattr(serving, "serve", serve)
    return calls


def invoke(*arguments: str | Path) -> str:
    result = CliRunner().invoke(cli, ["open", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_address_is_printed_and_opened(
    source: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    assert "http://127.0.0.1:1/?token=t" in invoke(source)
    assert opened == ["http://127.0.0.1:1/?token=t"]
    invoke(source, "--no-browser", "--port", "8765")
    assert len(opened) == 1
    assert [options["port"] for _, options in served] == [0, 8765]


def test_protect_would_be_told_the_same(source: Path, served: list[Any], tmp_path: Path) -> None:
    options = ["--tz", "Europe/Berlin", "--subject", "her", "--total-epsilon", "3"]
    output = tmp_path / "out.gpx"
    invoke(source, "--no-browser", "-o", output, *options, "--assume-utc")
    recording = served[0][0]
    assert recording.output == output
    assert (recording.subject, recording.limit, recording.zone.key) == ("her", 3.0, "Europe/Berlin")
    words = list(recording.options)
    assert words == ["-o", f"{output}", *options[:2], "--assume-utc", *options[2:5], "3.0"]


def test_whom_a_map_tells_is_said(source: Path, served: list[Any]) -> None:
    said = invoke(source, "--no-browser", "--basemap", "https://t.example/{z}/{x}/{y}.png")
    assert "--basemap: The map is fetched from t.example, which sees" in said
    assert served[0][1]["basemap"].host == "t.example"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--basemap", "http://t.example/{z}/{x}/{y}.png"], "--basemap must be https"),
        (["-o", "ride.gpx"], "must"),
        (["-o", "out.plt"], "must"),
        (["--key", "none.key"], "a key must be a file that exists"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_served(
    source: Path, served: list[Any], monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.chdir(source.parent)
    with pytest.raises(TrailveilError, match=said) as error:
        invoke("ride.gpx", "--no-browser", *options)
    assert "\n" not in str(error.value)
    assert served == []


def test_a_port_that_is_taken_is_refused(source: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TrailveilError, match=f"port must be free, got the error .*: {port}"):
            invoke(source, "--no-browser", "--port", str(port))


def test_without_the_server_it_says_how_to_get_it(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "trailveil.page.serving":
            raise ImportError(name)
        return whole(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TrailveilError, match=r"pip install 'trailveil\[page\]'"):
        invoke(source)
