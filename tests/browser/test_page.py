"""`trailveil open`, clicked through in a browser: from the recording to the saved release."""

import contextlib
import json
import shlex
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Page, Response, Route, expect

from tests.browser.browsing import Watched
from tests.browser.pages import Opened, opened
from tests.rides import ride, run, written

pytestmark = pytest.mark.slow

# A ride of two hours with a stop.
TRACE = ride(120, 60.0, still=(40, 56))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return written(tmp_path / "ride.gpx", TRACE)


@pytest.fixture
def page(source: Path, watched: Watched) -> Iterator[tuple[Opened, Page]]:
    with opened(source) as program:
        watched.served.add(program.origin)
        watched.page.goto(program.address)
        yield program, watched.page
        watched.page.close()  # before what it asks is gone


def planned(page: Page) -> None:
    """Wait until the numbers are those of what is chosen."""
    expect(page.locator("#save")).to_be_enabled()


def slide(page: Page, name: str, value: float) -> None:
    """As a person does, in several steps: each of them asks for a design."""
    for one in (value + 25, value):
        page.locator(f"#{name}").fill(f"{one:g}")


def metres(value: float) -> str:
    return f"{value / 1000:.1f} km" if value >= 10_000 else f"{value:.0f} m"


def test_from_the_recording_to_the_saved_release(
    page: tuple[Opened, Page], source: Path, tmp_path: Path
) -> None:
    program, view = page
    assert view.url == f"{program.origin}/", "the token leaves the address"
    planned(view)
    before = view.locator("#withheld").inner_text()
    assert view.get_by_label("The start").is_checked()

    # The stop alone, by a tap on the map; the ends are left out.
    view.get_by_label("The start").uncheck()
    view.get_by_label("The end").uncheck()
    expect(view.locator("#refused")).to_contain_text("something must be protected")
    expect(view.locator("#save")).to_be_disabled()
    view.locator("path.stop:not(.chosen)").nth(1).click()
    assert view.get_by_label("A stop").is_checked()
    with view.expect_response(lambda one: _is_for(one, 25)) as got:
        slide(view, "radius", 25)
    planned(view)
    shown = got.value.json()

    assert view.locator("#withheld").inner_text() != before
    shows(view, shown, 25)

    # Saved, and the same as by the command that is shown.
    line = view.locator("#command").inner_text()
    view.locator("#save").click()
    expect(view.locator("#saved")).to_have_text("Saved: ride.private.gpx")
    released = source.with_name("ride.private.gpx")
    by_page = released.read_bytes()
    with view.expect_download() as fetched:
        view.locator("#download").click()
    assert fetched.value.suggested_filename == "ride.private.gpx"
    assert fetched.value.path().read_bytes() == by_page
    by_command = tmp_path / "command.gpx"
    done = run(*shlex.split(line)[1:], "-o", by_command, "--json")
    assert done.returncode == 0, done.stderr
    assert by_command.read_bytes() == by_page
    assert json.loads(done.stdout)["mechanism"] == shown["report"]["mechanism"]

    # Not replaced unless it is confirmed.
    view.locator("#save").click()
    expect(view.locator("#unsaved")).to_contain_text("must not exist yet")
    view.get_by_label("Replace the file of that name").check()
    assert view.locator("#command").inner_text() == f"{line} --overwrite"
    view.locator("#save").click()
    expect(view.locator("#saved")).to_have_text("Saved: ride.private.gpx")

    # Requests go on only while the browser is waited for.
    with view.expect_response("**/api/done"):
        view.locator("#done").click()
    assert program.rest().endswith("Ended.\n")
    assert program.process.returncode == 0


def shows(view: Page, shown: dict[str, Any], radius: int) -> None:
    """The page shows what the report says."""
    mechanism = shown["report"]["mechanism"]
    assert view.locator("#rms").text_content() == metres(mechanism["rms_m"])
    assert view.locator("#most").text_content() == metres(mechanism["largest_rms_m"])
    assert view.locator(".moved").first.is_visible() == (mechanism["largest_rms_m"] > 0)
    minutes = f"{shown['minutes_withheld']:.1f} min"
    cut = shown["report"]["mechanism"]
    share = f"{100 * cut['withheld_fixes'] / len(TRACE):.0f} %"
    assert view.locator("#withheld").inner_text() == f"{share}, {minutes}"
    status = view.locator("#status").inner_text()
    assert status.startswith(f"{share} of all is left out, {minutes}; the rest is exactly")
    secret = shown["report"]["secrets"][0]
    assert view.locator("#no-idea").inner_text() == metres(secret["circle_68_m"])
    least = min(one["circle_68_m"] for one in secret["exposures"])
    assert view.locator("#knows").inner_text() == metres(least)
    assert view.locator("path.no-idea-circle").count() == len(shown["circles"]) > 0
    assert f"up to {radius} m apart" in view.locator("#promise").inner_text()
    assert view.locator("#adversaries li").all_inner_texts() == shown["report"]["adversaries"]


def _is_for(response: Response, radius: float) -> bool:
    if not response.url.endswith("/api/plan"):
        return False
    sent = response.request.post_data_json
    return isinstance(sent, dict) and sent["radius"] == radius and "plan" in response.json()


def test_a_part_is_added_by_taps_and_by_the_keyboard(page: tuple[Opened, Page]) -> None:
    _, view = page
    planned(view)
    for label in ("The start", "The end"):
        view.get_by_label(label).focus()
        view.keyboard.press("Space")
    # A first tap says where it begins, a second where it ends, in either order.
    expect(view.locator("path.published")).not_to_have_count(0)
    touch = view.locator("path.touch")
    hints = {0.75: "Now tap the track where the part ends.", 0.6: "Protect this part"}
    for share, hint in hints.items():
        x, y = touch.evaluate(
            "(path, share) => { const at = path.getPointAtLength(share * path.getTotalLength());"
            "const on = new DOMPoint(at.x, at.y).matrixTransform(path.getScreenCTM());"
            "return [on.x, on.y]; }",
            share,
        )
        view.mouse.click(x, y)
        expect(view.locator("#tap")).to_contain_text(hint)
        assert view.locator("#take").is_visible() == (share == 0.6)
    first, last = (int(view.locator(name).input_value()) for name in ("#from", "#to"))
    assert 0 < first < last < len(TRACE) - 1
    # One fix further by the keyboard.
    view.locator("#to").focus()
    view.keyboard.press("ArrowRight")
    view.locator("#add").focus()
    view.keyboard.press("Enter")
    expect(view.locator("#take")).to_be_hidden()
    assert view.get_by_label("A part that you chose").is_checked()
    planned(view)
    assert view.locator("#withheld").inner_text() != "0 %, 0.0 min"
    # So much that a cut leaves nothing, and noise does.
    slide(view, "radius", 900)
    expect(view.locator("#refused")).to_contain_text("two fixes must remain")
    slide(view, "radius", 100)
    view.locator("#mechanism").select_option("noise")
    planned(view)
    line = view.locator("#command").inner_text()
    assert f"--between start+{60 * first}s start+{60 * (last + 1)}s " in line
    assert line.endswith("--mechanism noise")
    assert view.locator("#withheld").inner_text() == "0 %, 0.0 min"
    assert view.locator("#status").inner_text().startswith("Moved by ")
    # On a phone nothing is beside the screen, and what is touched is large enough.
    view.set_viewport_size({"width": 360, "height": 740})
    assert view.evaluate("document.documentElement.scrollWidth") == 360
    for name in ("#save", "#done", "#add", "#mechanism", "#parts label"):
        box = view.locator(name).first.bounding_box()
        assert box is None or box["height"] >= 44, name


def test_noise_is_bounded_at_once_and_only_the_latest_design_counts(
    page: tuple[Opened, Page],
) -> None:
    """While it is designed nothing can be saved; an answer that comes too late changes nothing."""
    _, view = page
    planned(view)
    late: list[Route] = []

    def hold(route: Route) -> None:
        sent: dict[str, Any] = route.request.post_data_json or {}
        if sent["radius"] == 590 and "at_once" not in sent:
            late.append(route)
        else:
            route.fallback()

    view.route("**/api/plan", hold)
    view.locator("#mechanism").select_option("noise")
    planned(view)
    with view.expect_response(lambda one: _is_for(one, 590)) as got:
        view.locator("#radius").fill("590")
    bound = got.value.json()
    assert bound["plan"] is None
    expect(view.locator("#rms")).to_have_text(
        f"at most {metres(bound['report']['mechanism']['rms_m'])}"
    )
    expect(view.locator("#status")).to_contain_text("Working out how much exactly")
    expect(view.locator("#save")).to_be_disabled()
    with view.expect_response(lambda one: _is_for(one, 85) and one.json()["plan"]) as got:
        view.locator("#radius").fill("85")
    planned(view)
    exact = metres(got.value.json()["report"]["mechanism"]["rms_m"])
    expect(view.locator("#rms")).to_have_text(exact)
    with contextlib.suppress(Error):  # the page may have ended it
        late[0].fulfill(json={**bound, "plan": "late", "before": None, "exists": False})
    view.wait_for_timeout(500)
    assert view.locator("#rms").inner_text() == exact
    assert "--radius 85 " in view.locator("#command").inner_text()


def test_a_recording_is_chosen_in_the_browser(
    source: Path, tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with opened(None) as program:
        watched.served.add(program.origin)
        view = watched.page
        view.goto(program.address)
        expect(view.locator("main")).to_be_hidden()
        expect(view.locator("#choosing")).to_be_visible()  # from now on the page listens
        wrong = tmp_path / "notes.gpx"
        wrong.write_text("nothing")
        view.get_by_label("Your recording").set_input_files(wrong)
        expect(view.locator("#unreadable")).not_to_be_empty()
        view.get_by_label("Your recording").set_input_files(source)
        planned(view)
        expect(view.locator("#choosing")).to_be_hidden()
        assert "Times are in " in view.locator("#zone").inner_text()
        view.locator("#save").click()
        expect(view.locator("#saved")).to_have_text("Saved: ride.private.gpx")
        view.close()
    assert [one.name for one in folder.iterdir()] == ["ride.private.gpx"]


def test_a_second_browser_another_page_and_another_name_are_refused(
    page: tuple[Opened, Page], watched: Watched
) -> None:
    program, view = page
    planned(view)
    assert listening(program.origin) == {"127.0.0.1"}
    # A browser without the cookie, with the token that was used.
    other = view.context.browser.new_context() if view.context.browser else None
    assert other is not None
    stranger = other.new_page()
    for address in (program.address, program.origin, f"{program.origin}/static/page.js"):
        answer = stranger.goto(address)
        assert answer is not None
        assert answer.status == 403
    other.close()
    # A page of another origin, in the browser that has the cookie: it is of the same site.
    with elsewhere() as origin:
        watched.served.add(origin)
        attacker = view.context.new_page()
        attacker.goto(origin)
        statuses = attacker.evaluate(
            """async (target) => {
              const tried = [];
              for (const method of ["GET", "POST"]) {
                for (const path of ["/", "/api/recording", "/api/done"]) {
                  const options = { method, mode: "no-cors", credentials: "include" };
                  if (method === "POST") options.body = "{}";
                  try { tried.push((await fetch(target + path, options)).type); }
                  catch { tried.push("failed"); }
                }
              }
              return tried;
            }""",
            program.origin,
        )
        assert set(statuses) <= {"opaque", "failed"}
        attacker.close()
    assert program.process.poll() is None, "another page could end it"
    view.locator("#radius").fill("75")
    planned(view)


def listening(origin: str) -> set[str]:
    """The addresses of this machine at which the port of an origin is listened on."""
    port = int(origin.rsplit(":", 1)[1])
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            address, _, of = local.partition(":")
            if int(of, 16) == port and state == "0A":
                found.add(".".join(map(str, bytes.fromhex(address)[::-1])))
    return found


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<link rel=icon href='data:,'>another page")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class elsewhere:  # noqa: N801 - used as a function
    """Another server of this machine, by its origin."""

    def __enter__(self) -> str:
        self.server = HTTPServer(("127.0.0.1", 0), _Page)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def test_a_map_is_asked_for_at_its_host_alone_and_that_is_said(
    source: Path, watched: Watched
) -> None:
    with opened(source, "--basemap", "https://tiles.example/{z}/{x}/{y}.png") as program:
        watched.served.add(program.origin)
        with watched.page.expect_request("https://tiles.example/**"):
            watched.page.goto(program.address)
        expect(watched.page.locator("#told")).to_contain_text("fetched from tiles.example, which")
        assert "fetched from tiles.example, which sees" in program.said
        assert watched.reached
        assert {url.split("/")[2] for url in watched.reached} == {"tiles.example"}
        watched.page.close()
        watched.reached.clear()
        watched.complaints.clear()
        program.process.send_signal(signal.SIGINT)
        assert program.rest().endswith("Ended.\n")
        assert program.process.returncode == 0
