"""What was released before, so that nobody releases a recording twice with other noise by mistake.

In the user's own state folder (mode 0700, files 0600): a random key, and a file a release with
keyed hashes of the fixes and of the request. No position, no time, no file name. The same request
again is recognised; a different one of the same recording, or of a part of it, is refused by
`trailveil.release` unless asked for.
"""

import base64
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Refused, UnwritableOutput
from trailveil.output import write_atomically
from trailveil.randomness import SEED_BYTES, derive, fresh_seed
from trailveil.trace import Trace

VERSION = 1
# A recording is known by at most this many fixes, those of least hash: a part of it shares some of
# them.
_SKETCH = 4096
# Two recordings that share this many fixes are one, or one is part of the other.
_SHARED = 2
# Degrees: fixes are compared at this coarseness, so that a re-export with fewer decimals is
# recognised.
_COARSE = 1e-4


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: the keyed hash of its request, and its noise (trace of Gamma, m^2)."""

    request: bytes
    noise_trace: float


@dataclass(frozen=True, slots=True)
class Memory:
    """The state folder of one user."""

    folder: Path

    def key(self) -> bytes:
        """The user's own key, made at first use. Refused where it is damaged or open to others."""
        path = self.folder / "key"
        with self._locked():
            if not path.exists():
                _store(path, fresh_seed(), overwrite=False)
            key = _read(path)
        if len(key) != SEED_BYTES:
            raise Refused(
                f"the key in the state folder must be {SEED_BYTES} bytes, got {len(key)}; restore "
                "it "
                "from a backup: without it earlier releases cannot be recognised"
            )
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise Refused("the key in the state folder must be readable by you alone; chmod 600 it")
        return key

    def earlier(self, trace: Trace) -> list["Entry"]:
        """Earlier releases of this recording, or of one that shares fixes with it."""
        own = _sketch(self.key(), trace)
        found = []
        for path in sorted(self._releases().glob("*.json")):
            entry, fixes = _parse(_read(path))
            least = min(_SHARED, own.size, fixes.size)
            if np.intersect1d(own, fixes).size >= least:
                found.append(entry)
        return found

    def remember(self, trace: Trace, entry: "Entry") -> None:
        """Record a release, durably, before its output appears."""
        fixes = base64.b64encode(_sketch(self.key(), trace).astype("<u8").tobytes()).decode()
        record = {
            "version": VERSION,
            "request": entry.request.hex(),
            "noise_trace": entry.noise_trace,
            "fixes": fixes,
        }
        path = self._releases() / f"{entry.request.hex()}.json"
        _store(path, json.dumps(record).encode(), overwrite=True)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the folder while it is asked and told: two runs at once do not both see nothing."""
        with self._locked("release.lock"):
            yield

    def _releases(self) -> Path:
        folder = self.folder / "releases"
        _make(folder)
        return folder

    @contextlib.contextmanager
    def _locked(self, name: str = "key.lock") -> Iterator[None]:
        _make(self.folder)
        try:
            descriptor = os.open(self.folder / name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unusable(error) from error
        try:
            _lock(descriptor)
            yield
        finally:
            os.close(descriptor)


def user_memory() -> Memory:
    """The memory of the user: in $XDG_STATE_HOME, or %LOCALAPPDATA%, or ~/.local/state."""
    stated = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    if stated and Path(stated).is_absolute():
        return Memory(Path(stated) / "trailveil")
    try:
        return Memory(Path.home() / ".local" / "state" / "trailveil")
    except RuntimeError as error:
        raise Refused(
            "a state folder must be known to remember releases, got no home; set XDG_STATE_HOME"
        ) from error


def request_id(key: bytes, trace: Trace, lattice: NDArray[np.int64], design: str) -> bytes:
    """The keyed hash of a whole request: trace, times, design and format version."""
    return derive(
        key,
        [b"release", bytes([VERSION]), trace.times.tobytes(), lattice.tobytes(), design.encode()],
    )


def _sketch(key: bytes, trace: Trace) -> NDArray[np.uint64]:
    """Keyed hashes (at most 4,096, sorted) of time and coarse place of the fixes."""
    coarse = np.floor(trace.positions / _COARSE).astype(np.int64)
    rows = np.column_stack([trace.times, coarse]).astype("<i8")
    hashes = [hashlib.blake2b(row.tobytes(), key=key, digest_size=8).digest() for row in rows]
    return np.unique(np.frombuffer(b"".join(hashes), dtype="<u8"))[:_SKETCH].astype(np.uint64)


def _parse(data: bytes) -> tuple[Entry, NDArray[np.uint64]]:
    try:
        entry = json.loads(data)
        if entry["version"] != VERSION:
            raise ValueError("version")
        fixes = np.frombuffer(base64.b64decode(entry["fixes"], validate=True), dtype="<u8")
        found = Entry(bytes.fromhex(entry["request"]), float(entry["noise_trace"]))
        return found, fixes.astype(np.uint64)
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(
            "every record in the state folder must be readable, got a damaged one or one of "
            "another "
            "version; restore the folder `releases` there from a backup, or remove what is damaged"
        ) from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(error) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unusable(error) from error


def _store(path: Path, data: bytes, *, overwrite: bool) -> None:
    def write(stream: BinaryIO) -> None:
        stream.write(data)

    try:
        write_atomically(path, write, overwrite=overwrite, private=True)
    except UnwritableOutput as error:
        cause = error.__cause__
        raise _unusable(cause if isinstance(cause, OSError) else OSError()) from error


def _unusable(error: OSError) -> UnwritableOutput:
    reason = error.strerror or type(error).__name__
    return UnwritableOutput(
        f"the state folder must be usable, got {reason!r}; set XDG_STATE_HOME to a folder of your "
        "own: "
        "what was released is remembered there"
    )


def _lock(descriptor: int) -> None:
    """An exclusive lock until the descriptor is closed, where the system has one."""
    try:
        import fcntl
    except ImportError:  # Windows: `remember` is atomic all the same
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
