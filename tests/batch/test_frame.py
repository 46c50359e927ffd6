"""`protect_frame`: what a file of the same rows gives, alone, in partitions of Dask, by groups."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import dask.dataframe
import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.batch.fleets import DAY, SHORT, summary
from tests.rides import BEGIN, ride
from trailveil.batch.frame import empty_frame, protect_frame
from trailveil.batch.rules import Rules
from trailveil.errors import InvalidValue, Refused, UnreadableInput
from trailveil.files.keys import load_key, new_key
from trailveil.ledger import open_ledger
from trailveil.traces.frames import to_frame, to_geoframe
from trailveil.traces.selection import Chosen

RULES = Rules(Chosen(returns=False), SHORT)
IDS = ("a", "b", "c")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "key")
    return tmp_path / "key"


def table(ids: tuple[str, ...] = IDS) -> pd.DataFrame:
    rides = [
        to_frame(ride(12, 30.0, seed=i, begin=BEGIN + DAY * i)).assign(trip_id=name)
        for i, name in enumerate(ids)
    ]
    return pd.concat(rides, ignore_index=True).drop(columns=["track", "segment"])


@pytest.mark.slow
def test_it_gives_what_a_file_of_the_rows_does(tmp_path: Path, key: Path) -> None:
    table().to_csv(tmp_path / "fleet.csv", index=False)
    summary(tmp_path / "fleet.csv", "-o", tmp_path / "out", "--key", key)
    protected = protect_frame(table(), key=key, trace="trip_id", rules=RULES)
    assert list(protected.columns) == ["trip_id", "time", "latitude", "longitude"]
    for name, part in protected.groupby("trip_id"):
        file = pd.read_csv(tmp_path / "out" / "fleet" / f"trip_id={name}" / f"{name}.private.csv")
        assert np.array_equal(file[["latitude", "longitude"]], part[["latitude", "longitude"]])
        assert list(pd.to_datetime(file["time"])) == list(part["time"])


def test_partitions_of_dask_give_the_same(key: Path) -> None:
    """The key goes as bytes: workers have no file of ours."""
    whole = table()
    how: dict[str, Any] = {"key": load_key(key), "trace": "trip_id", "rules": RULES}
    parts = dask.dataframe.from_pandas(whole, npartitions=1).repartition(divisions=[0, 12, 24, 35])
    lazy = parts.map_partitions(protect_frame, meta=empty_frame(whole, "trip_id"), **how)
    protected = lazy.compute(scheduler="synchronous").reset_index(drop=True)
    pd.testing.assert_frame_equal(protected, protect_frame(whole, **how), check_dtype=False)


def test_groups_as_spark_hands_them_out_give_the_same(key: Path) -> None:
    """The contract of applyInPandas, without Spark: pandas in, a declared schema out.

    Times come in without a zone, in that of the session.
    """
    declared = pa.schema(
        [
            ("trip_id", pa.string()),
            ("time", pa.timestamp("us", tz="UTC")),
            ("latitude", pa.float64()),
            ("longitude", pa.float64()),
        ]
    )
    secret, rules = load_key(key), replace(RULES, assume_utc=True)

    def protect(group: pd.DataFrame) -> pd.DataFrame:
        bare = group.assign(time=group["time"].dt.tz_localize(None).astype("datetime64[us]"))
        return protect_frame(bare, key=secret, trace="trip_id", rules=rules)

    groups = [
        pa.Table.from_pandas(protect(group.reset_index(drop=True)), declared, preserve_index=False)
        for _, group in table().groupby("trip_id")
    ]
    protected = pa.concat_tables(groups).to_pandas()
    whole = protect_frame(table(), key=secret, trace="trip_id", rules=RULES)
    assert len(protected) == len(whole) > 0
    assert np.array_equal(protected["latitude"], whole["latitude"])
    assert list(protected["time"]) == list(whole["time"])


def test_points_stay_points_and_one_trace_needs_no_name(key: Path) -> None:
    points = to_geoframe(ride(12, 30.0)).drop(columns=["track", "segment"])
    protected = protect_frame(points, key=key, rules=RULES)
    assert isinstance(protected, geopandas.GeoDataFrame)
    assert protected.crs == "EPSG:4326"
    assert 0 < len(protected) < 12
    assert len(protect_frame(points.iloc[:0], key=key, rules=RULES)) == 0


def test_what_is_refused_is_raised_or_told_and_left_out(key: Path) -> None:
    whole = table()
    whole.loc[whole["trip_id"] == "b", "latitude"] = np.nan
    with pytest.raises(UnreadableInput, match=r"most fixes must have a position.*: trace 'b'$"):
        protect_frame(whole, key=key, trace="trip_id", rules=RULES)
    refused: list[tuple[str, str]] = []
    protected = protect_frame(whole, key=key, trace="trip_id", rules=RULES, refused=refused)
    assert set(protected["trip_id"]) == {"a", "c"}
    assert [name for name, _ in refused] == ["b"]
    with pytest.raises(InvalidValue, match="must be a column"):
        protect_frame(whole, key=key, trace="ride")


def test_several_people_in_a_table_are_told_apart_by_an_argument(key: Path) -> None:
    both = table(("a", "b")).rename(columns={"trip_id": "driver"})
    both["time"] = [*both["time"][:12], *both["time"][:12]]
    both.loc[12:, "latitude"] += 1.0
    with pytest.raises(UnreadableInput, match=r"each with trace, the column .driver") as one:
        protect_frame(both, key=key, rules=RULES)
    assert "batch" not in str(one.value)


def test_a_ledger_counts_and_refuses_another_release(tmp_path: Path, key: Path) -> None:
    ledger = open_ledger(tmp_path / "state")
    ride_table = table(("a",)).drop(columns="trip_id")
    first = protect_frame(ride_table, key=key, rules=RULES, ledger=ledger)
    pd.testing.assert_frame_equal(
        first, protect_frame(ride_table, key=key, rules=RULES, ledger=ledger)
    )
    with ledger.open() as book:
        assert len(book.standing("me")) == 1
    other = replace(RULES, request=replace(SHORT, withhold=5.0))  # more is released
    with pytest.raises(Refused, match="must be released once") as refusal:
        protect_frame(ride_table, key=key, rules=other, ledger=ledger)
    assert "replace" not in str(refusal.value)
    protect_frame(ride_table, key=key, rules=other, ledger=ledger, again=True)
