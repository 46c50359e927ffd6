"""Designs of kinds, kept: in this process, and in a folder of the user's own.

A kept design is one that would be found again, to the last digit, by the same program on the same
machine, so nothing but time depends on whether there is one. It is under a key of the user's:
whoever cannot read that can put none there. A process that reads one judges an adversary again.
"""

import contextlib
import hmac
import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import scipy

from trailveil.errors import InvalidValue, NumericalError, Refused, TrailveilError
from trailveil.kind_designs import OfKind, designed_for, is_as_designed, restored, stored
from trailveil.kinds import Kind
from trailveil.output import write_atomically
from trailveil.randomness import SEED_BYTES, derive
from trailveil.version import DESIGN_VERSION, __version__

# Designs in memory, of 0.1 to 1 MB each.
_MOST = 128
# Bytes: no design is larger.
_LARGEST = 1 << 26
# Files that are kept at most; then the older half goes.
_MOST_FILES = 4096
_known: OrderedDict[str, OfKind | None] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Kept:
    """Where designs are kept. folder: the user's own, made where there is none. key: 32 bytes."""

    folder: Path
    key: bytes = field(repr=False)

    def path(self, kind: Kind) -> Path:
        """The file of a kind; its name tells nothing without the key."""
        libraries = f"{__version__} {numpy.__version__} {scipy.__version__}".encode()
        parts = [b"kind", bytes([DESIGN_VERSION]), libraries, kind.name.encode()]
        return self.folder / f"{derive(self.key, parts).hex()}.design"


def design_of(kind: Kind, kept: Kept | None = None) -> OfKind | None:
    """The noise for a kind, as it was kept, or designed now and kept; None where there is none.

    kept: where to look beyond this process. What cannot be written there is not kept.
    """
    if kind.name in _known:
        _known.move_to_end(kind.name)
        return _known[kind.name]
    found = _designed(kind) if kept is None else _looked_up(kind, kept)
    _known[kind.name] = found
    while len(_known) > _MOST:
        _known.popitem(last=False)
    return found


def forget() -> None:
    """Forget what this process knows: as a new one would begin."""
    _known.clear()


def _designed(kind: Kind) -> OfKind | None:
    try:
        return designed_for(kind)
    except (Refused, NumericalError):  # BeyondPrior among them: the recording may have some
        return None


def _looked_up(kind: Kind, kept: Kept) -> OfKind | None:
    path = kept.path(kind)
    found = _read(kind, kept, path)
    if found is not None:
        return found
    with _alone(kept.folder, path):
        found = _read(kind, kept, path)  # another process may have been faster
        if found is None and (found := _designed(kind)) is not None:
            data = stored(found)
            whole = _seal(kind, kept, data) + data
            with contextlib.suppress(TrailveilError, OSError):
                _make_room(kept.folder)
                write_atomically(path, lambda out: out.write(whole), overwrite=True, private=True)
    return found


def _read(kind: Kind, kept: Kept, path: Path) -> OfKind | None:
    """What was kept of a kind; None where nothing was, or nothing that is as it was."""
    try:
        fits = path.is_file() and path.stat().st_size <= _LARGEST
        whole = path.read_bytes() if fits else b""
    except OSError:
        return None
    seal, data = whole[:SEED_BYTES], whole[SEED_BYTES:]
    if not hmac.compare_digest(seal, _seal(kind, kept, data)):
        return None
    try:
        found = restored(data)
        return found if is_as_designed(kind, found) else None
    except (InvalidValue, NumericalError):
        return None


def _seal(kind: Kind, kept: Kept, data: bytes) -> bytes:
    """Of a design for this kind: for no other one is it any good."""
    return derive(kept.key, [b"design of a kind", kind.name.encode(), data])


def _make_room(folder: Path) -> None:
    """Remove the older half of what is kept, where it is much."""
    found = list(folder.glob("*.design"))
    if len(found) >= _MOST_FILES:
        for one in sorted(found, key=lambda path: path.stat().st_mtime)[: len(found) // 2]:
            one.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(folder: Path, path: Path) -> Iterator[None]:
    """Nobody else designs this kind meanwhile, where the system has such a lock."""
    descriptor = None
    try:
        with contextlib.suppress(OSError, ImportError):
            import fcntl

            folder.mkdir(mode=0o700, exist_ok=True)  # not where no state folder is: on a cluster
            descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                path.with_suffix(".lock").unlink()
            os.close(descriptor)
