"""What was released before: an append-only file in the user's own state folder.

See `trailveil.ledger.store`.
"""

from trailveil.files.output import state_folder
from trailveil.ledger.book import NO_ID, Book, Entry, Mark
from trailveil.ledger.chain import ID_BYTES, LedgerRow
from trailveil.ledger.store import Ledger, Session, open_ledger, user_ledger

__all__ = [
    "ID_BYTES",
    "NO_ID",
    "Book",
    "Entry",
    "Ledger",
    "LedgerRow",
    "Mark",
    "Session",
    "open_ledger",
    "state_folder",
    "user_ledger",
]
