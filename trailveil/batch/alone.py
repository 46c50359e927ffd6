"""Alone in a folder of outputs: a lock for as long as a run lasts, and a place to put files aside.

Both are hidden names in that folder, so that a file that is complete goes to its place in one step
of the file system, and a second run, by whoever, is noticed. Neither is there once a run has ended;
what a run leaves that was killed, the next one clears away.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from trailveil.errors import NoRoom, UnwritableOutput
from trailveil.files.source import named

_LOCK = ".trailveil-batch.lock"
_ASIDE = ".trailveil-batch-"


@contextlib.contextmanager
def alone(outdir: Path) -> Iterator[Path]:
    """Hold the folder, made where there is none; the folder for files that are put aside.

    Raises UnwritableOutput where another run holds it, or it cannot be written.
    """
    with contextlib.ExitStack() as held:
        try:
            outdir.mkdir(parents=True, exist_ok=True)
            held.enter_context(_locked(outdir / _LOCK))
            for abandoned in outdir.glob(f"{_ASIDE}*.aside"):
                shutil.rmtree(abandoned)
            aside = outdir / f"{_ASIDE}{secrets.token_hex(8)}.aside"
            aside.mkdir(mode=0o700)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise UnwritableOutput(
                f"-o must be a folder that can be written, got the error '{reason}': "
                f"{named(outdir)}; choose another"
            ) from error
        held.callback(shutil.rmtree, aside, ignore_errors=True)
        yield aside


def check_room(kinds: Iterable[str], outdir: Path) -> None:
    """End the run where one of these errors, by their names, is a disk that is full.

    All traces that are left would meet it, once they are designed. Raises NoRoom.
    """
    if NoRoom.__name__ in kinds:
        raise NoRoom(
            "the folder of outputs must have room for them, got a disk that is full: "
            f"{named(outdir)}; free some space, and give the same command again: what is done is "
            "kept"
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file that is removed at the end; whoever waited for it must look again."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(descriptor, path)
            same = path.exists() and os.path.samestat(os.fstat(descriptor), path.stat())
        except BaseException:
            os.close(descriptor)
            raise
        if same:
            break
        os.close(descriptor)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _take(descriptor: int, path: Path) -> None:
    """The lock, at once or not at all; where the system has none, runs are not told apart."""
    with contextlib.suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnwritableOutput(
                f"-o must be used by one run at a time, got one that another uses now: "
                f"{named(path.parent)}; wait for it, or choose another folder"
            ) from None
