"""A run: what is done already is skipped, the rest is designed, counted in order, and appears.

Releases are counted in the order of the inputs, whoever designed them and however fast, so that
what is refused, and what is counted, is the same in every run. Of a group of releases that are
ready, first the manifest says what is coming; then all are counted, at one opening of the ledger;
then each appears; then the manifest says so. Whatever is cut off where, the next run goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trailveil.batch import manifest as rows
from trailveil.batch.inputs import Trip
from trailveil.batch.manifest import Manifest, Row, alone, check_room
from trailveil.batch.rules import Rules
from trailveil.batch.working import (
    DISK_WAITS,
    Engine,
    Failed,
    Outcome,
    Ready,
    Task,
    sha256_of,
    why_of,
)
from trailveil.errors import TrailveilError, UnwritableOutput
from trailveil.files.keys import name_of
from trailveil.files.output import put
from trailveil.files.source import named, stamp_of
from trailveil.gp.randomness import derive
from trailveil.ledger import Ledger, Session
from trailveil.ledger.counting import count
from trailveil.ledger.places import check_known, load_places
from trailveil.ledger.recorded import visits_of
from trailveil.release.places import Place
from trailveil.version import DESIGN_VERSION

PROTECTED, SAME, REFUSED = "protected", "as before", "refused"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Setting:
    """What holds for all traces of a run. again, overwrite: as of protect. limit: of epsilon."""

    outdir: Path
    key: bytes = field(repr=False)
    ledger: Ledger = field(repr=False)
    again: bool = False
    overwrite: bool = False
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class TripOutcome:
    """What became of one trace. about: what was promised of it; kind and line: why it was not."""

    name: str
    output: Path
    status: str
    about: dict[str, Any]
    kind: str = ""
    line: str = ""


def run(
    items: Sequence[Trip],
    rules_of: Callable[[Trip], Rules],
    setting: Setting,
    engine: Engine,
) -> Iterator[TripOutcome]:
    """Protect all traces; what became of each, as it is known.

    Raises UnwritableOutput where another run has the folder, or state or outputs cannot be kept;
    NoRoom, after what is outcomes of the traces before, where the disk is full;
    Refused where the ledger is not as it was left.
    """
    ledger = setting.ledger
    whole = load_places(ledger)
    with ledger.open() as book:
        check_known(ledger, book, whole)
    places = tuple(place for place in whole if not place.gone)
    known = rows.folder_of(ledger.folder, setting.outdir)
    with (
        alone(setting.outdir) as aside,
        rows.opened(known, setting.outdir) as manifest,
    ):
        going = _Run(list(items), rules_of, setting, manifest, aside, places)
        for group in engine(going.take):
            yield from going.skipped()
            yield from going.settled(group)
        yield from going.skipped()


class _Run:
    """Where a run is: which traces wait, which are under way."""

    def __init__(
        self,
        items: list[Trip],
        rules_of: Callable[[Trip], Rules],
        setting: Setting,
        manifest: Manifest,
        aside: Path,
        places: tuple[Place, ...],
    ) -> None:
        self._items = items
        self._rules_of = rules_of
        self._setting = setting
        self._manifest = manifest
        self._aside = aside
        self._places = places
        self._next = 0
        self._under_way: dict[int, Trip] = {}
        self._same: list[TripOutcome] = []
        self._known = Session()

    def take(self) -> Task | None:
        """The next trace that is not done; None for none, and where it must wait.

        Where there are places, noise depends on the earlier recordings of a person: they go one by
        one.
        """
        while self._next < len(self._items):
            item = self._items[self._next]
            waits = self._places and item.subject in {
                trip.subject for trip in self._under_way.values()
            }
            if waits:
                return None
            rules = self._rules_of(item)
            done = self._done(item, rules)
            if done is None:
                task = self._task(self._next, item, rules)
                self._under_way[self._next] = item
                self._next += 1
                return task
            self._same.append(done)
            self._next += 1
        return None

    def skipped(self) -> Iterator[TripOutcome]:
        """What is known of traces that were done before."""
        outcomes, self._same = self._same, []
        yield from outcomes

    def settled(self, group: Sequence[Outcome]) -> Iterator[TripOutcome]:
        """Count what is ready of a group, in order, and let it appear."""
        outcomes: dict[int, TripOutcome] = {}
        ready: dict[int, Ready] = {}
        for outcome in group:
            if isinstance(outcome, Ready):
                ready[outcome.number] = outcome
            else:
                outcomes[outcome.number] = self._refused(outcome.number, outcome)
        coming = self._coming(ready, outcomes)
        numbers, epsilons = self._counted(ready, outcomes)
        done = []
        counted = {number: row for number, row in coming.items() if number not in outcomes}
        with ThreadPoolExecutor(DISK_WAITS) as disk:
            errors = list(
                disk.map(lambda number: self._put(ready[number], counted[number]), counted)
            )
        for (number, row), error in zip(counted.items(), errors, strict=True):
            if error is not None:
                outcomes[number] = self._refused(number, error)
                self._let_go(numbers[number])
            else:
                about = row.about | {"epsilon": max(row.about["epsilon"], epsilons[number])}
                done.append(replace(row, status=rows.DONE, before=b"", about=about))
                outcomes[number] = self._outcome(number, PROTECTED, about)
        self._manifest.put([*done, *self._rows_of_refused(coming, outcomes)])
        for outcome in ready.values():
            outcome.aside.unlink(missing_ok=True)
        for outcome in group:
            yield outcomes[outcome.number]
            del self._under_way[outcome.number]
        check_room((each.kind for each in outcomes.values()), self._setting.outdir)

    def _coming(self, ready: dict[int, Ready], outcomes: dict[int, TripOutcome]) -> dict[int, Row]:
        """The rows that say what is coming, durable; files of somebody else are not replaced."""
        coming = {}
        for number, release in ready.items():
            item = self._under_way[number]
            old, before = self._row(item), sha256_of(item.output)
            if before and not self._setting.overwrite and not rows.may_be(old, before):
                outcomes[number] = self._refused(number, _taken(item.output))
                continue
            coming[number] = Row(
                self._name(item),
                item.name,
                rows.COMING,
                release.source,
                self._digest(item, self._rules_of(item)),
                release.output,
                before,
                release.about,
            )
        self._manifest.put(coming.values())
        return coming

    def _counted(
        self, ready: dict[int, Ready], outcomes: dict[int, TripOutcome]
    ) -> tuple[dict[int, int], dict[int, float]]:
        """The numbers of the rows of the ledger, durable, and what each release tells alone.

        Places with names are counted in that. Refusals are outcomes.
        """
        numbers: dict[int, int] = {}
        epsilons: dict[int, float] = {}
        setting = self._setting
        countable = {number: each for number, each in ready.items() if number not in outcomes}
        if not countable:
            return numbers, epsilons
        with setting.ledger.open(self._known) as book:
            for number, waiting in countable.items():
                subject = self._under_way[number].subject
                try:
                    counted = count(
                        *(book, waiting.release, waiting.request),
                        subject=subject,
                        again=setting.again,
                        instead=None,
                        limit=setting.limit,
                        nearby=setting.limit is not None,
                    )
                except TrailveilError as error:
                    outcomes[number] = self._refused(number, error)
                    continue
                numbers[number] = counted.number
                alike = book.overlapping(subject, "", waiting.release.begin, waiting.release.end)
                epsilons_before = [row.epsilon for row in alike if row.request == waiting.request]
                epsilons[number] = max(epsilons_before, default=0.0)
        return numbers, epsilons

    def _let_go(self, number: int) -> None:
        with self._setting.ledger.open(self._known) as book:
            book.let_go(number)

    def _put(self, ready: Ready, row: Row) -> TrailveilError | None:
        """Let a file appear; why it cannot."""
        output = self._under_way[ready.number].output
        if row.before == row.sha256:
            return None
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            put(ready.aside, output, overwrite=bool(row.before))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            return UnwritableOutput(
                f"the output must be writable, got the error '{reason}': {named(output)}"
            )
        except TrailveilError as error:
            return error
        return None

    def _rows_of_refused(
        self, coming: dict[int, Row], outcomes: dict[int, TripOutcome]
    ) -> Iterator[Row]:
        for number, outcome in outcomes.items():
            if outcome.status == REFUSED:
                item = self._under_way[number]
                old = self._row(item)
                yield rows.refused(self._name(item), item.name, outcome.line, outcome.kind, old)

    def _done(self, item: Trip, rules: Rules) -> TripOutcome | None:
        """What is outcomes of a trace of which input, rules and output are as they were left."""
        row = self._row(item)
        if row is None or row.status != rows.DONE:
            return None
        if sha256_of(item.output) != row.sha256 or row.rules != self._digest(item, rules):
            return None
        if not row.about.get("stamp") or row.about["stamp"] != list(stamp_of(item.source)):
            return None
        return TripOutcome(item.name, item.output, SAME, row.about)

    def _task(self, number: int, item: Trip, rules: Rules) -> Task:
        setting, visits = self._setting, []
        if self._places:
            with setting.ledger.open(self._known) as book:
                visits = visits_of(book, item.subject, self._places)
        secrets = (setting.key, setting.ledger)
        return Task(number, item, rules, self._aside, *secrets, self._places, tuple(visits))

    def _row(self, item: Trip) -> Row | None:
        return self._manifest.row(self._name(item))

    def _name(self, item: Trip) -> str:
        return item.output.relative_to(self._setting.outdir).as_posix()

    def _digest(self, item: Trip, rules: Rules) -> bytes:
        """A keyed digest of all that was asked of a trace, of whom and under which key."""
        asked = [rules.statement, item.subject.encode(), name_of(self._setting.key)]
        places = [place.seed(self._setting.key) for place in self._places]
        whole = [b"rules of a batch", bytes([DESIGN_VERSION]), *asked, *places]
        return derive(self._setting.ledger.key, whole)

    def _refused(self, number: int, error: Failed | TrailveilError) -> TripOutcome:
        if isinstance(error, Failed):
            return self._outcome(number, REFUSED, {}, error.kind, error.line)
        return self._outcome(number, REFUSED, {}, *why_of(error))

    def _outcome(
        self, number: int, status: str, about: dict[str, Any], kind: str = "", line: str = ""
    ) -> TripOutcome:
        item = self._under_way[number]
        return TripOutcome(item.name, item.output, status, about, kind, line)


def _taken(path: Path) -> UnwritableOutput:
    return UnwritableOutput(
        f"the output must not exist yet, or be as a batch left it, got another: {named(path)}; "
        "choose another folder, or add --overwrite"
    )
