"""What was released before: an append-only file in the user's own state folder.

See `trailveil.ledger.store`.
"""

from trailveil.files.output import state_folder
from trailveil.ledger.book import NO_ID, Book, Entry, Mark
from trailveil.ledger.chain import ID_BYTES, Recorded
from trailveil.ledger.store import Known, Ledger, open_ledger, user_ledger

__all__ = [
    "ID_BYTES",
    "NO_ID",
    "Book",
    "Entry",
    "Known",
    "Ledger",
    "Mark",
    "Recorded",
    "open_ledger",
    "state_folder",
    "user_ledger",
]
