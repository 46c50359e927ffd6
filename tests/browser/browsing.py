"""A page in headless Chromium that reaches nothing but what a test serves, and says what it did."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Page, Request, Route

INNOCENT = ("data", "blob", "about")
"""Schemes that ask nobody for anything."""


@dataclass
class Watched:
    """A page, and all that must not have happened on it by the end of the test.

    served: the origins that may be asked (`http://127.0.0.1:8000`), besides `file://`. reached:
    the other addresses that were asked for, all of which were refused. complaints: what the page
    wrote to the console as an error, or raised.

    Requests are decided on in this process, so they go on only while a test waits for the browser:
    wait for what a click asks for before waiting for anything else.
    """

    page: Page
    served: set[str] = field(default_factory=set)
    reached: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.context.route("**/*", self._decide)
        self.page.context.on("request", self._note)
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(f"raised {error}"))

    def _is_served(self, url: str) -> bool:
        parts = urlsplit(url)
        if parts.scheme == "file" or parts.scheme in INNOCENT:
            return True
        return f"{parts.scheme}://{parts.netloc}" in self.served

    def _decide(self, route: Route) -> None:
        if self._is_served(route.request.url):
            route.continue_()
        else:
            route.abort()

    def _note(self, request: Request) -> None:
        if not self._is_served(request.url):
            self.reached.append(request.url)

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def check(self) -> None:
        """Nothing reached for the network, and nothing complained."""
        assert self.reached == [], "the page asked for what is not served here"
        assert self.complaints == [], "the page complained"
