"""`protect --version NAME ...`: what is said of each version of a recording on the command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trailveil.cli.options import STATED, WithPlaces, requesting
from trailveil.errors import InvalidValue
from trailveil.release.versions import check_names
from trailveil.traces.formats.table import default_output

_OF_EACH = ("radius", "epsilon", "order", "leave", "mechanism")


class WithVersions(WithPlaces):
    """A command whose options after `--version NAME` are of that version alone, if they can be."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what all versions share; the others are parsed as options of their own."""
        shared, groups = _split(args)
        ctx.meta[STATED] = [(name, _parsed(words)) for name, words in groups]
        return super().parse_args(ctx, shared)


@click.command()
@requesting
@click.option("-o", "--output", type=click.Path(path_type=Path))
def _version(**_: Any) -> None:
    """Take the options that a version may have."""


def _split(args: list[str]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The arguments that all share, names of versions among them, and those of each version."""
    names = {"-o", "--output", *(f"--{name}" for name in _OF_EACH)}
    shared: list[str] = []
    groups: list[tuple[str, list[str]]] = []
    words = iter(args)
    for word in words:
        head, equals, value = word.partition("=")
        if word == "--":
            return [*shared, word, *words], groups
        if head == "--version":
            name = value if equals else next(words, None)
            shared += [head] if name is None else [head, name]
            groups.append((name or "", []))
        elif groups and head in names:
            groups[-1][1].extend([word] if equals else [word, next(words, "")])
        else:
            shared.append(word)
    return shared, groups


def _parsed(words: list[str]) -> dict[str, Any]:
    """The options that are stated of a version."""
    context = _version.make_context("protect", list(words))
    return {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }


@dataclass(frozen=True, slots=True)
class StatedVersion:
    """A version by its name, the options that hold for it, and where it goes."""

    name: str
    options: dict[str, Any]
    output: Path


def stated_versions(options: dict[str, Any]) -> list[StatedVersion]:
    """The versions that were stated, with all their options; one without a name where none was.

    Raises InvalidValue for what has no versions.
    """
    source: Path = options["source"]
    stated = click.get_current_context().meta.get(STATED, [])
    readings = options["column"] or options["unit"]
    if not stated:
        usual = (
            source.with_name(f"{source.stem}.private.csv") if readings else default_output(source)
        )
        return [StatedVersion("", options, options["output"] or usual)]
    check_names([name for name, _ in stated])
    if readings:
        raise InvalidValue(
            "--version must be of a track, got readings: release them once, and no finer later"
        )
    return [_with_options(options, name, more) for name, more in stated]


def _with_options(options: dict[str, Any], name: str, more: dict[str, Any]) -> StatedVersion:
    whole = {**options, **more}
    if "epsilon" in more and "leave" not in more:
        whole["leave"] = None
    for report in ("report", "private_report"):
        if whole[report] is not None:
            whole[report] = _named(whole[report], name)
    output = more.get("output")
    if output is None:
        shared, source = options["output"], options["source"]
        plain = default_output(source)
        output = (
            _named(shared, name)
            if shared
            else plain.with_name(f"{source.stem}.{name}.private{plain.suffix}")
        )
    return StatedVersion(name, whole, output)


def _named(path: Path, name: str) -> Path:
    """The file of one version."""
    return path.with_name(f"{path.stem}.{name}{path.suffix}")
