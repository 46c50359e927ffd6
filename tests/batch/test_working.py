"""What a worker makes of some traces: each is on the disk before it is told to be ready."""

from pathlib import Path

import pytest

from tests.batch.fleets import SHORT, fleet
from trailveil.batch import working
from trailveil.batch.inputs import InputRules, find
from trailveil.batch.rules import Rules
from trailveil.batch.working import Failed, Ready, Task, work_all
from trailveil.errors import UnwritableOutput
from trailveil.files.output import made_durable
from trailveil.ledger import open_ledger
from trailveil.traces.selection import Chosen


def test_a_file_that_does_not_get_to_the_disk_is_refused_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rides = fleet(tmp_path / "rides", 5)
    items = find([str(rides)], tmp_path / "out", InputRules(lambda *_: "me")).items
    rules = Rules(Chosen(returns=False), SHORT)
    ledger, aside = open_ledger(tmp_path / "state"), tmp_path / "aside"
    aside.mkdir()
    tasks = [Task(i, item, rules, aside, bytes(32), ledger) for i, item in enumerate(items)]
    durable: list[Path] = []

    def watched(path: Path) -> None:
        made_durable(path)
        durable.append(path)
        if path.name.startswith("3-"):
            raise UnwritableOutput("the disk is full")

    monkeypatch.setattr(working, "made_durable", watched)
    outcomes, seconds = work_all(tasks)
    assert [outcome.number for outcome in outcomes] == [0, 1, 2, 3, 4]
    assert outcomes[3] == Failed(3, "UnwritableOutput", "the disk is full")
    ready = [outcome for outcome in outcomes if isinstance(outcome, Ready)]
    assert len(ready) == 4
    assert {outcome.aside for outcome in ready} < set(durable)
    assert seconds > 0
