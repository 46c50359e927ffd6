"""Designs of noise, kept in a folder of the user's own.

A design is kept as it would be found again, to the last digit, by the same program with the same
libraries, so nothing but time depends on whether there is one. It is under a key of the user's:
whoever cannot read that can put none there. What cannot be kept, or read, is designed again.
"""

import contextlib
import hmac
import os
import stat
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import scipy

from trailveil.errors import TrailveilError
from trailveil.files.output import write_atomically
from trailveil.gp.randomness import SEED_BYTES, derive
from trailveil.version import DESIGN_VERSION, __version__

_SUFFIX = ".design"
# Bytes: no design is larger, as a file and once unpacked.
_LARGEST, _UNPACKED = 1 << 20, 1 << 24
# Files that are kept at most; then the older half goes.
_MOST_FILES = 512


@dataclass(frozen=True, slots=True)
class DesignCache:
    """Where designs are kept. folder: the user's own, made where there is none. key: 32 bytes."""

    folder: Path
    key: bytes = field(repr=False)

    @classmethod
    def of(cls, state: Path, key: bytes) -> "DesignCache":
        """Where designs are kept in a state folder, under a key made from that of its ledger."""
        return cls(state / "designs", derive(key, [b"design cache"]))

    def get(self, key: str) -> bytes | None:
        """What was put under a key; None where there is nothing, or nothing that is as it was."""
        whole = _contents(self._path(key))
        seal, data = whole[:SEED_BYTES], whole[SEED_BYTES:]
        if not hmac.compare_digest(seal, self._seal(key, data)):
            return None
        with contextlib.suppress(zlib.error):
            return zlib.decompressobj().decompress(data, _UNPACKED)
        return None

    def put(self, key: str, data: bytes) -> None:
        """Keep a design, if that is possible."""
        packed = zlib.compress(data, 9)
        with contextlib.suppress(TrailveilError, OSError):
            # Not with its parents: on a cluster there is no state folder.
            self.folder.mkdir(mode=0o700, exist_ok=True)
            if not stat.S_ISDIR(self.folder.lstat().st_mode):
                return
            self.folder.chmod(0o700)
            self._make_room()
            whole = self._seal(key, packed) + packed
            path = self._path(key)
            write_atomically(path, lambda out: out.write(whole), overwrite=True, private=True)

    def _path(self, key: str) -> Path:
        """The file of a design; its name tells nothing without the key."""
        return self.folder / f"{derive(self.key, [b'design', *_asked(key)]).hex()}{_SUFFIX}"

    def _seal(self, key: str, data: bytes) -> bytes:
        """Of a design for this request: for no other one is it any good."""
        return derive(self.key, [b"seal of a design", *_asked(key), data])

    def _make_room(self) -> None:
        """Remove the older half of what is kept, where it is much."""
        paths = list(self.folder.glob(f"*{_SUFFIX}"))
        if len(paths) >= _MOST_FILES:
            for oldest in sorted(paths, key=lambda path: path.lstat().st_mtime)[: len(paths) // 2]:
                oldest.unlink(missing_ok=True)


def _asked(key: str) -> tuple[bytes, ...]:
    """What a design depends on: what was asked for, and what computed it."""
    program = f"{__version__} {DESIGN_VERSION} {numpy.__version__} {scipy.__version__}"
    return program.encode(), key.encode()


def _contents(path: Path) -> bytes:
    """The bytes of a file of sensible size; none of a link, a pipe or a device, or of no file."""
    try:
        descriptor = os.open(
            path,
            os.O_RDONLY
            | getattr(os, "O_NOFOLLOW", 0)
            | getattr(os, "O_NONBLOCK", 0)
            | getattr(os, "O_BINARY", 0),
        )
    except OSError:
        return b""
    try:
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
                return b""
            return stream.read(_LARGEST)
    except OSError:  # a folder among them
        return b""
