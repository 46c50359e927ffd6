"""What docs/commands/compare.md says: its settings and examples run, and add what they say."""

import re
from pathlib import Path
from typing import Any

import pytest

import trailveil as tv
from trailveil.studies.comparing.results import Results
from trailveil.studies.comparing.tables import ATTACKS, DATA, MECHANISMS, METRICS

PAGE = (Path(__file__).parents[2] / "docs/commands/compare.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.slow
def test_a_mechanism_and_an_attack_are_added_from_the_page_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names: dict[str, Any] = {}
    for block in blocks("python"):
        assert block.count("\n") < 40
        exec(compile(block, "compare.md", "exec"), names)
    results = names["results"]
    assert isinstance(results, Results)
    assert set(results.names["mechanism"]) == {"cut", "swapped"}
    assert {"stays", "middle"} <= set(results.names["attack"])
    # A shuffle within ten minutes hides no stay of fifteen.
    assert float(capsys.readouterr().out) < 150.0
    assert len(names["table"]) == results.values.size


@pytest.mark.parametrize("table", [ATTACKS, DATA, MECHANISMS, METRICS])
def test_the_page_names_all_that_there_is(table: dict[str, Any]) -> None:
    audit = (Path(__file__).parents[2] / "docs/commands/audit.md").read_text(encoding="utf-8")
    missing = [name for name in table if f"`{name}`" not in PAGE + audit]
    assert missing == []


@pytest.mark.parametrize("table", [ATTACKS, MECHANISMS, METRICS])
def test_each_is_described(table: dict[str, Any]) -> None:
    assert all(function.__doc__ for function in table.values())


def test_it_is_public() -> None:
    assert tv.studies.compare.__doc__
    with pytest.raises(AttributeError, match="no attribute"):
        tv.studies.comparison  # noqa: B018
