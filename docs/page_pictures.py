"""Draws the pictures of pages: docs/images/open.png, report.png, and both on a phone.

    python docs/page_pictures.py

Needs Chromium and Playwright, as the tests of pages do. The day is the one of `trailveil demo`.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
SIZES = {"": (1280, 900), "-phone": (390, 844)}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))


def main() -> None:
    """Make the day, protect it, and draw its pages at both sizes."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        home = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "PYTHONUNBUFFERED": "1"}
        run = [sys.executable, "-m", "trailveil"]
        subprocess.run([*run, "demo", "-o", f"{folder}/demo"], env=home, check=True)
        report = f"{folder}/demo/day.PRIVATE.html"
        chosen = ("--between", "08:39", "09:21", "--tz", "UTC", "--activity", "ride")
        words = [*run, "protect", "day.gpx", *chosen, "--replace", "--private-report", report]
        here = {"env": home, "cwd": f"{folder}/demo"}
        subprocess.run([*words, "-o", "shared.gpx"], check=True, **here)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.set_default_timeout(30_000)
            page.goto(Path(report).as_uri())
            page.screenshot(path=IMAGES / f"report{name}.png")
            opened = [*run, "open", "day.gpx", "--no-browser", "--tz", "UTC", "-o", "new.gpx"]
            how = {"stdout": subprocess.PIPE, "text": True, **here}
            with subprocess.Popen(opened, **how) as program:
                _open(page, program, IMAGES / f"open{name}.png")
        browser.close()


def _open(page: Page, program: "subprocess.Popen[str]", path: Path) -> None:
    try:
        lines = program.stdout or ()
        address = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
        page.goto(address)
        page.locator("#parts input").nth(1).check()
        page.locator("#activity").select_option("ride")
        page.wait_for_timeout(500)
        page.wait_for_function("() => !document.getElementById('save').disabled")
        page.wait_for_timeout(500)
        page.screenshot(path=path, full_page="phone" in path.name)
    finally:
        program.kill()


if __name__ == "__main__":
    main()
