"""The guards around every test work."""

import socket
from pathlib import Path

import pytest

from tests.conftest import Sweep


def test_other_machines_are_out_of_reach() -> None:
    with socket.socket() as client, pytest.raises(AssertionError, match="network"):
        client.connect(("192.0.2.1", 80))  # an address that documentation may use, and nobody has
    with pytest.raises(AssertionError, match="network"):
        socket.create_connection(("example.org", 80))


def test_this_machine_is_in_reach() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def test_home_is_not_the_real_one(tmp_path: Path) -> None:
    assert Path.home().is_relative_to(tmp_path)


def test_a_shortened_sweep_keeps_both_ends(sweep: Sweep, full: bool) -> None:
    assert list(sweep(range(3))) == [0, 1, 2]
    assert list(sweep(range(101))) == (list(range(101)) if full else [0, 25, 50, 75, 100])
