"""Prior files: read, written whole or not at all, and the priors that have a name."""

import os
import tempfile
from os import PathLike
from pathlib import Path

from trailveil.errors import InvalidValue, UnreadableInput, UnwritableOutput
from trailveil.formats.source import load, named
from trailveil.priors import BUILT_IN, PriorSpec, from_json, to_json


def prior_named(name_or_path: str) -> PriorSpec:
    """The built-in prior of that name, else the one in the file of that name.

    Raises InvalidValue where there is neither, UnreadableInput for a file that is no prior file.
    """
    if name_or_path in BUILT_IN:
        return BUILT_IN[name_or_path]
    if not Path(name_or_path).exists():
        raise InvalidValue(
            f"a prior must be one of {', '.join(BUILT_IN)} or a file, got neither: "
            f"{named(name_or_path)}; make a file with trailveil fit"
        )
    return read_prior(name_or_path)


def read_prior(path: str | PathLike[str]) -> PriorSpec:
    """The prior in a file. Raises UnreadableInput for anything else than a prior file."""
    where = named(path)
    try:
        text = load(path).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableInput(f"a prior file must be text in UTF-8, got another: {where}") from None
    return from_json(text, where)


def check_output(path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Raise UnwritableOutput where a file is there already and `overwrite` is not set.

    So that a long fit does not end there.
    """
    if os.path.lexists(path) and not overwrite:
        raise UnwritableOutput(_exists(path))


def write_prior(spec: PriorSpec, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a prior file: all of it, or nothing.

    Raises UnwritableOutput where a file is there already and `overwrite` is not set, and where the
    folder cannot be written to.
    """
    target = Path(path)
    text = to_json(spec)
    check_output(path, overwrite=overwrite)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as stream:
            temporary = Path(stream.name)
            stream.write(text)
        if overwrite:
            temporary.replace(target)
        else:
            os.link(temporary, target)  # fails where another has made it in the meantime
    except FileExistsError:
        raise UnwritableOutput(_exists(path)) from None
    except OSError as error:
        raise UnwritableOutput(
            f"the output must be a file that can be written, got the error '{error.strerror}': "
            f"{named(path)}; choose another place"
        ) from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _exists(path: str | PathLike[str]) -> str:
    return f"the output must not exist yet, got one that does: {named(path)}; pass --overwrite"
