"""docs/comparison.md shows what the kept results say."""

import math

import pytest

from benchmarks import comparison
from benchmarks.comparison import COLUMNS, KEPT, PAGE, kept, lines, nearest, table, with_table


def test_the_page_is_made_of_the_kept_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page, lines(KEPT)) == page
    assert len(list(table(lines(KEPT)))) == 2 + len(comparison.MECHANISMS)


def test_what_is_kept_is_what_is_shown_and_stays_so() -> None:
    summary = lines(KEPT)
    assert kept(summary) == KEPT.read_text(encoding="utf-8")
    assert all(line["metric"] in comparison.SHOWN for line in summary)


def value(mechanism: str, head: str) -> float:
    (column,) = (column for column in COLUMNS if column[0] == head)
    line = nearest(lines(KEPT), mechanism, column)
    return math.inf if line is None else float(line["value"])


# Sentences of README, guarantees and this page, each a cell of the table.
@pytest.mark.parametrize(
    ("mechanism", "head", "low", "high"),
    [
        # The promise of the default request is a circle of 239 m; a circle is known to a fifth.
        ("cut", "posterior", 0.8 * 239, math.inf),
        ("noise", "posterior", 0.8 * 239, math.inf),
        ("cut", "map", 0.8 * 239, math.inf),
        # A street map can undo noise.
        ("noise", "map", 0.0, 60.0),
        # Independent noise averages out.
        ("planar-laplace", "posterior", 0.0, 100.0),
        # Noise that is made for one adversary is undone by another.
        ("sdp-a", "path", 0.0, 30.0),
        ("multiple-secrets", "path", 0.0, 30.0),
    ],
)
def test_claims_are_rows(mechanism: str, head: str, low: float, high: float) -> None:
    assert low <= value(mechanism, head) <= high
