"""What was released before, so that nobody releases a recording twice with other noise by mistake.

In the user's own state folder (mode 0700, files 0600): a random key, and a file a release with
keyed hashes of the fixes and of the request. No position, no time, no file name. The same request
again is recognised; a different one of the same recording, or of a part of it, is for
`trailveil.protecting` to refuse.
"""

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import Refused, UnwritableOutput
from trailveil.formats.source import named
from trailveil.keys import check_private, name_of
from trailveil.output import write_atomically
from trailveil.projection import microdegrees
from trailveil.randomness import SEED_BYTES, derive, fresh_seed
from trailveil.readings import Readings, Timed
from trailveil.trace import NANOSECONDS

VERSION = 1
# A recording is known by at most this many fixes, those of least hash: a part of it shares some.
_SKETCH = 65_536
# Two recordings that share this many fixes are one, or one is part of the other: that the last fix
# of one is the first of the next is not enough.
_SHARED = 2
# Two rooms are as warm now and then: of readings at the same times, this share must agree.
_ALIKE = 0.5
# Microdegrees and nanoseconds: fixes are compared at this coarseness, so that a re-export with
# fewer decimals, or whole seconds, is recognised.
_COARSE = 100
_COARSE_DECIMALS = 1
_INSTANT = NANOSECONDS
# Relative: releases of one request whose noise differs by more than this are not the same.
_SAME_NOISE = 1e-6


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: the keyed hash of its request, and its noise (trace of Gamma, m^2)."""

    request: bytes
    noise_trace: float

    def is_like(self, other: "Entry") -> bool:
        """Whether both are one release: the same request, answered with the same noise."""
        close = abs(self.noise_trace - other.noise_trace) <= _SAME_NOISE * other.noise_trace
        return self.request == other.request and close


@dataclass(frozen=True, slots=True)
class Memory:
    """The state folder of one user, and the key in it."""

    folder: Path
    key: bytes = field(repr=False)

    def request_id(self, parts: Iterable[bytes]) -> bytes:
        """The keyed hash of a whole request: trace, times, design."""
        return derive(self.key, [b"release", bytes([VERSION]), *parts])

    def seed(self, request: bytes) -> bytes:
        """The seed of the noise of a request."""
        return derive(self.key, [b"noise", request])

    def earlier(self, trace: Timed) -> list[Entry]:
        """Earlier releases of this recording, or of one that shares fixes with it."""
        own, moments = _sketch(self.key, trace), _moments(self.key, trace)
        found = []
        for path in _records(self.folder):
            entry, fixes = _parse(_read(path), self.key, path)
            shared = np.intersect1d(own, fixes).size
            together = np.intersect1d(moments, fixes).size  # of which those of other rooms differ
            alike = shared - together >= _ALIKE * together
            if shared >= min(_SHARED, own.size, fixes.size) and alike:
                found.append(entry)
        return found

    def remember(self, trace: Timed, entry: Entry) -> Path:
        """Record a release, durably, before its output appears; the same one twice is one record.

        Returns the file of the record, for `forget`.
        """
        record = {
            "version": VERSION,
            "key": name_of(self.key).hex(),
            "request": entry.request.hex(),
            "noise_trace": entry.noise_trace,
            "fixes": base64.b64encode(_sketch(self.key, trace).astype("<u8").tobytes()).decode(),
        }
        data = json.dumps(record).encode()
        folder = self.folder / "releases"
        _make(folder)
        path = folder / f"{hashlib.sha256(data).hexdigest()[:32]}.json"
        _store(path, data, overwrite=True)
        return path

    def forget(self, record: Path) -> None:
        """Drop the record of a release that never appeared."""
        with contextlib.suppress(OSError):
            record.unlink()

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the folder while it is asked and told: two runs at once do not both see nothing."""
        with _locked(self.folder):
            yield


def open_memory(folder: Path) -> Memory:
    """The memory in a folder; both it and its key are made at first use.

    Raises Refused where the key is damaged, open to others, or gone while releases are remembered;
    UnwritableOutput where the folder cannot be used.
    """
    _make(folder)
    path = folder / "key"
    with _locked(folder):
        if not _exists(path):
            if _records(folder):
                raise Refused(
                    "the key of the remembered releases must be there, got none: "
                    f"{named(path)}; restore it from a backup, or remove the folder to forget them"
                )
            _store(path, fresh_seed(), overwrite=False)
        key = _read(path)
        _check_key(path, key)
    return Memory(folder, key)


def user_memory() -> Memory:
    """The memory of the user: in $XDG_STATE_HOME, or %LOCALAPPDATA%, or ~/.local/state."""
    stated = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    if stated and Path(stated).is_absolute():
        return open_memory(Path(stated) / "trailveil")
    try:
        home = Path.home()
    except RuntimeError as error:
        raise Refused(
            "a state folder must be known to remember releases, got no home; set XDG_STATE_HOME"
        ) from error
    return open_memory(home / ".local" / "state" / "trailveil")


def _sketch(key: bytes, trace: Timed) -> NDArray[np.uint64]:
    """Keyed hashes (sorted, the least) of coarse time and coarse place of the fixes.

    Of readings, the coarse value stands for the place, and each time is there by itself as well.
    """
    if isinstance(trace, Readings):
        places = trace.steps(_COARSE_DECIMALS)[:, None]
    else:
        places = microdegrees(trace.positions) // _COARSE
    both = _hashes(key, np.column_stack([trace.times // _INSTANT, places]))
    return np.union1d(both, _moments(key, trace))[:_SKETCH]


def _moments(key: bytes, trace: Timed) -> NDArray[np.uint64]:
    """Keyed hashes of the coarse times of readings; of a trace none, whose places tell enough."""
    of_readings = isinstance(trace, Readings)
    times = trace.times // _INSTANT if of_readings else np.empty(0, dtype=np.int64)
    return _hashes(key, times[:, None])


def _hashes(key: bytes, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A keyed hash of each row, sorted, each once."""
    whole = np.ascontiguousarray(rows, dtype="<i8")
    hashes = [hashlib.blake2b(row.tobytes(), key=key, digest_size=8).digest() for row in whole]
    return np.unique(np.frombuffer(b"".join(hashes), dtype="<u8")).astype(np.uint64)


def _check_key(path: Path, key: bytes) -> None:
    if len(key) != SEED_BYTES:
        raise Refused(
            f"the key of the remembered releases must be {SEED_BYTES} bytes, got {len(key)}: "
            f"{named(path)}; restore it from a backup, without it they cannot be recognised"
        )
    check_private(path, "the key of the remembered releases")


def _records(folder: Path) -> list[Path]:
    """The files of releases; one that cannot be listed is an error, not an empty memory."""
    try:
        names = os.listdir(folder / "releases")  # noqa: PTH208  # Path.glob hides errors
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unusable(error, folder) from error
    return [folder / "releases" / name for name in sorted(names) if name.endswith(".json")]


def _parse(data: bytes, key: bytes, path: Path) -> tuple[Entry, NDArray[np.uint64]]:
    try:
        record = json.loads(data)
        if record["version"] != VERSION or record["key"] != name_of(key).hex():
            raise ValueError("of another version or key")
        fixes = np.frombuffer(base64.b64decode(record["fixes"], validate=True), dtype="<u8")
        entry = Entry(bytes.fromhex(record["request"]), float(record["noise_trace"]))
        if not entry.noise_trace >= 0:
            raise ValueError("no noise")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Refused(
            "every remembered release must be readable, got one that is damaged, or of another "
            f"version or key: {named(path)}; restore it from a backup, or remove it to forget it"
        ) from error
    return entry, fixes.astype(np.uint64)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _unusable(error, folder) from error
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    """An exclusive lock until the descriptor is closed, where the system has one."""
    try:
        import fcntl
    except ImportError:  # Windows: `remember` is atomic all the same
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        raise _unusable(error, folder) from error


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(error, folder) from error


def _exists(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError as error:
        raise _unusable(error, path.parent) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unusable(error, path.parent) from error


def _store(path: Path, data: bytes, *, overwrite: bool) -> None:
    try:
        write_atomically(path, lambda out: out.write(data), overwrite=overwrite, private=True)
    except UnwritableOutput as error:
        cause = error.__cause__
        raise _unusable(cause if isinstance(cause, OSError) else OSError(), path.parent) from error


def _unusable(error: OSError, folder: Path) -> UnwritableOutput:
    reason = error.strerror or type(error).__name__
    return UnwritableOutput(
        f"the state folder must be usable, got the error '{reason}': {named(folder)}; set "
        "XDG_STATE_HOME to a folder of your own: what was released is remembered there"
    )
