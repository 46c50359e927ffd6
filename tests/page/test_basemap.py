"""A map from elsewhere: only from one host, which is named, and never by surprise."""

import pytest

from trailveil.errors import InvalidValue
from trailveil.page.app import basemap


@pytest.mark.parametrize(
    ("template", "host"),
    [
        ("https://tiles.example/{z}/{x}/{y}.png", "tiles.example"),
        ("https://Tiles.example:8443/a/{z}/{y}/{x}?style=a", "tiles.example:8443"),
    ],
)
def test_the_host_is_named(template: str, host: str) -> None:
    tiles = basemap(template)
    assert (tiles.template, tiles.host) == (template, host)
    assert f"fetched from {host}, which sees" in tiles.notice


@pytest.mark.parametrize(
    "template",
    [
        "",
        "osm",
        "http://tiles.example/{z}/{x}/{y}.png",
        "https://tiles.example/{z}/{x}.png",
        "https://{s}.tiles.example/{z}/{x}/{y}.png",
        "https://tiles.example/{s}/{z}/{x}/{y}.png",
        "https://user@tiles.example/{z}/{x}/{y}.png",
        "https://tiles.example:x/{z}/{x}/{y}.png",
        "https://tiles.example:0/{z}/{x}/{y}.png",
        "https://tiles.example;script-src */{z}/{x}/{y}.png",
        "https://tiles.example *.evil.example/{z}/{x}/{y}.png",
        "https:///{z}/{x}/{y}.png",
        "https://[::1/{z}/{x}/{y}.png",
        "https://*.example/{z}/{x}/{y}.png",
        "https://tiles.example/{z}/{x}/{y}.png\nhttps://evil.example",
        "javascript:alert(1)//{z}/{x}/{y}",
    ],
)
def test_anything_else_is_refused(template: str) -> None:
    with pytest.raises(InvalidValue, match="--basemap must be https"):
        basemap(template)
