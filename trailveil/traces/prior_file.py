"""A prior by its name, or from its file."""

from os import PathLike
from pathlib import Path

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import SMALL, load, named
from trailveil.privacy.priors import BUILT_IN, PriorSpec, from_json


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


def prior_in(unit: str, name_or_path: str) -> PriorSpec:
    """The prior of that name, in a unit. Raises as `prior_named`, InvalidValue for another unit."""
    spec = prior_named(name_or_path)
    if spec.unit != unit:
        raise InvalidValue(
            f"--prior must be in {unit}, as the values are, got one in {spec.unit}: "
            f"{named(name_or_path)}"
        )
    return spec


def read_prior(path: str | PathLike[str]) -> PriorSpec:
    """The prior in a file. Raises UnreadableInput for anything else than a prior file."""
    where = named(path)
    try:
        text = load(path, SMALL).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableInput(f"a prior file must be text in UTF-8, got another: {where}") from None
    return from_json(text, where)
