"""Pages: well-formed, nothing from outside, nothing secret in those for others, true figures."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from tests.report.pages import leaves, read_page, scanned
from tests.rides import BEGIN, ride
from tests.traces.formats.samples import FULL
from trailveil.checks.scan.tokens import from_xml
from trailveil.privacy.adversaries import Named
from trailveil.release.drawing import draw
from trailveil.release.everywhere import plan_everywhere
from trailveil.release.plan import Plan
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.report.brief import brief
from trailveil.report.guesses import guesses
from trailveil.report.html import DARK, LIGHT
from trailveil.report.pages import private_page, public_page
from trailveil.report.record import record
from trailveil.report.text import text
from trailveil.traces.retiming import AS_RECORDED, Retiming, retimed
from trailveil.traces.selection import Chosen, Stretch
from trailveil.traces.trace import NANOSECONDS, Trace

TRACE = ride(60, 30.0, still=(20, 35))
SEED = bytes(range(32))
# Seconds after the first fix: numbers that nothing else on a page is.
AT, FROM, UNTIL = 137, 611, 1049


def stretch(begin: int, end: int) -> Stretch:
    first = int(TRACE.times[0])
    return Stretch("Aunt Ida", first + begin * NANOSECONDS, first + end * NANOSECONDS)


STAY = stretch(FROM, UNTIL)
NOISE = Method.NOISE
PLANS: dict[str, Callable[[], Plan]] = {
    "a time and a stay": lambda: protect(TRACE, Request((stretch(AT, AT), STAY), method=NOISE)),
    "cut": lambda: protect(TRACE, Request((stretch(AT, AT), STAY), floor=4.0)),
    "both": lambda: protect(TRACE, Request((stretch(1770, 1770),), method=Method.BOTH)),
    "withheld": lambda: protect(TRACE, Request((STAY,), withhold=90.0, method=NOISE)),
    "metres": lambda: protect(TRACE, Request((STAY,), leave=300.0, floor=4.0)),
    "everywhere": lambda: plan_everywhere(
        TRACE, Request((), method=Method.EVERYWHERE, who=(Named.PLAIN,))
    ),
}


@cache
def planned(name: str = "a time and a stay") -> Plan:
    return PLANS[name]()


HOSTILE = "a\"'<script>alert(1)</script>&amp;\u202exfig.\x07\udce4\n<b>"


def drawn(plan: Plan, retiming: Retiming = AS_RECORDED) -> tuple[Trace, Trace]:
    """What a release draws, and what of it leaves."""
    release, grid = draw(plan, SEED)
    return release, retimed(release, grid, retiming)[0]


@cache
def public(plan: Plan, name: str = "out.gpx", retiming: Retiming = AS_RECORDED) -> bytes:
    report = record(plan, None, output=name, private=False, retiming=retiming)
    return public_page(report, drawn(plan, retiming)[1])


@cache
def private(plan: Plan, name: str = "out.gpx") -> bytes:
    return private_page(record(plan, None, output=name), plan, drawn(plan)[0])


@pytest.mark.parametrize("name", PLANS)
def test_pages_are_whole_and_ask_for_nothing(name: str) -> None:
    planned_release = planned(name)
    moved = 2 + (planned_release.mechanism.max_std > 0)  # the noise over time, where there is any
    moved += len(set(re.findall(rb"Circle [P\d]+, nearer", private(planned_release))))
    for data, charts in ((public(planned_release), 2), (private(planned_release), moved)):
        content = read_page(data)
        assert len(content.charts) == charts
        assert "released" in content.drawn
        assert "N" in content.drawn
        assert any(re.fullmatch(r"\d+ k?m", word) for word in content.drawn)  # the scale bar
        assert sum(word.endswith("°") for word in content.drawn) >= 4
        assert all(int(x) < 330 for x in re.findall(r'viewBox="0 0 (\d+)', data.decode()))
        assert "None" not in "".join(content.words)
        assert "nan" not in re.findall(r"[a-z]+", data.decode().lower())


@pytest.mark.parametrize("name", PLANS)
def test_pages_say_what_the_report_says_with_its_numbers(name: str) -> None:
    planned_release = planned(name)
    for is_private, data in ((False, public(planned_release)), (True, private(planned_release))):
        report = record(planned_release, None, output="out.gpx", private=is_private)
        content = read_page(data)
        said = " ".join(content.words)
        for line in (*report["warnings"], *report["not_protected"]):
            assert line in said
        for who in report["adversaries"]:
            assert who[0].upper() + who[1:] in said
        plain = " ".join(text(report).split("\n", 1)[1].split())
        plain = re.sub(r" ([-!]|\d+\.)(?= )", "", f" {plain}")
        missing = [word for word in plain.split() if word not in said]
        assert missing == []
        numbers = {leave for leave in leaves(report) if isinstance(leave, int | float)}
        assert set(content.values) <= numbers
        worst = report["worst"]
        assert {worst[key] for key in ("epsilon", "mu", "odds_factor_99", "advantage")} <= set(
            content.values
        )
        assert worst["circle_68_m"] in content.values
        for secret in report.get("secrets", []):
            assert secret["circle_68_joint_m"] in content.values


def test_both_ends_at_one_place_have_one_figure_wherever_it_stands() -> None:
    """That of both cuts together; the figure of each alone stands once, and says what it is."""
    way = np.concatenate([TRACE.positions, TRACE.positions[::-1]])
    times = TRACE.times[0] + np.arange(len(way)) * 60 * NANOSECONDS
    there_and_back = Trace(times, way, np.zeros(len(way), dtype=np.intp), (0,))
    plan = protect(there_and_back, requested(there_and_back, Chosen(), Request((), floor=4.0)))
    report = record(plan, None, output="out.gpx")
    alone = {float(secret["circle_68_m"] or 0.0) for secret in report["secrets"]}
    joint = {float(secret["circle_68_joint_m"] or 0.0) for secret in report["secrets"]}
    assert joint == {report["worst"]["circle_68_m"]}
    assert min(alone) > 1.4 * max(joint)
    (shown,) = {f"{radius:,.0f} m" for radius in joint}
    other = f"{min(alone):,.0f} m"
    others = record(plan, None, output="out.gpx", private=False)
    assert shown in "".join(read_page(public_page(others, drawn(plan)[1])).words)
    content = read_page(private_page(report, plan, drawn(plan)[0]))
    assert not alone & set(content.values)
    for words in (text(report), " ".join(content.words)):
        plain = " ".join(words.split())
        assert (
            plain.count(f"If they are different places, each has a circle of at least {other}.")
            == 1
        )
        assert plain.count(other) == 1
        assert plain.count(f"circle of {shown}") >= 2
    assert shown in brief(report, "trailveil audit")
    assert other not in brief(report, "trailveil audit")


def test_a_circle_that_is_small_on_the_map_is_drawn_nearer_with_what_is_hidden() -> None:
    """On a map of its own, at a scale that shows it; the page for others has none."""
    plan = protect(TRACE, Request((stretch(AT, AT), STAY), radius=5.0, floor=4.0))
    report = record(plan, None, output="out.gpx")
    data = private_page(report, plan, drawn(plan)[0])
    maps = re.findall(r"<svg.*?</svg>", data.decode(), re.DOTALL)
    nearer = [each for each in maps if "nearer</title>" in each]
    assert [number for number in (1, 2) if f"Circle {number}, nearer" in data.decode()] == [1, 2]
    scales = [re.search(r">(\d+) m<", each) for each in nearer]
    assert all(scale and int(scale[1]) <= 50 for scale in scales)
    assert b"nearer" not in public(plan)
    assert b"nearer" not in private(planned("metres")), "there it is large"


def tokens(data: bytes, take: Any) -> None:
    from_xml(data.partition(b"\n")[2], "page.html", take)


def places_told(data: bytes, trace: Trace, original: bytes) -> list[str]:
    """What the leak scanner finds of the true places and of the original in a page."""
    return scanned(partial(tokens, data), trace, original)


def times_told(data: bytes) -> list[str]:
    """Protected times that stand in a page, in any of the ways to write them."""
    page = " ".join((content := read_page(data)).words + content.drawn)
    forms = set()
    for second in (AT, FROM, UNTIL):
        when = np.datetime64(BEGIN + second, "s")
        for zone in ("UTC", "Europe/Berlin", "America/New_York"):
            local = when.item().replace(tzinfo=ZoneInfo("UTC")).astimezone(ZoneInfo(zone))
            forms |= {local.strftime("%H:%M"), local.strftime("%H%M%S")}
        forms |= {str(BEGIN + second), str(second), f"{second / 60:.1f}", f"{second / 60:.2f}"}
        forms |= {str((BEGIN + second) * 10**power) for power in (3, 6, 9)}
        forms |= {f"{second // 60}:{second % 60:02}", f"{second / 3600:.3f}"}
    return [form for form in forms if re.search(rf"(?<![\d.]){re.escape(form)}(?![\d])", page)]


@pytest.mark.parametrize("name", PLANS)
def test_a_page_for_others_tells_no_true_place_and_no_protected_time(name: str) -> None:
    data = public(planned(name))
    assert places_told(data, TRACE, FULL["GPX"]) == []
    assert times_told(data) == []
    assert b"Aunt Ida" not in data
    assert b"PRIVATE" not in data
    assert not re.search(r"\d\d:\d\d", " ".join(read_page(data).words))
    assert str(np.datetime64(BEGIN, "s"))[:10] not in data.decode()


def test_the_scan_of_a_page_can_fail() -> None:
    assert times_told(private(planned()))
    latitude, longitude = TRACE.positions[7]
    for leak in (f"<p>{latitude:.4f}</p>", f"<p>{latitude:.6f}, {longitude:.6f}</p>"):
        data = public(planned()).replace(b"</main>", leak.encode() + b"</main>")
        assert places_told(data, TRACE, FULL["GPX"])


def test_a_page_for_others_does_not_depend_on_which_time_is_protected() -> None:
    """The same fixes, released with noise for another time, give the same page to the byte."""
    others = [protect(TRACE, Request((stretch(at, at),), method=NOISE)) for at in (AT, 900)]
    assert not np.allclose(others[0].mechanism.variances, others[1].mechanism.variances)
    released = drawn(others[0])[1]
    pages = [
        public_page(record(other, None, output="out.gpx", private=False), released)
        for other in others
    ]
    assert pages[0] == pages[1]
    owners = [private_page(record(other, None, output=""), other, released) for other in others]
    assert owners[0] != owners[1]


def test_a_page_for_others_shows_times_as_they_leave() -> None:
    """Of a release with rounded times fewer fixes are drawn: those that are released."""
    release, leaves_so = drawn(planned(), Retiming(90.0))
    assert len(leaves_so) < len(release)
    content = read_page(public(planned(), retiming=Retiming(90.0)))
    assert any(f"{len(leaves_so)} fixes over" in word for word in content.words)


def test_a_circle_that_dwarfs_the_track_is_not_drawn() -> None:
    planned_release = protect(TRACE, Request((stretch(AT, AT),), radius=5000.0, floor=100.0))
    report = record(planned_release, None, output="", private=False)
    released = drawn(planned_release)[1]
    near = Trace(
        released.times, 48.0 + np.zeros((len(released), 2)), released.segments, released.tracks
    )
    content = read_page(public_page(report, near))
    assert any("Too large to be drawn" in word for word in content.words)
    assert not any("size of what is left" in word for word in content.drawn)
    assert report["worst"]["circle_68_m"] in content.values


@pytest.mark.parametrize("name", [HOSTILE, "javascript:x", "](http://x)", "$\\frac{1}{"])
def test_hostile_names_are_shown_and_do_nothing(name: str) -> None:
    for data in (public(planned(), name), private(planned(), name)):
        content = read_page(data)
        shown = "".join(c if c.isprintable() else "\ufffd" for c in name)
        assert any(shown in word for word in content.words)
        assert "<script" not in data.decode()
        assert "\u202e" not in data.decode()


def test_a_private_page_is_marked_and_shows_what_is_secret() -> None:
    content = read_page(private(planned()))
    assert content.title == "PRIVATE: What out.gpx promises"
    assert "recorded" in content.drawn
    assert {"1", "2", "guess", "protected"} <= set(content.drawn)
    said = " ".join(content.words)
    assert "for you alone" in said
    assert "Aunt Ida" in said
    report = record(planned(), None, output="")
    for secret in report["secrets"]:
        assert secret["begin_utc"] in said


def test_pages_are_the_same_bytes_again() -> None:
    assert public(planned()) == public.__wrapped__(planned())
    assert private(planned()) == private.__wrapped__(planned())


def test_guesses_are_the_posterior_mean_of_a_dense_formula() -> None:
    """E[mean of the stay | released], by the whole covariance, and never from the truth."""
    release, _ = drawn(planned())
    places = planned().frame.to_lattice(release.positions) / 1e6
    times, kernel = TRACE.seconds, planned().request.kernel
    gamma = planned().mechanism.covariance()
    white = 2.0**2
    every = kernel(times, times) - white * np.eye(times.size)
    inside = (times >= FROM) & (times <= UNTIL)
    where = kernel(times[inside], times) - white * np.eye(times.size)[inside]
    origin = places.mean(axis=0)
    gains = np.linalg.solve(every + white * np.eye(times.size) + gamma, places - origin)
    expected = origin + where.mean(axis=0) @ gains
    report = guesses(planned(), release)
    assert [guess.number for guess in report] == [1, 2]
    assert np.allclose(report[1].place, expected, atol=0.05)
    truth = (planned().lattice[inside] / 1e6).mean(axis=0)
    assert np.hypot(*(expected - truth)) > 1.0
    assert report == guesses(replace(planned(), lattice=planned().lattice + 10**9), release)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_colours_can_be_read(theme: dict[str, str]) -> None:
    """WCAG 2.1, 1.4.3: a contrast of 4.5 to 1 at least, lines of the grid aside."""
    assert set(theme) == set(LIGHT)
    paper = luminance(theme["--paper"])
    for name in set(theme) - {"--paper", "--grid"}:
        bright, dark = sorted((luminance(theme[name]), paper), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, name


def test_every_colour_of_a_picture_is_one_of_the_page() -> None:
    for data in (public(planned()), private(planned())):
        pictures = re.findall(r"<svg.*?</svg>", data.decode(), re.DOTALL)
        assert pictures
        assert not any(re.search(r"#[0-9a-fA-F]{6}\b", picture) for picture in pictures)
        for tag in re.findall(r"<(?:text|path|use|rect)\b[^>]*>", "".join(pictures)):
            if "style=" not in tag:  # black, where it is drawn itself
                assert re.match(r"<(rect|path id=)", tag), tag
                continue
            fill = re.search(r"fill: (none|var\(--[a-z]+\))", tag)
            assert fill or "stroke: var(" in tag, tag
            assert fill or not tag.startswith("<text"), tag
