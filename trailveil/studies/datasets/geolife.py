"""GeoLife: where its files are, what is in them, and which mode of transport its users noted.

GeoLife GPS Trajectories 1.3 (Zheng, Xie and Ma 2010, IEEE Data Engineering Bulletin 33) holds a
folder for each user with .plt files, one for each trajectory, and for some users a table of labels.
All times are GMT. Files are found in the published layout, Data/USER/Trajectory/*.plt, from any
level above, and in a flat one, USER/*.plt.
"""

from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Final

import numpy as np

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.files.source import load, named
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import plt
from trailveil.traces.formats.moments import Trouble, parse_moment
from trailveil.traces.trace import Trace

MODES: Final = {"walk": ("walk",), "bike": ("bike",), "drive": ("car", "taxi")}
"""The modes that have a prior, and the labels of GeoLife that count as each."""

FASTEST: Final = {"walk": 4.0, "bike": 10.0, "drive": 40.0}
"""Metres a second: where half of the steps of a window are faster, its label is wrong."""

_LABEL_HEADER = "Start Time\tEnd Time\tTransportation Mode"


@dataclass(frozen=True, slots=True)
class User:
    """A user's folder: its name, the trajectories in the order of their names, labels if any."""

    name: str
    files: tuple[Path, ...]
    labels: Path | None


@dataclass(frozen=True, slots=True)
class Label:
    """A mode of transport that a user noted, from begin to end: nanoseconds since 1970 UTC."""

    begin: int
    end: int
    mode: str


def users(folder: str | PathLike[str]) -> tuple[User, ...]:
    """The users of a GeoLife folder who have trajectories, by name.

    Raises UnreadableInput for what is no folder, or holds none.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UnreadableInput(
            f"a GeoLife data set must be a folder, got something else: {named(folder)}; name the "
            "folder that holds the users' folders"
        )
    places = [root / "Data", *sorted(p / "Data" for p in root.iterdir() if p.is_dir())]
    known_users = next((users for place in places if (users := _users_in(place))), _users_in(root))
    if not known_users:
        raise UnreadableInput(
            "a GeoLife data set must hold USER/Trajectory/*.plt or USER/*.plt, got neither: "
            f"{named(folder)}; name the folder that holds the users' folders"
        )
    return known_users


def _users_in(root: Path) -> tuple[User, ...]:
    if not root.is_dir():
        return ()
    people = []
    for place in sorted(p for p in root.iterdir() if p.is_dir()):
        files = sorted((*place.glob("Trajectory/*.plt"), *place.glob("*.plt")))
        labels = place / "labels.txt"
        if files:
            people.append(User(place.name, tuple(files), labels if labels.is_file() else None))
    return tuple(people)


def read_labels(path: str | PathLike[str]) -> tuple[Label, ...]:
    """The labels of a user. Raises UnreadableInput for a file that is no table of labels."""
    lines = load(path).decode("latin-1").splitlines()
    if not lines or lines[0].strip() != _LABEL_HEADER:
        raise UnreadableInput(
            "labels must begin with 'Start Time', 'End Time', 'Transportation Mode', separated by "
            f"tabs, got something else: {named(path)}"
        )
    pairs = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    return tuple(_label(line, f"line {number}, {named(path)}") for number, line in pairs[1:])


def _label(line: str, where: str) -> Label:
    parts = line.split("\t")
    moments = [parse_moment(text.strip().replace("/", "-") + "Z") for text in parts[:2]]
    ends = [moment.nanoseconds for moment in moments if not isinstance(moment, Trouble)]
    if len(parts) != 3 or len(ends) != 2:
        raise UnreadableInput(
            f"a label must be a start, an end and a mode, separated by tabs, got others: {where}"
        )
    return Label(ends[0], ends[1], parts[2].strip())


def labelled_traces(folder: str | PathLike[str], mode: str) -> list[tuple[str, Trace]]:
    """User and trace of every part that was labelled with a mode of MODES.

    A file stored under several users counts once, for the first with labels; files that cannot be
    read or cleaned do not. Raises UnreadableInput for no GeoLife folder, for labels that cannot be
    read, and where nothing is labelled so; InvalidValue for another mode.
    """
    if mode not in MODES:
        raise InvalidValue(f"labels must be one of {', '.join(MODES)}, got {mode}")
    labelled_parts: list[tuple[str, Trace]] = []
    digests: set[bytes] = set()
    for user in users(folder):
        labels = () if user.labels is None else read_labels(user.labels)
        for path in user.files if labels else ():
            try:
                data = load(path)
                trace, _ = clean(plt.read(data, named(path)))
            except UnreadableInput:
                continue
            digest = sha256(data).digest()
            if digest not in digests:
                labelled_parts += [(user.name, part) for part in labelled(trace, labels, mode)]
            digests.add(digest)
    if not labelled_parts:
        raise UnreadableInput(
            f"a GeoLife data set must have recordings labelled {' or '.join(MODES[mode])}, got "
            f"none: {named(folder)}"
        )
    return labelled_parts


def labelled(trace: Trace, labels: tuple[Label, ...], mode: str) -> list[Trace]:
    """The parts of a trace of two fixes or more that its user labelled with a mode of MODES."""
    parts = []
    for label in labels:
        inside = (trace.times >= label.begin) & (trace.times <= label.end)
        if label.mode in MODES[mode] and np.count_nonzero(inside) > 1:
            parts.append(trace.only(inside))
    return parts
