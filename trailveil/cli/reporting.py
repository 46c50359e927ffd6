"""The files of `protect --report` and `--private-report`: checked, and staged with the release."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trailveil.cli.options import options_of
from trailveil.errors import InvalidValue
from trailveil.files.output import Put, check_output, staged
from trailveil.files.source import named

_HTML, _JSON = (".html", ".htm"), ".json"
_MARK = "PRIVATE"


report_options = options_of(
    click.option(
        "--report",
        type=click.Path(path_type=Path),
        help="Write the report without protected times (.html, .json or text).",
    ),
    click.option(
        "--private-report",
        type=click.Path(path_type=Path),
        help="Write a page (.html) with the true track and protected times, or what --json "
        "prints (.json), for trailveil verify: for you alone.",
    ),
)


@dataclass(frozen=True, slots=True)
class Reports:
    """What is written beside a release. public: the report for others; private: the owner's."""

    public: Path | None
    private: Path | None
    overwrite: bool

    def check(self, *others: Path) -> None:
        """Refuse what cannot or must not be written, before any work is done.

        others: files that are read or written besides. Raises InvalidValue for a private report
        whose name does not say so, UnwritableOutput as trailveil.files.output does, and Unavailable
        where there is no matplotlib to draw a page with.
        """
        if self.private is not None:
            if self.private.suffix.lower() not in (*_HTML, _JSON):
                raise InvalidValue(
                    "--private-report must be a page (.html) or JSON (.json), got "
                    f"{named(self.private)}: choose such a name"
                )
            if _MARK not in self.private.name:
                better = f"{self.private.stem}.{_MARK}{self.private.suffix}"
                raise InvalidValue(
                    f"--private-report must have {_MARK} in its name, in capitals (files that are "
                    f"to be published are called .private.), got {named(self.private)}: "
                    f"say {named(better)}"
                )
        if is_page(self.private) or is_page(self.public):
            from trailveil.plots.drawing import check_available

            check_available(", or name the report .json or .txt")
        if self.public is not None:
            check_output(self.public, *others, overwrite=self.overwrite, what="report")
        if self.private is not None:
            written = [*others, *([] if self.public is None else [self.public])]
            what = "private report"
            check_output(self.private, *written, overwrite=self.overwrite, what=what)

    @contextlib.contextmanager
    def staged(self, public: bytes | None, private: bytes | None) -> Iterator[Sequence[Put]]:
        """Stage the contents of those that were asked for; None where one was not."""
        contents = ((self.public, public, False), (self.private, private, True))
        with contextlib.ExitStack() as files:
            yield [
                files.enter_context(self._file(path, data, secret=secret))
                for path, data, secret in contents
                if path is not None and data is not None
            ]

    def _file(
        self, path: Path, data: bytes, *, secret: bool
    ) -> contextlib.AbstractContextManager[Put]:
        return staged(
            path,
            lambda out: out.write(data),
            overwrite=self.overwrite,
            private=secret,
            what="private report" if secret else "report",
        )

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self.public is not None or self.private is not None


def reports_of(options: dict[str, Any]) -> Reports:
    """What was asked for."""
    return Reports(options["report"], options["private_report"], options["overwrite"])


def is_page(path: Path | None) -> bool:
    """Whether a report is to be a page, with pictures."""
    return path is not None and path.suffix.lower() in _HTML


def plain(path: Path, report: Mapping[str, Any], words: str) -> bytes:
    """A report that is no page: as JSON or as text, by its suffix."""
    if path.suffix.lower() == _JSON:
        return f"{json.dumps(report, indent=1)}\n".encode()
    return f"{words}\n".encode(errors="backslashreplace")
