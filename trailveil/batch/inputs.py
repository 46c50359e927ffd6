"""Which recordings a batch is of, what they are called, and where their outputs go.

A folder is searched to its depths for files with suffixes that are read; a pattern is one with *, ?
or [; anything else is a file. The tree below a folder, or below what a pattern has before its first
wildcard, is found again below the folder of outputs.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from urllib.parse import quote

from trailveil.batch.tables import TableRows, traces_of
from trailveil.errors import Refused, TrailveilError, UnreadableInput, UnwritableOutput
from trailveil.files.output import check_not_state
from trailveil.files.source import named
from trailveil.ledger.identity import subject_named
from trailveil.traces.formats.table import FORMATS, TABLES, default_output, format_to_write

_SUFFIXES = {suffix for row in FORMATS for suffix in row.suffixes}
_WILD = frozenset("*?[")
_LONGEST = 150
_OF_A_PLACE = frozenset("0123456789.,+- ")


@dataclass(frozen=True, slots=True)
class Trip:
    """One trace of a batch.

    name: what it is called in reports and rules, its path below what was named, or its id in a
    table; below the path of this, where another table has that id. source: its file. output: where
    its release goes. subject: whose it is. part: its rows, where it is in a table of traces.
    """

    name: str
    source: Path
    output: Path
    subject: str
    part: TableRows | None = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """The traces of a batch, in their order, and what holds none.

    others: how many files of other kinds were passed over. failed: name and error of files that
    must hold traces, such as tables without a column that names them.
    """

    items: tuple[Trip, ...]
    others: int = 0
    failed: tuple[tuple[str, TrailveilError], ...] = ()


@dataclass(frozen=True, slots=True)
class InputRules:
    """How inputs are understood.

    subject_of: whose a recording is, by its path below what was named and the person that a column
    of its table names ("" for none); it may refuse. suffix: of all outputs, or None for those of
    the inputs. whole_files: whether tables hold one recording each; else trace and person are the
    columns that name these, or None for what their names tell. check: refuses an output that cannot
    be as it is asked for.
    """

    subject_of: Callable[[PurePath, str], str]
    suffix: str | None = None
    whole_files: bool = False
    trace: str | None = None
    person: str | None = None
    check: Callable[[Path], None] = lambda _: None


def find(stated: Sequence[str], outdir: Path, input_rules: InputRules) -> Inputs:
    """The traces that folders, patterns and files name, each once, in order of their names.

    Raises UnreadableInput where a name is of nothing; Refused where
    two recordings would give one output.
    """
    files: dict[Path, PurePath] = {}
    others = 0
    for name in stated:
        readable = 0
        for path, below in _files(name, outdir):
            if path.suffix.lower() in _SUFFIXES or path == Path(name):
                files.setdefault(path, below)
                readable += 1
            else:
                others += 1
        if not readable:
            raise _nothing(name)
    if input_rules.suffix is not None:
        format_to_write(input_rules.suffix)
    items: list[tuple[PurePath, Trip]] = []
    failed: list[tuple[str, TrailveilError]] = []
    for path, below in sorted(files.items(), key=lambda pair: pair[1].parts):
        try:
            of_file = list(_items(path, below, outdir, input_rules))  # all or none
            items += [(below, item) for item in of_file]
        except TrailveilError as error:
            failed.append((below.as_posix(), error))
    if not items:
        raise failed[0][1]
    names = Counter(item.name for _, item in items)
    apart = [
        replace(item, name=f"{below.as_posix()}/{item.name}")
        if item.part is not None and names[item.name] > 1
        else item
        for below, item in items
    ]
    _check_apart(apart)
    return Inputs(tuple(apart), others, tuple(failed))


def _items(path: Path, below: PurePath, outdir: Path, input_rules: InputRules) -> Iterator[Trip]:
    """The traces of one file: one, or those of a table."""
    place = outdir / below.parent
    if input_rules.whole_files or path.suffix.lower() not in TABLES:
        output = place / _name(path, input_rules.suffix)
        input_rules.check(output)
        yield Trip(below.as_posix(), path, output, subject_named(input_rules.subject_of(below, "")))
        return
    suffix = input_rules.suffix or path.suffix
    format_to_write(suffix)
    input_rules.check(place / f"{path.stem}{suffix}")
    for part, person in traces_of(path, input_rules.trace, input_rules.person):
        name = str(part.value)
        safe = quote(name, safe=" ")
        if len(safe) > _LONGEST:
            raise UnreadableInput(
                f"the name of a trace must be at most {_LONGEST} letters long, got a longer one: "
                f"{named(path)}; name another column (--trace-column)"
            )
        folder = place / path.stem / f"{quote(part.column, safe=' ')}={safe}"
        whose = subject_named(input_rules.subject_of(below, person))
        yield Trip(name, path, folder / f"{safe}.private{suffix}", whose, part)


def _check_apart(items: Sequence[Trip]) -> None:
    """Refuse two traces of one output, before any work is done."""
    known: dict[str, Trip] = {}
    for item in items:
        other = known.setdefault(str(item.output).casefold(), item)
        if other is not item:
            raise Refused(
                f"each trace must have an output of its own, got one for both "
                f"{named(other.source)} and {named(item.source)}; name the folder above them, or "
                "put them into a batch each"
            )


def check_outdir(outdir: Path, stated: Sequence[str]) -> None:
    """Refuse a folder of outputs that cannot be one, or that holds inputs."""
    if outdir.exists() and not outdir.is_dir():
        raise UnwritableOutput(
            f"-o must be a folder, got a file: {named(outdir)}; choose another name"
        )
    check_not_state(outdir, "folder of outputs")
    here = Path(os.path.realpath(outdir))
    for name in stated:
        source = Path(os.path.realpath(name if not _WILD & set(name) else _root(name)))
        if here == source or here in source.parents:
            raise UnwritableOutput(
                f"-o must be a folder without inputs in it, got one that holds {named(name)}: "
                "choose another, so that nothing true is published with the outputs"
            )


def _name(path: Path, suffix: str | None) -> str:
    if suffix is None:
        return default_output(path).name
    stem = path.stem if path.suffix.lower() == suffix.lower() else path.name
    return f"{stem}.private{suffix}"


def _files(stated: str, outdir: Path) -> Iterator[tuple[Path, PurePath]]:
    """Each file that one name is of, and its path below what was named."""
    path = Path(stated)
    if path.is_dir():
        yield from _below(path, path, outdir)
    elif path.exists() or not _WILD & set(stated):
        if path.exists():
            yield path, PurePath(path.name)
    else:
        root = _root(stated)
        pattern = path.parts[len(root.parts) :]
        for match in sorted(root.glob("/".join(pattern))):
            if match.is_dir():
                yield from _below(match, root, outdir)
            elif not match.name.startswith("."):
                yield match, match.relative_to(root)


def _below(folder: Path, root: Path, outdir: Path) -> Iterator[tuple[Path, PurePath]]:
    """The files in a folder, to its depths, without hidden ones and without outputs."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            folder
            for folder in folders
            if not folder.startswith(".")
            and not (
                outdir.exists() and (here / folder).exists() and outdir.samefile(here / folder)
            )
        )
        for name in sorted(names):
            if not name.startswith("."):
                yield here / name, (here / name).relative_to(root)


def _root(pattern: str) -> Path:
    """What a pattern has before its first wildcard, as a folder."""
    parts = Path(pattern).parts
    first = next(i for i, part in enumerate(parts) if _WILD & set(part))
    return Path(*parts[:first])


def _nothing(stated: str) -> UnreadableInput:
    path = Path(stated)
    if path.is_dir():
        what = f"a folder without any: {named(stated)}"
    elif _WILD & set(stated):
        what = f"a pattern that none fits: {named(stated)}"
    elif set(stated) <= _OF_A_PLACE:
        what = "numbers: write LAT,LON,METRES without spaces"
    else:
        what = f"none: {named(stated)}"
    return UnreadableInput(
        f"IN must be recordings that exist, got {what}; name a folder, a pattern in quotation "
        f"marks or files ({', '.join(sorted(_SUFFIXES))})"
    )
