"""What is served is what was vendored, and holds nothing that the policy would refuse."""

import hashlib
import re
from importlib.resources import files
from pathlib import Path

from trailveil.page.app import SERVED

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "trailveil" / "page" / "static"


def test_vendored_files_are_those_that_are_recorded() -> None:
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    table = text.split("## Vendored")[1].split("\n## ")[0]
    recorded = dict(re.findall(r"`([\w.-]+)` \| `([0-9a-f]{64})`", table))
    hashes = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in STATIC.iterdir()
        if "leaflet" in path.name.lower()
    }
    assert hashes == recorded
    assert len(hashes) == 3
    assert b"Leaflet 1.9.4" in (STATIC / "leaflet.js").read_bytes()[:200]
    assert "| Leaflet | 1.9.4 |" in table


def test_all_that_is_there_is_served_and_in_the_package() -> None:
    names = {path.name for path in (files("trailveil.page") / "static").iterdir()}
    assert names == set(SERVED) | {"LEAFLET-LICENSE.txt"}


def test_our_own_files_hold_nothing_inline_and_name_no_other_machine() -> None:
    files_of_ours = {
        name: (STATIC / name).read_text(encoding="utf-8")
        for name in SERVED
        if "leaflet" not in name
    }
    assert len(files_of_ours) == 4
    for name, text in files_of_ours.items():
        assert re.findall(r"https?:|//[a-z]+\.", text) == [], name
        assert re.findall(r"\bstyle=|\bon[a-z]+=\"|<style|javascript:|eval\(", text) == [], name
        assert not re.search(r"innerHTML\s*=|insertAdjacentHTML|document\.write", text), name
    assert re.findall(r"<script(?![^>]* src=)", files_of_ours["index.html"]) == []


def test_text_stands_out_in_light_and_in_dark() -> None:
    """At least 4.5 to 1, as WCAG 2.1 computes it, for every colour of text on its ground."""
    css = (STATIC / "page.css").read_text(encoding="utf-8")
    light = colours(css.split("@media")[0])
    dark = light | colours(css.split("prefers-color-scheme: dark")[1].split("* {")[0])
    for theme in (light, dark):
        assert theme["ink"] != theme["ground"]
        for ground in ("ground", "raised"):
            for text in ("ink", "soft", "warn"):
                assert contrast(theme[text], theme[ground]) >= 4.5, (text, ground)
        assert contrast(theme["on-accent"], theme["accent"]) >= 4.5
        assert contrast(theme["soft"], theme["map"]) >= 4.5
        for mark in ("track", "protected", "guess"):
            assert contrast(theme[mark], theme["map"]) >= 3, mark


def colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): #([0-9a-f]{6});", css))


def contrast(first: str, other: str) -> float:
    low, high = sorted(luminance(colour) for colour in (first, other))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
