"""Places with names: kept for their owner alone, known again, and the same noise at each visit."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rides import ride
from trailveil.errors import Refused
from trailveil.gp.randomness import derive
from trailveil.ledger import Ledger, open_ledger
from trailveil.ledger.commit import known_places, publish
from trailveil.ledger.places import added, load_places, save_places
from trailveil.ledger.recorded import from_bytes
from trailveil.privacy.adversaries import Named
from trailveil.release.drawing import draw
from trailveil.release.places import Place, designed, named_in_full, overlap, shared_noise, visited
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.report.record import record
from trailveil.report.text import text
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace
from trailveil.traces.visits import Circle

AT = (48.137, 11.575)
DAY, KEY = 86_400, bytes(range(32))
HOME = designed(
    Place(
        *("home", Circle(*AT, 150.0), 300.0, 1.0, 5.0, 1, None, "default", (Named.PLAIN,)),
        b"h" * 16,
    )
)


def day(number: int, count: int = 90) -> Trace:
    """A ride that begins at home and stays there for three minutes."""
    begin = 1_715_672_400 + number * DAY
    return ride(count, 20.0, still=(0, 9), seed=number, begin=begin, at=AT)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = open_ledger(tmp_path / "state")
    save_places(ledger, [HOME])
    return ledger


ENDS = Chosen(returns=False)


def planned(ledger: Ledger, trace: Trace, chosen: Chosen = ENDS) -> Plan:
    places = known_places(ledger, trace, key=KEY)  # so that draws are the same in every run
    request = requested(trace, chosen, Request((), who=(Named.PLAIN,), method=Method.NOISE), places)
    return protect(trace, request, places=places)


def test_what_is_saved_is_loaded_by_its_owner_alone(ledger: Ledger) -> None:
    (home,) = load_places(ledger)
    assert home.name == "home"
    assert home.statement == HOME.statement
    assert np.array_equal(home.noise.root, HOME.noise.root)
    assert home.noise.exposures == HOME.noise.exposures
    path = ledger.folder / "places.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "48.1" not in repr(home)


def test_a_place_of_an_earlier_version_can_be_cut_and_gets_no_noise_of_this_one(
    ledger: Ledger,
) -> None:
    """Its record had knots, root and left, of another design, beside what was stated."""
    path = ledger.folder / "places.json"
    whole = json.loads(path.read_bytes().rpartition(b"\n")[0])
    (record,) = whole["places"]
    del record["noise"]
    record |= {"knots": [0.0, 15.0], "root": [[300.0]], "left": [["plain", 1e-5, 1e9, 300.0]]}
    record["who"] = ["plain", "still", "point", "path", "speeds"]
    data = json.dumps(whole).encode()
    path.write_bytes(data + b"\n" + derive(ledger.key, [b"places", data]).hex().encode())
    (visit,) = known_places(ledger, day(3))
    assert shared_noise([visit], day(3), Method.CUT) == []
    request = requested(day(3), ENDS, Request((), floor=10.0), [visit])
    assert protect(day(3), request).findings[0].cut is not None
    for method in (Method.NOISE, Method.BOTH):
        with pytest.raises(Refused, match=r"got 'home' of an earlier one: state it anew \(trail"):
            shared_noise([visit], day(3), method)
    again = designed(replace(visit.place, ident=b"z" * 16))
    save_places(ledger, added(load_places(ledger), again, change=True))
    (home,) = load_places(ledger)
    assert home.ident == HOME.ident  # what was released of it stays counted
    assert home.noise.root.shape == again.noise.root.shape


def test_fields_are_refused_beside_noise_that_paths_can_undo(ledger: Ledger) -> None:
    """Where the place alone is not made against who knows the path, whatever the request is."""
    trace = replace(day(3), fields=(("elevation", np.zeros(90)),))
    for who in ((Named.PLAIN,), (Named.PLAIN, Named.PATH)):
        save_places(ledger, [designed(replace(HOME, who=who))])
        places = known_places(ledger, trace)
        request = requested(trace, ENDS, Request((), method=Method.NOISE), places)
        if Named.PATH in who:
            assert protect(trace, request, places=places).trace.fields
        else:
            with pytest.raises(Refused, match="kept fields must come with noise that is made"):
                protect(trace, request, places=places)


@pytest.mark.parametrize("change", ["edited", "open", "another key", "emptied"])
def test_a_changed_file_is_refused(ledger: Ledger, tmp_path: Path, change: str) -> None:
    path = ledger.folder / "places.json"
    if change == "edited":
        path.write_bytes(path.read_bytes().replace(b"300.0", b"400.0"))
    elif change == "open":
        path.chmod(0o644)
    elif change == "emptied":
        path.write_bytes(b"")
    else:
        ledger = replace(ledger, key=bytes(32))
    with pytest.raises(Refused) as caught:
        load_places(ledger)
    assert "48.1" not in str(caught.value)


def test_every_visit_of_every_ride_is_moved_by_the_same(ledger: Ledger) -> None:
    moved = []
    for number in (1, 2, 5):
        trace = day(number)
        plan = planned(ledger, trace)
        assert [stretch.label for stretch in plan.request.stretches] == ["the end"]
        plan = protect(trace, replace(plan.request, stretches=()), places=plan.visited)
        assert np.all(
            plan.mechanism.independent_variances[:9] == 4.0
        )  # of each release, besides what is common
        plan = replace(plan, mechanism=replace(plan.mechanism, independent=None))
        assert [visit.place.name for visit in plan.visited] == ["home"]
        (noise,) = plan.common
        released, _ = draw(plan, bytes([number]) * 32)
        shift = (released.positions - trace.positions)[:9]
        moved.append(shift.mean(axis=0))
        assert np.ptp(noise.columns[:9], axis=0).max() == 0
    # To the rounding of degrees, a tenth of a metre.
    assert np.ptp(moved, axis=0).max() < 2e-6
    assert np.abs(moved).max() > 1e-4


def test_a_key_makes_the_same_draw_on_every_machine_and_another_statement_another() -> None:
    trace, key = day(3), bytes(range(32))

    def common(place: Place, key: bytes = key) -> np.ndarray:
        (visit,) = visited(trace, [place], key, {})
        return visit.common(trace).draw

    assert np.array_equal(common(HOME), common(replace(HOME, ident=b"x" * 16)))
    others = [
        common(HOME, bytes(32)),
        common(replace(HOME, radius=301.0)),
        common(replace(HOME, epsilon=1.1)),
        common(replace(HOME, ways=2)),
        common(replace(HOME, name="house")),
        common(replace(HOME, circle=Circle(AT[0], AT[1], 151.0))),
        common(replace(HOME, withhold=60.0)),
        common(replace(HOME, who=(Named.PLAIN, Named.STILL))),
    ]
    everything = np.array([common(HOME), *others]).reshape(len(others) + 1, -1)
    correlations = np.corrcoef(everything)[np.triu_indices(len(everything), 1)]
    # No two are one draw at another scale: of 2 r normal numbers each.
    assert np.max(np.abs(correlations)) < 0.9


def test_what_a_release_is_does_not_depend_on_how_a_machine_rounds() -> None:
    (visit,) = visited(day(3), [HOME], bytes(32), {})
    common = visit.common(day(3))
    other = replace(common, columns=common.columns * (1 + 1e-12))
    assert named_in_full([common]) == named_in_full([other])
    louder = replace(HOME, epsilon=0.9)
    (apart,) = visited(day(3), [louder], bytes(32), {})
    assert named_in_full([common]) != named_in_full([apart.common(day(3))])


def test_the_report_of_a_place_says_that_its_times_were_chosen_by_place(ledger: Ledger) -> None:
    trace = ride(30, 20.0, still=(0, 29), begin=1_715_672_400, at=AT)
    plan = planned(ledger, trace)
    assert plan.findings == ()
    report = record(plan, None, output="a.gpx")
    warned = " ".join(report["warnings"])
    assert "a figure there and not a guarantee" in warned
    assert "made against who learns" not in warned  # which is said of the place itself
    assert report["target"]["ways"] == 1
    assert "however often you visit it by 1 way:" in " ".join(text(report).split())


def test_a_part_of_an_outing_has_the_noise_of_its_visit(ledger: Ledger, tmp_path: Path) -> None:
    trace = day(4)
    plan = planned(ledger, trace)
    publish(plan, ledger, tmp_path / "a.gpx")
    later = trace.only(np.arange(len(trace)) >= 40)
    assert visited(later, [HOME], ledger.key, {}) == []
    again = known_places(ledger, later, key=KEY)
    assert [visit.place.name for visit in again] == ["home"]
    assert np.array_equal(
        again[0].common(later).columns, plan.visited[0].common(trace).columns[40:]
    )


def test_a_withheld_place_is_withheld_at_each_visit(ledger: Ledger) -> None:
    held = designed(replace(HOME, withhold=300.0))
    save_places(ledger, [held])
    plan = planned(ledger, day(6))
    seconds = plan.trace.seconds
    inside = np.asarray(plan.mechanism.released)[seconds <= 480.0]
    assert not inside.any()
    assert plan.mechanism.rows.size > 20


def test_places_overlap_or_not_and_keep_what_the_ledger_knows_them_by() -> None:
    near = replace(HOME, name="gate", circle=Circle(AT[0] + 0.002, AT[1], 100.0), ident=b"n" * 16)
    far = replace(near, name="work", circle=Circle(AT[0] + 0.1, AT[1], 100.0), ident=b"f" * 16)
    assert overlap(HOME, near)
    assert not overlap(HOME, far)
    with pytest.raises(Refused, match="got one that exists"):
        added([HOME], replace(HOME, radius=200.0), change=False)
    with pytest.raises(Refused, match="overlaps 'home'"):
        added([HOME], near, change=False)
    changed = added([HOME], replace(HOME, radius=200.0, ident=b"z" * 16), change=True)
    assert [(place.radius, place.ident) for place in changed] == [(200.0, HOME.ident)]
    gone = replace(HOME, gone=True)
    assert added([gone], near, change=False)[-1].ident == HOME.ident
    assert added([gone], far, change=False)[-1].ident == b"f" * 16
    near_by = replace(near, circle=Circle(AT[0] + 0.0040, AT[1], 12.0))  # 445 m: within the radius
    assert added([gone], near_by, change=False)[-1].ident == HOME.ident
    moved = replace(HOME, circle=far.circle, ident=b"m" * 16)
    assert added([HOME], moved, change=True)[-1].ident == b"m" * 16


def test_releases_of_a_place_that_is_gone_from_the_file_are_not_passed_over(
    ledger: Ledger, tmp_path: Path
) -> None:
    plan = planned(ledger, day(8))
    publish(plan, ledger, tmp_path / "a.gpx")
    path = ledger.folder / "places.json"
    data = path.read_bytes()
    path.unlink()
    with pytest.raises(Refused, match="every place that releases are counted for"):
        known_places(ledger, day(9))
    save_places(ledger, [replace(HOME, ident=b"y" * 16)])  # stated anew
    with pytest.raises(Refused, match="every place that releases are counted for"):
        known_places(ledger, day(9))
    path.write_bytes(data)
    known_places(ledger, day(9))
    save_places(ledger, [])  # forgotten, on purpose
    assert known_places(ledger, day(9)) == []


def test_nothing_in_the_ledger_says_where_a_place_is(ledger: Ledger, tmp_path: Path) -> None:
    plan = planned(ledger, day(7))
    publish(plan, ledger, tmp_path / "a.gpx")
    with ledger.open() as book:
        (row,) = book.standing()
        body = json.dumps(book.body(row.number))
        blob = book.blob(row.number)
    assert "48." not in body
    arrays, tail = from_bytes(blob)
    assert tail == b""
    for name, values in arrays.items():
        if values.dtype.kind == "f" and values.size:
            near = np.abs(values - AT[0]) < 0.5
            assert not near.any() or name == "factor" or name.startswith("root")
