"""Reports say what is true, warn of what they must, and tell no place, draw or (to others) time."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.report.pages import leaves
from tests.rides import gpx, ride
from tests.structured import by_distance, filled_in, held, rounded, snapped
from trailveil.gp.kernels import Constant, IntegratedOU, White
from trailveil.privacy.adversaries import DEFAULT, Named
from trailveil.privacy.guarantee import CIRCLE_68
from trailveil.release.drawing import draw
from trailveil.release.plan import Plan
from trailveil.release.protect import protect
from trailveil.release.request import Method, Request
from trailveil.report.parts import rounded_down, rounded_up
from trailveil.report.record import record
from trailveil.report.text import text
from trailveil.report.warnings import ASSUMED
from trailveil.traces.cleaning import clean
from trailveil.traces.formats.gpx import read
from trailveil.traces.selection import Stretch
from trailveil.traces.trace import Trace

TRACE = ride(60, 30.0, still=(20, 35))
SEED = bytes(range(32))


def stretch(first: int, last: int, *, by_place: bool = False, label: str = "Aunt Ida") -> Stretch:
    return Stretch(label, int(TRACE.times[first]), int(TRACE.times[last]), by_place)


START, STAY = stretch(0, 0), stretch(20, 35)
ALONE = (Named.PLAIN,)


def noisy(*parts: Stretch, **more: Any) -> Request:
    """A request for noise against a stranger, where nothing else is stated."""
    return Request(parts, **{"method": Method.NOISE, "who": ALONE, **more})


NOISY = "times and a stay"
MOVING = IntegratedOU(2.0, 60.0) + Constant(1e5) + White(3.0)
HIDES_ENDS = Request((START, stretch(45, 45)), floor=10.0, middle=10.0, uncertain=10)
REQUESTS = {
    NOISY: noisy(START, STAY),
    "a time": noisy(START, who=DEFAULT),
    "everyone": noisy(STAY, who=DEFAULT),
    "by place": noisy(stretch(0, 0, by_place=True), who=DEFAULT),
    "cut": HIDES_ENDS,
    "both": replace(HIDES_ENDS, method=Method.BOTH),
    "withheld": noisy(START, STAY, who=DEFAULT, withhold=90.0),
    "other prior": noisy(START, who=DEFAULT, kernel=MOVING),
}


@cache
def plan_of(name: str) -> Plan:
    """Where it is asked for: designs take seconds, and each process collects all tests."""
    return protect(TRACE, REQUESTS[name])


def keys(value: Any) -> Iterator[str]:
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            yield from keys(child)
    if isinstance(value, dict):
        yield from value


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("private", [True, False])
def test_reports_are_finite_json_and_plain_lines(name: str, private: bool) -> None:
    report = record(plan_of(name), None, output="out.gpx", private=private)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    shown = text(report)
    assert shown.isascii()
    assert max(len(line) for line in shown.splitlines()) <= 98
    assert not re.search(r"\d\.\d{5}", shown)  # numbers for people
    assert "None" not in shown
    assert "nan" not in shown.lower().split()


def test_figures_are_those_of_the_design() -> None:
    plan = plan_of(NOISY)
    report = record(plan, None, output="out.gpx")
    noise = report["mechanism"]
    spread = np.sqrt(2 * plan.mechanism.variances)
    assert noise["rms_m"] == pytest.approx(np.sqrt(np.mean(spread**2)))
    assert noise["largest_rms_m"] == pytest.approx(spread.max())
    assert (noise["released_fixes"], noise["withheld_fixes"]) == (60, 0)
    for secret, finding in zip(report["secrets"], plan.findings, strict=True):
        assert secret["epsilon"] == finding.guarantee.epsilon
        assert secret["odds_factor_99"] == finding.guarantee.odds(0.99)
        assert secret["circle_68_m"] == pytest.approx(CIRCLE_68 * finding.deviation)
    assert report["worst"]["mu"] == max(finding.guarantee.mu for finding in plan.findings)


def test_99_of_100_draws_stay_below_what_is_said() -> None:
    plan = plan_of(NOISY)
    at = int(np.argmax(plan.mechanism.variances))
    moved = []
    for i in range(2000):
        _, grid = draw(plan, i.to_bytes(32, "big"))
        shift = (plan.frame.to_lattice(grid[at : at + 1] / 1e6) - plan.lattice[at]) / 1e6
        moved.append(float(np.hypot(*shift[0])))
    limit = record(plan, None, output="")["mechanism"]["largest_99_m"]
    # 20 of 2,000 beyond, give or take 4.5: six deviations are a false alarm of 1e-8 or so.
    assert abs(np.sum(np.array(moved) > limit) - 20) < 27


def test_no_report_holds_a_place_or_what_a_draw_moved() -> None:
    plan = plan_of(NOISY)
    _, grid = draw(plan, SEED)
    moved = (plan.frame.to_lattice(grid / 1e6) - plan.lattice) / 1e6
    secret = {*TRACE.positions.ravel(), *moved.ravel(), *np.hypot(*moved.T)}
    for private in (True, False):
        report = record(plan, None, output="out.gpx", private=private)
        numbers = {leave for leave in leaves(report) if isinstance(leave, float)}
        assert all(
            abs(number - other) > 1e-9 * other for number in numbers for other in secret if other
        )


@pytest.mark.parametrize("name", REQUESTS)
def test_a_report_for_others_tells_no_protected_time(name: str) -> None:
    planned = plan_of(name)
    report = record(planned, None, output="out.gpx", private=False)
    shown = json.dumps(report) + text(report)
    assert "Aunt Ida" not in shown
    assert not re.search(r"\d\d:\d\d|20\d\d-", shown)
    assert "secrets" not in report
    assert "components" not in report["mechanism"]
    entries = set(keys(report))
    assert not entries & {"fixes_in_it", "label", "begin_utc", "withheld", "kind", "seconds_away"}


def test_where_the_protected_part_lies_does_not_change_a_report_for_others() -> None:
    """Figures of the noise would: who can design it finds the second that gives just these."""
    even = replace(TRACE, times=TRACE.times[0] + np.arange(60) * 30 * 10**9)
    parts = [Stretch("x", int(even.times[i]), int(even.times[i])) for i in (20, 43)]
    report, other = (
        record(protect(even, noisy(part, who=DEFAULT)), None, output="out.gpx", private=False)
        for part in parts
    )
    assert report == other
    assert text(report) == text(other)
    assert report["mechanism"]["rms_m"] is None
    assert report["worst"]["epsilon"] == pytest.approx(1.0)
    assert report["worst"]["circle_68_m"] == pytest.approx(
        1.5096 * 158.27, rel=1e-4
    )  # as asked for


@pytest.mark.parametrize("who", [DEFAULT, ALONE])
def test_how_many_parts_and_of_which_kind_is_not_in_a_report_for_others(
    who: tuple[Named, ...],
) -> None:
    kinds = [(START,), (STAY,), (START, STAY), (START, stretch(50, 50))]
    reports = [
        record(protect(TRACE, noisy(*parts, who=who)), None, output="out.gpx", private=False)
        for parts in kinds
    ]
    for entry in ("adversaries", "warnings", "not_protected", "mechanism", "target", "times"):
        assert [each[entry] for each in reports] == [reports[0][entry]] * len(reports), entry
    assert "counted by itself" in " ".join(reports[0]["warnings"])
    report = record(protect(TRACE, noisy(START, who=who)), None, output="out.gpx")
    assert "counted by itself" not in " ".join(report["warnings"])


def test_times_are_shown_in_both_zones() -> None:
    report = record(plan_of(NOISY), None, output="out.gpx", zone=ZoneInfo("Asia/Kolkata"))
    assert report["secrets"][0]["begin_utc"] == "2024-05-14 07:40:00 UTC"
    assert report["secrets"][0]["begin_local"] == "2024-05-14 13:10:00 IST"
    shown = " ".join(text(report).split())
    assert "2024-05-14 07:40:00 UTC (2024-05-14 13:10:00 IST)" in shown
    assert "16 fixes" in shown
    same = text(record(plan_of(NOISY), None, output="out.gpx", zone=ZoneInfo("UTC")))
    assert "(2024" not in same


WARNED = {
    "times and a stay": ["cannot know what other apps", "are one place", "A street map can undo"],
    "a time": ["one true place in it", "cannot know what other apps", "moved at least 0.92 m/s"],
    "everyone": ["expect 3 m/s of you"],
    "by place": ["a figure there and not a guarantee"],
    "cut": ["cannot know what other apps", "moved at least 10 m/s"],
    "both": ["A street map can undo"],
    "other prior": ["The prior comes from a file", "expect 2 m/s of you"],
}


def warned(plan: Plan, **more: Any) -> str:
    return " ".join(record(plan, None, output="", **more)["warnings"])


@pytest.mark.parametrize("name", WARNED)
def test_what_must_be_warned_of_is(name: str) -> None:
    for private in (True, False):
        report = record(plan_of(name), None, output="out.gpx", private=private)
        warnings = " ".join(report["warnings"])
        assert all(part in warnings for part in WARNED[name])
        shown = " ".join(text(report).split())
        assert all(
            " ".join(warning.split()) in shown.replace("! ", "") for warning in report["warnings"]
        )


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (filled_in(ride(200, 3.0), 20), "as if filled in"),
        (snapped(ride(200, 3.0), 20), "as if snapped to a map"),
        (by_distance(seed=3, apart=60.0), "a fixed distance apart"),
        (rounded(ride(200, 3.0), 4), ""),
        (held(ride(200, 3.0), 5), "repeated on the way"),
        (held(ride(200, 3.0, still=(100, 150)), 1), ""),
    ],
)
def test_structure_that_no_noise_hides_is_warned_of(trace: Trace, words: str) -> None:
    at = int(trace.times[100])
    planned = protect(trace, noisy(Stretch("stated", at, at), who=DEFAULT))
    cut = protect(
        trace, Request((Stretch("stated", at, at),), floor=20.0, middle=20.0, uncertain=0)
    )
    # Nothing is uncertain around this cut, so that what is computed of other fixes tells of it.
    said = " ".join(record(cut, None, output="")["warnings"])
    assert ("tell of what is cut" in said) == ("filled in" in words or "repeated" in words)
    assert "snapped" not in said
    for private in (True, False):
        warnings = record(planned, None, output="", private=private)["warnings"]
        exact = [
            warning
            for warning in warnings
            if re.search("filled in|repeated|snapped|distance apart", warning)
        ]
        assert len(exact) == bool(words)
        assert words in " ".join(exact)


def test_every_report_of_noise_says_that_nothing_exact_is_assumed() -> None:
    for planned in map(plan_of, REQUESTS):
        report = record(planned, None, output="")["not_protected"]
        assert (ASSUMED in report) == (planned.request.method is not Method.CUT)
    assert record(plan_of(NOISY), None, output="")["mechanism"]["independent_m"] == 2.0


def test_what_need_not_be_warned_of_is_not() -> None:
    assert "a figure there" not in warned(plan_of(NOISY))
    assert "expect 3 m/s" not in warned(plan_of(NOISY))
    assert "street map" not in warned(plan_of("cut"))
    assert "comes from a file" not in warned(plan_of(NOISY))
    assert "are one place" not in warned(plan_of("a time"))
    assert "released before" not in warned(plan_of(NOISY))
    assert "released before" in warned(plan_of(NOISY), further=True)
    assert "both together" in warned(plan_of(NOISY), further=True)


def test_returns_make_epsilon_a_figure_and_without_them_other_visits_are_told_of() -> None:
    """The same for others and for the owner, whether a return was found or not."""
    plan = plan_of(NOISY)
    looked = replace(plan, request=replace(plan.request, returns=True))
    for planned, figure in ((looked, True), (plan, False)):
        for private in (True, False):
            report = record(planned, None, output="", private=private)
            assert ("such times were looked for" in " ".join(report["warnings"])) == figure
            assert ("Other visits to a" in " ".join(report["not_protected"])) == (not figure)


def test_ends_that_are_not_protected_beside_parts_by_place_are_told_to_the_owner() -> None:
    """One of the two is enough: here the start is protected, and the end is not."""
    for name, private, warned in (
        ("by place", True, True),
        ("by place", False, False),
        ("a time", True, True),
        ("a time", False, False),
        ("everyone", True, True),
    ):
        report = record(plan_of(name), None, output="", private=private)
        assert ("leave --no-ends out" in " ".join(report["not_protected"])) == warned


def test_adversaries_are_named_once_each() -> None:
    counts = {"times and a stay": 1, "everyone": 3, "cut": 1, "both": 4}
    for name, count in counts.items():
        assert len(record(plan_of(name), None, output="")["adversaries"]) == count


def test_what_cleaning_left_out_is_told() -> None:
    data = gpx(TRACE).replace(b"<time>2024-05-14T07:40:00Z</time>", b"", 1)
    trace, cleaning = clean(read(data, "ride.gpx"))
    planned = protect(trace, noisy(Stretch("x", int(trace.times[0]), int(trace.times[0]))))
    report = record(planned, cleaning, output="out.gpx")
    assert report["recording"]["cleaning"]["untimed"] == 1
    assert "59 of 60 recorded fixes are used." in text(report)
    assert "were left out" in " ".join(report["warnings"])
    _, whole = clean(read(gpx(TRACE), "ride.gpx"))
    assert "were left out" not in " ".join(record(plan_of(NOISY), whole, output="")["warnings"])


def test_withholding_is_told() -> None:
    report = record(plan_of("withheld"), None, output="out.gpx")
    assert (report["mechanism"]["withheld_fixes"] or 0) > 16
    assert [secret["cut_s"] for secret in report["secrets"]] == [90.0, 90.0]
    assert "nothing is released within 1.5 min of it" in " ".join(text(report).split())


def test_a_place_of_which_nothing_is_learnt_is_told_so() -> None:
    report = record(plan_of(NOISY), None, output="out.gpx")
    report["secrets"][0]["exposures"][0]["circle_68_m"] = None
    assert "A stranger: nothing at all." in text(report)


def test_every_entry_has_its_description() -> None:
    described = (ROOT / "docs" / "report.md").read_text(encoding="utf-8")
    inner = {"cleaning", "cleaning_in_words", "latitude", "longitude", "scale_error", "kernel"}
    report = record(plan_of("both"), None, output="")
    for name in set(keys({**report, "designs": []})) - inner:
        if name.startswith(("begin_", "end_", "0.01", "1e-05")):
            continue
        assert f"`{name}`" in described or name in {"fixes", "seconds_away"}, name


@given(st.floats(1e-9, 1e9))
def test_one_digit_is_on_the_safe_side(value: float) -> None:
    up, down = rounded_up(value), rounded_down(value)
    assert down <= value <= up <= 2.0001 * value
    assert down >= 0.4999 * value
    for number in (up, down):
        assert len(f"{number:.12e}".replace(".", "").split("e")[0].rstrip("0")) == 1
    assert rounded_up(0.0) == 0.0


@pytest.mark.parametrize(
    ("method", "words"), [("cut", "add --stops"), ("noise", "--mechanism cut")]
)
def test_standing_still_near_a_part_is_told_to_the_owner(method: str, words: str) -> None:
    """Some minutes after the start somebody waits: a cut, and noise, reach so far."""
    trace = ride(240, 15.0, still=(18, 60))
    at = int(trace.times[0])
    request = Request((Stretch("the start", at, at),), method=Method(method), floor=1.4)
    planned = protect(trace, request)
    near, far = (
        " ".join(record(ride_plan, None, output="")["warnings"])
        for ride_plan in (planned, protect(ride(240, 15.0), request))
    )
    assert "You stood still for" in near
    assert words in near
    assert "stood still" not in far
    assert "stood still" not in " ".join(
        record(planned, None, output="", private=False)["warnings"]
    )
