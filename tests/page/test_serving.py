"""The page's server on a real socket: who never ends a request takes nobody else's place."""

import contextlib
import http.client
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.responses import PlainTextResponse

from tests.rides import PATIENCE
from trailveil.page import serving

_HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


@pytest.fixture
def port() -> Iterator[int]:
    """Where the server of an application that says "here" listens."""

    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # ASGI
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
        else:
            await PlainTextResponse("here")(scope, receive, send)

    server = serving.server_of(app)
    with serving._listening(0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


def half_asked(stack: contextlib.ExitStack, port: int, count: int) -> list[socket.socket]:
    """So many connections, each with half of a request."""
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        connections.append(stack.enter_context(connection))
        connection.sendall(_HALF)
    return connections


def status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", "/")
        return connection.getresponse().status


def is_ended(connection: socket.socket) -> bool:
    """Whether the server has ended a connection; it waits until it has."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("count", [40, 200])
def test_half_requests_take_no_place_from_who_asks(
    port: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "_LONGEST_WAIT", 600.0)  # however long this machine takes
    with contextlib.ExitStack() as stack:
        waiting = half_asked(stack, port, count)
        assert [status(port) for _ in range(3)] == [200] * 3
        more = max(0, count - serving._MOST_WAITING)
        assert all(is_ended(connection) for connection in waiting[:more])  # the oldest make room
        waiting[-1].sendall(b"no\r\n\r\n")
        assert waiting[-1].recv(15) == b"HTTP/1.1 200 OK"


def test_a_half_request_is_ended_after_a_while(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LONGEST_WAIT", 0.05)
    with contextlib.ExitStack() as stack:
        assert all(is_ended(connection) for connection in half_asked(stack, port, 3))
    assert status(port) == 200
