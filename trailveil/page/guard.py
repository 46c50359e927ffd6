"""Who may ask the page's server anything: the one browser that was given its address.

The server listens on this machine alone, but any page in any browser here can send requests to it,
and another name can be made to lead to it (DNS rebinding). So each request must name the server as
it was handed out, carry the secret that its address was exchanged for, and, where the browser says
who sends it, come from the page itself; one that could change anything must say so.
"""

import secrets
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trailveil.page.basemap import Basemap

ADDRESS = "127.0.0.1"
_SAFE = frozenset({"GET", "HEAD"})
_LARGEST_URL = 4096


class Guard:
    """Lets one browser through to an application, and nobody else.

    port: where the server listens. The token is in the address once; it is exchanged for a cookie
    that no script can read and that no other site can make the browser send.
    """

    def __init__(self, app: ASGIApp, port: int, basemap: Basemap | None = None) -> None:
        self.app = app
        self.token = secrets.token_urlsafe(32)
        self._unused = True
        self._cookie = secrets.token_urlsafe(32)
        self._name = f"trailveil-{port}"
        self._host = f"{ADDRESS}:{port}"
        self._headers = _headers_with(basemap)

    @property
    def address(self) -> str:
        """The address that opens the page, once."""
        return f"http://{self._host}/?token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer; every answer has the headers that protect it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        answer = self._answer(Request(scope))
        await (answer or self.app)(scope, receive, sent)

    def _answer(self, request: Request) -> Response | None:
        """What is answered in place of the application, or None to let a request through."""
        headers = request.headers
        if len(request.url.query) + len(request.url.path) > _LARGEST_URL:
            return _refused("a shorter address")
        if headers.getlist("host") != [self._host]:
            return _refused(f"the address {self._host}")
        token = request.query_params.get("token")
        is_entry = request.method == "GET" and request.url.path == "/" and token is not None
        if not self._comes_from_the_page(request, headers):
            return _refused("a request of its own page")
        if is_entry and self._unused and _same(token or "", self.token):
            self._unused = False
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._name, self._cookie, path="/", httponly=True, samesite="strict")
            return answer
        if not self._has_cookie(headers):
            return _refused("the address that the terminal shows, which opens it once")
        return RedirectResponse("/", 303) if is_entry else None

    def _comes_from_the_page(self, request: Request, headers: Headers) -> bool:
        """Whether nothing says that another page sends it, and what changes things says who does.

        Typed into the browser, or opened by the terminal, the page itself may come from nowhere.
        """
        page, origins = f"http://{self._host}", headers.getlist("origin")
        sites = headers.getlist("sec-fetch-site")
        if request.method not in _SAFE:
            return origins == [page] and sites in ([], ["same-origin"])
        allowed = ["same-origin", "none"] if request.url.path == "/" else ["same-origin"]
        return origins in ([], [page]) and (not sites or (len(sites) == 1 and sites[0] in allowed))

    def _has_cookie(self, headers: Headers) -> bool:
        simple_cookie = SimpleCookie()
        try:
            simple_cookie.load("; ".join(headers.getlist("cookie")))
        except CookieError:
            return False
        return self._name in simple_cookie and _same(simple_cookie[self._name].value, self._cookie)


def _same(stated: str, other: str) -> bool:
    """In a time that does not tell how much of it is right."""
    return compare_digest(stated.encode(errors="surrogateescape"), other.encode())


def _refused(what: str) -> Response:
    return PlainTextResponse(f"The page must be asked for by {what}, got something else.\n", 403)


def _headers_with(basemap: Basemap | None) -> dict[str, str]:
    images = "img-src 'self' data:" + (f" https://{basemap.host}" if basemap else "")
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        f"{images}; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-frame-options": "DENY",
    }
