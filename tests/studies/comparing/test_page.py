"""docs/validation.md shows what the kept results say, and claims of other pages are its rows."""

import json
import re

import pytest

from benchmarks import comparison, validation
from benchmarks.comparison import COLUMNS, FACTS, KEPT, ON_RECORDINGS, kept, lines, nearest, table
from benchmarks.validation import CLAIMS, PAGE, PICTURE, ROOT, Claim, measured, with_tables
from trailveil.privacy.promises import FLOORS


def test_the_page_is_made_of_the_kept_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, lines(KEPT)) == page
    for columns in (COLUMNS, ON_RECORDINGS):
        assert len(list(table(lines(KEPT), columns))) == 2 + len(comparison.MECHANISMS)
    assert PICTURE.name in page


def test_a_figure_that_was_changed_by_hand_is_noticed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    changed = re.sub(r"(?<=\|cut\|0\|)\d+", "46", page, count=1)
    assert changed != page
    assert with_tables(changed, lines(KEPT)) == page


def test_what_is_kept_is_what_is_shown_and_stays_so() -> None:
    summary = lines(KEPT)
    assert kept(summary) == KEPT.read_text(encoding="utf-8")
    assert all(line["metric"] in comparison.SHOWN for line in summary)


def test_each_data_set_says_on_what_it_rests() -> None:
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    assert set(facts) == {line["data"] for line in lines(KEPT)}
    for of_data in facts.values():
        assert of_data["recordings"] >= of_data["people"] > 1
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", of_data["date"])


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.words}, {claim.mechanism}")
def test_claims_stand_on_their_pages_and_hold(claim: Claim) -> None:
    page = " ".join((ROOT / claim.page).read_text(encoding="utf-8").replace("*", "").split())
    assert claim.words in page
    line = measured(claim, lines(KEPT))
    assert claim.low <= float(line["value"]) <= claim.high
    row = f"{claim.words}|{claim.mechanism}, {claim.column}|"
    assert row in PAGE.read_text(encoding="utf-8")


# Sentences of the page itself, each a cell of its table.
@pytest.mark.parametrize(
    ("mechanism", "head", "most"),
    [
        # Independent noise averages out.
        ("planar-laplace", "posterior", 100.0),
        # Noise that is made for one adversary is undone by another.
        ("sdp-a", "path", 30.0),
        ("multiple-secrets", "path", 30.0),
        # An earlier ride undoes cuts and zones.
        ("cut", "earlier ride", 60.0),
        ("zones", "earlier ride", 60.0),
    ],
)
def test_sentences_of_the_page_are_cells_of_it(mechanism: str, head: str, most: float) -> None:
    (column,) = (column for column in COLUMNS if column[0] == head)
    line = nearest(lines(KEPT), mechanism, column)
    assert line is not None
    assert float(line["value"]) <= most


def test_a_floor_that_ships_is_no_better_than_measured() -> None:
    """To the 2 % by which the resampling of people varies: two digits are stated."""
    for activity, of_activity in validation.results("activity_floors")["activities"].items():
        floors = FLOORS[activity]
        for ships, where in zip(floors, ("end", "middle"), strict=True):
            bound = of_activity["floors"][where]["bound"]
            assert bound is None or ships <= 1.02 * bound
