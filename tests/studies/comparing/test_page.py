"""docs/validation.md shows what the kept results say, and claims of other pages are its rows."""

import json
import re

import pytest

from benchmarks import comparison, validation
from benchmarks.comparison import (
    COLUMNS,
    FACTS,
    HERE,
    KEPT,
    ON_RECORDINGS,
    kept,
    lines,
    nearest,
    table,
)
from benchmarks.validation import CLAIMS, PAGE, PICTURE, ROOT, Claim, floors, measured, with_tables
from trailveil.privacy.promises import FLOORS
from trailveil.studies.comparing.settings import read_settings


def test_the_page_is_made_of_the_kept_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, lines(KEPT)) == page
    for columns, settings in ((COLUMNS, "comparison"), (ON_RECORDINGS, "comparison-recordings")):
        mechanisms = read_settings(HERE / f"{settings}.toml").mechanisms
        assert len(list(table(lines(KEPT), columns))) == 2 + len(mechanisms)
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
    row = f"{claim.words}|{claim.mechanism}: {line['attack']}, {line['secret']}|"
    assert row in PAGE.read_text(encoding="utf-8")


def test_the_page_names_the_attacks_of_which_a_cell_is_the_nearest() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for head, _, _, attacks in (*COLUMNS, *ON_RECORDINGS):
        assert f"|{head}|" in page
        if len(attacks) > 1:
            names = ", ".join(f"`{name}`" for name in attacks)
            assert re.search(rf"^- (.*, )?{head}(, .*)?: {names}$", page, flags=re.MULTILINE)


def test_words_on_the_default_prior_are_cells_of_the_table() -> None:
    """Over everybody, by gap: 95 % intervals; at the longest, those of 68 %. And at the floors."""
    rows = {r["gap"]: r for r in validation.results("realism")["rows"] if rated(r)}
    of_95 = [100 * rows[gap]["in_95"][0] for gap in validation.GAPS]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert "intervals of 95 % hold {:.0f}, {:.0f} and {:.0f} %".format(*of_95) in page
    assert f"At 600 s those of 68 % hold {100 * rows[600.0]['in_68'][0]:.0f} %" in page
    (drive,) = (row for row in floors() if row.startswith("|drive"))
    assert f"more so for drivers: {drive.strip('|').rpartition('|')[2]} %" in page


def rated(row: dict[str, object]) -> bool:
    return (row["way"], row["pace"]) == ("default", "all")


# Sentences of the page itself, each a cell of its table.
@pytest.mark.parametrize(
    ("mechanism", "head", "most"),
    [
        # Independent noise averages out.
        ("planar-laplace", "stranger", 100.0),
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
        for ships, where in zip(FLOORS[activity], ("end", "middle"), strict=True):
            bound = of_activity["floors"][where]["bound"]
            assert bound is None or ships <= 1.02 * bound


def test_the_page_of_paces_has_the_figures_that_were_measured() -> None:
    """Floors that ship, the slowest tenth of people against either adversary, and of how many."""
    page = (ROOT / "docs" / "activities.md").read_text(encoding="utf-8")
    for row in list(floors())[2:]:
        counts, *both = row.strip("|").split("|")[:3]
        activity, numbers = counts.split(": ")
        stated = (
            [f"{ships}; {slowest} m/s" for ships, _, slowest in (cell.split(", ") for cell in both)]
            if "too few" not in both[0]
            else ["as a walk: four runners are too few", ""]
        )
        assert f"|{activity}|{'|'.join(stated)}|{numbers}|" in page
