"""Replays, wrong times and gaps, by an adversary who sees the whole stream with its pauses."""

from dataclasses import replace

import numpy as np
import pytest

from tests.live.days import AT, HOME, due, fixes
from tests.live.test_stream import taken
from tests.places import trace_of
from trailveil.errors import InvalidValue, Refused
from trailveil.ledger import Ledger
from trailveil.ledger.places import save_places
from trailveil.live.cutting import Cutting
from trailveil.live.lines import Fix
from trailveil.live.stream import Stream
from trailveil.traces.trace import NANOSECONDS, Trace

SECONDS = np.arange(0, 5000, 5.0)
HOUR = 3600 * NANOSECONDS


def way(*, home: bool) -> Trace:
    """Comes by home at 3000 s, or 5 km beside it."""
    metres = np.stack([3.0 * (SECONDS - 3000), np.full(SECONDS.size, 0.0 if home else 5000.0)])
    return trace_of(SECONDS, metres.T, AT)


def observed(ledger: Ledger, name: str, whole: list[Fix]) -> dict[int, list[int]]:
    """What an adversary sees: at which line which times leave."""
    with Stream(name, ledger=ledger, subject=name, activity="ride") as stream:
        seen_at = {i: [fix.time for fix in stream.take(fix)] for i, fix in enumerate(whole)}
    return {i: times for i, times in seen_at.items() if times}


def with_wrong_times(whole: list[Fix], every: int, row: int = 1) -> list[Fix]:
    """After every so many fixes some in a row that are hours ahead, where the fix was."""
    out: list[Fix] = []
    for i, fix in enumerate(whole):
        out.append(fix)
        if i % every == every - 1:
            ahead = fix.time + (1 + i) * HOUR
            out += [replace(fix, time=ahead + 5 * k * NANOSECONDS) for k in range(row)]
    return out


@pytest.mark.parametrize(("every", "row"), [(2, 1), (7, 1), (100, 11), (595, 1)])
def test_a_wrong_later_time_lets_nothing_out(ledger: Ledger, every: int, row: int) -> None:
    """All that leaves may leave by the whole way, as late as ever; the wrong ones never do."""
    save_places(ledger, [HOME])
    trace = way(home=True)
    rule = Cutting.of(ledger, Stream("x", ledger=ledger, activity="ride")._request, None, None)
    home = rule.watched[1].margins
    whole = with_wrong_times(fixes(trace), every, row)
    leaves = observed(ledger, "anna", whole)
    allowed = trace.times[due(trace, HOME.wide, home, home.passing, rule.lag)]
    out = [time for times in leaves.values() for time in times]
    assert set(out) <= {*allowed.tolist()}
    # A fix that a wrong one contradicted is left out; nearly all others leave.
    assert len(out) > 0.95 * (len(allowed) - 1)
    for line, times in leaves.items():
        assert whole[line].time > max(times) + rule.lag


@pytest.mark.parametrize("every", [3, 10_000])
def test_when_fixes_leave_is_a_function_of_times_alone(ledger: Ledger, every: int) -> None:
    """Two ways with the same times, gaps and wrong times: what leaves of both leaves just then."""
    save_places(ledger, [HOME])
    at = {}
    for name, home in (("anna", True), ("bert", False)):
        whole = fixes(way(home=home))
        # Four hours without a fix before the visit, and one after it.
        moved = [
            replace(fix, time=fix.time + (i > 450) * 4 * HOUR + (i > 700) * HOUR)
            for i, fix in enumerate(whole)
        ]
        leaves = observed(ledger, name, with_wrong_times(moved, every))
        at[name] = {time: line for line, times in leaves.items() for time in times}
    anna, bert = at["anna"], at["bert"]
    assert 100 < len(anna) < len(bert)
    assert anna.items() <= bert.items()


def test_a_gap_of_hours_is_none_to_a_stream(ledger: Ledger) -> None:
    """What waits leaves a minute after it: the first times may be wrong."""
    whole = fixes(way(home=False))
    later = [replace(fix, time=fix.time + 5 * HOUR) for fix in whole[600:]]
    with Stream(ledger=ledger, activity="ride") as stream:
        for fix in whole[:600]:
            stream.take(fix)
        assert len(stream.take(later[0])) == 1  # as without a gap
        assert not taken(stream, later[1:12])
        released = stream.take(later[12])
    assert released[-1] == whole[599]
    assert released[0].time >= whole[599].time - stream.delay * NANOSECONDS


def test_a_late_fix_does_not_unmake_a_visit(ledger: Ledger) -> None:
    """Of two fixes that contradict each other either may be the wrong one: the place counts."""
    save_places(ledger, [HOME])
    metres = np.stack([3.0 * SECONDS + 2000, 0 * SECONDS], axis=1)
    whole = fixes(trace_of(SECONDS, metres, AT))
    gap = 3 * HOUR
    after = [replace(fix, time=fix.time + gap) for fix in whole[500:]]
    visit = Fix(after[0].time - 100 * NANOSECONDS, *AT)
    late = replace(whole[500], time=whole[499].time + NANOSECONDS)
    silences = []
    for name, disorder in (("anna", [visit]), ("bert", [visit, late])):
        leaves = observed(ledger, name, [*whole[:500], *disorder, *after])
        out = [time for times in leaves.values() for time in times]
        begin = max(time for time in out if time < visit.time)
        silences.append((begin, min(time for time in out if time > visit.time)))
    assert silences[1][0] <= silences[0][0] + 5 * NANOSECONDS  # a fix: it comes after the late one
    assert silences[1][1] >= silences[0][1]


def test_fixes_that_contradict_each_other_are_counted(ledger: Ledger) -> None:
    whole = fixes(way(home=False))
    with Stream(ledger=ledger, activity="ride") as stream:
        for fix in (whole[0], whole[9], whole[1]):
            stream.take(fix)
        assert stream.contradicted == 1
        with pytest.raises(InvalidValue, match="later than the last one"):
            stream.take(whole[1])
        stream.take(whole[2])
        assert stream.contradicted == 0
        for fix in (whole[900], whole[901], whole[905]):  # after a gap
            stream.take(fix)
        with pytest.raises(InvalidValue, match="later than the last one"):
            stream.take(whole[903])
        stream.take(whole[3])
        assert stream.contradicted == 3
        stream.take(whole[4])
        with pytest.raises(InvalidValue, match="later than the last one"):
            stream.take(whole[0])


@pytest.mark.parametrize("step", [-1, 1])
def test_fixes_that_wait_are_bounded(ledger: Ledger, step: int) -> None:
    """Backwards, or more in the minute after a gap than any device records."""
    first, second = fixes(way(home=False))[:2]
    begin = second.time + HOUR
    endless = [replace(second, time=begin + step * i) for i in range(10_100)]
    with Stream("back", ledger=ledger, activity="ride") as stream:
        taken(stream, [first, second])
        with pytest.raises(Refused, match="in the order of time"):
            taken(stream, endless)


def test_an_announced_stay_reaches_to_the_fix_after_it(ledger: Ledger) -> None:
    """`go` comes between two fixes, of which the first still waits to be confirmed."""
    whole = fixes(way(home=False))
    with Stream(ledger=ledger, activity="ride") as stream:
        out = [fix for each in whole[:400] for fix in stream.take(each)]
        stream.stay()
        stream.take(whole[400])
        stream.go()
        gone = [replace(fix, time=fix.time + HOUR) for fix in whole[401:]]
        out += [fix for each in gone for fix in stream.take(each)]
        rule = stream._rule
        assert isinstance(rule, Cutting)
        stays = rule.stays.margins
    hidden = whole[399].time - stays.before, gone[0].time + stays.stay
    assert not [fix for fix in out if hidden[0] <= fix.time <= hidden[1]]
    assert min(fix.time for fix in out if fix.time > hidden[0]) <= hidden[1] + 5 * NANOSECONDS
