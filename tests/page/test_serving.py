"""The page's server on a real socket: who never ends a request takes nobody else's place."""

import asyncio
import contextlib
import http.client
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from tests.rides import PATIENCE, ride, written
from trailveil.designer.cancelling import Cancelled, cancelled_unless, check_cancelled
from trailveil.designer.window import window_noise
from trailveil.errors import Refused
from trailveil.ledger import user_ledger
from trailveil.page import serving
from trailveil.page.app import Latest, Superseded, basemap
from trailveil.page.opened import opened
from trailveil.page.serving import Guard
from trailveil.release.request import Request

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


PORT = 8765
OWN = f"http://127.0.0.1:{PORT}"
FROM_PAGE = {"origin": OWN, "sec-fetch-site": "same-origin"}


class Asked:
    """A guard before an application that notes what reaches it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

        async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # ASGI
            self.reached.append(f"{scope['method']} {scope['path']}")
            await PlainTextResponse("secret")(scope, receive, send)

        self.guard = Guard(app, PORT)
        self.client = TestClient(self.guard, base_url=OWN, follow_redirects=False)

    def enter(self) -> None:
        answer = self.client.get(f"/?token={self.guard.token}")
        assert answer.status_code == 303
        self.reached.clear()

    def status(self, method: str = "GET", path: str = "/", **headers: str) -> int:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return int(self.client.request(method, path, headers=sent).status_code)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_the_token_opens_once_and_leaves_the_address(asked: Asked) -> None:
    assert asked.guard.address == f"{OWN}/?token={asked.guard.token}"
    assert len(asked.guard.token) >= 40
    first = asked.client.get(f"/?token={asked.guard.token}")
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert asked.guard.token not in cookie
    assert asked.client.get("/").text == "secret"
    again = TestClient(asked.guard, base_url=OWN, follow_redirects=False)
    assert again.get(f"/?token={asked.guard.token}").status_code == 403
    # Who has the cookie already is led to the page.
    assert asked.status("GET", f"/?token={asked.guard.token}") == 303


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/?token=%FF", "/api/plan"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "OPTIONS"])
def test_nothing_is_told_without_the_secret(asked: Asked, method: str, path: str) -> None:
    assert asked.status(method, path, **FROM_PAGE_KEYS) == 403
    assert asked.reached == []


FROM_PAGE_KEYS = {name.replace("-", "_"): value for name, value in FROM_PAGE.items()}


@pytest.mark.parametrize(
    "cookie", ["", "x", "=", f"trailveil-{PORT}=wrong", "a" * 5000, "\xff=\xfe"]
)
def test_another_cookie_does_not_open(asked: Asked, cookie: str) -> None:
    headers = {b"cookie": cookie.encode("latin-1")}
    assert asked.client.get("/", headers=headers).status_code == 403
    assert asked.reached == []


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"localhost:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1.evil.example:{PORT}",
        "",
    ],
)
def test_another_name_of_the_machine_is_refused(asked: Asked, host: str) -> None:
    asked.enter()
    assert asked.status(host=host) == 403
    assert asked.status("GET", f"/?token={asked.guard.token}", host=host) == 403
    assert asked.reached == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec_fetch_site": "same-origin"},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"origin": f"http://localhost:{PORT}"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": OWN, "sec_fetch_site": "cross-site"},
        {"origin": OWN, "sec_fetch_site": "same-site"},
        {"origin": OWN, "sec_fetch_site": "none"},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_what_changes_things_must_come_from_the_page(
    asked: Asked, method: str, headers: dict[str, str]
) -> None:
    asked.enter()
    assert asked.status(method, "/api/save", **headers) == 403
    assert asked.reached == []
    assert asked.status(method, "/api/save", origin=OWN, sec_fetch_site="same-origin") == 200
    assert asked.reached == [f"{method} /api/save"]


@pytest.mark.parametrize(
    ("path", "site", "status"),
    [
        ("/", "none", 200),
        ("/", "same-origin", 200),
        ("/", "same-site", 403),
        ("/", "cross-site", 403),
        ("/api/recording", "none", 403),
        ("/api/recording", "same-origin", 200),
        ("/api/recording", "same-site", 403),
    ],
)
def test_no_other_page_can_read(asked: Asked, path: str, site: str, status: int) -> None:
    asked.enter()
    assert asked.status("GET", path, sec_fetch_site=site) == status
    assert len(asked.reached) == (status == 200)


def test_doubled_headers_and_long_addresses_are_refused(asked: Asked) -> None:
    asked.enter()
    for name in ("origin", "sec-fetch-site", "host"):
        headers = {**FROM_PAGE, "host": OWN.removeprefix("http://")}
        doubled = [*headers.items(), (name, headers[name])]
        assert asked.client.post("/api/save", headers=doubled).status_code == 403
    assert asked.status("GET", "/?" + "x" * 10_000) == 403
    assert asked.reached == []


@pytest.mark.parametrize(
    ("template", "images"),
    [(None, "img-src 'self' data:"), ("https://t.example/{z}/{x}/{y}.png", "https://t.example")],
)
def test_every_answer_is_kept_to_itself(template: str | None, images: str) -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # ASGI
        await PlainTextResponse("secret")(scope, receive, send)

    guard = Guard(app, PORT, None if template is None else basemap(template))
    client = TestClient(guard, base_url=OWN, follow_redirects=False)
    refused, entry, page = client.get("/"), client.get(f"/?token={guard.token}"), client.get("/")
    assert [each.status_code for each in (refused, entry, page)] == [403, 303, 200]
    for response in (refused, entry, page):
        policy = response.headers["content-security-policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert {rules[name] for name in ("script-src", "style-src", "connect-src")} == {"'self'"}
        assert rules["img-src"] == ("'self' data:" + (" https://t.example" if template else ""))
        assert images in policy
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"


def test_tokens_and_cookies_are_never_the_same_twice() -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # ASGI
        await PlainTextResponse("")(scope, receive, send)

    def cookie(guard: Guard) -> str:
        client = TestClient(guard, base_url=OWN, follow_redirects=False)
        cookie = re.search("=([^;]+)", client.get(f"/?token={guard.token}").headers["set-cookie"])
        return cookie[1] if cookie else ""

    guards = [Guard(app, PORT) for _ in range(4)]
    read: list[Callable[[Guard], str]] = [cookie, lambda guard: guard.token]
    assert len({reader(guard) for reader in read for guard in guards}) == 8


def test_of_those_that_wait_only_the_latest_is_done() -> None:
    began, go_on, done = threading.Event(), threading.Event(), []

    def first() -> str:
        began.set()
        go_on.wait(PATIENCE)
        done.append("first")
        return "first"

    async def ask() -> list[object]:
        latest = Latest()
        asked = [asyncio.create_task(latest.result(first))]
        while not began.is_set():
            await asyncio.sleep(0.001)
        for name in ("second", "third"):
            asked.append(asyncio.create_task(latest.result(partial(done.append, name))))
            await asyncio.sleep(0)
        assert done == [], "one at a time"
        go_on.set()
        return list(await asyncio.gather(*asked, return_exceptions=True))

    answers = asyncio.run(ask())
    assert answers[0] == "first"
    assert isinstance(answers[1], Superseded)
    assert answers[2] is None
    assert done == ["first", "third"]


def test_a_look_at_once_waits_for_no_design_and_supersedes_those_that_wait() -> None:
    began, go_on = threading.Event(), threading.Event()

    def design() -> str:
        began.set()
        go_on.wait(PATIENCE)
        return "design"

    async def ask() -> list[object]:
        latest = Latest()
        asked = [asyncio.create_task(latest.result(design))]
        while not began.is_set():
            await asyncio.sleep(0.001)
        asked.append(asyncio.create_task(latest.result(lambda: "waits")))
        await asyncio.sleep(0)
        try:
            look = await asyncio.wait_for(latest.result(lambda: "look", at_once=True), PATIENCE)
        finally:
            go_on.set()
        return [look, *await asyncio.gather(*asked, return_exceptions=True)]

    answers = asyncio.run(ask())
    assert answers[0] == "look"
    assert answers[1] == "design"
    assert isinstance(answers[2], Superseded)


def test_a_design_that_nobody_waits_for_is_given_up() -> None:
    began, done = threading.Event(), []

    def design() -> None:
        began.set()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            check_cancelled()
        done.append("to its end")

    async def ask() -> list[object]:
        latest = Latest()
        asked = asyncio.create_task(latest.result(design))
        while not began.is_set():
            await asyncio.sleep(0.001)
        look = await latest.result(lambda: "look", at_once=True)
        return [look, *await asyncio.gather(asked, return_exceptions=True)]

    answers = asyncio.run(ask())
    assert answers[0] == "look"
    assert isinstance(answers[1], Superseded)
    assert done == []


@pytest.mark.parametrize("checks", [0, 3, 60])
def test_a_design_of_noise_ends_where_it_is_not_wanted(checks: int) -> None:
    """At its first step, in its search, or in its proof."""
    request, asked = Request((), radius=90.0), iter(range(checks))
    with pytest.raises(Cancelled), cancelled_unless(lambda: next(asked, None) is not None):
        window_noise(120.0, 1, request.adversaries, request.noise_bound)
    check_cancelled()


def test_what_is_raised_is_handed_on_and_the_next_is_done() -> None:
    def fails() -> None:
        raise Refused("no")

    async def ask() -> object:
        latest = Latest()
        with pytest.raises(Refused, match="no"):
            await latest.result(fails)
        return await latest.result(lambda: 7)

    assert asyncio.run(ask()) == 7


def test_it_ends_when_nobody_asks(tmp_path: Path) -> None:
    source = written(tmp_path / "ride.gpx", ride(24, 60.0))
    recording = opened(source, tmp_path / "out.gpx", user_ledger())
    addresses: list[str] = []
    begin = time.monotonic()
    serving.serve(recording, addresses.append, idle=0.2)
    assert time.monotonic() - begin >= 0.2
    assert len(addresses) == 1
    assert addresses[0].startswith("http://127.0.0.1:")
