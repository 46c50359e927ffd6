"""Files that appear whole or not at all, and never in place of something else unless asked."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from trailveil.errors import NoRoom, Refused, UnwritableOutput
from trailveil.files.source import named

SEAL = "ledger.seal"
"""The name of a file that is in every folder of a ledger."""

KEY_HEAD = b"trailveil key "
"""How key files begin."""

Put = Callable[[], None]
"""Puts a file that is complete in its place."""


def check_output(path: Path, *others: Path, overwrite: bool, what: str = "output") -> None:
    """Refuse a target that exists, has no folder, is no file, or is one of the other files.

    what: what to call it. Raises UnwritableOutput, which says what to do. Never is it in a state
    folder or in place of a key, asked or not: what was released could not be counted any more.
    """
    with _refusing(path, what):
        check_not_state(path, what)
        for other in others:
            if is_same_file(path, other):
                raise UnwritableOutput(
                    f"the {what} must be a file of its own, got one that is named already: "
                    f"{named(path)}; choose another name"
                )
        if path.is_dir():
            raise UnwritableOutput(
                f"the {what} must be a file, got a folder: {named(path)}; add a name"
            )
        if not path.parent.is_dir():
            raise UnwritableOutput(
                f"the {what} must be in a folder that exists, got none: {named(path)}; make it "
                "first"
            )
        _check_free(path, what, overwrite=overwrite)


def state_folder() -> Path:
    """Where the user's state is: in $XDG_STATE_HOME, or %LOCALAPPDATA%, or ~/.local/state.

    Raises Refused where there is no home.
    """
    stated = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    if stated and Path(stated).is_absolute():
        return Path(stated) / "trailveil"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise Refused(
            "a state folder must be known to count releases, got no home; set XDG_STATE_HOME"
        ) from error
    return home / ".local" / "state" / "trailveil"


def check_not_state(path: Path, what: str = "output") -> None:
    """Refuse to write where any ledger is kept. Raises UnwritableOutput."""
    real = Path(os.path.realpath(path))
    above = [real, *real.parents]
    inside = False
    with contextlib.suppress(Refused):  # no home, so no state of one's own
        inside = Path(os.path.realpath(state_folder())) in above
    if inside or any(os.path.lexists(folder / SEAL) for folder in above):
        raise UnwritableOutput(
            f"the {what} must not be in the folder of a ledger, got one that is: {named(path)}; "
            "choose another folder"
        )


def _is_key(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(KEY_HEAD)) == KEY_HEAD


def make_private(folder: Path) -> None:
    """Make a folder and those above it that are missing, each for the user alone (mode 0700).

    Raises OSError where the file system says no.
    """
    missing = [above for above in (folder, *folder.parents) if not above.exists()]
    for missed in reversed(missing):
        missed.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def is_same_file(path: Path, other: Path) -> bool:
    """Whether two names are of one file, by whatever links, or would be once both exist.

    Names that differ in case alone count as one: on some file systems they are.
    """
    with contextlib.suppress(OSError):
        return path.samefile(other)
    here, elsewhere = (os.path.realpath(name.parent) for name in (path, other))
    return here == elsewhere and path.name.casefold() == other.name.casefold()


@contextlib.contextmanager
def staged(
    path: Path,
    write: Callable[[BinaryIO], object],
    *,
    overwrite: bool,
    private: bool = False,
    what: str = "output",
) -> Iterator[Put]:
    """Write a file beside its place, where only the user can read it, and hand out the last step.

    private: keep it readable by the user alone. If the last step is not taken, an interrupt
    included, nothing is left behind. Raises UnwritableOutput where the file system says no, or the
    file appeared in the meantime.
    """
    rough = path.with_name(f".trailveil-{secrets.token_hex(8)}.part")
    try:
        with _refusing(path, what):
            _fill(rough, write)
            if not private:
                with contextlib.suppress(OSError):  # a file system without permissions
                    rough.chmod(0o666 & ~_umask())
        yield lambda: put(rough, path, overwrite=overwrite, what=what)
    finally:
        try:
            _remove(rough)
        except BaseException:  # interrupted in the act
            _remove(rough)
            raise


def write_atomically(
    path: Path,
    write: Callable[[BinaryIO], object],
    *,
    overwrite: bool,
    private: bool = False,
    what: str = "output",
) -> None:
    """Write a file through a temporary one beside it: see `staged`."""
    with staged(path, write, overwrite=overwrite, private=private, what=what) as put:
        put()


def filled(rough: Path, data: memoryview) -> None:
    """Write a file whole, to be `made_durable` and `put` in its place; it may not exist yet.

    Raises UnwritableOutput where the file system says no; what was begun is then removed.
    """
    try:
        with _refusing(rough, "output"):
            _fill(rough, lambda out: out.write(data), durable=False)
            with contextlib.suppress(OSError):  # a file system without permissions
                rough.chmod(0o666 & ~_umask())
    except BaseException:
        _remove(rough)
        raise


def made_durable(rough: Path) -> None:
    """Wait until a file that was `filled` is on the disk.

    Raises UnwritableOutput where the file system says no; the file is then removed.
    """
    try:
        with _refusing(rough, "output"):
            descriptor = os.open(rough, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except BaseException:
        _remove(rough)
        raise


def _fill(rough: Path, write: Callable[[BinaryIO], object], *, durable: bool = True) -> None:
    descriptor = os.open(rough, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        write(stream)
        stream.flush()
        if durable:
            os.fsync(stream.fileno())


def _remove(rough: Path) -> None:
    with contextlib.suppress(OSError):
        rough.unlink(missing_ok=True)


def put(rough: Path, path: Path, *, overwrite: bool, what: str = "output") -> None:
    """Put a file that is complete in its place, of the same file system.

    Raises UnwritableOutput where the name is taken, or the file system says no.
    """
    with _refusing(path, what):
        _check_free(path, what, overwrite=overwrite)
        if overwrite:
            rough.replace(path)
        else:
            _link(rough, path, what)
        _sync_folder(path.parent)


def _link(rough: Path, path: Path, what: str) -> None:
    """Give a file its name, unless that is taken."""
    try:
        path.hardlink_to(rough)  # atomic, and fails where the name is taken
    except FileExistsError:
        raise _taken(path, what) from None
    except OSError:  # a file system without links, such as that of a memory card
        _check_free(path, what, overwrite=False)
        rough.replace(path)


def _check_free(path: Path, what: str, *, overwrite: bool) -> None:
    """Nothing is there; or, to overwrite it, a file: never a device, a pipe, a socket, a key."""
    exists = path.exists()
    if exists and not stat.S_ISREG(path.stat().st_mode):
        raise UnwritableOutput(
            f"the {what} must be a file, got a device, pipe or socket: {named(path)}; choose "
            "another name"
        )
    if (exists or path.is_symlink()) and not overwrite:
        raise _taken(path, what)
    if exists and _is_key(path):
        raise UnwritableOutput(
            f"the {what} must not replace a key, got one: {named(path)}; choose another name"
        )


def _taken(path: Path, what: str) -> UnwritableOutput:
    return UnwritableOutput(
        f"the {what} must not exist yet, got one that does: {named(path)}; choose another name, or "
        "add --overwrite"
    )


@contextlib.contextmanager
def _refusing(path: Path, what: str) -> Iterator[None]:
    """Turn what the file system says into one clear line."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        kind = NoRoom if error.errno in {errno.ENOSPC, errno.EDQUOT} else UnwritableOutput
        raise kind(
            f"the {what} must be writable, got the error '{reason}': {named(path)}; choose another "
            "place"
        ) from error


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where folders can be synchronised."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
