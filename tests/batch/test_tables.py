"""Tables of many traces: each is protected as if it were a file of its own."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

from tests.batch.fleets import AT_ONCE, DAY, batch, outputs, protect, summary
from tests.rides import BEGIN, ride
from trailveil.batch.tables import traces_of
from trailveil.cli import cli
from trailveil.errors import UnreadableInput
from trailveil.files.keys import new_key
from trailveil.traces.frames import to_frame

IDS = ("b/7", "a", "c d")


def frame(ids: Sequence[str] = IDS, column: str = "trip_id") -> pd.DataFrame:
    """Rides a day apart, a column that names them, and one that nobody asks for."""
    parts = []
    for i, name in enumerate(ids):
        trip = to_frame(ride(12, 30.0, seed=i, begin=BEGIN + DAY * i))
        parts.append(trip.drop(columns=["track", "segment"]).assign(**{column: name, "secret": 42}))
    return pd.concat(parts, ignore_index=True)


def parquet(path: Path, table: pd.DataFrame, rows: int = 20) -> Path:
    """In row groups that end within a trace."""
    plain = pa.Table.from_pandas(table, preserve_index=False)
    pyarrow.parquet.write_table(plain, path, row_group_size=rows)
    return path


def written(path: Path, table: pd.DataFrame) -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".parquet":
        return parquet(path, table)
    table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv"])
def test_each_trace_is_protected_as_a_file_of_its_own(
    tmp_path: Path, user_folders: Path, suffix: str
) -> None:
    table, out = written(tmp_path / f"fleet{suffix}", frame()), tmp_path / "out"
    said = summary(table, "-o", out)
    assert said["protected"] == 3
    names = {"a": "a", "b/7": "b%2F7", "c d": "c d"}
    assert set(outputs(out)) == {
        f"fleet/trip_id={safe}/{safe}.private{suffix}" for safe in names.values()
    }
    assert summary(table, "-o", out)["as_before"] == 3
    alone = written(tmp_path / f"one{suffix}", frame().query("trip_id == 'a'"))
    key = user_folders / "state" / "trailveil" / "batch.key"
    alone_output = protect(alone, tmp_path / f"one.private{suffix}", key, tmp_path / "other")
    assert alone_output == (out / "fleet" / "trip_id=a" / f"a.private{suffix}").read_bytes()


@pytest.mark.slow
def test_the_outputs_are_one_data_set_with_the_ids(tmp_path: Path) -> None:
    summary(parquet(tmp_path / "fleet.parquet", frame()), "-o", tmp_path / "out")
    whole = pd.read_parquet(tmp_path / "out" / "fleet")
    assert set(whole["trip_id"]) == set(IDS)
    assert set(whole.columns) == {"time", "geometry", "trip_id"}


@pytest.mark.slow
def test_whose_a_trace_is_its_column_says(tmp_path: Path) -> None:
    """Two people on the road at once; and one, which is refused."""
    both = [
        to_frame(ride(12, 30.0, seed=i)).assign(trip_id=str(i), user_id=name)
        for i, name in enumerate(("anna", "bert"))
    ]
    table = pd.concat(both, ignore_index=True).drop(columns=["track", "segment"])
    source = parquet(tmp_path / "fleet.parquet", table)
    assert summary(source, "-o", tmp_path / "out")["protected"] == 2
    # Of a table without such a column it is the folder that says it; this one is in none.
    by_folder = ("--subject-from", "folder")
    assert summary(source, "-o", tmp_path / "again", *by_folder)["protected"] == 2
    alone = parquet(tmp_path / "other.parquet", table.drop(columns="user_id"))
    done = batch(alone, "-o", tmp_path / "one")
    assert done.returncode == 1
    assert done.stderr.startswith("1: a recording must be released once")
    assert "beside them" in batch(alone, "-o", tmp_path / "no", *by_folder).stderr


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_who_is_stated_wins_over_a_column_of_people(
    tmp_path: Path, user_folders: Path, suffix: str
) -> None:
    """One name in both commands: a second, other release of one recording is refused."""
    source = written(tmp_path / "anna" / f"one{suffix}", frame(("7",)).assign(user_id="u0"))
    key, out = tmp_path / "key", tmp_path / "out"
    new_key(key)
    for words in (("--subject", "anna"), ()):
        given = ["protect", source, "-o", tmp_path / "a.csv", "--key", key, "--overwrite", *AT_ONCE]
        alone = CliRunner().invoke(cli, [*map(str, given), *words])
        assert alone.exit_code == 0, alone.output
        column = "Counted for 'me', whatever the column user_id says, by which a batch counts"
        assert (column in alone.stderr) == (not words)
    more = ("-o", out, "--key", key, "--mechanism", "noise", "--radius", "60")
    for words in (("--subject", "anna"), ("--subject-from", "folder"), ("--subject", "me")):
        done = batch(source.parent.parent / "anna" if "me" in words else tmp_path, *more, *words)
        assert done.returncode == 1
        assert "a recording must be released once" in done.stderr, done.stderr
    assert not outputs(out)
    for words in (("--subject", "anna"), ("--subject-from", "folder")):
        done = batch(source, *more, *words, "--subject-column", "user_id")
        assert done.returncode == 2
        assert f"--subject-column must come without {words[0]}" in done.stderr


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("category", [False, True])
@pytest.mark.parametrize("whose", [("anna", "bert"), ("anna", None), ("anna", "anna")])
def test_a_trace_of_several_people_is_refused(
    tmp_path: Path, suffix: str, category: bool, whose: tuple[str | None, str | None]
) -> None:
    """Numbers of trips that begin anew for each person: which they are of cannot be told."""
    table = pd.concat(
        [frame(("1", "2")).assign(user_id=person) for person in whose], ignore_index=True
    ).drop_duplicates(["trip_id", "time", "user_id"])
    if category:
        table["user_id"] = table["user_id"].astype("category")
    source = written(tmp_path / f"fleet{suffix}", table)
    if whose[0] == whose[1]:
        assert [person for _, person in traces_of(source, None, None)] == ["anna", "anna"]
    else:
        with pytest.raises(UnreadableInput, match="must be of one person, got one of several"):
            traces_of(source, None, None)


def test_who_is_not_said_is_nobody_by_name(tmp_path: Path) -> None:
    table = frame(("1", "2")).assign(user_id=None)
    table.loc[table["trip_id"] == "1", "user_id"] = "anna"
    for suffix in (".parquet", ".csv"):
        source = written(tmp_path / f"fleet{suffix}", table)
        assert [person for _, person in traces_of(source, None, None)] == ["anna", ""]


def test_tables_that_cannot_be_meant_are_one_line(tmp_path: Path) -> None:
    plain = frame()
    many = frame([str(i) for i in range(40)])
    mixed = many.iloc[np.random.default_rng(3).permutation(len(many))]
    for name, table, words, expected in (
        ("none", plain.drop(columns="trip_id"), (), "must have one column that names its traces"),
        ("two", plain.assign(track_id="x"), (), "got trip_id, track_id"),
        ("other", plain, ("--trace-column", "ride"), "got none named ride"),
        ("gone", plain.replace({"a": None}), (), "each row of a table must say which trace"),
    ):
        for suffix in (".parquet", ".csv"):
            source = written(tmp_path / f"{name}{suffix}", table)
            done = batch(source, "-o", tmp_path / "out", *words)
            assert done.returncode == 1
            assert expected in done.stderr, (name, done.stderr)
            assert done.stderr.count("\n") == 1
    spread = parquet(tmp_path / "spread.parquet", mixed, rows=60)
    assert "rows of a trace must lie together" in batch(spread, "-o", tmp_path / "out").stderr
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        parquet(tmp_path / name / "fleet.parquet", plain)
    twice = batch(tmp_path / "one", tmp_path / "two" / "fleet.parquet", "-o", tmp_path / "out")
    assert twice.returncode == 1
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and no more")
    cut = batch(tmp_path / "cut.parquet", "-o", tmp_path / "out")
    assert "input must be a whole Parquet file" in cut.stderr
    assert not (tmp_path / "out").exists()
