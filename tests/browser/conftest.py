"""Headless Chromium for the tests of pages: Debian's, driven by Playwright, with no network."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.browsing import Watched
from tests.rides import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever is not aborted on its way finds no machine of any name, and no proxy.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--no-proxy-server",
]
MISSING = (
    "left out: needs Chromium, got none on PATH; with Debian's it is `apt-get install chromium`"
)

MILLISECONDS = 1000 * PATIENCE
expect.set_options(timeout=MILLISECONDS)


def found_chromium() -> str:
    """The path of the browser; without it the test is skipped, and fails where all must run."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    if os.environ.get("CI") == "true":
        pytest.fail(MISSING)
    pytest.skip(MISSING)


# Not of the session: while Playwright runs, no other test of the process can have an event loop.
@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a module, with a home of its own."""
    path, home = found_chromium(), tmp_path_factory.mktemp("browser")
    folders = {f"XDG_{name}_HOME": str(home / name) for name in ("CONFIG", "CACHE", "DATA")}
    environment: dict[str, str | float | bool] = {**os.environ, "HOME": str(home), **folders}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=ARGUMENTS, env=environment, timeout=MILLISECONDS
        )
        yield browser
        browser.close()


@pytest.fixture
def watched(browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    """A page in a context of its own; a request to elsewhere or a complaint fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(MILLISECONDS)
    watched = Watched(context.new_page())
    yield watched
    context.close()
    watched.check()
