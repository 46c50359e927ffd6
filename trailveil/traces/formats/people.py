"""Whether a table holds several people: by the name of a column, or by how it splits the fixes.

A column splits a table into people where the fixes of each of its values make a track of its own
and all of them together make none, since they leap from one track to another: over 100 m or more at
60 m/s or more, or at any speed so often that the whole is twice as long as its parts. What a person
does (a mode, an hour), how well a receiver sees (an accuracy, a number of satellites) or where
somebody is (a city) does not split so: the next fix is near.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import UnreadableInput
from trailveil.traces.formats.columns import DATES, LATITUDES, LONGITUDES, TIMES, shown, words_of
from trailveil.traces.projection import metres_between
from trailveil.traces.trace import NANOSECONDS

_Floats = NDArray[np.float64]

_PEOPLE: Final = {
    *("user", "users", "uid", "userid", "username", "participant", "person", "personid", "pid"),
    *("individual", "subject", "respondent", "proband", "volunteer", "patient", "member", "owner"),
    *("driver", "rider", "cyclist", "runner", "walker", "athlete", "student", "employee", "animal"),
    *("device", "deviceid", "phone", "imei", "imsi", "mac", "mmsi", "vehicle", "taxi", "tracker"),
    *("teilnehmer", "nutzer", "benutzer", "fahrer", "utilisateur", "usuario", "utente"),
}
# What may stand beside such a word in the name of a column that names people.
_RATHER: Final = {
    *("id", "ids", "identifier", "identity", "name", "no", "nr", "num", "number", "code", "key"),
    *("hash", "uuid", "guid", "email", "mail", "traj", "trajectory", "track", "local", "anon"),
    *("anonymous", "pseudonym", "label", "ref", "unique", "study", "mobile", "tracking", "address"),
}
# What is measured or told of one person at a time: it is not looked at.
_ELSE: Final = {
    *LATITUDES,
    *LONGITUDES,
    *TIMES,
    *DATES,
    *("mode", "activity", "motion", "provider", "accuracy", "satellites", "sats", "sat", "hdop"),
    *("vdop", "pdop", "fix", "quality", "battery", "hour", "minute", "day", "weekday", "month"),
    *("year", "week", "altitude", "elevation", "speed", "heading", "course", "bearing", "signal"),
    *("heartrate", "cadence", "power", "temperature", "segment"),
}
TABLE: Final = "the table"
"""Where fixes are from that stand in memory, in what is said of them."""
_MOST_VALUES, _MOST_COLUMNS = 1000, 40
_TRACK = 3  # fixes, at least
_FEW, _FAR = 4, 1000.0  # changes that may be chance, unless they are so many metres
_LEAP, _FAST = 100.0, 60.0  # metres, metres a second: a train does 90, and is no column of a table
_OFTEN, _SELDOM, _LONGER, _MOBILE = 0.2, 0.2, 2.0, 0.1
_EARTH = 6_371_000.0
_CELLS: Final = (str, bytes, int, float, np.generic)


class People:
    """Collects what the columns of a table that may name people say of each fix."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._plans: dict[tuple[object, ...], list[tuple[int, _Column]]] = {}
        self._count = 0

    def row(self, names: tuple[object, ...], cells: Sequence[Any]) -> None:
        """What the latest fix has in the columns of these names; what is missing says nothing."""
        plan = self._plans.get(names)
        if plan is None:
            first = {name: i for i, name in reversed([*enumerate(names)])}  # of two of a name
            plan = [(i, person) for name, i in first.items() if (person := self._of(name))]
            if len(self._plans) < _MOST_VALUES:
                self._plans[names] = plan
        for index, column in plan:
            if column.open and index < len(cells):
                column.say(self._count, cells[index])
        self._count += 1

    def rows(self, columns: Mapping[Any, Iterable[Any]], count: int) -> None:
        """What so many further fixes have, by the names of columns."""
        for name, cells in columns.items():
            column = self._of(name)
            for row, cell in enumerate(cells if column else ()):
                if column is None or not column.open:
                    break
                column.say(self._count + row, cell)
        self._count += count

    def check(self, times: NDArray[np.int64], positions: _Floats, where: str) -> None:
        """Refuse the fixes of several people; times (n,) with NaT, positions (n, 2) in degrees.

        Raises UnreadableInput, which names the column.
        """
        if self._count != len(times):
            return
        how = "trace, the column" if where == TABLE else "trailveil batch --trace-column"
        for column in self._columns.values():
            if column.open and (several := column.several(times, positions)):
                raise UnreadableInput(
                    "a recording must be of one person and one device, got several (the column "
                    f"{shown(column.name)} tells {several} apart): {where}; release each with "
                    f"{how} {shown(column.name)}, or leave the column out if all are of one"
                )

    def _of(self, name: object) -> "_Column | None":
        if not isinstance(name, str) or not may_name_people(name):
            return None
        if name not in self._columns and len(self._columns) < _MOST_COLUMNS:
            self._columns[name] = _Column(name)
        return self._columns.get(name)


def may_name_people(name: str) -> bool:
    """Whether a column of this name may be of people: not one of places, times, measurements."""
    words = words_of(name)
    return bool(words) and not _ELSE & {*words, "".join(words)} and words != ["track"]


class _Column:
    """The values of a column, as numbers from 1, 0 for none; closed where they are too many."""

    def __init__(self, name: str) -> None:
        words = {*words_of(name)}
        self.name: Final = name
        self.open = True
        self._sure: Final = bool(words & _PEOPLE) and not words - _PEOPLE - _RATHER
        self._likely: Final = words == {"id"}
        self._numbers: dict[int, int] = {}
        self._codes = array("H")

    def say(self, row: int, cell: object) -> None:
        """The value of a row; of what was passed over before, none is known."""
        if isinstance(cell, str):
            cell = cell.strip()
        if cell == "" or not isinstance(cell, _CELLS) or (isinstance(cell, float) and isnan(cell)):
            return
        known = hash(cell)  # of the text of a cell, which may be long, nothing is held
        number = self._numbers.setdefault(known, len(self._numbers) + 1)
        if number > _MOST_VALUES:
            self.open = False
            self._codes = array("H")
            return
        if row > len(self._codes):
            self._codes.extend([0] * (row - len(self._codes)))
        self._codes.append(number)

    def several(self, times: NDArray[np.int64], positions: _Floats) -> int:
        """How many people the column tells apart, 0 for one."""
        count = len(self._numbers)
        if count < 2:
            return 0
        if self._sure or (self._likely and 3 * count <= len(times)):
            return count
        codes = np.zeros(len(times), dtype=np.intp)
        codes[: len(self._codes)] = self._codes
        return count if splits(codes, times, positions) else 0


def splits(codes: NDArray[np.intp], times: NDArray[np.int64], positions: _Floats) -> bool:
    """Whether values (n,), 0 for none, part fixes into tracks that together are no track."""
    sizes = np.bincount(codes)
    sizes[0] = 0
    known = (sizes >= _TRACK)[codes] & (times != np.iinfo(np.int64).min)
    known &= (np.abs(positions) <= [90.0, 180.0]).all(axis=1)
    codes, times, positions = codes[known], times[known], positions[known]
    if len(np.unique(codes)) < 2:
        return False
    order = np.lexsort((codes, times))
    distance, fast, same = _steps(codes[order], times[order], positions[order])
    order = np.lexsort((times, codes))
    steps, own_fast, apart = _steps(codes[order], times[order], positions[order])
    steps, own_fast = steps[apart], own_fast[apart]
    changes = ~same
    leaps = float(np.mean(fast[changes]))
    if leaps >= 0.5 and np.mean(own_fast) <= _SELDOM * leaps:
        return bool(changes.sum() >= _FEW or (distance[changes] >= _FAR).all())
    return bool(
        np.mean(changes) >= _OFTEN
        and distance.sum() > _LONGER * steps.sum()
        and _spread(codes, positions) >= _MOBILE * np.median(distance[changes])
    )


def _steps(
    codes: NDArray[np.intp], times: NDArray[np.int64], positions: _Floats
) -> tuple[_Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Metres from each fix to the next, whether that is a leap, and whether both have one value."""
    metres = metres_between(positions[:-1], positions[1:])
    seconds = np.maximum(np.abs(np.diff(times)) / NANOSECONDS, 1.0)
    return metres, (metres >= _LEAP) & (metres >= _FAST * seconds), codes[1:] == codes[:-1]


def _spread(codes: NDArray[np.intp], positions: _Floats) -> float:
    """Metres from the middle of its track that a fix of half of the tracks has, on the median."""
    away = [
        np.median(np.hypot(*(_plane(places) - np.median(_plane(places), axis=0)).T))
        for code in np.unique(codes)
        for places in [positions[codes == code]]
    ]
    return float(np.median(away))


def _plane(positions: _Floats) -> _Floats:
    """Metres north and east, nearly, of positions that are near each other."""
    scale = np.cos(np.radians(positions[:, :1]))
    return np.asarray(np.radians(positions) * _EARTH * np.hstack([np.ones_like(scale), scale]))
