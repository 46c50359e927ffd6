"""Protect the traces of a table in memory: in partitions of Dask, in groups of Spark."""

from collections.abc import Iterator
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from trailveil.batch.rules import Rules
from trailveil.errors import InvalidValue, TrailveilError, Unavailable, check_kind, installing
from trailveil.files.keys import key_of
from trailveil.gp.threads import one_thread
from trailveil.ledger import Ledger
from trailveil.ledger.commit import commit, drawn, known_places, known_public, seed_of, whole_of
from trailveil.ledger.identity import ME
from trailveil.release.design_cache import DesignCache
from trailveil.release.protect import protect, requested
from trailveil.release.public import Position
from trailveil.traces.cleaning import clean
from trailveil.traces.frames import from_frame
from trailveil.traces.projection import frame_for
from trailveil.traces.trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame

AS_PROTECT = Rules()
"""What `trailveil protect` does where nothing is stated: both ends, 200 m, epsilon 1."""


def protect_frame(
    frame: "DataFrame",
    *,
    key: bytes | str | PathLike[str],
    trace: str | None = None,
    rules: Rules = AS_PROTECT,
    ledger: Ledger | None = None,
    subject: str = ME,
    again: bool = False,
    refused: list[tuple[str, str]] | None = None,
) -> "DataFrame":
    """The released fixes of a table of pandas or GeoPandas: time (UTC), latitude and longitude.

    key: a key file, or its 32 bytes. trace: the column that names the traces, which comes out as
    well; without, all rows are one trace. ledger: where each release is counted, and places with
    names are known from, as of `subject`, whatever a column of people says; for None **nothing is
    counted**: whoever releases a recording twice with other rules, or another key, gives its places
    away, and is not told. refused: takes (trace, reason) of traces that are then left out; without,
    the first refusal is raised.

    Points of a GeoDataFrame come out as one, in degrees (EPSG:4326). The same rows, key and rules
    give the same fixes as a file of them does. Raises as `trailveil.traces.frames.from_frame`,
    `clean`, `plan` and `count` do.
    """
    pandas = _pandas()
    check_kind("frame", frame, pandas.DataFrame, "name its columns")
    check_kind("subject", subject, str)
    secret = key_of(key)
    if trace is not None and trace not in frame.columns:
        raise InvalidValue(f"trace must be a column of the table, got none named {trace!r}")
    parts = [empty_frame(frame, trace)]
    for name, part in _parts(frame, trace):
        try:
            with one_thread():
                release = _released(part, secret, rules, ledger, subject, again=again)
        except TrailveilError as error:
            if refused is None:
                if name is not None:
                    error.args = (f"{error}: trace {name!r:.60}",)
                raise
            refused.append(("" if name is None else str(name), " ".join(error.public.split())))
            continue
        if trace is not None:
            column = pandas.Series([name] * len(release), dtype=frame[trace].dtype)
            release.insert(0, trace, column)
        parts.append(_shaped(release, frame))
    filled = [part for part in parts if len(part)]
    return pandas.concat(filled, ignore_index=True) if filled else parts[0]


def empty_frame(frame: "DataFrame", trace: str | None = None) -> "DataFrame":
    """What `protect_frame` gives for no rows: the columns and their types, as Dask's `meta`."""
    pandas = _pandas()
    columns = {} if trace is None else {trace: pandas.Series(dtype=frame[trace].dtype)}
    columns["time"] = pandas.Series(dtype="datetime64[ns, UTC]")
    columns["latitude"] = columns["longitude"] = pandas.Series(dtype="float64")
    return _shaped(pandas.DataFrame(columns), frame)


def _parts(frame: Any, trace: str | None) -> Iterator[tuple[Any, Any]]:
    """The rows of each trace, in their order, without the column that names it."""
    if trace is None:
        if len(frame):
            yield None, frame
        return
    if frame[trace].isna().any():
        raise InvalidValue(f"each row must be of a trace, got an empty cell in {trace!r}")
    for name, part in frame.groupby(trace, sort=False, observed=True):
        yield name, part.drop(columns=trace)


def _released(
    part: Any, key: bytes, rules: Rules, ledger: Ledger | None, subject: str, *, again: bool
) -> Any:
    """The released fixes of one trace, counted where there is a ledger."""
    recording = from_frame(part, tuple(rules.keep))
    reading = (rules.assume_utc, rules.zone, rules.every)
    trace, _ = clean(recording, assume_utc=reading[0], zone=reading[1], every=reading[2])
    frame_for(trace.positions)
    if rules.retiming.drop:
        raise InvalidValue("a frame must have times, got rules that drop them: leave drop out")
    places, cache = [], None
    public: tuple[Position, ...] = ()
    if ledger is not None:
        places = known_places(ledger, trace, subject=subject, key=key)
        public = known_public(ledger, trace, subject)
        cache = DesignCache.of(ledger.folder, ledger.key)
    request = requested(trace, rules.chosen, rules.request, places, public)
    plan = protect(trace, request, places=places, cache=cache)
    if ledger is None:
        return _table(
            drawn(plan, seed_of(key, whole_of(trace, plan.identity, key)), rules.retiming)[1]
        )
    how: dict[str, Any] = {"key": key, "retiming": rules.retiming, "subject": subject}
    with commit(plan, ledger, again=again, instead=None, **how) as receipt:
        return _table(receipt.released)


def _table(trace: Trace) -> Any:
    return _pandas().DataFrame(
        {
            "time": _pandas().to_datetime(trace.times, unit="ns", utc=True).as_unit("ns"),
            "latitude": trace.positions[:, 0],
            "longitude": trace.positions[:, 1],
        }
    )


def _shaped(table: Any, like: Any) -> Any:
    """Points in place of latitude and longitude, where the table that came in had points."""
    if getattr(like, "active_geometry_name", None) is None:
        return table
    geopandas = import_module("geopandas")
    points = geopandas.points_from_xy(table.pop("longitude"), table.pop("latitude"))
    return geopandas.GeoDataFrame(table, geometry=points, crs="EPSG:4326")


def _pandas() -> Any:
    try:
        return import_module("pandas")
    except ImportError:
        raise Unavailable(
            f"tables must have the package pandas, which is not installed: {installing('frames')}"
        ) from None
