"""`trailveil verify`: true releases pass, and whatever is changed of report or files is found."""

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.commands import run
from tests.rides import gpx, ride, written
from trailveil.privacy.promises import promises
from trailveil.traces.formats import read, write
from trailveil.traces.projection import microdegrees
from trailveil.traces.stated_times import in_words
from trailveil.traces.trace import NANOSECONDS, Trace

TRACE = ride(400, 20.0, still=(200, 240))
STAY = ("--no-ends", "--between", "start+4000s", "start+4800s")
METHODS = ("cut", "noise", "both")
Report = dict[str, Any]


def releases(path: Path) -> Path:
    """A recording, and a release of it by each mechanism with its report, in a folder."""
    source = written(path / "ride.gpx", TRACE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", os.fspath(path / "state"))
        for name in METHODS:
            report = path / f"{name}.PRIVATE.json"
            out = ("-o", path / f"{name}.gpx", "--private-report", report, "--subject", name)
            run("protect", source, *STAY, "--mechanism", name, *out)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return releases(tmp_path_factory.mktemp("releases"))


def report_of(folder: Path, name: str) -> Report:
    return dict(json.loads((folder / f"{name}.PRIVATE.json").read_text()))


def failed(*words: str | Path) -> list[str]:
    """What does not hold, as verify prints it."""
    report = json.loads(run("verify", *words, "--json", status=1).output)
    assert not report["holds"]
    return [check["check"] for check in report["checks"] if not check["holds"]]


@pytest.mark.parametrize("name", METHODS)
def test_a_true_release(folder: Path, name: str) -> None:
    report = folder / f"{name}.PRIVATE.json"
    alone = run("verify", report).output
    whole = run("verify", report, folder / "ride.gpx", folder / f"{name}.gpx").output
    assert "FAILED" not in whole
    assert whole.startswith(alone.rsplit("\n", 3)[0])
    assert whole.count("\nok") > alone.count("\nok")
    assert ("the cut leaves" in whole) == (name != "noise")
    assert ("the proof of its noise holds" in whole) == (name != "cut")
    if os.name == "posix":
        assert stat.S_IMODE(report.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["cut", "noise"])
def test_one_end_and_other_times(name: str, tmp_path: Path) -> None:
    source = written(tmp_path / "ride.gpx", TRACE)
    report = tmp_path / "x.PRIVATE.json"
    words = ("--at", "start", "--mechanism", name, "--round-times", "30", "--shift-times")
    run("protect", source, *words, "-o", tmp_path / "x.csv", "--private-report", report)
    assert report_of(tmp_path, "x")["secrets"][0]["sides"] == 1
    run("verify", report, source, tmp_path / "x.csv")


def changed(path: tuple[Any, ...], value: Any) -> Callable[[Report], None]:
    """Put another value, or a function of what there is, at a place of a report."""

    def change(report: Report) -> None:
        at: Any = report
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = value(at[path[-1]]) if callable(value) else value

    return change


def times(factor: float) -> Callable[[float], float]:
    return lambda number: number * factor


def everywhere(path: tuple[Any, ...], value: Any) -> Callable[[Report], None]:
    """Put a value where a report says something of the whole, and of its first part."""

    def change(report: Report) -> None:
        for whole in (("worst",), FIRST):
            changed((*whole, *path), value)(report)

    return change


def called(name: str) -> Callable[[Report], None]:
    """Call the first adversary otherwise, wherever it is named."""

    def change(report: Report) -> None:
        report["adversaries"][0] = report["secrets"][0]["exposures"][0]["adversary"] = name
        for design in report["designs"]:
            design["adversaries"][0]["name"] = name

    return change


FIRST, DESIGN = ("secrets", 0), ("designs", 0)
CLAIMS = [
    *((name, everywhere(("odds_factor_99",), 1.0), "its odds") for name in METHODS),
    ("cut", changed(("worst", "odds_factor_99"), times(1 - 1e-8)), "worst place"),
    *((name, everywhere(("advantage",), 0), "its advantage") for name in METHODS),
    ("noise", changed((*FIRST, "advantage"), times(0.999)), "part 1: mu gives its advantage"),
    ("cut", everywhere(("paper_gap", "0.01"), 0.0), "its gap"),
    ("noise", changed(("worst", "order"), 10.0), "worst place"),
    ("noise", changed(("worst", "circle_68_m"), times(1.001)), "worst place"),
    ("cut", changed(("adversaries",), ["everybody, with any map"]), "listed adversaries"),
    ("noise", changed(("adversaries",), lambda all_of: all_of[:1]), "listed adversaries"),
    *((name, called("everybody, with any map"), "called by what they know") for name in METHODS),
    ("cut", changed(("target", "activity"), "drive"), "pace is that"),
    ("noise", changed(("target", "activity"), None), "pace is that"),
    ("cut", changed(("target", "floor_middle_m_s"), 0.4), "pace is that"),
    ("noise", changed((*FIRST, "cut_s"), 1), "a cut where"),
    ("both", changed((*FIRST, "kind"), "time"), "it is a time"),
    ("noise", changed((*FIRST, "kind"), "timx"), "it is a timx"),
    ("noise", changed((*FIRST, "sides"), 3), "one side or two"),
    ("noise", changed((*FIRST, "exposures", 1, "circle_68_before_m"), times(0.9)), "true place"),
]
TAMPERED = [
    *CLAIMS,
    ("noise", changed((*DESIGN, "even", 0, 0), times(0.9)), "proof"),
    ("noise", changed((*DESIGN, "bound"), times(0.5)), "proof"),
    ("noise", changed((*DESIGN, "bound"), times(1.5)), "epsilon"),
    ("noise", changed((*DESIGN, "adversaries", 0, "tracks", 0, "even", 0), 0.5), "proof"),
    ("noise", changed((*DESIGN, "adversaries", 0, "speed"), 2.0), "pace"),
    ("noise", changed((*DESIGN, "adversaries", 0, "steady"), 0), "pace"),
    ("noise", changed((*DESIGN, "adversaries"), lambda all_of: all_of[:1]), "made against"),
    ("noise", changed((*DESIGN, "bound"), "1e-9"), "whole"),
    ("noise", changed(("designs",), []), "design"),
    ("noise", changed((*FIRST, "epsilon"), times(1 - 1e-8)), "epsilon"),
    ("noise", changed((*FIRST, "order"), 2.0), "epsilon"),
    ("noise", changed((*FIRST, "exposures", 0, "epsilon"), times(0.5)), "stranger"),
    ("noise", changed((*FIRST, "exposures", 1, "circle_68_m"), times(1.001)), "true place"),
    ("noise", changed((*FIRST, "exposures", 2, "circle_68_m"), None), "whole"),
    ("noise", changed(("target", "radius_m"), times(1.01)), "epsilon"),
    ("noise", changed(("target", "epsilon"), times(0.9)), "asked for"),
    ("noise", changed(("target", "floor_m_s"), times(0.9)), "pace"),
    ("noise", changed(("worst", "epsilon"), times(0.9)), "worst"),
    ("noise", changed(("places",), [{"name": "home"}]), "places"),
    ("noise", changed(("mechanism", "name"), "everywhere"), "cut, of noise"),
    ("both", changed((*DESIGN, "knots", 1), 19.5), "proof"),
    ("cut", changed((*FIRST, "cut_s"), times(0.99)), "epsilon"),
    ("cut", changed((*FIRST, "sides"), 3), "whole"),
    ("cut", changed((*FIRST, "sides"), True), "whole"),
    ("cut", changed((*FIRST, "cut_s"), 60.0), "whole"),
    ("cut", changed((*FIRST, "cut_s"), float("nan")), "whole"),
    ("cut", changed((*FIRST, "exposures", 0, "circle_68_m"), times(1.001)), "map"),
    *(
        (name, changed((*FIRST, "circle_68_joint_m"), times(1.001)), "its place")
        for name in METHODS
    ),
    ("cut", changed(("target", "floor_m_s"), times(0.99)), "epsilon"),
    ("cut", changed(("secrets",), None), "whole"),
    ("cut", changed(("secrets",), []), "all 1 protected"),
    ("cut", changed(("secrets",), lambda all_of: 2 * all_of), "all 1 protected"),
    ("cut", changed((*FIRST, "begin_utc"), "2020-01-01 00:00:00 UTC"), "where it lies"),
    ("noise", changed((*FIRST, "end_ns"), lambda moment: moment + NANOSECONDS), "where it lies"),
]


@pytest.mark.parametrize(("name", "change", "expected"), TAMPERED)
def test_a_report_that_was_changed(
    folder: Path, name: str, change: Callable[[Report], None], expected: str
) -> None:
    """As it was, all of it holds: see test_a_true_release."""
    report = report_of(folder, name)
    change(report)
    assert expected in " ".join(promise.what for promise in promises(report) if not promise.holds)


def tampered(folder: Path, name: str, change: Callable[[Trace], Trace], out: Path) -> Path:
    """A release of which something was changed."""
    recording = read(folder / f"{name}.gpx")
    moments = recording.times.astype("datetime64[ns]").astype(np.int64)
    trace = Trace(moments, recording.positions, np.zeros(moments.size, dtype=np.intp), (0,))
    trace = change(trace)
    with out.open("wb") as stream:
        write(trace, stream, ".gpx", grid=microdegrees(trace.positions))
    return out


def moved(trace: Trace, rows: slice, degrees: float) -> Trace:
    positions = trace.positions.copy()
    positions[rows, 0] += degrees
    return replace(trace, positions=positions)


def as_recorded(trace: Trace) -> Trace:
    rows = np.searchsorted(TRACE.times, trace.times)
    return replace(trace, positions=TRACE.positions[rows])


def with_nearer(trace: Trace) -> Trace:
    """With the recorded fixes of the middle of what was cut."""
    rows = np.sort(np.append(np.searchsorted(TRACE.times, trace.times), 220))
    near = np.zeros(TRACE.times.size, dtype=np.bool_)
    near[rows] = True
    return TRACE.only(near)


def a_tenth_of_the_noise(trace: Trace) -> Trace:
    recorded = as_recorded(trace).positions
    return replace(trace, positions=0.1 * trace.positions + 0.9 * recorded)


def at_other_times(trace: Trace) -> Trace:
    times = trace.times.copy()
    times[10] += 7 * NANOSECONDS
    return replace(trace, times=times)


FILES = [
    ("noise", lambda t: moved(t, slice(200, 201), 5e-4), "beside the noise"),
    ("noise", a_tenth_of_the_noise, "plausible"),
    ("noise", as_recorded, "plausible"),
    ("noise", lambda t: moved(t, slice(190, 250), 0.02), "plausible"),
    ("noise", lambda t: t.only(np.arange(len(t)) != 7), "has the"),
    ("cut", lambda t: moved(t, slice(3, 4), 1e-6), "as recorded"),
    ("cut", with_nearer, "that is cut"),
    ("cut", at_other_times, "recorded time"),
]


@pytest.mark.parametrize(("name", "change", "expected"), FILES)
def test_a_release_that_was_changed(
    folder: Path, name: str, change: Callable[[Trace], Trace], expected: str, tmp_path: Path
) -> None:
    out = tampered(folder, name, change, tmp_path / "other.gpx")
    failures = failed(folder / f"{name}.PRIVATE.json", folder / "ride.gpx", out)
    assert expected in " ".join(failures)


@pytest.fixture(scope="module")
def two_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases of a recording with two protected parts, the first of which is a stay."""
    folder = tmp_path_factory.mktemp("two")
    source = written(folder / "ride.gpx", TRACE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", os.fspath(folder / "state"))
        for name in METHODS:
            report = folder / f"{name}.PRIVATE.json"
            words = ("--at", "start+1000s", "--mechanism", name, "--subject", name)
            out = ("-o", folder / f"{name}.gpx", "--private-report", report)
            run("protect", source, *STAY, *words, "--activity", "ride", "--no-returns", *out)
            assert len(report_of(folder, name)["secrets"]) == 2
    return folder


def dropped(number: int) -> Callable[[Report], None]:
    """Leave a part out, and say that there were no more."""

    def change(report: Report) -> None:
        for name in ("secrets", "designs"):
            del report[name][number : number + 1]
        report["mechanism"]["parts"] -= 1

    return change


def shifted(seconds: int) -> Callable[[Report], None]:
    """Move the first part in time, all that the report says of it alike."""

    def change(report: Report) -> None:
        for end in ("begin", "end"):
            moment = report["secrets"][0][f"{end}_ns"] + seconds * NANOSECONDS
            report["secrets"][0][f"{end}_ns"] = moment
            report["secrets"][0][f"{end}_utc"] = in_words(moment)

    return change


CONSISTENT = [
    *((name, dropped(number), "") for name in METHODS for number in (0, 1)),
    *((name, shifted(seconds), "") for name in METHODS for seconds in (-40, 300)),
    ("cut", changed((*FIRST, "fixes"), lambda count: count - 1), "it holds"),
    ("cut", changed((*FIRST, "withheld"), 0), "it holds"),
    ("cut", changed((*FIRST, "cut_s"), lambda seconds: seconds + 100), "that is cut"),
]


@pytest.mark.parametrize(("name", "change", "expected"), CONSISTENT)
def test_a_report_that_agrees_with_itself_and_not_with_the_files(
    two_parts: Path, name: str, change: Callable[[Report], None], expected: str, tmp_path: Path
) -> None:
    report = report_of(two_parts, name)
    words = (two_parts / "ride.gpx", two_parts / f"{name}.gpx")
    run("verify", two_parts / f"{name}.PRIVATE.json", *words)
    change(report)
    path = tmp_path / "changed.PRIVATE.json"
    path.write_text(json.dumps(report))
    alone = [promise for promise in promises(report) if not promise.holds]
    named = {promise.what for promise in alone}
    assert all("worst" in name or "circle" in name for name in named)
    of_files = set(failed(path, *words)) - named
    assert any(expected in of_file for of_file in of_files)


PLACE = 'lat="46.1" lon="-33.2"'
ADDED = [
    ("</trk>", f"</trk><wpt {PLACE}></wpt>"),
    ("</trk>", f"</trk><rte><rtept {PLACE}></rtept></rte>"),
    ("<trk>", f"<metadata><bounds min{PLACE.replace(' ', ' min')}/></metadata><trk>"),
    ("</trkpt>", f"<extensions><home {PLACE}/></extensions></trkpt>"),
    ("</trkpt>", "<ele>12.5</ele></trkpt>"),
    ("</trkseg>", "</trkseg><extensions><lap>46.1 -33.2</lap></extensions>"),
    ("<trk>", "<!-- 46.1,-33.2 --><trk>"),
]


@pytest.mark.parametrize(("before", "after"), ADDED)
def test_a_position_that_is_added_to_a_release(
    folder: Path, before: str, after: str, tmp_path: Path
) -> None:
    text = (folder / "cut.gpx").read_text()
    assert before in text
    (tmp_path / "more.gpx").write_text(text.replace(before, after, 1))
    words = (folder / "cut.PRIVATE.json", folder / "ride.gpx", tmp_path / "more.gpx")
    wrong = failed(*words)
    assert "the file holds its fixes, the listed fields and nothing else" in wrong
    assert all(" holds no " not in line for line in wrong)  # "no what no release has"


def test_fields_that_the_report_lists_may_be_in_the_release(tmp_path: Path) -> None:
    source, report = tmp_path / "ride.gpx", tmp_path / "x.PRIVATE.json"
    source.write_bytes(gpx(TRACE).replace(b"<time>", b"<ele>12.5</ele><time>"))
    words = ("--at", "start", "--keep", "elevation", "-o", tmp_path / "x.gpx")
    run("protect", source, *words, "--private-report", report)
    assert b"<ele>" in (tmp_path / "x.gpx").read_bytes()
    run("verify", report, source, tmp_path / "x.gpx")
    changed_report = report_of(tmp_path, "x")
    changed_report["kept"] = []
    report.write_text(json.dumps(changed_report))
    assert "nothing else" in " ".join(failed(report, source, tmp_path / "x.gpx"))


def test_what_was_not_changed_passes(folder: Path, tmp_path: Path) -> None:
    out = tampered(folder, "noise", lambda trace: trace, tmp_path / "same.gpx")
    run("verify", folder / "noise.PRIVATE.json", folder / "ride.gpx", out)


def test_a_wrong_original(folder: Path, tmp_path: Path) -> None:
    words = (folder / "cut.PRIVATE.json", tmp_path / "other.gpx", folder / "cut.gpx")
    (tmp_path / "other.gpx").write_bytes(gpx(ride(400, 20.0, seed=2)))
    assert "as recorded" in " ".join(failed(*words))
    (tmp_path / "other.gpx").write_bytes(gpx(ride(400, 20.0, begin=1_600_000_000)))
    assert "recorded time" in " ".join(failed(*words))
    report = report_of(folder, "cut")
    report["secrets"][0]["begin_ns"] = "soon"
    (tmp_path / "odd.PRIVATE.json").write_text(json.dumps(report))
    failures = failed(tmp_path / "odd.PRIVATE.json", folder / "ride.gpx", folder / "cut.gpx")
    assert "whole" in " ".join(failures)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"no JSON", "must be JSON"),
        (b"[" * 100_000, "must be JSON"),
        (b'{"private": true, "secrets": [{"e": 0.9, "e": 0.1}]}', "must stand once"),
        (b"[]", "must be the private one"),
        (b'{"private": false}', "must be the private one"),
    ],
)
def test_what_is_no_report(content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(content)
    assert expected in str(run("verify", tmp_path / "x.json", status=1).exception)


def test_words_that_do_not_go_together(folder: Path) -> None:
    completed = run("verify", folder / "cut.PRIVATE.json", folder / "ride.gpx", status=2)
    assert "RELEASED" in completed.output


def test_what_a_report_says_is_printed_on_one_line(folder: Path, tmp_path: Path) -> None:
    report = report_of(folder, "cut")
    report["secrets"][0]["exposures"][0]["adversary"] = "\x1b[2Jok\nok all holds"
    (tmp_path / "x.json").write_text(json.dumps(report))
    printed = run("verify", tmp_path / "x.json", status=1).output
    assert "ok all holds" in printed
    assert "\x1b" not in printed
    assert "\nok all" not in printed
