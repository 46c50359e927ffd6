"""One piece of work at a time; of those that wait only the latest is done; idleness ends it."""

import asyncio
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from tests.rides import PATIENCE, ride, written
from trailveil.errors import Refused
from trailveil.ledger import user_ledger
from trailveil.page import serving
from trailveil.page.opened import opened
from trailveil.page.working import Latest, Superseded


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
