"""The page's application in-process: what it tells, what it makes, and what it will not take."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.rides import ride, run, written
from trailveil.designer import table, window
from trailveil.errors import InvalidValue
from trailveil.ledger import user_ledger
from trailveil.page.app import LARGEST_BODY, SERVED, application
from trailveil.page.opened import asked_in, opened
from trailveil.page.planner import Planner
from trailveil.page.serving import Guard
from trailveil.release.request import Method
from trailveil.traces.formats.table import default_output
from trailveil.traces.stops import stays

PORT = 8765
OWN = f"http://127.0.0.1:{PORT}"
HEADERS = {"origin": OWN, "sec-fetch-site": "same-origin", "content-type": "application/json"}
# A cut that leaves something of a short ride, whether at an end or in its middle.
QUICK = {"radius": 25, "epsilon": 1, "mechanism": "cut"}
TRACE = ride(24, 60.0, still=(8, 16))


class Page:
    """A page of one recording as its browser sees it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.source = written(folder / "ride.gpx", TRACE)
        self.output = default_output(self.source)
        self.ended: list[bool] = []
        recording = opened(self.source, self.output, user_ledger(), **options)
        app = application(Planner(recording), lambda: self.ended.append(True))
        self.guard = Guard(app, PORT)
        self.client = TestClient(self.guard, base_url=OWN, follow_redirects=False)
        self.client.get(f"/?token={self.guard.token}")

    def get(self, path: str) -> Any:
        return self.client.get(path)

    def post(self, path: str, body: object) -> dict[str, Any]:
        answer = self.client.post(path, content=json.dumps(body), headers=HEADERS)
        assert answer.status_code == 200
        answered: dict[str, Any] = answer.json()
        return answered

    def parts(self) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = self.get("/api/recording").json()["parts"]
        return parts


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(tmp_path)


def test_the_files_are_served_with_their_types(page: Page) -> None:
    assert "<title>" in page.get("/").text
    for name, kind in SERVED.items():
        answer = page.get(f"/static/{name}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)


def test_what_is_published_is_shown_and_can_be_fetched(page: Page) -> None:
    cut = page.post("/api/plan", {**QUICK, "parts": [["start+0s"]]})
    (line,) = cut["published"]
    assert line == TRACE.positions[-len(line) :].tolist()
    assert 2 <= len(line) < len(TRACE)
    assert "refused" in page.get("/api/released").json()
    saved = page.post("/api/save", {"plan": cut["plan"], "again": False, "overwrite": False})
    assert saved["published"] == cut["published"]
    fetched = page.get("/api/released")
    assert fetched.content == page.output.read_bytes()
    assert "ride.private.gpx" in fetched.headers["content-disposition"]


def test_a_cut_in_the_middle_leaves_two_lines(page: Page) -> None:
    stop = next(part for part in page.parts() if part["label"] == "a stop")
    cut = page.post("/api/plan", {**QUICK, "parts": [stop["times"]]})
    assert len(cut["published"]) == 2


def test_a_circle_is_where_a_stranger_would_look(page: Page) -> None:
    """Computed from what is released alone, never from the truth; its radius is the report's."""
    shown = page.post("/api/plan", {**QUICK, "parts": [["start+0s"]]})
    (circle,), (secret,) = shown["circles"], shown["report"]["secrets"]
    assert circle["at"] == TRACE.positions[0].tolist()
    assert circle["radius_m"] == secret["circle_68_joint_m"] == secret["circle_68_m"]
    first = np.array(shown["published"][0][0])
    metres = 111_000 * np.array([1.0, np.cos(np.radians(48.137))])
    away = np.hypot(*((np.array([circle["guess"], circle["at"]]) - first) * metres).T)
    assert 0 < away[0] < 3 * circle["radius_m"], "near the edge of what is released"
    assert np.hypot(*((np.array(circle["guess"]) - circle["at"]) * metres)) > 1.0
    saved = page.post("/api/save", {"plan": shown["plan"], "again": False, "overwrite": False})
    assert saved["circles"] == shown["circles"]
    assert shown["verdict"].startswith("Save it first")
    assert saved["verdict"].startswith("Share it")


def test_noise_that_is_shown_is_not_what_is_saved(page: Page) -> None:
    asked = {**QUICK, "mechanism": "noise", "parts": [["start+0s"]]}
    shown = [page.post("/api/plan", asked) for _ in range(2)]
    assert shown[0]["plan"] == shown[1]["plan"]
    assert shown[0]["published"] != shown[1]["published"]
    name = {"plan": shown[0]["plan"], "again": False, "overwrite": False}
    saved = page.post("/api/save", name)["published"]
    assert saved not in [plan["published"] for plan in shown]


def test_noise_is_shown_at_once_and_saved_as_it_is_designed(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look designs nothing, promises the same, moves more, and cannot be saved."""
    asked = {**QUICK, "mechanism": "noise", "parts": [["start+0s"]], "radius": 37}
    table.forget()
    with monkeypatch.context() as patched:
        patched.setattr(window, "window_noise", lambda *_: pytest.fail("noise was designed"))
        look = page.post("/api/plan", {**asked, "at_once": True})
        save = {"plan": look["plan"], "again": False, "overwrite": False}
        assert "refused" in page.post("/api/save", save)
    exact = page.post("/api/plan", asked)
    assert (look["plan"], look["report"]["mechanism"]["gap"]) == (None, None)
    assert look["report"]["worst"] == exact["report"]["worst"]
    radii = [[circle["radius_m"] for circle in shown["circles"]] for shown in (look, exact)]
    assert (radii[0], look["promise"]) == (radii[1], exact["promise"])
    for name in ("rms_m", "largest_rms_m"):
        moved = [shown["report"]["mechanism"][name] for shown in (look, exact)]
        assert 1 < moved[0] / moved[1] < 1.3
    # From now on a look has the design itself.
    assert page.post("/api/plan", {**asked, "at_once": True})["plan"] == exact["plan"]
    assert page.post("/api/plan", {**QUICK, "parts": [["start+0s"]], "at_once": True})["plan"]
    unknown = page.post("/api/plan", {**asked, "radius": 5000, "at_once": True})
    assert unknown == {"plan": None}


def test_a_recording_that_the_browser_sends(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    sent = written(tmp_path / "elsewhere.gpx", TRACE).read_bytes()

    def choose(name: str, content: bytes) -> Planner:
        source = Path(name)
        output = default_output(source, content)
        return Planner(opened(source, output, user_ledger(), content=content))

    guard = Guard(application(None, lambda: None, choose=choose), PORT)
    client = TestClient(guard, base_url=OWN, follow_redirects=False)
    client.get(f"/?token={guard.token}")
    assert client.get("/api/recording").json() == {"choose": True}
    early = client.post("/api/plan", content=json.dumps({**QUICK, "parts": []}), headers=HEADERS)
    assert "chosen first" in early.json()["refused"]
    headers = {**HEADERS, "content-type": "application/octet-stream"}

    def send(name: str, content: bytes) -> Any:
        return client.post("/api/choose", params={"name": name}, content=content, headers=headers)

    for name in ("", "../ride.gpx", "a/b.gpx", "x" * 300):
        assert "chosen by its name" in send(name, sent).json()["refused"]
    assert "refused" in send("notes.gpx", b"no recording").json()
    assert send("mine.gpx", sent).json() == {"chosen": True}
    assert client.get("/api/recording").json()["output"] == "mine.private.gpx"
    body = json.dumps({**QUICK, "parts": [["start+0s"]]})
    plan = client.post("/api/plan", content=body, headers=HEADERS).json()["plan"]
    body = json.dumps({"plan": plan, "again": False, "overwrite": False})
    assert client.post("/api/save", content=body, headers=HEADERS).json()["saved"]
    assert (tmp_path / "mine.private.gpx").exists()
    assert not (tmp_path / "mine.gpx").exists()


OUTSIDE = [
    "/static/",
    "/static/../app.py",
    "/static/..%2fapp.py",
    "/static/%2e%2e/app.py",
    "/static/....//app.py",
    "/static/leaflet.js/..",
    "/static//etc/passwd",
    "/static/page.css%00",
    "/etc/passwd",
    "/ride.gpx",
    "/docs",
    "/openapi.json",
    "/api",
]


def test_no_other_file_is_served(page: Page) -> None:
    assert {path: page.get(path).status_code for path in OUTSIDE} == dict.fromkeys(OUTSIDE, 404)


def test_the_recording_is_told_with_its_ends_and_stops(page: Page) -> None:
    recording = page.get("/api/recording").json()
    assert (recording["name"], recording["output"]) == ("ride.gpx", "ride.private.gpx")
    assert [point["at"] for point in recording["points"]] == TRACE.positions.tolist()
    assert [part["chosen"] for part in recording["parts"]] == [True, False, True]
    start, stop, end = recording["parts"]
    assert start["times"] == ["start+0s"]
    assert end["times"] == ["start+1380s"]
    ((begin, end_of_it),) = stays(TRACE)
    assert (stop["begin_ms"], stop["end_ms"]) == (begin // 1_000_000, end_of_it // 1_000_000)
    assert recording["basemap"] is None


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["cut", "noise"])
def test_what_is_saved_is_what_protect_writes_by_the_command_that_is_shown(
    page: Page, mechanism: str
) -> None:
    asked = QUICK if mechanism == "cut" else {**QUICK, "radius": 100, "mechanism": "noise"}
    shown = page.post("/api/plan", {"parts": [["start+660.000000001s"]], **asked})
    assert (shown["before"], shown["exists"]) == (None, False)
    assert not page.output.exists(), "a look releases nothing"
    saved = page.post("/api/save", {"plan": shown["plan"], "again": False, "overwrite": False})
    assert saved["saved"] == "ride.private.gpx"
    assert saved["utility"]["before"]["fixes"] == saved["report"]["recording"]["fixes"]
    assert (saved["utility"]["moved_rms_m"] > 0) == (mechanism == "noise")
    assert (shown["minutes_withheld"] > 0) == (mechanism == "cut")
    assert "What it is still good for" in saved["words"]
    by_page = page.output.read_bytes()
    page.output.unlink()
    words = shlex.split(shown["command"])
    assert words[:2] == ["trailveil", "protect"]
    done = run(*words[1:], "--json")
    assert done.returncode == 0, done.stderr
    assert page.output.read_bytes() == by_page
    report = json.loads(done.stdout)
    assert report["mechanism"] == saved["report"]["mechanism"] == shown["report"]["mechanism"]
    assert report["worst"] == saved["report"]["worst"]
    # All that is chosen on a map is chosen by place; the command cannot know that.
    assert {secret["chosen_by_place"] for secret in saved["report"]["secrets"]} == {True}


@pytest.mark.slow
def test_both_ends_are_what_protect_takes_by_itself(page: Page) -> None:
    ends = [part["times"] for part in page.parts() if part["chosen"]]
    shown = page.post("/api/plan", {"parts": ends, **QUICK})
    assert "--at" not in shown["command"]
    assert [secret["label"] for secret in shown["report"]["secrets"]] == ["the start", "the end"]
    again = page.post("/api/plan", {"parts": ends[::-1], **QUICK})
    assert again["plan"] == shown["plan"], "the same is not designed twice"


@pytest.mark.slow
def test_nothing_is_replaced_or_released_again_unless_confirmed(page: Page) -> None:
    part = {"parts": [["start+600s"]], **QUICK}
    first = page.post("/api/plan", part)
    assert first["minutes_withheld"] > 0
    page.output.write_text("mine")
    save = {"plan": first["plan"], "again": False, "overwrite": False}
    assert "must not exist yet" in page.post("/api/save", save)["refused"]
    assert page.output.read_text() == "mine"
    assert page.post("/api/save", {**save, "overwrite": True})["saved"] == "ride.private.gpx"
    assert page.post("/api/plan", part)["before"] is None, "the same again is no other release"
    other = page.post("/api/plan", {**part, "radius": 15})
    assert "must be released once" in other["before"]
    assert other["exists"]
    save = {**save, "plan": other["plan"], "overwrite": True}
    assert page.post("/api/save", save)["refused"] == other["before"]
    assert "saved" in page.post("/api/save", {**save, "again": True})


def test_the_total_is_kept(tmp_path: Path) -> None:
    page = Page(tmp_path, limit=0.5)
    shown = page.post("/api/plan", {"parts": [["start+600s"]], **QUICK, "radius": 50})
    save = {"plan": shown["plan"], "again": False, "overwrite": False}
    assert "total" in page.post("/api/save", save)["refused"]
    assert not page.output.exists()


NONSENSE = [
    b"",
    b"{",
    b"[]",
    b"1",
    b"null",
    b"\xff",
    b"[" * 50_000,
    b'{"parts": []}',
    b'{"parts": [], "radius": 100, "epsilon": 1}',
    b'{"parts": {}, "radius": 100, "epsilon": 1}',
    b'{"parts": [["a", "b", "c"]], "radius": 100, "epsilon": 1}',
    b'{"parts": [[1]], "radius": 100, "epsilon": 1}',
    b'{"parts": ["start"], "radius": 100, "epsilon": 1}',
    b'{"parts": [["start+1h"]], "radius": 100, "epsilon": 1}',
    b'{"parts": [["nonsense"]], "radius": 100, "epsilon": 1}',
    b'{"parts": [["start"]], "radius": NaN, "epsilon": 1}',
    b'{"parts": [["start"]], "radius": 1e400, "epsilon": 1}',
    b'{"parts": [["start"]], "radius": ' + b"9" * 400 + b', "epsilon": 1}',
    b'{"parts": [["start"]], "radius": 100, "epsilon": -' + b"9" * 400 + b"}",
    b'{"parts": [["start"]], "radius": ' + b"9" * 5000 + b', "epsilon": 1}',
    b'{"parts": [["start"]], "radius": 1e-310, "epsilon": 1}',
    b'{"parts": [["start"]], "radius": 100, "epsilon": 1, "mechanism": ' + b"9" * 400 + b"}",
    b'{"parts": [["start"]], "radius": Infinity, "epsilon": 1}',
    b'{"parts": [["start"]], "radius": -1, "epsilon": 1}',
    b'{"parts": [["start"]], "radius": true, "epsilon": 1}',
    b'{"parts": [["start"]], "radius": "100", "epsilon": 1}',
    b'{"parts": [["start"]], "radius": 100, "epsilon": 0}',
    b'{"parts": [["start"]], "radius": 100, "epsilon": 1, "mechanism": "withhold"}',
    b'{"parts": [["start"]], "radius": 100, "epsilon": 1, "mechanism": "everywhere"}',
    b'{"parts": [["start"]], "radius": 100, "epsilon": 1, "mechanism": ["cut"]}',
    b'{"parts": [["' + b"s" * 100 + b'"]], "radius": 100, "epsilon": 1}',
    json.dumps({"parts": [["start"]] * 101, "radius": 100, "epsilon": 1}).encode(),
    b'{"parts": [], "a": "' + b"a" * LARGEST_BODY + b'"}',
]


def test_what_makes_no_sense_is_refused_in_one_line(page: Page) -> None:
    for body in NONSENSE:
        for path in ("/api/plan", "/api/save"):
            answer = page.client.post(path, content=body, headers=HEADERS)
            answered = answer.json()
            assert (answer.status_code, list(answered)) == (200, ["refused"]), body[:99]
            assert "\n" not in answered["refused"]
            assert len(answered["refused"]) < 500


def test_json_must_be_said_to_be_json_and_methods_must_fit(page: Page) -> None:
    """A form of another page can send text, but not say that it is JSON."""
    headers = {**HEADERS, "content-type": "text/plain"}
    body = page.client.post("/api/save", content='{"plan": "x"}', headers=headers).json()
    assert "small JSON object" in body["refused"]
    assert page.get("/api/save").status_code == 405
    assert page.client.post("/api/recording", headers=HEADERS).status_code == 405


def test_a_confirmation_is_true_or_false(page: Page) -> None:
    flags: list[object] = [1, "true", None, []]
    for flag in flags:
        body = {"plan": "x", "again": flag, "overwrite": False}
        assert "reload the page" in page.post("/api/save", body)["refused"]
    unknown = {"plan": "x", "again": False, "overwrite": False}
    assert "the last that was shown" in page.post("/api/save", unknown)["refused"]


def test_done_ends_it(page: Page) -> None:
    assert page.post("/api/done", {}) == {"ended": True}
    assert page.ended == [True]


def test_what_is_wanted_is_read_exactly() -> None:
    body = {"parts": [["a"], ["a", "b"], ["a"]], "radius": 10, "epsilon": 0.5}
    page_request = asked_in(body)
    assert page_request.parts == {("a",), ("a", "b")}
    assert (page_request.radius, page_request.epsilon, page_request.method) == (
        10.0,
        0.5,
        Method.CUT,
    )
    assert asked_in({**body, "mechanism": "both"}).method is Method.BOTH
    with pytest.raises(InvalidValue, match="must be an object"):
        asked_in([])


@pytest.mark.slow
def test_a_place_with_a_name_is_protected_without_a_choice(tmp_path: Path) -> None:
    """The ends that are at it are not offered, and no end is what protect takes by itself."""
    latitude, longitude = TRACE.positions[0]
    near = f"{latitude:.6f},{longitude:.6f},5000"
    added = run(*("place", "add", "home", "--near", near, "--ways", "1", "--adversary", "plain"))
    assert added.returncode == 0, added.stderr
    page = Page(tmp_path)
    recording = page.get("/api/recording").json()
    assert (recording["places"], [part["chosen"] for part in recording["parts"]]) == (
        ["home"],
        [False],
    )
    shown = page.post("/api/plan", {"parts": [], **QUICK, "mechanism": "noise"})
    assert (shown["circles"], shown["report"]["secrets"]) == ([], [])
    assert shown["report"]["places"][0]["name"] == "home"
    page.post("/api/save", {"plan": shown["plan"], "again": False, "overwrite": False})
    by_page = page.output.read_bytes()
    page.output.unlink()
    done = run(*shlex.split(shown["command"])[1:])
    assert done.returncode == 0, done.stderr
    assert page.output.read_bytes() == by_page
