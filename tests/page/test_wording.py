"""The page says what to do by its own names, never by options of the command line."""

from pathlib import Path

import pytest

from tests.rides import ride
from trailveil.errors import TrailveilError
from trailveil.ledger.counting import released_before
from trailveil.page.planner import on_the_page
from trailveil.release.protect import protect, requested
from trailveil.release.request import Method, Request
from trailveil.traces.selection import Chosen


def refusals() -> list[str]:
    """What the program says of short rides, of much to hide, and of a second version."""
    said = [f"{released_before('me', [], 0, 1)}"]
    for trace, asked in (
        (ride(60, 20.0), Request(())),
        (ride(60, 20.0), Request((), method=Method.BOTH)),
        (ride(60, 20.0), Request((), radius=900_000.0, epsilon=0.1)),
        (ride(60, 20.0, still=(0, 60)), Request(())),
    ):
        with pytest.raises(TrailveilError) as refused:
            protect(trace, requested(trace, Chosen(), asked))
        said.append(f"{refused.value}")
    return said


def test_no_refusal_names_an_option() -> None:
    assert sum("--" in words for words in refusals()) >= 3
    for words in refusals():
        assert "--" not in on_the_page(words), on_the_page(words)


def test_what_to_do_is_said_by_the_names_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "trailveil/page/static/index.html").read_text("utf-8")
    words = on_the_page(refusals()[0])
    assert "tick “replace it” if nobody has the earlier one" in words
    assert words.endswith("tick “both versions count” to accept both")
    assert ": replace it<" in page
    assert "a smaller distance, or a faster way to move, or use noise" in on_the_page(refusals()[1])
    assert "> Both versions count:" in page
    assert on_the_page("half is left with --radius 27 or --activity drive (if so)") == (
        "half is left with 27 m or a drive (if so)"
    )
