"""The browser sees what is served, reaches nothing else, and what goes wrong is noticed."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.browser import conftest
from tests.browser.browsing import Watched

pytestmark = pytest.mark.slow


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "here.html").write_text("<title>here</title><link rel=icon href='data:,'>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()


def test_what_is_served_and_files_are_seen(watched: Watched, server: str, tmp_path: Path) -> None:
    (tmp_path / "file.html").write_text("<title>file</title>")
    watched.page.goto((tmp_path / "file.html").as_uri())
    assert watched.page.title() == "file"
    watched.served.add(server)
    watched.page.goto(f"{server}/here.html")
    assert watched.page.title() == "here"


def test_a_request_to_elsewhere_is_refused_and_noticed(
    watched: Watched, server: str, tmp_path: Path
) -> None:
    """A server on this machine that was not named counts as elsewhere, too."""
    addresses = ["https://tiles.example/0/0/0.png", f"{server}/here.html"]
    images = "".join(f"<img src='{address}'>" for address in addresses)
    (tmp_path / "file.html").write_text(images)
    watched.page.goto((tmp_path / "file.html").as_uri())
    assert sorted(watched.reached) == sorted(addresses)
    with pytest.raises(AssertionError, match="not served here"):
        watched.check()
    watched.reached.clear()
    watched.complaints.clear()


@pytest.mark.parametrize(
    ("script", "said"),
    [("console.error('oh')", "oh"), ("throw new Error('no')", "raised no"), ("1", "")],
)
def test_errors_of_a_page_are_noticed(
    watched: Watched, tmp_path: Path, script: str, said: str
) -> None:
    (tmp_path / "file.html").write_text(f"<script>{script}</script>")
    watched.page.goto((tmp_path / "file.html").as_uri())
    assert watched.complaints == [said][: bool(said)]
    watched.complaints.clear()


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail), ("", pytest.skip)])
def test_where_there_is_no_browser_it_is_said_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: object
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CI", ci)
    expected = pytest.fail.Exception if outcome is pytest.fail else pytest.skip.Exception
    with pytest.raises(expected, match="needs Chromium"):
        conftest.found_chromium()
