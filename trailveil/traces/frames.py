"""Tables of pandas, GeoPandas, MovingPandas and trackintel: recordings from them, traces to them.

The packages are optional (`pip install 'trailveil[frames]'`, and MovingPandas where its
trajectories are wanted), and imported on use. Tables are plain frames, never subclasses of ours:
those lose types and time zones on the way. Only times, positions, and which track and segment they
belong to go either way, and the fields that are asked for; other columns are counted.
"""

from collections.abc import Hashable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trailveil.errors import InvalidValue, Unavailable, installing
from trailveil.traces.fields import FIELDS, check_fields
from trailveil.traces.formats.columns import (
    Columns,
    FieldColumn,
    columns_beside,
    columns_of,
    field_columns,
)
from trailveil.traces.formats.people import TABLE, may_name_people
from trailveil.traces.formats.tabular import RowCollector, add_arrays
from trailveil.traces.trace import Recording, Trace

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from movingpandas import Trajectory, TrajectoryCollection
    from pandas import DataFrame

_DEGREES = "EPSG:4326"


def from_frame(frame: "DataFrame | GeoDataFrame", field_names: Sequence[str] = ()) -> Recording:
    """The recording in a table: a row for each fix, in the order of the rows.

    field_names: names of `trailveil.traces.fields` to take besides, from columns named as in files.
    Positions are the points of a GeoDataFrame, in any reference system that it states, or columns
    of latitude and longitude, known by the names that files may use (docs/formats.md). Times are a
    column (with or without zone, numbers since 1970, or text), else a DatetimeIndex. A trackintel
    table of position fixes is such a table. Raises InvalidValue where one of these is missing,
    UnreadableInput for several people in one table and for times that cannot be told; Refused or
    InvalidValue for a field that is none.
    """
    times = frame.index if frame.index.dtype.kind == "M" or _has_zone(frame.index) else None
    return _recording(frame, times, check_fields(field_names))


def to_frame(trace: Trace) -> "DataFrame":
    """A table with time (UTC, to the nanosecond), latitude, longitude, track and segment.

    Fields of the trace are further columns.
    """
    pandas = _module("pandas")
    latitudes, longitudes = trace.positions.T
    fields = {FIELDS[name].column: values for name, values in trace.fields}
    return pandas.DataFrame(
        {
            "time": pandas.to_datetime(trace.times, unit="ns", utc=True),
            "latitude": latitudes,
            "longitude": longitudes,
            "track": np.array(trace.tracks, dtype=np.intp)[trace.segments],
            "segment": trace.segments,
            **fields,
        }
    )


def to_geoframe(trace: Trace) -> "GeoDataFrame":
    """A table with time (UTC, to the nanosecond), track, segment and points (EPSG:4326)."""
    geopandas = _module("geopandas")
    table = to_frame(trace)
    points = geopandas.points_from_xy(table.pop("longitude"), table.pop("latitude"))
    return geopandas.GeoDataFrame(table, geometry=points, crs=_DEGREES)


def to_positionfixes(trace: Trace, user_id: Hashable = 0) -> "GeoDataFrame":
    """A trackintel table of position fixes: user_id, tracked_at (UTC) and points (EPSG:4326)."""
    table = to_geoframe(trace).rename(columns={"time": "tracked_at"})
    table.insert(0, "user_id", user_id)
    return table.drop(columns=["track", "segment"])


def from_trajectory(trajectory: "Trajectory | TrajectoryCollection") -> Recording:
    """The recording in a trajectory of MovingPandas, or in several, which become its tracks.

    MovingPandas drops time zones, so the times have none: say which it was when cleaning. Raises
    as `from_frame` does.
    """
    table = trajectory.to_point_gdf()
    identity = getattr(trajectory, "get_traj_id_col", lambda: None)()
    if identity is None and len(parts := getattr(trajectory, "trajectories", [trajectory])):
        identity = parts[0].get_traj_id_col()
    if identity in table.columns:
        table = table.rename(columns={identity: "traj_id"})
    return _recording(table, table.index)


def to_trajectories(trace: Trace) -> "TrajectoryCollection":
    """Trajectories of MovingPandas, one for each track, with times in UTC and without a zone.

    Raises InvalidValue for a track of one fix, which is no trajectory.
    """
    movingpandas = _module("movingpandas")
    table = to_geoframe(trace)
    if len(table) == 0 or table["track"].value_counts().min() < 2:
        raise InvalidValue(
            "each track must have two fixes to be a trajectory, got one with fewer: leave it out"
        )
    table["time"] = table["time"].dt.tz_localize(None)
    return movingpandas.TrajectoryCollection(table, traj_id_col="track", t="time")


def _recording(frame: Any, index: Any, field_names: Sequence[str] = ()) -> Recording:
    """index: times to use where no column has them."""
    geometry = getattr(frame, "active_geometry_name", None)
    names = list(frame.columns)
    roles = columns_of(names) if geometry is None else columns_beside(names)
    if roles is None or (roles.time is None and index is None):
        raise InvalidValue(
            "the table must have points or columns named latitude and longitude, and a column of "
            "times or an index of times, got others: rename the columns"
        )
    if roles.date is not None:
        raise InvalidValue(
            "the time must be one column of the table, got date and clock apart: join them"
        )
    times, naive = _times(index if roles.time is None else frame.iloc[:, roles.time])
    positions = _degrees(frame, roles) if geometry is None else _points(frame)
    rows = RowCollector(roles, TABLE, field_names)
    tracks, segments, people = (
        [None] * len(frame) if i is None else _cells(frame.iloc[:, i])
        for i in (roles.track, roles.segment, roles.person)
    )
    columns = field_columns(names, field_names)
    fields = [(column.field, _stated(frame.iloc[:, column.index], column)) for column in columns]
    three = (tracks, segments, people)
    others = {
        name: _cells(frame.iloc[:, index])
        for index, name in enumerate(names)
        if isinstance(name, str) and name != geometry and may_name_people(name)
    }
    add_arrays(rows, positions, times, three, naive=naive, fields=fields, others=others)
    return rows.recording(other_fields=roles.others - (geometry is not None) - len(columns))


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        command = installing("frames") if name != "movingpandas" else "pip install movingpandas"
        raise Unavailable(
            f"this must have the package {name}, which is not installed: {command}"
        ) from None


def _has_zone(values: Any) -> bool:
    return getattr(values.dtype, "tz", None) is not None


def _times(values: Any) -> tuple[NDArray[Any], bool]:
    """Times as an array, NaT, NaN or None where there is none; whether they have no zone."""
    series = _module("pandas").Series(values)
    if _has_zone(series):
        return series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), False
    if series.dtype.kind == "M":
        return series.to_numpy(), True
    if series.dtype.kind in "iuf":
        missing = bool(series.isna().any())
        return series.to_numpy(dtype=np.float64, na_value=np.nan) if missing else (
            series.to_numpy()
        ), False
    return np.array([None if cell is None else str(cell) for cell in _cells(series)], object), False


def _cells(series: Any) -> list[Any]:
    """Values of a column, None where there is none."""
    return [None if gone else cell for cell, gone in zip(series, series.isna(), strict=True)]


def _degrees(frame: Any, roles: Columns) -> NDArray[np.float64]:
    pandas = _module("pandas")
    columns = [
        pandas.to_numeric(frame.iloc[:, index], errors="coerce").to_numpy(
            dtype=np.float64, na_value=np.nan
        )
        / per
        for index, per in zip((roles.latitude, roles.longitude), roles.per_degree, strict=True)
    ]
    return np.stack(columns, axis=1)


def _stated(series: Any, column: FieldColumn) -> NDArray[np.float64]:
    """The values of a field, NaN where there is none."""
    return np.array([column.value(cell) for cell in _plain(series)], dtype=np.float64)


def _plain(series: Any) -> list[Any]:
    """Values of a column as those of Python, None where there is none."""
    return [cell.item() if isinstance(cell, np.generic) else cell for cell in _cells(series)]


def _points(frame: Any) -> NDArray[np.float64]:
    """Latitude and longitude of points, NaN where there is none."""
    geometry = frame.geometry
    kinds = set(geometry.geom_type.dropna())
    if kinds - {"Point"}:
        raise InvalidValue(
            "the geometry must be points, got others: give a row for each recorded fix"
        )
    if geometry.crs is None:
        raise InvalidValue(
            "the geometry must state its reference system, got none: frame.set_crs('EPSG:4326') "
            "where it is in degrees"
        )
    degrees = geometry.to_crs(_DEGREES)
    gone = (degrees.isna() | degrees.is_empty).to_numpy()
    places = np.full((len(degrees), 2), np.nan)
    places[~gone] = np.stack([degrees[~gone].y, degrees[~gone].x], axis=1)
    return places
