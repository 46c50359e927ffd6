"""Serve the page on this machine alone, until it is done.

Any program of the machine may connect. One that never ends its request takes a place among the few
that wait, for a short time, and takes none from who asks: the oldest that waits makes room.
"""

import asyncio
import secrets
import socket
from collections.abc import Callable
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from trailveil.errors import Refused
from trailveil.page.app import IDLE, Basemap, application
from trailveil.page.opened import Opened
from trailveil.page.planner import Planner

# Seconds that a request may take to end once the server is told to.
_PATIENCE = 2
# Seconds that a connection may wait with no request, or half of one, and how many may at once.
_LONGEST_WAIT, _MOST_WAITING = 10.0, 64


def serve(
    source: Opened | None,
    ready: Callable[[str], None],
    *,
    choose: Callable[[str, bytes], Opened] | None = None,
    port: int = 0,
    basemap: Basemap | None = None,
    idle: float = IDLE,
) -> None:
    """Serve a recording until the page says so, nobody has asked for `idle` seconds, or Ctrl-C.

    source: None where the browser chooses it, and choose(name, content) opens it. ready: told the
    address, which holds a secret, once the port is taken. port: 0 for any. Raises Refused where the
    port cannot be had. Nothing is logged.
    """
    with _listening(port) as listening:
        taken = listening.getsockname()[1]
        app = application(
            None if source is None else Planner(source),
            lambda: _end(server),
            choose=None if choose is None else lambda *file: Planner(choose(*file)),
            basemap=basemap,
            idle=idle,
        )
        guard = Guard(app, taken, basemap)
        server = server_of(guard)
        ready(guard.address)
        server.run(sockets=[listening])


def server_of(app: ASGIApp) -> uvicorn.Server:
    """The server of an application: strict, silent, and not to be held up by half requests."""
    config = uvicorn.Config(
        app,
        access_log=False,
        log_config=None,
        log_level="critical",
        http=_Connection,
        ws="none",
        loop="asyncio",
        lifespan="on",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_PATIENCE,
    )
    return uvicorn.Server(config)


class _Connection(H11Protocol):
    """A connection that is closed when it waits too long, or longest of too many."""

    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait, and make room where too many do."""
        super().connection_made(transport)
        self._since = self.loop.time()
        waiting = [
            connection
            for connection in self.connections
            if isinstance(connection, _Connection) and connection.waits()
        ]
        if len(waiting) > _MOST_WAITING:
            min(waiting, key=lambda connection: connection._since).transport.abort()
        self.loop.call_later(_LONGEST_WAIT, self._end_if_slow)

    def on_response_complete(self) -> None:
        """Wait for another request from now on."""
        self._since = self.loop.time()
        super().on_response_complete()

    def waits(self) -> bool:
        """Whether no request is being answered, and it is not at its end already."""
        return not self.transport.is_closing() and bool(
            getattr(self.cycle, "response_complete", True)  # None before the first request
        )

    def _end_if_slow(self) -> None:
        if self.transport.is_closing():
            return
        if self.waits() and self.loop.time() - self._since >= _LONGEST_WAIT:
            self.transport.abort()
        else:
            self.loop.call_later(_LONGEST_WAIT, self._end_if_slow)


def _end(server: uvicorn.Server) -> None:
    server.should_exit = True


def _listening(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((ADDRESS, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise Refused(
            f"the port must be free, got the error '{error.strerror}': {port}; choose another, or "
            "leave --port out"
        ) from error
    return listening


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
        f"default-src 'none'; script-src 'self'; style-src 'self'; {images}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
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
