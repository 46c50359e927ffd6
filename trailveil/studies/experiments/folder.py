"""The folder of an experiment: points kept as they are computed, and what is drawn of them.

`NAME.run.jsonl` has a line for each computed point and one for each file written. A point counts
only under the code that made it (its digest is in every line) and for the parameters that it names,
so a run that was interrupted goes on where it stopped, and a run of other code starts anew. A file
is replaced only where it is as an earlier run wrote it, or on request.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

from trailveil.errors import UnwritableOutput
from trailveil.files.output import check_not_state, write_atomically
from trailveil.files.source import named
from trailveil.version import __version__

Values = dict[str, float]


@cache
def code_digest() -> str:
    """A digest of the version and of every source file of the package."""
    package = Path(__file__).parents[2]
    digest = hashlib.sha256(__version__.encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(slots=True)
class Folder:
    """A folder, the experiment that runs in it, and what is there already. Open it with `opened`.

    kept: parameters of a point (as JSON) to its values. written: (name, SHA-256) of files written.
    """

    path: Path
    name: str
    kept: dict[str, Values] = field(default_factory=dict)
    written: set[tuple[str, str]] = field(default_factory=set)

    @property
    def record(self) -> Path:
        """The file of points and of what was written."""
        return self.path / f"{self.name}.run.jsonl"

    def find(self, point: Mapping[str, Any]) -> Values | None:
        """The values of a point, or None where it is not computed yet."""
        return self.kept.get(_key(point))

    def keep(self, point: Mapping[str, Any], values: Values) -> None:
        """Keep a computed point: it is in the file before this returns."""
        self.kept[_key(point)] = values
        self._append({"code": code_digest(), "point": point, "values": values})

    def check_free(self, names: Iterable[str], *, overwrite: bool) -> None:
        """UnwritableOutput where a file of that name exists that no earlier run has written."""
        for name in names:
            path = self.path / name
            if overwrite or not (path.exists() or path.is_symlink()) or self._is_own(path):
                continue
            raise UnwritableOutput(
                f"the output must not exist, or be as an earlier run wrote it, got another "
                f"{name!r}; choose another folder with --out, or --overwrite"
            )

    def write(self, name: str, content: bytes, *, overwrite: bool) -> None:
        """Write a file whole; one that has this content already is left alone."""
        path = self.path / name
        self.check_free([name], overwrite=overwrite)
        if path.is_file() and not path.is_symlink() and path.read_bytes() == content:
            return
        entry = (name, hashlib.sha256(content).hexdigest())
        self.written.add(entry)
        # First the record, then the file: a run that stops between the two owns what it made.
        self._append({"code": code_digest(), "wrote": entry[0], "sha256": entry[1]})
        write_atomically(path, lambda out: _put(content, out), overwrite=True)

    def _is_own(self, path: Path) -> bool:
        if not path.is_file() or path.is_symlink():
            return False
        try:
            return (path.name, hashlib.sha256(path.read_bytes()).hexdigest()) in self.written
        except OSError:
            return False

    def _append(self, line: Mapping[str, Any]) -> None:
        try:
            with self.record.open("ab") as out:
                out.write((json.dumps(line, sort_keys=True) + "\n").encode())
        except OSError as error:
            raise UnwritableOutput(
                f"the folder must be writable, got {error.strerror!r} for {self.record.name!r}; "
                "choose another with --out"
            ) from error


def opened(path: Path, name: str) -> Folder:
    """The folder, made where it is missing, with the points in it that this code has computed.

    Lines of other code, torn or foreign ones are dropped from the record; what was written stays
    known. Raises UnwritableOutput where there can be no such folder.
    """
    check_not_state(path)
    folder = Folder(path, name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        content = folder.record.read_bytes() if folder.record.exists() else b""
    except OSError as error:
        raise UnwritableOutput(
            f"--out must be a folder that can be made and read, got {error.strerror!r} for "
            f"{named(path)}"
        ) from error
    lines = list(_sound(content))
    for line in lines:
        if "wrote" in line:
            folder.written.add((line["wrote"], line["sha256"]))
        else:
            folder.kept[_key(line["point"])] = line["values"]
    cleaned = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines).encode()
    if cleaned != content:
        write_atomically(folder.record, lambda out: _put(cleaned, out), overwrite=True)
    return folder


def table(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows as CSV in UTF-8, with line feeds on every system."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _sound(content: bytes) -> Iterator[dict[str, Any]]:
    """The whole lines that can be used."""
    for text in content.split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and (_is_file(line) or _is_point(line)):
            yield line


def _is_file(line: dict[str, Any]) -> bool:
    return isinstance(line.get("wrote"), str) and isinstance(line.get("sha256"), str)


def _is_point(line: dict[str, Any]) -> bool:
    values = line.get("values")
    return (
        line.get("code") == code_digest()
        and isinstance(line.get("point"), dict)
        and isinstance(values, dict)
        and all(isinstance(value, float) and isfinite(value) for value in values.values())
    )


def _key(point: Mapping[str, Any]) -> str:
    return json.dumps(point, sort_keys=True)


def _put(content: bytes, out: Any) -> None:
    out.write(content)
