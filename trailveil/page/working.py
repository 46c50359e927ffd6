"""Long work beside a server: one thing at a time, and of what waits only the latest."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any


class Superseded(Exception):
    """Something newer was asked for before the work began."""


class Latest:
    """Does the latest work that was asked for, in a thread that does not keep the program alive."""

    def __init__(self) -> None:
        self._newest = 0
        self._free = asyncio.Lock()

    async def result(self, work: Callable[[], Any]) -> Any:
        """What work returns or raises. Raises Superseded where newer work was asked for."""
        self._newest += 1
        number = self._newest
        async with self._free:
            if number != self._newest:
                raise Superseded
            return await _in_a_thread(work)


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
