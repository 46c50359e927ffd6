"""A recording is released once: the same again is the same file, another is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.rides import ride, written
from tests.traces.formats.samples import SAMPLES
from trailveil.errors import Refused, UnreadableInput, UnwritableOutput
from trailveil.ledger import Ledger, open_ledger
from trailveil.ledger.commit import check_released, commit, publish
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.formats import read
from trailveil.traces.formats.table import default_output
from trailveil.traces.loading import load
from trailveil.traces.selection import Chosen
from trailveil.traces.trace import Trace

TRACE = ride(30, 30.0)


def planned(trace: Trace = TRACE, epsilon: float = 1.0) -> Plan:
    asked = Request((), epsilon=epsilon, floor=4.0)
    return protect(trace, requested(trace, Chosen(("start+5m",), ends=False), asked))


MADE, OTHER = planned(), planned(epsilon=2.0)
NOISY = protect(
    TRACE,
    requested(TRACE, Chosen(("start+5m",), ends=False), Request((), method=Method.NOISE)),
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def records(ledger: Ledger) -> int:
    with ledger.open() as book:
        return len(book.standing())


def test_the_same_again_is_the_same_file(ledger: Ledger, place: Path) -> None:
    for name in ("a", "b"):
        assert not publish(MADE, open_ledger(ledger.folder), place / f"{name}.gpx").further
    assert (place / "a.gpx").read_bytes() == (place / "b.gpx").read_bytes()
    assert records(ledger) == 1


def test_two_first_releases_differ(ledger: Ledger, place: Path) -> None:
    publish(NOISY, ledger, place / "a.gpx")
    publish(NOISY, open_ledger(ledger.folder.parent / "other"), place / "b.gpx")
    assert (place / "a.gpx").read_bytes() != (place / "b.gpx").read_bytes()


def test_the_order_of_points_in_the_file_does_not_matter(ledger: Ledger, place: Path) -> None:
    lines = written(place / "a.in.gpx", TRACE).read_bytes().split(b"\n")
    (place / "b.in.gpx").write_bytes(b"\n".join([lines[0], *lines[1:-2][::-1], *lines[-2:]]))
    for name in ("a", "b"):
        trace, _ = load(place / f"{name}.in.gpx")
        publish(planned(trace), ledger, place / f"{name}.gpx")
    assert (place / "a.gpx").read_bytes() == (place / "b.gpx").read_bytes()


def test_another_release_is_refused_before_it_is_drawn(ledger: Ledger, place: Path) -> None:
    check_released(ledger, MADE, again=False)
    publish(MADE, ledger, place / "a.gpx")
    check_released(ledger, MADE, again=False)
    check_released(ledger, OTHER, again=True)
    with pytest.raises(Refused, match="must be released once"):
        check_released(ledger, OTHER, again=False)
    with pytest.raises(Refused, match="must be released once"):
        publish(OTHER, ledger, place / "b.gpx")
    assert not (place / "b.gpx").exists()


def test_an_accepted_second_release_is_recorded_and_told(ledger: Ledger, place: Path) -> None:
    publish(MADE, ledger, place / "a.gpx")
    assert publish(OTHER, ledger, place / "b.gpx", again=True).further
    assert records(ledger) == 2
    # Either may be asked for again, and the report still warns.
    assert publish(MADE, ledger, place / "c.gpx").further
    assert publish(OTHER, ledger, place / "d.gpx").further
    assert (place / "a.gpx").read_bytes() == (place / "c.gpx").read_bytes()
    with pytest.raises(Refused):
        publish(planned(epsilon=3.0), ledger, place / "e.gpx")


def test_a_part_of_the_recording_is_the_recording(ledger: Ledger, place: Path) -> None:
    publish(MADE, ledger, place / "a.gpx")
    part = TRACE.only(np.arange(30) < 20)
    with pytest.raises(Refused):
        check_released(ledger, planned(part), again=False)
    check_released(ledger, OTHER, again=False, subject="somebody else")


def test_other_noise_for_the_same_request_is_another_release(ledger: Ledger, place: Path) -> None:
    """As a later version of the program might design it."""
    publish(NOISY, ledger, place / "a.gpx")
    louder = replace(NOISY, mechanism=NOISY.mechanism.scaled(1.001))
    with pytest.raises(Refused):
        publish(louder, ledger, place / "b.gpx")
    rounded = replace(NOISY, mechanism=NOISY.mechanism.scaled(1 + 1e-9))
    publish(rounded, ledger, place / "c.gpx")


def test_it_is_remembered_before_it_appears(ledger: Ledger, place: Path) -> None:
    output, counts = place / "a.gpx", list[int]()
    with commit(MADE, ledger) as receipt:
        assert not receipt.further
        counts.append(records(ledger))
        with receipt.staged(output, overwrite=False) as put:
            assert not output.exists()
            receipt.put(put, lambda: counts.append(int(output.exists())))
    assert counts == [1, 1]


def failing(ledger: Ledger, output: Path, failure: BaseException, *, late: bool = False) -> None:
    """A release whose report cannot be written, before anything appears or after."""
    with commit(MADE, ledger) as receipt, receipt.staged(output, overwrite=False) as put:
        if late:
            receipt.put(put)
        raise failure


@pytest.mark.parametrize("failure", [UnwritableOutput("no room"), Refused("no")])
def test_what_failed_before_it_appeared_counts_no_more(
    ledger: Ledger, place: Path, failure: Exception
) -> None:
    with pytest.raises(type(failure)):
        failing(ledger, place / "a.gpx", failure)
    assert list(place.iterdir()) == []
    assert records(ledger) == 0
    publish(OTHER, ledger, place / "a.gpx")


def test_an_interrupted_run_is_remembered_and_can_be_repeated(ledger: Ledger, place: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        failing(ledger, place / "a.gpx", KeyboardInterrupt())
    assert list(place.iterdir()) == []
    assert records(ledger) == 1
    with pytest.raises(Refused):
        publish(OTHER, ledger, place / "a.gpx")
    assert not publish(MADE, ledger, place / "a.gpx").further


def test_a_failure_after_it_appeared_does_not_forget_it(ledger: Ledger, place: Path) -> None:
    with pytest.raises(UnwritableOutput):
        failing(ledger, place / "a.gpx", UnwritableOutput("in the way"), late=True)
    assert (place / "a.gpx").exists()
    assert records(ledger) == 1


def test_a_run_that_fails_takes_no_release_of_another_run_back(ledger: Ledger, place: Path) -> None:
    """One counts and meets a full disk; meanwhile another one finds it counted, and appears."""

    def run() -> None:
        with commit(MADE, ledger):
            publish(MADE, ledger, place / "b.gpx")
            raise UnwritableOutput("no room")

    with pytest.raises(UnwritableOutput):
        run()
    assert (place / "b.gpx").exists()
    assert records(ledger) == 1
    with pytest.raises(Refused, match="must be released once"):
        publish(OTHER, ledger, place / "c.gpx")


def test_what_all_runs_failed_to_write_counts_no_more(ledger: Ledger, place: Path) -> None:
    def run(depth: int) -> None:
        with commit(MADE, ledger):
            if depth:
                with pytest.raises(UnwritableOutput):
                    run(depth - 1)
                assert records(ledger) == 1
            raise UnwritableOutput("no room")

    with pytest.raises(UnwritableOutput):
        run(2)
    assert records(ledger) == 0
    publish(OTHER, ledger, place / "a.gpx")


def test_a_repeated_release_that_fails_is_not_forgotten(ledger: Ledger, place: Path) -> None:
    publish(MADE, ledger, place / "a.gpx")
    with pytest.raises(UnwritableOutput, match="must not exist yet"):
        publish(MADE, ledger, place / "a.gpx")
    assert records(ledger) == 1


def test_refusals_name_the_file(place: Path) -> None:
    path = place / "my ride.gpx"
    once = TRACE.only(np.arange(30) < 1)
    with pytest.raises(UnreadableInput, match=r"my ride\.gpx: a recording must have two fixes"):
        load(written(path, once))
    globe = np.repeat([[89.0, 0.0], [-19.0, 0.0], [-19.0, 120.0], [-19.0, -120.0]], 8, axis=0)
    far = replace(TRACE, positions=globe[:30])
    with pytest.raises(Refused, match=r"my ride\.gpx: a trace must stay within"):
        load(written(path, far))
    path.write_bytes(path.read_bytes().replace(b"Z</time>", b"</time>"))
    with pytest.raises(Refused, match=r"my ride\.gpx: times must say their zone"):
        load(path)


def test_without_a_choice_both_ends_are_protected() -> None:
    stretches = Chosen(returns=False).stretches(TRACE)
    assert [stretch.label for stretch in stretches] == ["the start", "the end"]
    chosen = Chosen(
        ("end", "end"),
        (("start+1m", "start+3m"), ("start+2m", "start+4m")),
        returns=False,
        ends=False,
    )
    assert [stretch.seconds(TRACE) for stretch in chosen.stretches(TRACE)] == [
        (60, 240),
        (870, 870),
    ]


def test_names_of_outputs(tmp_path: Path) -> None:
    assert default_output(Path("a/ride.gpx")) == Path("a/ride.private.gpx")
    assert default_output(Path("ride.of.may.GPX")) == Path("ride.of.may.private.GPX")
    assert default_output(Path("ride")) == Path("ride.private.gpx")
    assert default_output(Path("ride.xml")) == Path("ride.xml.private.gpx")
    assert default_output(Path("ride.json")) == Path("ride.private.json")
    for name, is_written in (("GeoJSON", True), ("Google Timeline", False), ("OwnTracks", False)):
        path = tmp_path / "ride.json"
        path.write_bytes(SAMPLES[name])
        expected = "ride.private.json" if is_written else "ride.json.private.gpx"
        assert default_output(path).name == expected
    for name in (".", "/", ""):
        with pytest.raises(Refused, match="must be a file, got a folder"):
            default_output(Path(name))


def test_what_is_written_is_what_is_remembered(ledger: Ledger, place: Path) -> None:
    publish(NOISY, ledger, place / "a.gpx")
    released = read(place / "a.gpx")
    assert np.array_equal(released.times.astype(np.int64), TRACE.times)
    assert not np.any(np.all(released.positions == TRACE.positions, axis=1))


def test_what_a_cut_writes_is_what_was_recorded(ledger: Ledger, place: Path) -> None:
    publish(MADE, ledger, place / "a.gpx")
    released, rows = read(place / "a.gpx"), MADE.mechanism.rows
    assert 2 <= rows.size < len(TRACE)
    assert np.array_equal(released.times.astype(np.int64), TRACE.times[rows])
    assert np.array_equal(released.positions, TRACE.positions[rows])
