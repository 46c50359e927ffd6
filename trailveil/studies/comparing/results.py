"""The tables of a comparison: a row for each number, and what they come to, with intervals."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.stats import beta

from trailveil.errors import Unavailable, installing
from trailveil.gp.gaussian import FloatArray
from trailveil.studies.comparing.cases import generator
from trailveil.studies.comparing.metrics import heat_map
from trailveil.studies.comparing.running import Comparison, Done, Portion

if TYPE_CHECKING:
    from pandas import DataFrame

KEYS = ("data", "mechanism", "draw", "person", "trace", "attack", "metric", "secret")
GROUPS = ("data", "mechanism", "attack", "metric", "secret")
RATES = ("identified", "held_68", "refused", "failed")
"""Metrics that are 0 or 1, of which the mean is shown."""

ERROR = "error_m"
_RESAMPLES, _BLOCKS, _INTERVAL = 1000, 20, 0.95
_WIDE = 3.0  # ranks on either side of a quantile, in roots of how many values there are

Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class SummaryRow:
    """What the numbers of a group come to.

    group: of `GROUPS`. statistic: mean, median or 68 % (of errors: the radius of the circle around
    the truth that holds 68 % of the guesses, infinite where more than 32 % have none). low, high: a
    95 % interval, NaN for fewer than two people. interval: how it came about.
    """

    group: tuple[str, ...]
    statistic: str
    value: float
    low: float
    high: float
    interval: str
    values: int
    people: int


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """Every number of a comparison. names: of each column of `KEYS`. codes: (n,) rows of these."""

    names: Mapping[str, tuple[str, ...]]
    codes: Mapping[str, Integers]
    values: FloatArray
    lines: tuple[SummaryRow, ...]

    def frame(self) -> "DataFrame":
        """All rows as a table of pandas. Raises Unavailable where that is missing."""
        try:
            import pandas
        except ImportError:
            raise Unavailable(
                f"a table must have pandas, got none; say: {installing('frames')}"
            ) from None
        columns: dict[str, Any] = {
            key: pandas.Categorical.from_codes(self.codes[key], list(self.names[key]))
            for key in KEYS
        }
        return pandas.DataFrame(columns | {"value": self.values})

    def parquet(self) -> bytes:
        """All rows as Parquet. Raises Unavailable where pyarrow is missing."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise Unavailable(
                f"Parquet must have pyarrow, got none; say: {installing('parquet')}"
            ) from None
        columns = {
            key: pyarrow.DictionaryArray.from_arrays(self.codes[key], list(self.names[key]))
            for key in KEYS
        }
        stream = io.BytesIO()
        pyarrow.parquet.write_table(pyarrow.table(columns | {"value": self.values}), stream)
        return stream.getvalue()

    def csv(self) -> Iterator[str]:
        """All rows as lines of CSV."""
        names = [self.names[key] for key in KEYS]
        rows = zip(*(self.codes[key].tolist() for key in KEYS), self.values.tolist(), strict=True)
        yield from written(
            (*KEYS, "value"),
            ((*(n[i] for n, i in zip(names, row[:-1], strict=True)), row[-1]) for row in rows),
        )

    def summary(self) -> Iterator[str]:
        """The lines as CSV."""
        head = (*GROUPS, "statistic", "value", "low", "high", "interval", "values", "people")
        yield from written(
            head,
            (
                (*x.group, x.statistic, x.value, x.low, x.high, x.interval, x.values, x.people)
                for x in self.lines
            ),
        )

    def line(self, **group: str) -> SummaryRow:
        """The row of a group, by those names of `GROUPS` that single it out.

        KeyError where there is none, or several.
        """
        matching = [
            line
            for line in self.lines
            if all(dict(zip(GROUPS, line.group, strict=True))[key] == group[key] for key in group)
        ]
        if len(matching) != 1:
            raise KeyError(f"{len(matching)} lines of {group}")
        return matching[0]


def written(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Lines of CSV; numbers to all their digits, nothing for NaN."""
    stream = io.StringIO()
    lines = csv.writer(stream, lineterminator="\n")
    lines.writerow(head)
    for row in rows:
        lines.writerow(["" if isinstance(cell, float) and isnan(cell) else cell for cell in row])
        if stream.tell() > 1_000_000:
            yield stream.getvalue()
            stream.seek(0)
            stream.truncate()
    yield stream.getvalue()


def results_of(comparison: Comparison, outcomes: Sequence[tuple[Portion, Done]]) -> Results:
    """The tables of what came of all portions, in their order."""
    known: dict[str, dict[str, int]] = {key: {} for key in KEYS}
    codes: dict[str, list[int]] = {key: [] for key in KEYS}
    values: list[float] = []
    for portion, done in outcomes:
        mechanism = comparison.mechanisms[portion.mechanism].name
        for *about, value in done["rows"]:
            row = (portion.data, mechanism, str(portion.draw), *about)
            for key, name in zip(KEYS, row, strict=True):
                codes[key].append(known[key].setdefault(name, len(known[key])))
            values.append(value)
    names = {key: tuple(known[key]) for key in KEYS}
    arrays = {key: np.array(codes[key], dtype=np.int32) for key in KEYS}
    numbers = np.array(values, dtype=np.float64)
    lines = [*_lines(names, arrays, numbers, comparison.seed), *_heat_maps(comparison, outcomes)]
    return Results(names, arrays, numbers, tuple(lines))


def _lines(
    names: Mapping[str, tuple[str, ...]],
    codes: Mapping[str, Integers],
    values: FloatArray,
    seed: int,
) -> Iterator[SummaryRow]:
    if not values.size:
        return
    stacked = np.stack([codes[key] for key in GROUPS])
    order = np.lexsort(stacked[::-1])
    edges = np.flatnonzero(np.any(np.diff(stacked[:, order], axis=1) != 0, axis=0)) + 1
    for unordered in np.split(order, edges):
        rows = np.sort(unordered)
        group = tuple(names[key][codes[key][rows[0]]] for key in GROUPS)
        yield _row(group, values[rows], codes["person"][rows], seed)


def _row(group: tuple[str, ...], values: FloatArray, people: Integers, seed: int) -> SummaryRow:
    metric = group[GROUPS.index("metric")]
    if metric == ERROR:
        values = np.where(np.isnan(values), np.inf, values)
    usable = ~np.isnan(values)
    values = values[usable]
    people = np.unique(people[usable], return_inverse=True)[1].astype(np.int32)
    count = int(people.max(initial=-1)) + 1
    statistic = "mean" if metric in RATES else "68 %" if metric == ERROR else "median"
    if not values.size:
        return SummaryRow(group, statistic, np.nan, np.nan, np.nan, "none", 0, 0)
    rate = metric in RATES
    share = None if rate else 0.68 if metric == ERROR else 0.5
    value = float(_statistics(values, people, np.ones((1, count)), share)[0])
    if rate and (count == values.size or value in (0.0, 1.0)):
        low, high = clopper_pearson(round(value * count), count)
        return SummaryRow(group, statistic, value, low, high, "Clopper-Pearson", values.size, count)
    if count < 2:
        return SummaryRow(group, statistic, value, np.nan, np.nan, "none", values.size, count)
    low, high = _interval(_statistics(values, people, _weights(count, seed), share))
    return SummaryRow(group, statistic, value, low, high, "bootstrap of people", values.size, count)


@lru_cache(maxsize=4)
def _weights(people: int, seed: int) -> FloatArray:
    """How often each person is drawn (resamples, people)."""
    random = generator("bootstrap", seed, people)
    return random.multinomial(people, np.full(people, 1 / people), _RESAMPLES).astype(np.float64)


def _interval(resampled: FloatArray) -> tuple[float, float]:
    outside = (1 - _INTERVAL) / 2
    ordered = np.sort(resampled[~np.isnan(resampled)])
    if not ordered.size:
        return np.nan, np.nan
    last = ordered.size - 1
    return float(ordered[int(outside * last)]), float(ordered[int(np.ceil((1 - outside) * last))])


def _statistics(
    values: FloatArray, people: Integers, weights: FloatArray, share: float | None
) -> FloatArray:
    """Of values (n,) of people (n,) that count by weights (resamples, people): (resamples,).

    The least value that a share of the weight is at or below; for None the mean.
    """
    if share is None:
        sums = np.bincount(people, weights=values)
        return np.asarray((weights @ sums) / (weights @ np.bincount(people)))
    order = np.argsort(values, kind="stable")
    ranked = people[order]
    # Whole numbers, so that a share that is met exactly is not missed by rounding.
    least = np.ceil(share * (weights @ np.bincount(ranked)) - 1e-9)
    # Nearly all resamples come to a rank near the middle of them: to look there is enough.
    size, wide = values.size, round(_WIDE * np.sqrt(values.size * np.bincount(people).max()))
    low, high = max(0, round(share * size) - wide), min(size, round(share * size) + wide)
    below = weights @ np.bincount(ranked[:low], minlength=weights.shape[1])
    reached = below[:, None] + np.cumsum(weights[:, ranked[low:high]], axis=1)
    if np.any(below >= least) or np.any(reached[:, -1] < least):
        low, reached = 0, np.cumsum(weights[:, ranked], axis=1)
    return np.asarray(values[order][low + np.argmax(reached >= least[:, None], axis=1)])


def clopper_pearson(hits: int, count: int) -> tuple[float, float]:
    """The exact 95 % interval of a rate. Source: Clopper and Pearson (1934), Biometrika 26."""
    outside = (1 - _INTERVAL) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(outside, hits, count - hits + 1))
    high = 1.0 if hits == count else float(beta.ppf(1 - outside, hits + 1, count - hits))
    return low, high


def _maps(of_people: Sequence[tuple[str, Any]]) -> tuple[csr_array, csr_array]:
    """Seconds of each person in each cell (people, cells), before and after."""
    columns: dict[str, int] = {}
    numbers: dict[str, int] = {}
    entries: tuple[list[tuple[int, int, float]], ...] = ([], [])
    for person, pair in of_people:
        row = numbers.setdefault(person, len(numbers))
        for side, cells in zip(entries, pair, strict=True):
            for cell, seconds in cells.items():
                side.append((row, columns.setdefault(cell, len(columns)), seconds))
    maps = [np.array(side, dtype=np.float64).reshape(-1, 3) for side in entries]
    before, after = (
        coo_array(
            (each[:, 2], (each[:, 0].astype(np.intp), each[:, 1].astype(np.intp))),
            shape=(len(numbers), len(columns)),
        ).tocsr()
        for each in maps
    )
    return before, after


def _heat_maps(
    comparison: Comparison, outcomes: Sequence[tuple[Portion, Done]]
) -> Iterator[SummaryRow]:
    """The divergence of the heat maps of each data set, before and after each mechanism."""
    spent: dict[tuple[str, str], list[tuple[str, Any]]] = {}
    for portion, done in outcomes:
        key = (portion.data, comparison.mechanisms[portion.mechanism].name)
        spent.setdefault(key, []).extend(done["cells"].items())
    for (data, mechanism), of_people in spent.items():
        before, after = _maps(of_people)
        group = (data, mechanism, "", "heat_map", "")
        count = before.shape[0]

        def divergence(
            weights: FloatArray, before: csr_array = before, after: csr_array = after
        ) -> FloatArray:
            return heat_map(weights @ before, weights @ after)

        value = float(divergence(np.ones((1, count)))[0]) if before.shape[1] else np.nan
        low = high = np.nan
        if count > 1 and before.shape[1]:
            # Not all at once: a data set may have many cells.
            blocks = np.split(_weights(count, comparison.seed), _BLOCKS)
            low, high = _interval(np.concatenate([divergence(block) for block in blocks]))
        kind = "bootstrap of people" if count > 1 else "none"
        yield SummaryRow(group, "whole", value, low, high, kind, count, count)
