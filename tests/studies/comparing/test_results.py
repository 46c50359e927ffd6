"""Tables: a row for each number; statistics and intervals against other ways to compute them."""

import csv
import io

import numpy as np
import pytest
from scipy.stats import binomtest

from trailveil.studies.comparing import compare
from trailveil.studies.comparing.results import (
    KEYS,
    Results,
    _row,
    _statistics,
    _weights,
    clopper_pearson,
)

SETTINGS = {
    "data": ["people"],
    "mechanisms": ["planar-laplace", "nothing"],
    "attacks": ["still", "stays", "heat-map"],
    "metrics": ["moved", "withheld"],
    "data-of": {"people": {"people": 3, "days": 2, "step": 60.0}},
}


@pytest.fixture(scope="module")
def results() -> Results:
    return compare(SETTINGS)


def test_there_is_a_row_for_each_number(results: Results) -> None:
    frame = results.frame()
    assert list(frame.columns) == [*KEYS, "value"]
    errors = frame[(frame.metric == "error_m") & (frame.mechanism == "planar-laplace")]
    # Two attacks on three secrets of six recordings.
    assert len(errors) == 2 * 3 * 6
    assert set(errors.secret) == {"home", "stay", "home #2"}
    # The second of two days of each person is to be identified; not by nothing.
    assert len(frame[frame.metric == "identified"]) == 3
    nothing = frame[(frame.mechanism == "nothing") & (frame.metric == "moved")]
    assert nothing.value.isna().all()


def test_csv_and_parquet_hold_the_same(results: Results) -> None:
    import pandas

    rows = list(csv.DictReader(io.StringIO("".join(results.csv()))))
    table = pandas.read_parquet(io.BytesIO(results.parquet()))
    assert len(rows) == len(table) == results.values.size
    for key in KEYS:
        assert [row[key] for row in rows] == table[key].astype(str).tolist()
    values = [float(row["value"]) if row["value"] else np.nan for row in rows]
    assert np.array_equal(values, table["value"], equal_nan=True)


def test_a_summary_is_of_the_rows(results: Results) -> None:
    frame = results.frame()
    of = {"mechanism": "planar-laplace", "attack": "still", "metric": "error_m"}
    of |= {"secret": "stay"}
    line = results.line(data="people", **of)
    rows = frame
    for key, name in of.items():
        rows = rows[rows[key] == name]
    ordered = np.sort(rows.value)
    assert line.value == ordered[int(np.ceil(0.68 * ordered.size)) - 1]
    assert (line.values, line.people) == (6, 3)
    assert line.low <= line.value <= line.high
    assert line.interval == "bootstrap of people"
    nothing = results.line(mechanism="nothing", attack="still", metric="error_m", secret="stay")
    assert nothing.value == np.inf
    with pytest.raises(KeyError, match="0 lines"):
        results.line(mechanism="none")


def test_rates_of_one_number_each_have_the_exact_interval() -> None:
    for hits, count in ((0, 7), (3, 7), (7, 7), (40, 200)):
        exact = binomtest(hits, count).proportion_ci(0.95, "exact")
        assert clopper_pearson(hits, count) == pytest.approx((exact.low, exact.high))
    people = np.arange(4, dtype=np.int32)
    row = _row(("", "", "", "held_68", ""), np.array([1.0, 0, 1, 1]), people, 1)
    assert (row.value, row.interval) == (0.75, "Clopper-Pearson")


def test_a_bootstrap_is_of_people_and_not_of_numbers() -> None:
    """Two people whose numbers do not vary: the interval is as wide as they are apart."""
    values, people = np.repeat([1.0, 2.0], 500), np.repeat([0, 1], 500)
    row = _row(("", "", "", "moved", ""), values, people.astype(np.int32), 1)
    assert (row.low, row.high) == (1.0, 2.0)
    single = _row(("", "", "", "moved", ""), values[:500], people[:500].astype(np.int32), 1)
    assert np.isnan(single.low)


def test_an_interval_covers_as_often_as_it_says() -> None:
    """500 studies of 40 people: 95 % within 4 % (four deviations); a bootstrap is a bit narrow."""
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(500):
        values = generator.exponential(1.0, 40)
        row = _row(("", "", "", "moved", ""), values, np.arange(40, dtype=np.int32), 1)
        held += row.low <= np.log(2) <= row.high
    assert 0.90 <= held / 500 <= 0.99


def test_weighted_statistics_are_those_of_repeated_numbers() -> None:
    generator = np.random.default_rng(1)
    values, people = generator.random(30), generator.integers(0, 6, 30).astype(np.int32)
    weights = generator.multinomial(6, np.full(6, 1 / 6), 20).astype(float)
    for share in (0.5, 0.68, None):
        found = _statistics(values, people, weights, share)
        for row, each in enumerate(weights):
            repeated = np.sort(np.repeat(values, each[people].astype(int)))
            if not repeated.size:
                continue
            expected = (
                repeated.mean()
                if share is None
                else repeated[int(np.ceil(share * repeated.size - 1e-9)) - 1]
            )
            assert found[row] == pytest.approx(expected)


@pytest.mark.parametrize("each", [1, 40])
@pytest.mark.parametrize("wide", [3.0, 0.3])
@pytest.mark.parametrize("kind", ["normal", "ties", "of people"])
def test_resamples_are_looked_at_near_their_quantile_and_none_is_missed(
    kind: str, wide: float, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the whole of every resample has it, also where some are further off than is looked."""
    monkeypatch.setattr("trailveil.studies.comparing.results._WIDE", wide)
    generator = np.random.default_rng(each)
    people = np.repeat(np.arange(80), each).astype(np.int32)
    values = generator.normal(size=people.size)
    if kind == "ties":
        values = np.round(values)
    elif kind == "of people":
        values += 1000.0 * people
    weights = _weights(80, 1)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[:, people[order]], axis=1)
    for share in (0.5, 0.68):
        rows = np.argmax(reached >= np.ceil(share * reached[:, -1:] - 1e-9), axis=1)
        assert np.array_equal(_statistics(values, people, weights, share), values[order][rows])


def test_a_heat_map_of_a_release_that_is_the_recording_does_not_diverge() -> None:
    same = compare({**SETTINGS, "mechanisms": ["identity"], "attacks": ["stays"]})
    line = same.line(metric="heat_map")
    assert (line.value, line.low, line.high) == (0.0, 0.0, 0.0)
