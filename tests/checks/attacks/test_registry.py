"""Each attack of the registry: what its row says is so, and the documents say the same."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.checks.attacks.weak import DRAWS, HOME, TIMES, knowledge, recorded, view, white
from trailveil.checks.attacks.registry import ATTACKS, Needs, RegisteredAttack, chosen
from trailveil.cli import cli
from trailveil.cli.audit import FOR_ATTACKS, NAMES
from trailveil.errors import InvalidValue
from trailveil.studies.comparing import tables

PAGE = Path(__file__).parents[3] / "docs/commands/audit.md"
each = pytest.mark.parametrize("row", ATTACKS.values(), ids=ATTACKS)
alone = pytest.mark.parametrize(
    "row",
    [row for row in ATTACKS.values() if row.alone and row.needs is not Needs.STREETS],
    ids=lambda row: row.name,
)


def option(row: RegisteredAttack) -> str:
    return f" (`{FOR_ATTACKS[row.needs]}`)" if row.needs else ""


def test_the_table_of_the_documents_is_that_of_the_registry() -> None:
    """In the order of the registry; a row may have links, and names the option that it needs."""
    plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", PAGE.read_text(encoding="utf-8"))
    table = re.findall(r"^\| `([\w-]+)` \| (.+) \| (.+) \|$", plain, flags=re.MULTILINE)
    expected = [
        (row.name, row.attacker + option(row), str(row.held_to)) for row in ATTACKS.values()
    ]
    assert [row for row in table if row[0] in ATTACKS] == expected
    assert {name for name, _, _ in table} >= {*NAMES}


@each
def test_the_help_describes_it(row: RegisteredAttack) -> None:
    text = " ".join(CliRunner().invoke(cli, ["audit", "--help"]).output.split())
    assert f" {row.name}: {row.attacker} " in f"{text} "


@each
def test_compare_has_it(row: RegisteredAttack) -> None:
    assert row.name in tables.ATTACKS


@each
def test_what_it_needs_is_asked_for(row: RegisteredAttack) -> None:
    assert chosen([row.name], [*Needs]) == [row]
    assert (row in chosen(None, ())) == (row.needs is Needs.NOTHING)
    if row.needs:
        with pytest.raises(InvalidValue, match=f"{row.name} must have"):
            chosen([row.name], ())


@alone
def test_what_need_not_know_the_noise_is_tried_without(row: RegisteredAttack) -> None:
    """An estimate of each secret, or None. With a map: tests/checks/attacks/test_on_streets.py."""
    known = knowledge(None)
    if row.needs is Needs.TRACKS:
        known = replace(known, tracks=(recorded(),))
    noise = 5.0 * np.random.default_rng(1).standard_normal((DRAWS, TIMES.size, 2))
    (estimate,) = row.attack(view(noise, white(5.0)), known)
    assert estimate is None or np.isfinite(estimate.errors(HOME)).all()


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"must be posterior, .*, got 'guess'"):
        chosen(["guess"], ())
