"""A map from elsewhere behind the track, for who asks for it: whom it tells what."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from trailveil.errors import InvalidValue

_PLACEHOLDERS = {"{x}", "{y}", "{z}"}
_ALLOWED = re.compile(r"[A-Za-z0-9._~:/?&=%@{}+-]+")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?")


@dataclass(frozen=True, slots=True)
class Basemap:
    """Tiles by a template; host: the one machine that may be asked for them, with its port."""

    template: str
    host: str

    @property
    def notice(self) -> str:
        """Whom it tells what, in one sentence."""
        return (
            f"The map is fetched from {self.host}, which sees your address on the network and "
            "roughly where the recording is, the more closely the further you zoom in."
        )


def basemap(template: str) -> Basemap:
    """The map of a template such as https://tiles.example/{z}/{x}/{y}.png; raises InvalidValue."""
    wrong = InvalidValue(
        "--basemap must be https://HOST/PATH with {z}, {x} and {y} in the path, and no user name, "
        "got another: copy the template that the server of tiles states"
    )
    try:
        parts = urlsplit(template)
        host = parts.netloc.lower()
        has_port = parts.port is None or parts.port > 0
    except ValueError as error:
        raise wrong from error
    fields = re.findall(r"\{[^}]*\}", parts.path + parts.query)
    fits = _ALLOWED.fullmatch(template) and _HOST.fullmatch(host) and has_port
    if parts.scheme != "https" or not fits or not set(fields) == _PLACEHOLDERS:
        raise wrong
    return Basemap(template, host)
