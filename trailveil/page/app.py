"""The page's application: what it serves, to whom `trailveil.page.serving` lets through."""

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trailveil.designer.cancelling import Cancelled, cancelled_unless
from trailveil.errors import InvalidValue, TrailveilError, Unavailable
from trailveil.files.source import once
from trailveil.page.opened import asked_in, drawn
from trailveil.page.planner import Planner, on_the_page

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


IDLE = 3600.0
"""Seconds without any request after which the server ends."""

LARGEST_BODY = 65_536
"""Bytes of a request, at most."""

SERVED = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "drawing.js": "text/javascript; charset=utf-8",
    "leaflet.css": "text/css; charset=utf-8",
    "leaflet.js": "text/javascript; charset=utf-8",
}
"""The files that are served, by name, with their types: nothing else is."""

LARGEST_FILE = 200_000_000
"""Bytes of a recording that the browser sends, at most."""

_LONGEST_NAME = 200

Choose = Callable[[str, bytes], Planner]
Answer = Callable[[Request], Awaitable[Response]]


def application(
    first: Planner | None,
    end: Callable[[], None],
    *,
    choose: Choose | None = None,
    basemap: Basemap | None = None,
    idle: float = IDLE,
) -> Starlette:
    """What is served of one recording. end: called when it is to end.

    first: of the recording; for None the browser sends one, and choose(name, content) opens it.
    """
    page, busy = _Page(first, choose, basemap), _Busy()

    async def done(_: Request) -> Response:
        end()
        return JSONResponse({"ended": True})

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watch = asyncio.create_task(busy.until_idle(idle, end))
        yield
        watch.cancel()

    routes = [Route("/", _file("index.html"))]
    routes += [Route(f"/static/{name}", _file(name)) for name in SERVED]
    routes += [
        Route("/api/recording", busy.counted(page.recording)),
        Route("/api/released", busy.counted(page.released)),
        Route("/api/choose", busy.counted(page.chosen), methods=["POST"]),
        Route("/api/plan", busy.counted(page.plan), methods=["POST"]),
        Route("/api/save", busy.counted(page.save), methods=["POST"]),
        Route("/api/done", busy.counted(done), methods=["POST"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=_HANDLERS)


class _Page:
    """What is answered of one recording, and how it is chosen where there is none yet."""

    def __init__(
        self, planner: Planner | None, choose: Choose | None, basemap: Basemap | None
    ) -> None:
        self._planner, self._choose, self._basemap = planner, choose, basemap
        self._latest = Latest()

    async def chosen(self, request: Request) -> Response:
        """Open the file that the browser sends."""
        name = request.query_params.get("name", "")
        named = 0 < len(name) <= _LONGEST_NAME and not set(name) & set("/\\\0")
        if self._choose is None or not named:
            raise InvalidValue("a file must be chosen by its name, got none: reload the page")
        content = await _content(request, LARGEST_FILE)
        self._planner = await run_in_threadpool(self._choose, name, content)
        return JSONResponse({"chosen": True})

    async def recording(self, _: Request) -> Response:
        """The track and what may be chosen of it."""
        if self._planner is None:
            return JSONResponse({"choose": True})
        recording, tiles = await run_in_threadpool(drawn, self._planner.source), None
        if (basemap := self._basemap) is not None:
            tiles = {"template": basemap.template, "told": basemap.notice, "host": basemap.host}
        return JSONResponse({**recording, "basemap": tiles})

    async def plan(self, request: Request) -> Response:
        """What a release would promise and cost: at once, if the page wants that, or for good."""
        body, planner = await _body(request), self._opened()
        asked, at_once = asked_in(body), body.get("at_once") is True
        try:
            look = self._latest.result(
                lambda: planner.planned(asked, at_once=at_once), at_once=at_once
            )
            return JSONResponse(await look)
        except Superseded:
            return JSONResponse({"superseded": True})
        except Unavailable:
            if not at_once:
                raise
            return JSONResponse({"plan": None})

    async def save(self, request: Request) -> Response:
        """Count a release and write it."""
        body = await _body(request)
        name, *flags = (body.get(field) for field in ("plan", "again", "overwrite"))
        flags.append(body.get("replace", False))
        if not isinstance(name, str) or not all(isinstance(flag, bool) for flag in flags):
            raise InvalidValue("what is saved must be a plan, got another: reload the page")
        again, overwrite, instead = (bool(flag) for flag in flags)
        save = self._opened().save
        return JSONResponse(
            await run_in_threadpool(save, name, again=again, instead=instead, overwrite=overwrite)
        )

    async def released(self, _: Request) -> Response:
        """The file that was saved."""
        planner = self._opened()
        content = await run_in_threadpool(planner.released)
        name = quote(planner.source.output.name)
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{name}"}
        return Response(content, media_type="application/octet-stream", headers=headers)

    def _opened(self) -> Planner:
        if self._planner is None:
            raise InvalidValue("a recording must be chosen first, got none: reload the page")
        return self._planner


class _Busy:
    """When the last request was, and whether one is being served."""

    def __init__(self) -> None:
        self._now, self._last = 0, time.monotonic()

    def counted(self, answer: Answer) -> Answer:
        """The same answer, while which nothing counts as idle."""

        async def counting(request: Request) -> Response:
            self._now += 1
            try:
                return await answer(request)
            finally:
                self._now, self._last = self._now - 1, time.monotonic()

        return counting

    async def until_idle(self, idle: float, end: Callable[[], None]) -> None:
        """End when there was no request for so many seconds."""
        while self._now or time.monotonic() - self._last < idle:
            await asyncio.sleep(min(idle / 4, 5.0))
        end()


def _file(name: str) -> Answer:
    content, kind = (files("trailveil.page") / "static" / name).read_bytes(), SERVED[name]

    async def serve(_: Request) -> Response:
        return Response(content, media_type=kind)

    return serve


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request. Raises InvalidValue for anything else, or for too much."""
    wrong = InvalidValue("a request must be a small JSON object, got another: reload the page")
    if request.headers.get("content-type") != "application/json":
        raise wrong
    try:
        body = json.loads(await _content(request, LARGEST_BODY), object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise wrong from None
    if not isinstance(body, dict):
        raise wrong
    return body


async def _content(request: Request, largest: int) -> bytes:
    """The content of a request. Raises InvalidValue where it is longer."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > largest:
            raise InvalidValue(f"a request must have at most {largest:,} bytes, got more")
    return bytes(body)


def _refusal(line: str = "") -> Callable[[Request, Exception], Awaitable[Response]]:
    """What is refused is an answer, and no failure of the server; without a line, as it says."""

    async def answer(_: Request, error: Exception) -> Response:
        return JSONResponse({"refused": line or on_the_page(" ".join(f"{error}".split()))})

    return answer


_HANDLERS: Final = {
    TrailveilError: _refusal(),
    MemoryError: _refusal(
        "the computation must fit in memory, got more than this machine has: shorten it"
    ),
    ArithmeticError: _refusal(
        "the numbers must be such that can be reckoned with, got others: state more usual ones"
    ),
}


class Superseded(Exception):
    """Something newer was asked for before the work was done."""


class Latest:
    """Does the latest work that was asked for, in a thread that does not keep the program alive."""

    def __init__(self) -> None:
        self._newest = 0
        self._free, self._at_once = asyncio.Lock(), asyncio.Lock()

    async def result(self, work: Callable[[], Any], *, at_once: bool = False) -> Any:
        """What work returns or raises. Raises Superseded where newer work was asked for.

        That ends a design that is under way, too. at_once: waits for no other work than such.
        """
        self._newest += 1
        number = self._newest
        async with self._at_once if at_once else self._free:
            if number != self._newest:
                raise Superseded

            def while_newest() -> Any:
                with cancelled_unless(lambda: number == self._newest):
                    return work()

            try:
                return await _in_a_thread(while_newest)
            except Cancelled:
                raise Superseded from None


async def _in_a_thread(work: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(settle: Callable[[Any], None], what: Any) -> None:
        if not done.done():
            settle(what)

    def run() -> None:
        settle: Callable[[Any], None] = done.set_result
        try:
            what = work()
        except BaseException as error:  # noqa: BLE001 - handed on to who waits for it
            settle, what = done.set_exception, error
        with contextlib.suppress(RuntimeError):  # the server has ended
            loop.call_soon_threadsafe(tell, settle, what)

    threading.Thread(target=run, daemon=True, name="design").start()
    return await done
