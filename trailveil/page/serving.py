"""Serve the page on this machine alone, until it is done."""

import socket
from collections.abc import Callable

import uvicorn

from trailveil.errors import Refused
from trailveil.page.app import IDLE, application
from trailveil.page.basemap import Basemap
from trailveil.page.guard import ADDRESS, Guard
from trailveil.page.opened import Opened
from trailveil.page.planner import Planner

# Seconds that a request may take to end once the server is told to.
_PATIENCE = 2


def serve(
    source: Opened,
    ready: Callable[[str], None],
    *,
    port: int = 0,
    basemap: Basemap | None = None,
    idle: float = IDLE,
) -> None:
    """Serve a recording until the page says so, nobody has asked for `idle` seconds, or Ctrl-C.

    ready: told the address, which holds a secret, once the port is taken. port: 0 for any. Raises
    Refused where the port cannot be had. Nothing is logged.
    """
    with _listening(port) as listening:
        taken = listening.getsockname()[1]
        planner = Planner(source)
        app = application(planner, lambda: _end(server), basemap=basemap, idle=idle)
        guard = Guard(app, taken, basemap)
        config = uvicorn.Config(
            guard,
            access_log=False,
            log_config=None,
            log_level="critical",
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="on",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_PATIENCE,
            limit_concurrency=32,
        )
        server = uvicorn.Server(config)
        ready(guard.address)
        server.run(sockets=[listening])


def _end(server: uvicorn.Server) -> None:
    server.should_exit = True


def _listening(port: int) -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.bind((ADDRESS, port))
        found.listen()
    except OSError as error:
        found.close()
        raise Refused(
            f"the port must be free, got the error '{error.strerror}': {port}; choose another, or "
            "leave --port out"
        ) from error
    return found
