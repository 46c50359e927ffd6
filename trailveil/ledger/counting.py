"""Counting a release in the ledger: what it is held against, what is added, what is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from trailveil.errors import Refused
from trailveil.ledger import Book, Entry, LedgerRow, Mark
from trailveil.ledger.accounting import Account, account
from trailveil.ledger.places import Visited
from trailveil.ledger.published import Published
from trailveil.ledger.recorded import StoredRelease, bare, packed, restored
from trailveil.ledger.unions import cuts_before, is_in
from trailveil.release.plan import Plan
from trailveil.traces.readings import Timed
from trailveil.traces.retiming import SHIFTED_TO

# Relative: releases of one request whose noise differs by more than this are not the same.
_SAME_NOISE = 1e-6
# An epsilon above this is said to be everything.
_ALL = 1e9


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Countable:
    """What the ledger is told of a release: `counted` makes an entry whole, and its account.

    begin, end: of the recording, nanoseconds. series, subject: as of an entry. name, noise_trace:
    of its mechanism, metres squared. prints: what the recording is recognised by. is_in: whether
    all of it is in earlier cuts of the recording.
    """

    begin: int
    end: int
    series: str
    subject: str
    name: str
    noise_trace: float
    counted: Callable[[Book, Entry], tuple[Entry, Account | None]]
    prints: bytes = b""
    is_in: Callable[[Sequence[StoredRelease]], bool] = lambda _: False

    def entry(self, request: bytes) -> Entry:
        """The entry, as far as it is the same for every kind of recording."""
        body = {"mechanism": self.name, "noise_trace": self.noise_trace}
        about = (self.subject, self.series, self.begin, self.end, request, 0.0, body)
        return Entry(*about, prints=self.prints)


def countable(
    plan: Plan,
    there: Sequence[Visited],
    marks: Sequence[Mark],
    subject: str,
    limit: float | None,
    prints: bytes = b"",
) -> Countable:
    """The release of a trace, to be counted. there: the places that the plan counts on.

    marks: of `trailveil.ledger.accounting.told_by`. limit: of epsilon in total. prints: what the
    recording is recognised by besides its times, as of an entry.
    """
    begin, end = span(plan.trace)
    about = (plan.request.method.value, plan.mechanism.noise_trace)

    def counted(book: Book, entry: Entry) -> tuple[Entry, Account]:
        noise = packed(plan, there)
        return _with_account(book, entry, plan, there, marks, limit, noise, beside=True)

    return Countable(begin, end, "", subject, *about, counted, prints, partial(is_in, plan))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sent:
    """A release as the process that counts gets it from one that designed it: little to send.

    bare: its plan without positions and, as far as `packed` has it, without its noise. fixes: first
    and last, nanoseconds. noise_trace: metres squared. there, marks, prints: as of `countable`.
    """

    bare: Plan
    fixes: tuple[int, int]
    noise_trace: float
    packed: bytes
    there: tuple[Visited, ...]
    marks: tuple[Mark, ...]
    prints: bytes = b""

    def countable(self, subject: str, limit: float | None) -> Countable:
        """The release, to be counted: by itself where there is no limit.

        What other releases tell of its times is not reckoned then, and no total is recorded, but
        all that later ones need; see `trailveil.ledger.accounting.account`.
        """
        beside = limit is not None

        def counted(book: Book, entry: Entry) -> tuple[Entry, Account]:
            alone = not beside and not _others(book, entry)
            made = self.bare if alone else restored(self.bare, self.packed)
            about = (made, self.there, self.marks, limit, self.packed)
            return _with_account(book, entry, *about, beside=beside)

        name = self.bare.request.method.value
        about = (*self.fixes, "", subject, name, self.noise_trace)
        return Countable(*about, counted, self.prints, self._is_in)

    def _is_in(self, before: Sequence[StoredRelease]) -> bool:
        return bool(before) and is_in(restored(self.bare, self.packed), before)


def sent(
    plan: Plan,
    there: Sequence[Visited],
    marks: Sequence[Mark],
    prints: bytes = b"",
) -> Sent:
    """What is counted of a plan. prints: of an entry."""
    whole = packed(plan, there)
    about = (span(plan.trace), plan.mechanism.noise_trace, whole)
    return Sent(bare(plan), *about, tuple(there), tuple(marks), prints)


def count(book: Book, told: Countable, wanted: bytes, *, again: bool) -> tuple[Published, int]:
    """Add a release to the ledger, unless it is in it; with the number of its row.

    The row is relied on from now on: a run whose file does not appear must let it go
    (`Book.let_go`). wanted: its request, as `Ledger.request_id` names it. Raises Refused, and adds
    nothing, for a different release of the recording unless `again`, and for one beyond a limit.
    """
    times = (told.begin, told.end)
    before = earlier(book, told.subject, told.series, *times, told.prints)
    alike = [one for one in before if _is_like(book, one, wanted, told.noise_trace)]
    published = Published(len(before) > len(alike))
    if published.further and not alike:
        cuts = cuts_before(book, [one.number for one in before], told.begin, told.prints)
        published = replace(published, further=not told.is_in(cuts))
    if published.further and not alike and not again:
        raise released_before(told.subject, before, *times, series=told.series)
    if alike:
        book.claim(alike[-1].number)
        return published, alike[-1].number
    entry, of_it = told.counted(book, told.entry(wanted))
    return replace(published, account=of_it), book.add(entry)


def span(recording: Timed) -> tuple[int, int]:
    """When a recording begins and ends, nanoseconds."""
    return int(recording.times[0]), int(recording.times[-1])


def earlier(
    book: Book, subject: str, series: str, begin: int, end: int, prints: bytes
) -> list[LedgerRow]:
    """Releases of a recording or of a part of it: in the order of the ledger.

    Those that share time with it (that one begins where another ends is none), and those that are
    of it by its prints, whenever they say that it was.
    """
    found = {
        one.number: one
        for one in book.overlapping(subject, series, begin, end)
        if _share_time(one, begin, end)
    }
    found |= {one.number: one for one in book.alike(subject, series, prints)}
    return [found[number] for number in sorted(found)]


def released_before(
    subject: str, before: Sequence[LedgerRow], begin: int, end: int, *, series: str = ""
) -> Refused:
    """The refusal of a second, different release of a recording. before: of `earlier`.

    series: of readings.
    """
    got = "one of times that were released before in another way"
    if not any(_share_time(one, begin, end) for one in before):
        got = (
            "one that was released before in another way, as of other times or by another name "
            "(say the same --tz and --column as before)"
        )
    given = "protected readings away" if series else "protected places away to a few metres"
    return Refused(
        f"a recording must be released once, got {got}: two different releases together can give "
        f"its {given}; ask for the same as before to get the same "
        "file again, add --again to accept that, or name whose it is (--subject) if it is not of "
        f"the one called {subject!r}"
    )


def _share_time(ledger_row: LedgerRow, begin: int, end: int) -> bool:
    if ledger_row.begin == begin == SHIFTED_TO:  # times that were made up, or shifted, say nothing
        return ledger_row.end == end
    return min(end, ledger_row.end) > max(begin, ledger_row.begin)


def _others(book: Book, entry: Entry) -> list[int]:
    """The numbers of releases that are of the recording of one that is to be added."""
    about = (entry.subject, entry.series, entry.begin, entry.end, entry.prints)
    return [one.number for one in earlier(book, *about)]


def _with_account(
    book: Book,
    entry: Entry,
    plan: Plan,
    there: Sequence[Visited],
    marks: Sequence[Mark],
    limit: float | None,
    noise: bytes,
    *,
    beside: bool,
) -> tuple[Entry, Account]:
    """The entry of a release of a trace, whole, and its account; refused beyond the limit."""
    others = _others(book, entry)
    found, told = account(
        *(book, plan, there, marks, entry.subject, others), beside=beside, prints=entry.prints
    )
    check_total(found, limit, plan.request.epsilon)
    body = {
        **entry.body,
        "epsilon": found.epsilon,
        "total": max(found.total, found.known) if beside else None,
        "known": found.known if beside or others else None,
        "parts": [finding.stretch.label for finding in plan.findings],
        "places": [one.place.name for one in there],
    }
    whole = replace(entry, epsilon=found.epsilon, body=body, marks=told)
    return replace(whole, blob=noise), found


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
    if account.overlapping:
        return "nothing more of this recording fits: it was released before in another way"
    room = limit - (account.one_place - account.fresh)
    if any(place.at_most > limit for place in account.places) or room <= 0 or account.fresh <= 0:
        return "nothing more fits; name places that come back before they do (trailveil place add)"
    return f"about --epsilon {0.98 * asked * room / account.fresh:.2g} would still fit"


def _is_like(book: Book, ledger_row: LedgerRow, wanted: bytes, noise_trace: float) -> bool:
    """Whether a recorded release is of this request, and was answered with the same noise."""
    if ledger_row.request != wanted:
        return False
    before = float(book.body(ledger_row.number)["noise_trace"])
    return abs(before - noise_trace) <= _SAME_NOISE * before
