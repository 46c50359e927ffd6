"""What inputs are given to, and what must hold of it afterwards."""

import contextlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path

import click
import numpy as np

from tests.fuzz.inputs import FAST, Input, made
from tests.fuzz.judging import ACCEPTED, REFUSED, Fault, check_message, check_told, judged
from tests.fuzz.seeds import SUFFIXES
from tests.traces.formats.samples import SAMPLES
from trailveil.cli import cli
from trailveil.errors import Refused, TrailveilError
from trailveil.ledger.public import Imported
from trailveil.traces.cleaning import clean, clean_readings
from trailveil.traces.formats import read
from trailveil.traces.formats.exif import read_photo
from trailveil.traces.formats.series import read_series
from trailveil.traces.trace import Recording

__all__ = ["TARGETS", "made", "run", "warm"]

USAGE = "usage"
_STATE = "state"
_ALSO_THERE, _OTHER_TIMES = "place", "uncompared"


def run(one: Input) -> str:
    """Give an input to its target, in a folder of its own; one word for what came of it.

    Raises Fault for a promise that was not kept, and whatever the target raises besides.
    """
    with _folder(one.files):
        return TARGETS[one.target](one)


@contextlib.contextmanager
def _folder(files: Mapping[str, bytes]) -> Iterator[None]:
    """The working folder holds these files, readable by their owner alone, and nothing else."""
    back = Path.cwd()
    with tempfile.TemporaryDirectory(dir=back) as name:
        os.chdir(name)
        os.environ["XDG_STATE_HOME"] = str(Path(name) / _STATE)
        try:
            for path, data in files.items():
                Path(path).write_bytes(data)
                Path(path).chmod(0o600)
            yield
        finally:
            os.chdir(back)


def _read(one: Input) -> str:
    """Read, then clean: both may refuse, and nothing else."""
    (name,) = one.files

    def call() -> None:
        recording = read(name, one.wanted)
        check_recording(recording, one.wanted)
        clean(recording, assume_utc=True)

    return judged(call, one.content)


def check_recording(recording: Recording, wanted: Sequence[str]) -> None:
    """Raise Fault unless a recording is of one piece."""
    count = len(recording)
    shapes = {recording.times.shape, recording.naive.shape, recording.segments.shape}
    if not count or shapes != {(count,)} or recording.positions.shape != (count, 2):
        raise Fault("a recording whose parts do not fit together")
    if not np.isin(recording.segments, np.arange(len(recording.tracks))).all():
        raise Fault("a fix in a segment that there is not")
    if {name for name, _ in recording.fields} - {*wanted}:
        raise Fault("a field that was not asked for")
    if any(count < 0 for count in vars_of(recording)):
        raise Fault("a negative count")


def vars_of(recording: Recording) -> list[int]:
    """The counts of what was seen."""
    return [getattr(recording.seen, name) for name in recording.seen.__dataclass_fields__]


def _series(one: Input) -> str:
    def call() -> None:
        clean_readings(read_series("input.csv", unit="degC"), assume_utc=True)

    return judged(call, one.content)


def _photo(one: Input) -> str:
    """A photo has a time that 64 bits hold, and a place on the globe that is not 0, 0."""

    def call() -> None:
        photo = read_photo(one.content, UTC)
        Imported(np.array([photo.when], dtype=np.int64), np.array([photo[1:]]))
        if not (abs(photo.latitude) <= 90 and abs(photo.longitude) <= 180 and any(photo[1:])):
            raise Fault("a photo taken nowhere")

    return judged(call, one.content)


def invoked(one: Input, arguments: Sequence[str]) -> str:
    """Run the command line; what it shows is looked at.

    Raises Fault for what must not be shown, and whatever comes out that is no refusal.
    """
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(list(arguments), prog_name="trailveil", standalone_mode=False)
        word = ACCEPTED
    except TrailveilError as error:
        check_message(_unstated(str(error), arguments), one.content)
        word = REFUSED
    except click.ClickException as error:
        check_told(_unstated(error.format_message(), arguments), one.content)
        word = USAGE
    check_told(err.getvalue(), b"")
    check_told(out.getvalue(), b"")
    return word


def _unstated(text: str, arguments: Sequence[str]) -> str:
    """A message without what the command line stated: that may be repeated."""
    for word in arguments:
        text = text.replace(word, "") if len(word) > 4 and word.isprintable() else text
    return text or "stated"


def _run(one: Input) -> str:
    """A run of the command line leaves its output whole, or nothing."""
    word = invoked(one, one.arguments)
    left = {path.name for path in Path().iterdir()} - {*one.files, _STATE}
    if left - {*one.arguments} if word == ACCEPTED else left - {*one.files}:
        raise Fault("a file that was left behind")
    return word


def _protect(one: Input) -> str:
    """What was released is read again, as many fixes or fewer, and no leak is found in it."""
    word = _run(one)
    if word != ACCEPTED:
        return word
    source, output = one.arguments[1], one.arguments[3]
    if not 1 <= len(read(output)) <= len(read(source)):
        raise Fault("a release with other fixes than its original")
    if Path(output).stat().st_size == 0:
        raise Fault("an empty release")
    retimed = bool({"--round-times", "--shift-times"} & {*one.arguments})
    allowed = {_ALSO_THERE} | ({_OTHER_TIMES} if retimed else set())
    if leaks := _leaks(one) - allowed:
        raise Fault(f"a release in which the leak scan finds {', '.join(sorted(leaks))}")
    return word


def _leaks(one: Input) -> set[str]:
    """The kinds of leaks that `audit` finds in a release, which must hold none but one.

    Who was at a protected place at other times as well, and protected those not, is told so.
    """
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(Refused):
        cli.main([*one.audited, "--json"], prog_name="trailveil", standalone_mode=False)
    return {found["kind"] for found in json.loads(out.getvalue())["findings"]}


TARGETS: Mapping[str, Callable[[Input], str]] = {
    "read": _read,
    "series": _series,
    "photo": _photo,
    "run": _run,
    "protect": _protect,
}
"""By their names."""


def warm(group: str) -> None:
    """Have everything imported, so that no input is the one that takes the time and the room."""
    for kind, data in SAMPLES.items():
        run(Input("read", kind, {f"input{SUFFIXES[kind]}": data}))
    if group != "readers":
        for name in ("input.csv", "input.parquet"):
            files = {name: SAMPLES["CSV" if name.endswith("csv") else "GeoParquet"]}
            arguments = ("protect", name, "-o", "output.gpx", *FAST)
            run(Input("protect", "warm", files, (), arguments, ("audit", name, "output.gpx")))
