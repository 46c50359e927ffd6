"""Who may ask the page's server: one browser, by one name, from its own page."""

import re
from collections.abc import Callable

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from trailveil.page.basemap import basemap
from trailveil.page.guard import Guard

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
