"""Serve the page on this machine alone, until it is done.

Any program of the machine may connect. One that never ends its request takes a place among the few
that wait, for a short time, and takes none from who asks: the oldest that waits makes room.
"""

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from trailveil.errors import Refused
from trailveil.page.app import IDLE, application
from trailveil.page.basemap import Basemap
from trailveil.page.guard import ADDRESS, Guard
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
