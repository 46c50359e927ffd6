"""Reports as pages, in a browser: opened from a disk, with the network cut off, in every light."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page

from tests.browser.browsing import Watched
from tests.rides import ride, written
from trailveil.cli import cli

pytestmark = pytest.mark.slow

AT_ONCE = ("--withhold", "300", "--radius", "1", "--no-returns")
PAGES = {"out.html": 2, "out.PRIVATE.html": 2}  # and how many pictures are drawn


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The report for others, as an object; the pages are beside it."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "ride.gpx", ride(60, 20.0))
    words = ["protect", "ride.gpx", *AT_ONCE, "--key", "key"]
    assert CliRunner().invoke(cli, ["key", "new", "key"]).exit_code == 0
    more = ["--report", "out.html", "--private-report", "out.PRIVATE.html", "--json"]
    own = CliRunner().invoke(cli, [*words, *more])
    assert own.exit_code == 0, own.output
    again = CliRunner().invoke(cli, [*words, "--overwrite", "--report", "out.json"])
    assert again.exit_code == 0, again.output
    others = json.loads(Path("out.json").read_text(encoding="utf-8"))
    return {"out.html": others, "out.PRIVATE.html": json.loads(own.stdout)}


@pytest.mark.parametrize(
    ("name", "light", "width"),
    [
        ("out.html", "light", 360),
        ("out.html", "dark", 1200),
        ("out.PRIVATE.html", "dark", 360),
        ("out.PRIVATE.html", "light", 1200),
    ],
)
def test_a_report_is_drawn_and_asks_nobody(
    name: str, light: Any, width: int, reports: dict[str, Any], watched: Watched
) -> None:
    view = watched.page
    view.emulate_media(color_scheme=light)
    view.set_viewport_size({"width": width, "height": 800})
    view.goto(Path(name).absolute().as_uri())
    assert view.title().startswith("PRIVATE") == ("PRIVATE" in name)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [one.bounding_box() for one in view.locator("svg[role=img]").all()]
    assert len(boxes) == PAGES[name]
    assert all(box and 100 < box["width"] <= width and box["height"] > 50 for box in boxes)
    assert all(_has_ink(view, index) for index in range(len(boxes)))
    found, worst = reports[name], reports[name]["worst"]
    stated = view.eval_on_selector_all("data", "all => all.map(one => Number(one.value))")
    for value in (worst["epsilon"], worst["mu"], worst["odds_factor_99"], worst["advantage"]):
        assert value in stated
    assert found["mechanism"]["released_fixes"] in stated
    view.keyboard.press("Tab")
    assert view.evaluate("document.activeElement.className") == "skip"
    if os.environ.get("TRAILVEIL_SCREENSHOTS"):
        view.screenshot(path=f"{name}.{light}.{width}.png", full_page=True)


def _has_ink(view: Page, index: int) -> bool:
    """Whether something of a picture is seen: lines with a length, or texts."""
    count: int = (
        view.locator("svg[role=img]")
        .nth(index)
        .evaluate(
            "svg => [...svg.querySelectorAll('path, text, circle')]"
            ".filter(one => one.getBoundingClientRect().width > 0).length"
        )
    )
    return count > 5
