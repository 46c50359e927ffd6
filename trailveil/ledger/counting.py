"""Counting a release in the ledger: what it is held against, what is added, what is refused."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from trailveil.errors import Refused
from trailveil.ledger import Book, Entry, LedgerRow, Mark
from trailveil.ledger.accounting import Account, Stated, account, cuts_before, is_in
from trailveil.ledger.marks import marks_of
from trailveil.ledger.public import PUBLIC, public_around
from trailveil.ledger.recorded import StoredRelease, bare, packed, restored
from trailveil.ledger.relatives import Relatives, is_finer_version, relatives_of, versions_in
from trailveil.ledger.retractions import Retraction, listed_files, retractions
from trailveil.ledger.versions import relatives
from trailveil.release.cutting import Window
from trailveil.release.plan import Plan
from trailveil.release.public import check_noise
from trailveil.release.request import Method
from trailveil.traces.retiming import SHIFTED_TO
from trailveil.traces.trace import TimeSeries

if TYPE_CHECKING:
    from trailveil.release.readings_release import ReadingsPlan

# An epsilon above this is said to be everything.
_ALL = 1e9
# What two sums in floating point may differ by.
_ROUNDING = 1 + 1e-9


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Countable:
    """What the ledger is told of a release.

    begin, end: of the recording, nanoseconds. series: as of an entry. name, noise_trace: of its
    mechanism, metres squared. prints: what the recording is recognised by. epsilon: of the worst
    part, by itself. plan: None for readings, of which no account is kept; bare where the process
    that counts got it from one that designed it. packed: its times and noise; marks: of `marks_of`.
    bases: of a version, the requests of those that its noise is drawn from, the finer first.
    output: the name of its file, by which its owner knows it.
    """

    begin: int
    end: int
    series: str
    name: str
    noise_trace: float
    prints: bytes
    epsilon: float
    plan: Plan | None = None
    packed: bytes = b""
    marks: tuple[Mark, ...] = ()
    bases: tuple[bytes, ...] = ()
    output: str = ""

    @property
    def sent(self) -> "Countable":
        """As little of it as another process needs to count it: without positions."""
        return self if self.plan is None else replace(self, plan=bare(self.plan))

    def whole(self, plan: Plan) -> Plan:
        """The plan, with times and noise, which `sent` leaves out."""
        return plan if len(plan.lattice) else restored(plan, self.packed)

    def entry(self, subject: str, request: bytes) -> Entry:
        """The entry, as far as it is the same for every kind of recording."""
        body = {"mechanism": self.name, "noise_trace": self.noise_trace, "epsilon": self.epsilon}
        if self.output:
            body["output"] = self.output
        about = (subject, self.series, self.begin, self.end, request, self.epsilon, body)
        return Entry(*about, prints=self.prints)

    def is_in(self, cuts: Sequence[StoredRelease]) -> bool:
        """Whether all of it is in earlier cuts of its recording."""
        return bool(cuts) and self.plan is not None and is_in(self.whole(self.plan), cuts)


class Counted(NamedTuple):
    """A release in the ledger.

    further: whether the recording, or a part of it, was released before with other noise. account:
    what it tells with all others; None for readings, and for many that are released again.
    relies_on: the numbers of other versions, without which it would be counted as more. retracted:
    the releases that it stands for, which count no more.
    """

    number: int
    further: bool
    account: Account | None = None
    relies_on: tuple[int, ...] = ()
    retracted: tuple[Retraction, ...] = ()

    def let_go(self, book: Book) -> None:
        """Say that no file of it appeared: see `Book.let_go`."""
        for number in (self.number, *self.relies_on):
            book.let_go(number)


def countable(
    plan: "Plan | ReadingsPlan", prints: bytes, bases: tuple[bytes, ...] = (), output: str = ""
) -> Countable:
    """The release of a recording, to be counted. prints, bases, output: as above."""
    begin, end = span(plan.trace)
    if not isinstance(plan, Plan):
        noise_trace, column = plan.mechanism.noise_trace, plan.trace.column
        about_it = (column, "readings", noise_trace, prints, plan.epsilon)
        return Countable(begin, end, *about_it, output=output)
    about = (plan.request.method.value, plan.mechanism.noise_trace, prints, 0.0)
    return Countable(begin, end, "", *about, plan, packed(plan), marks_of(plan), bases, output)


def count(
    book: Book,
    release: Countable,
    request: bytes,
    *,
    subject: str,
    again: bool,
    instead: bool | None = False,
    limit: float | None = None,
    nearby: bool = True,
) -> Counted:
    """Add a release to the ledger, unless it is in it.

    The row is relied on from now on: a run whose file does not appear must let it go
    (`Book.let_go`). request: as `Ledger.request_id` names it. nearby: whether what releases at
    other times tell of its times is reckoned; without, no total is recorded, but all that later
    ones need. instead: its owner says that nobody has what was released of the recording before:
    that counts no more; None where its owner has no way to say so. Raises Refused, and adds
    nothing, for a different release of the recording unless `again`, and for one beyond a limit of
    epsilon in total.
    """
    times = (release.begin, release.end)
    before = earlier(book, subject, release.series, *times, release.prints)
    alike = [row for row in before if row.request == request]
    retracted: tuple[Retraction, ...] = ()
    same = {row.number for row in book.alike(subject, release.series, release.prints)}
    if instead:
        others = [row for row in before if row.number in same and row not in alike]
        retracted, gone = retractions(book, others), _withdrawn(book, others, alike)
        before, alike = ([row for row in rows if row not in gone] for rows in (before, alike))
    kin = Relatives()
    if release.plan is not None and before and not alike:
        plan = release.whole(release.plan)
        kin = relatives(book, plan, release.prints, release.bases, before)
    unrelated = [row for row in before if row.number not in {*kin.finer, *kin.coarser}]
    further = len(unrelated) > len(alike)
    if further and not alike:
        cuts = cuts_before(book, [row.number for row in before], release.begin, release.prints)
        further = not release.is_in(cuts)
    if further and not alike and not again:
        files = listed_files(retractions(book, before))
        able = instead is not None and {row.number for row in before} <= same
        how: dict[str, Any] = {"series": release.series, "replaceable": able}
        raise released_before(subject, before, *times, files, **how)
    if alike:
        number = alike[-1].number
        book.claim(number)
        numbers = [row.number for row in before if row not in alike]
        further = bool({*numbers} - relatives_of(book, number, numbers))
        if release.plan is None or not nearby:
            return Counted(number, further, retracted=retracted)
        plan = release.whole(release.plan)
        account_now = recounted(book, number, plan, numbers, release.prints)
        return Counted(number, further, account_now, retracted=retracted)
    entry, total = release.entry(subject, request), None
    if release.plan is not None:
        if book.overlapping(subject, PUBLIC, -(2**63), 2**63):
            check_public(book, release.whole(release.plan), subject)
        numbers = [row.number for row in before]
        # Without any other, and by itself, its times and noise are not looked at.
        plan = release.whole(release.plan) if nearby or numbers else release.plan
        entry, total = _with_account(
            book, entry, release, plan, numbers, limit, kin=kin, nearby=nearby
        )
    for relative in (related := (*kin.finer, *kin.coarser)):
        book.claim(relative)
    return Counted(book.add(entry), further, total, related, retracted)


def _withdrawn(
    book: Book, others: Sequence[LedgerRow], alike: Sequence[LedgerRow]
) -> list[LedgerRow]:
    """Withdraw others of a recording, and what is like a release but was counted with these.

    A version is counted with what others of its recording are: without these, anew.
    """
    lost = {row.number for row in others}
    again = [row for row in alike if lost & {*sum(versions_in(book.body(row.number)), ())}]
    for row in (gone := [*others, *again]):
        book.withdraw(row.number)
    return gone


def span(recording: TimeSeries) -> tuple[int, int]:
    """When a recording begins and ends, nanoseconds."""
    return int(recording.times[0]), int(recording.times[-1])


def earlier(
    book: Book, subject: str, series: str, begin: int, end: int, prints: bytes
) -> list[LedgerRow]:
    """Releases of a recording or of a part of it: in the order of the ledger.

    Those that share time with it (that one begins where another ends is none), and those that are
    of it by its prints, whenever they say that it was.
    """
    rows = {
        row.number: row
        for row in book.overlapping(subject, series, begin, end)
        if _share_time(row, begin, end)
    }
    rows |= {row.number: row for row in book.alike(subject, series, prints)}
    return [rows[number] for number in sorted(rows)]


def released_before(
    subject: str,
    before: Sequence[LedgerRow],
    begin: int,
    end: int,
    files: str = "",
    *,
    series: str = "",
    replaceable: bool = True,
) -> Refused:
    """The refusal of a second, different release of a recording. before: of `earlier`.

    files: of these, as of `listed_files`. series: of readings. replaceable: whether `--replace` is
    an option of what was asked, and all these are known to be of this very recording.
    """
    got = "one of times that were released before in another way"
    if not any(_share_time(row, begin, end) for row in before):
        name, column = (" or by another name", " and --column") if series else ("", "")
        got = (
            f"one that was released before in another way, as of other times{name} "
            f"(say the same --tz{column} as before)"
        )
    first = "add --replace if nobody has" if replaceable else "keep to"
    given = "protected readings away" if series else "protected places away to a few metres"
    return Refused(
        f"a recording must be released once, got {got}: two different releases together can give "
        f"its {given}; {first} {files or 'the earlier one'}, ask for the same "
        "as before to get the same file (noise takes the same version of this program, numpy and "
        "scipy), add --again to accept both, or name whose it is (--subject) if it is not of the "
        f"one called {subject!r}"
    )


def _share_time(row: LedgerRow, begin: int, end: int) -> bool:
    if row.begin == begin == SHIFTED_TO:  # times that were made up, or shifted, say nothing
        return row.end == end
    return min(end, row.end) > max(begin, row.begin)


def _with_account(
    book: Book,
    entry: Entry,
    release: Countable,
    plan: Plan,
    others: Sequence[int],
    limit: float | None,
    *,
    kin: Relatives,
    nearby: bool,
) -> tuple[Entry, Account]:
    """The entry of a release of a trace, whole, and its account; refused beyond the limit.

    others: the numbers of releases that are of its recording; kin: of these, which are versions.
    """
    how: dict[str, Any] = {"nearby": nearby, "prints": entry.prints, "kin": kin}
    total, marks = account(book, plan, release.marks, entry.subject, others, **how)
    check_total(total, limit, plan.request.epsilon)
    body = {
        **entry.body,
        "epsilon": total.epsilon,
        "total": max(total.total, total.known) if nearby else None,
        "known": total.known if nearby or others else None,
        "alone": total.alone,
        "parts": [finding.stretch.label for finding in plan.findings],
        "places": [visit.place.name for visit in plan.visited],
        "stated": Stated.of(plan),
        "radius": total.stated.radius,
    }
    if plan.version:
        bases = [
            max((n for n in side if book.rows[n - 1].request in release.bases), default=None)
            for side in kin
        ]
        body["version"] = {
            "name": plan.version,
            "bases": bases,
            "share": plan.layer.share if plan.layer is not None else 0.0,
            "finer": kin.finer,
            "coarser": kin.coarser,
        }
    whole = replace(entry, epsilon=total.epsilon, body=body, marks=marks, blob=release.packed)
    return whole, total


def check_public(book: Book, plan: Plan, subject: str) -> None:
    """Refuse a release that was planned without what is public by now."""
    times = plan.trace.times
    public = public_around(book, subject, int(times[0]), int(times[-1]))
    if not public:
        return
    request = plan.request
    if request.method is not Method.CUT:
        visits = [interval for visit in plan.visited for interval in visit.intervals]
        spans = [(part.stretch.begin, part.stretch.end) for part in plan.findings]
        check_noise(plan.trace, request.path_from, public, [*spans, *visits])
    if not request.method.cuts:
        return
    scaled = [each._replace(deviation=each.deviation / request.scale) for each in public]
    for part in plan.findings:
        window = Window.of(plan.trace, part.stretch, request.uncertain, scaled)
        silent = max((part.cut or 0.0) - request.uncertain, np.nextafter(window.silence, 0.0))
        left = window.variance(request.paces, silent)
        if left * part.exposures[0].loss / request.wide**2 * _ROUNDING < 1:
            raise Refused(
                "a release must reckon with what is public already, got one that was planned "
                "without it: protect the recording again, by itself"
            )


def check_total(account: Account, limit: float | None, asked: float) -> None:
    """Refuse a release that would make more in total than a limit, and say what would fit.

    asked: the epsilon of the request.
    """
    if limit is None or account.total <= limit:
        return
    shown = "all that can be told" if account.total > _ALL else f"{account.total:.3g}"
    raise Refused(
        f"epsilon in total must be at most {limit:g}, got {shown} with this release after "
        f"{account.releases - 1} others; {_what_fits(account, limit, asked)}"
    )


def _what_fits(account: Account, limit: float, asked: float) -> str:
    if account.overlapping and not account.finest:
        return "nothing more of this recording fits: it was released before in another way"
    if account.finest and account.fresh <= 0:
        return f"{account.finest}, which is out, tells that already: state a larger --total-epsilon"
    if account.times > max(limit, account.epsilon):
        return "another release is near in time: hide this end too, or raise --total-epsilon"
    room = limit - (account.one_place - account.fresh)
    fits = room > 0 and 0 < account.fresh <= _ALL
    if not fits or any(place.at_most > limit for place in account.places):
        return "nothing more fits; name places that come back before they do (trailveil place add)"
    return f"about --epsilon {0.98 * asked * room / account.fresh:.2g} would still fit"


def recounted(book: Book, number: int, plan: Plan, others: Sequence[int], prints: bytes) -> Account:
    """What a release that is in the book tells with all others that are by now.

    Of places it counts for what it was counted for: what others of its recording count for depends
    on that. others: the numbers of these. prints: what the recording is recognised by.
    """
    stored = book.entry(number, b"")
    said = {each: versions_in(book.body(each)) for each in (number, *others)}
    finer = tuple(each for each in others if is_finer_version(said, each, number))
    coarser = tuple(each for each in others if is_finer_version(said, number, each))
    about = (replace(book, without=number), plan, stored.marks, stored.subject)
    joint, _ = account(*about, others, prints=prints, kin=Relatives(finer, coarser))
    counted, _ = account(*about, (), nearby=False)
    wider = joint.stated.epsilon(1.0) / counted.stated.epsilon(1.0)
    return replace(
        joint,
        epsilon=counted.epsilon,
        places=counted.places,
        one_place=counted.one_place * wider,
        fresh=counted.fresh * wider,
    )
