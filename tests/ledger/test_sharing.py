"""What many releases share is stored once; what a process knows of a ledger is not read again."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.ledger.test_store import DAMAGE, rows
from tests.ledger.test_store import entry as entry_alone
from trailveil.errors import InvalidValue, Refused
from trailveil.ledger import Entry, Ledger, Session, open_ledger

COLUMNS = b"columns of noise" * 100


def entry(number: int, subject: str = "me") -> Entry:
    """Those of odd numbers share an array."""
    shared = {hashlib.sha256(COLUMNS).digest(): COLUMNS} if number % 2 else {}
    return replace(entry_alone(number, subject=subject), shared=shared)


@pytest.fixture
def used(tmp_path: Path) -> Ledger:
    ledger = open_ledger(tmp_path / "state")
    with ledger.open() as book:
        for number in range(4):
            book.add(entry(number))
    return ledger


def test_what_releases_share_is_stored_once_and_comes_after_each(used: Ledger) -> None:
    with used.open() as book:
        assert [book.blob(number) for number in (2, 4)] == [b"times and mechanism" + COLUMNS] * 2
        assert book.connection.execute("SELECT COUNT(*) FROM shared").fetchone() == (1,)
    with used.open() as book:
        book.withdraw(2)
        assert book.blob(4).endswith(COLUMNS)
    assert used.verify() == 3


def test_what_is_shared_must_have_its_own_name(used: Ledger) -> None:
    with used.open() as book, pytest.raises(InvalidValue, match="named by its SHA-256"):
        book.add(replace(entry(5), shared={bytes(32): COLUMNS}))


SHARING = {
    "an array edited": "UPDATE shared SET data = zeroblob(1600)",
    "an array removed": "DELETE FROM shared",
    "an array named anew": "UPDATE shared SET name = zeroblob(32)",
    "a use removed": "DELETE FROM uses WHERE number = 4",
    "a use edited": "UPDATE uses SET name = zeroblob(32) WHERE number = 4",
    "a use of a row added": "INSERT INTO uses SELECT 4, name FROM shared",
    "the uses dropped": "DROP TABLE uses",
    "the arrays dropped": "DROP TABLE shared",
}


@pytest.mark.parametrize("damage", SHARING)
def test_damage_to_what_releases_share_is_noticed(used: Ledger, damage: str) -> None:
    rows(used, SHARING[damage])
    with pytest.raises(Refused, match="as Trailveil left it"), used.open() as book:
        book.blob(4)
    with pytest.raises(Refused, match="as Trailveil left it"):
        used.verify()


@pytest.mark.parametrize(
    "strays",
    [
        "INSERT INTO uses VALUES (77, zeroblob(32))",
        "INSERT INTO shared VALUES (zeroblob(32), x'00')",
    ],
)
def test_arrays_of_nothing_are_found_by_verify(used: Ledger, strays: str) -> None:
    rows(used, strays)
    with pytest.raises(Refused, match="belong to no release"):
        used.verify()


def test_a_ledger_of_version_1_goes_on(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "state")
    with ledger.open() as book:
        book.add(entry(0))
    for asked in ("uses", "shared", "claims"):
        rows(ledger, f"DROP TABLE {asked}")
    rows(ledger, "UPDATE meta SET version = 1")
    with open_ledger(ledger.folder).open() as book:
        assert book.blob(1) == b"times and mechanism"
        book.add(entry(1))
    with ledger.open() as book:
        assert book.blob(2) == b"times and mechanism" + COLUMNS
    assert ledger.verify() == 2


def test_what_a_process_knows_of_a_ledger_is_as_good_as_reading_it(used: Ledger) -> None:
    known = Session()
    for number in range(4, 8):
        with used.open(known) as book:
            book.add(entry(number))
        other = entry(number, subject="you")  # of another process, between ours
        with used.open() as book:
            book.add(other)
        with used.open(known) as ours:
            assert len(ours.standing("you")) == number - 3
    with used.open(known) as ours:
        chain = ours.chain
    with used.open(known) as ours:
        assert ours.chain is chain  # not read again
        mine = (ours.rows, ours.chain.digest, ours.standing("me"), ours.chain.latest("me"))
        near = ours.overlapping("me", "", 300, 620)
    with used.open() as book:
        assert mine == (book.rows, book.chain.digest, book.standing("me"), book.chain.latest("me"))
        assert near == book.overlapping("me", "", 300, 620)
        assert len(near) == 4


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed_by_a_process_that_knows_the_ledger(used: Ledger, damage: str) -> None:
    known = Session()
    for _ in range(2):
        with used.open(known):
            pass
    DAMAGE[damage](used)
    with pytest.raises(Refused, match="ledger"), used.open(known):
        pass


def test_what_was_added_in_vain_is_not_known(used: Ledger) -> None:
    known = Session()
    with used.open(known):
        pass

    def fail() -> None:
        with used.open(known) as book:
            book.add(entry(9))
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()
    with used.open(known) as book:
        assert len(book.rows) == 4
