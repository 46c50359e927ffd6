"""Cuts of what comes back: named places, both ends at one place, and a second cut."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.rides import ride, written
from trailveil.cli import cli
from trailveil.errors import TrailveilError
from trailveil.ledger import Ledger
from trailveil.ledger.commit import Receipt, known_places, publish
from trailveil.ledger.places import places_told, save_places
from trailveil.privacy.adversaries import Named
from trailveil.release.cutting import at_one_place, reckoned_together
from trailveil.release.places import Place, designed, shared_noise, visited
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.formats import read
from trailveil.traces.selection import Chosen, Stretch
from trailveil.traces.trace import Trace
from trailveil.traces.visits import Circle

AT, DAY = (48.137, 11.575), 40 * 86_400  # so far apart that a ride tells nothing of another
BEGIN = 1_715_672_400
HOME = Place(
    *("home", Circle(*AT, 150.0), 100.0, 1.0, 5.0, 4, None, "default", (Named.PLAIN,)), b"h" * 16
)
RIDE = Request((), floor=1.4, middle=1.2)
ENDS = Chosen(returns=False)


def out(day: int, count: int = 200) -> Trace:
    """From home, straight away from it at some 10 m/s."""
    trace = ride(count, 10.0, seed=day, begin=BEGIN + day * DAY, at=AT)
    away = np.outer(np.arange(count), [0.0009, 0.0001 * day])
    return replace(trace, positions=np.array(AT) + away)


def loop(day: int = 0, count: int = 360) -> Trace:
    """From home and back to it."""
    around = 2 * np.pi * np.arange(count) / (count - 1)
    where = np.stack([0.08 * np.sin(around), 0.08 * (1 - np.cos(around))], axis=1)
    trace = ride(count, 20.0, seed=day, begin=BEGIN + day * DAY, at=AT)
    return replace(trace, positions=np.array(AT) + where)


def released(
    ledger: Ledger, trace: Trace, output: Path, request: Request = RIDE, *, again: bool = False
) -> tuple[Plan, Receipt[Trace]]:
    places = known_places(ledger, trace)
    request = requested(trace, ENDS, request, places)
    plan = protect(trace, request, places=places)
    return plan, publish(plan, ledger, output, again=again)


def test_as_many_visits_as_were_stated_tell_at_most_its_epsilon(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed form: N cuts, each of which leaves N / bound, tell N bound / N together."""
    save_places(ledger, [HOME])
    totals = []
    for number in range(5):
        plan, done = released(ledger, out(number), tmp_path / f"{number}.gpx")
        assert [finding.stretch.label for finding in plan.findings] == ["home", "the end"]
        home, end = plan.findings
        assert home.cut is not None
        assert end.cut is not None
        variance = RIDE.slowest.bridged(home.cut - 60)
        assert variance >= 4 / RIDE.bound > RIDE.slowest.bridged(home.cut - 61)
        assert done.account is not None
        (home_total,) = done.account.places
        totals.append(home_total.total)
        # Whole seconds leave a little more, never less.
        assert (number + 1) / 4 * 0.995 < home_total.total <= (number + 1) / 4
        assert home_total.total == pytest.approx((number + 1) / variance / RIDE.bound, rel=1e-12)
        assert (home_total.visits, home_total.more) == (number + 1, max(0, 3 - number))
        # The ends count together as parts without a name; home is none of them.
        of_end = (number + 1) / RIDE.slowest.bridged(end.cut - 60)
        assert done.account.one_place == pytest.approx(of_end / RIDE.bound, rel=1e-9)
    with ledger.open() as book:
        (shown,) = places_told(book, [HOME], "me")
        assert places_told(book, [HOME], "somebody else") == ()
    assert shown.total == totals[-1]
    assert shown.visits == 5
    assert ledger.verify() == 5


def test_what_a_cut_of_a_place_releases_is_as_it_was_recorded(
    ledger: Ledger, tmp_path: Path
) -> None:
    save_places(ledger, [HOME])
    trace = out(0)
    plan, done = released(ledger, trace, tmp_path / "a.gpx")
    assert plan.mechanism.noise_trace == 0
    drawn = done.drawn
    assert np.array_equal(drawn.positions, trace.positions[plan.mechanism.rows])


def test_a_withheld_place_is_cut_for_as_long_at_least() -> None:
    trace = out(0)
    (visit,) = visited(trace, [replace(HOME, withhold=1200.0)], bytes(32), {})
    plan = protect(trace, requested(trace, ENDS, RIDE, [visit]))
    assert plan.findings[0].cut == 1200


def test_noise_beside_a_cut_is_another_draw_than_without_it() -> None:
    trace = out(0)
    places = visited(trace, [designed(HOME)], bytes(32), {})
    assert shared_noise(places, trace, Method.CUT) == []
    (alone,), (both,) = (
        shared_noise(places, trace, method) for method in (Method.NOISE, Method.BOTH)
    )
    assert alone.name == places[0].draw != both.name
    assert not np.array_equal(alone.draw, both.draw)


def test_a_visit_of_another_recording_is_cut_and_counted_by_its_silence(
    ledger: Ledger, tmp_path: Path
) -> None:
    """A ride that ends at home, and one that begins fifteen minutes later, far off."""
    save_places(ledger, [HOME])
    first = out(0)
    back = replace(first, positions=first.positions[::-1])
    released(ledger, back, tmp_path / "a.gpx")
    later = replace(out(7), times=back.times[-1] + 900 * 10**9 + (first.times - first.times[0]))
    later = replace(later, positions=later.positions + 0.2)
    plan, done = released(ledger, later, tmp_path / "b.gpx")
    home = next(finding for finding in plan.findings if finding.stretch.label == "home")
    assert home.fixes == 0
    variance = RIDE.slowest.bridged(900 - 60)
    assert home.exposures[0].loss == pytest.approx(1 / variance, rel=1e-6)
    assert done.account is not None
    assert done.account.places[0].visits == 2


def test_both_ends_at_one_place_are_reckoned_together(ledger: Ledger, tmp_path: Path) -> None:
    plan, done = released(ledger, loop(), tmp_path / "a.gpx")
    assert [finding.together for finding in plan.findings] == [2, 2]
    for finding in plan.findings:
        assert finding.cut is not None
        assert RIDE.slowest.bridged(finding.cut - 60) >= 2 / RIDE.bound
        assert RIDE.slowest.bridged(finding.cut - 61) < 2 / RIDE.bound
    assert done.account is not None
    assert 0.99 < done.account.one_place <= 1.0
    stated = requested(loop(), Chosen(("start", "end"), returns=False, ends=False), RIDE)
    assert [finding.together for finding in protect(loop(), stated).findings] == [1, 1]
    assert [
        finding.together for finding in protect(out(1), requested(out(1), ENDS, RIDE)).findings
    ] == [
        1,
        1,
    ]


def test_what_is_reckoned_together_is_at_the_place_of_both_ends() -> None:
    trace = loop()
    first, middle, last = (int(trace.times[i]) for i in (0, 180, -1))
    parts = [Stretch("", when, when, by_place=True) for when in (first, middle, last)]
    again = Stretch("", int(trace.times[2]), int(trace.times[2]), by_place=True)
    named = replace(parts[2], variance=1.0)

    def together(*some: Stretch) -> list[int]:
        return reckoned_together(trace, some, at_one_place(trace, some, 1_000.0))

    assert together(*parts) == [2, 1, 2]
    assert together(parts[0], again, parts[1], parts[2]) == [3, 3, 1, 3]
    assert together(parts[0], parts[1]) == [1, 1]
    assert together(parts[0], named) == [1, 1]
    whole = Stretch("", first, last, by_place=True)
    assert together(whole) == [1]


def test_two_cuts_of_one_recording_tell_what_their_union_tells(
    ledger: Ledger, tmp_path: Path
) -> None:
    """In either order the total is that of the shorter cut, and only the shorter one is refused."""
    longer, shorter = replace(RIDE, radius=150.0), replace(RIDE, radius=60.0)
    plan, first = released(ledger, loop(), tmp_path / "a.gpx")
    _, within = released(ledger, loop(), tmp_path / "b.gpx", longer)
    assert not within.further
    with pytest.raises(TrailveilError, match="must be released once"):
        released(ledger, loop(), tmp_path / "c.gpx", shorter)
    less, more = released(ledger, loop(), tmp_path / "c.gpx", shorter, again=True)
    _, last = released(ledger, loop(), tmp_path / "d.gpx", replace(RIDE, radius=80.0))
    assert more.further
    assert not last.further
    accounts = [release.account for release in (first, within, more, last)]
    losses = [
        account.one_place / (radius**2)
        for account, radius in zip(accounts, (100, 150, 60, 80), strict=True)
        if account is not None
    ]
    cuts = [plan.findings[0].cut, less.findings[0].cut]
    at_least = [2 / RIDE.slowest.bridged(cut - 60) for cut in cuts if cut is not None]
    scale = RIDE.bound**-1 / 100**2
    assert losses == pytest.approx(
        [at_least[0] * scale, at_least[0] * scale, at_least[1] * scale, at_least[1] * scale],
        rel=1e-9,
    )


@pytest.mark.parametrize("first", ["the ends", "the middle", "the middle, and both then"])
def test_what_one_cut_hides_and_another_does_not_counts_as_all(
    ledger: Ledger, tmp_path: Path, first: str
) -> None:
    """In either order: the ends are hidden once, and once they are not."""
    middle = requested(loop(), Chosen(("start+30m",), returns=False, ends=False), RIDE)
    ends = requested(loop(), ENDS, RIDE)
    order = (ends, middle) if first == "the ends" else (middle, ends)
    if first.endswith("both then"):  # the middle by less than before: so it is something new
        all_three = Chosen(("start", "start+30m", "end"), returns=False, ends=False)
        order = (middle, requested(loop(), all_three, replace(RIDE, radius=50.0)))
    for name, asked in zip("ab", order, strict=True):
        account = publish(
            protect(loop(), asked), ledger, tmp_path / f"{name}.gpx", again=True
        ).account
        assert account is not None
        assert (account.one_place > 1e9) == (account.times > 1e9) == (name == "b")


def test_another_recording_of_the_same_times_is_no_part_of_a_cut(
    ledger: Ledger, tmp_path: Path
) -> None:
    """By another clock, or of another way: the ledger knows no positions, so it is refused."""
    released(ledger, loop(), tmp_path / "a.gpx")
    longer = replace(RIDE, radius=150.0)
    other = replace(loop(), positions=loop().positions + 0.001)
    with pytest.raises(TrailveilError, match="must be released once"):
        released(ledger, other, tmp_path / "b.gpx", longer)
    shifted = replace(loop(), times=loop().times + 60 * 10**9)
    with pytest.raises(TrailveilError, match="must be released once"):
        released(ledger, shifted, tmp_path / "b.gpx", longer)
    account = released(ledger, shifted, tmp_path / "b.gpx", longer, again=True)[1].account
    assert account is not None
    assert account.fresh > 1  # and not the little that a part of it would tell


def run(*words: str) -> str:
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.stdout.split())


def test_the_command_line_says_what_remains_of_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        written(tmp_path / f"{number}.gpx", out(number, 300))
    where = f"{AT[0]},{AT[1]},150"
    printed = run("place", "add", "home", "--near", where, "--ways", "2", "--adversary", "plain")
    assert "so that 2 visits together tell at most epsilon 1 of it, at 100 m" in printed
    assert "2 visits: walk 11, run 11, ride 7, drive 3 min" in printed
    ride_it = ("--activity", "ride", "--no-returns")
    first = run("protect", "0.gpx", *ride_it, "--report", "others.json")
    pattern = (
        r"home, after 1 visit, each by a way of its own: epsilon (0\.49\d|0\.5) of 1; 1 visit left"
    )
    assert re.search(pattern, first)
    assert "home" not in Path("others.json").read_text()
    recorded = {tuple(position) for position in read(Path("0.gpx")).positions.tolist()}
    assert all(
        tuple(position) in recorded for position in read(Path("0.private.gpx")).positions.tolist()
    )
    assert "was stated for 2" not in run("protect", "1.gpx", *ride_it, "--explain")
    refused = CliRunner().invoke(cli, ["protect", "2.gpx", *ride_it, "--total-epsilon", "1.2"])
    assert isinstance(refused.exception, TrailveilError)
    last = run("protect", "2.gpx", *ride_it, "--explain")
    assert re.search(r"home: 3 visits may tell epsilon 1\.(49|5)\d* of it, and 1 was stated", last)
    assert "home, after 3 visits" in run("ledger", "show")
    (home,) = json.loads(run("ledger", "show", "--json"))["places"]
    assert (home["visits"], home["visits_left"]) == (3, 0)
    source = str(written(tmp_path / "loop.gpx", loop(9)))
    loops = run("protect", source, "--subject", "anna", "--explain")
    assert "Both ends may be one place" not in loops  # they are home
    run("place", "remove", "home")
    words = ("--subject", "bea", "-o", "bea.gpx", "--explain")
    loops = run("protect", "loop.gpx", *words, *ride_it)
    assert "Both ends may be one place: they are reckoned together" in loops
