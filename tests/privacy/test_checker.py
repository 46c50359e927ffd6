"""The checker refuses whatever is not proved, to the last digit; it is short, and stands alone."""

import ast
import copy
import math
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

from trailveil.designer.window import window_noise
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy import checker, exact
from trailveil.privacy.checker import check, unproved
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.movement import Movement

FILE = Path(checker.__file__)
STRANGER, PLACE, PATH = 0, 1, 2
Design = dict[str, Any]
BOUND = 1e-5


@pytest.fixture(scope="module", params=[1, 2], ids=["one side", "two sides"])
def honest(request: pytest.FixtureRequest) -> Design:
    who = [
        Knowledge("stranger", Movement(1.0, 60.0), steady=60),
        Knowledge("place", Movement(3.0, 60.0), place=600),
        Knowledge("path", Movement(3.0, 60.0), path=240),
    ]
    return window_noise(120.0, request.param, who, BOUND).proof


def test_it_is_short_and_stands_alone() -> None:
    """Under 200 lines, and of the standard library alone, with the laws of movement."""
    lines = 0
    for file in (FILE, Path(exact.__file__)):
        text = file.read_text(encoding="utf-8")
        lines += text.count("\n")
        names = {
            alias.name if isinstance(node, ast.Import) else node.module or ""
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        others = {name for name in names if name.split(".")[0] not in sys.stdlib_module_names}
        assert others <= ({"trailveil.privacy.exact"} if file == FILE else set())
    assert FILE.read_text(encoding="utf-8").count("\n") < 200
    assert lines < 300


def test_honest_designs_are_accepted(honest: Design) -> None:
    assert check(honest) == []


def losses(design: Design) -> FloatArray:
    """The loss of each false track by dense algebra, less the bound, relative; places at theirs."""
    knots = Knots(tuple(design["knots"]))
    sides = design["sides"]
    factor = block_diag(np.array(design["even"]), np.array(design["odd"] or np.empty((0, 0))))
    precision = np.linalg.inv(factor @ factor.T)
    computed = []
    for who in design["adversaries"]:
        movement = Movement(who["speed"], who["time_constant"])
        form = sides * movement.cost(knots)
        form = block_diag(form, form[1:, 1:]) if sides == 2 else form
        for track in who["tracks"]:
            w = np.array([*track["even"], *track["odd"]])
            cost = float(w @ (precision + form) @ w)
            if track["away"] is not None:
                row = knots.rows([track["away"]])[0]
                row = np.hstack([row, row[1:]]) if sides == 2 else row
                cost += float(row @ w) ** 2 / who["accuracy"] ** 2
                away = track["away"] - who["steady"]
                cost -= 1 / (movement.wandered(away) + who["accuracy"] ** 2)
            elif who["path"] is not None:
                cost -= sides / movement.bridged(who["path"] - who["steady"])
            computed.append(cost / design["bound"] - 1)
    return np.array(computed)


def tight(honest: Design, margin: float = 1e-9) -> Design:
    """A design whose bound is met by so little, relative, for its stranger: place and path go."""
    design = copy.deepcopy(honest)
    design["adversaries"] = design["adversaries"][:1]
    (over,) = losses(design)
    design["bound"] *= (1 + over) * (1 + margin)
    return design


def test_a_bound_is_met_to_the_tenth_digit(honest: Design) -> None:
    assert check(tight(honest, 1e-10)) == []
    assert check(tight(honest, -1e-10)) == ["not proved: stranger"]


@pytest.mark.parametrize("part", ["even", "odd"])
def test_a_billionth_less_noise_is_rejected(honest: Design, part: str) -> None:
    """In an entry of the noise, where the bound is met by a tenth of what it tells."""
    base = tight(honest)
    if not base[part]:
        return
    # Where the odd part is drawn at all: a track that is not the same on both sides.
    track = base["adversaries"][0]["tracks"][0]
    if part == "odd":
        track["odd"] = [0.0] * len(track["odd"])
        track["odd"][-2] = 0.125
    design = copy.deepcopy(base)
    design["bound"] = base["bound"] * (1 + float(losses(base)[0])) * (1 + 1e-13)
    rejected = 0
    for i in range(len(design[part])):
        # Against rounding of the oracle: how much the loss moves with the entry, by a larger step.
        moved = copy.deepcopy(design)
        moved[part][i][i] *= 1 - 1e-5
        step = float(losses(moved)[0] - losses(design)[0]) * 1e-4
        planted = copy.deepcopy(design)
        planted[part][i][i] *= 1 - 1e-9
        if step > 1e-11:
            assert check(planted) == ["not proved: stranger"]
            rejected += 1
    assert rejected > 0


def _of(design: Design, who: int, number: int = 0) -> Any:
    """A track of an adversary."""
    return design["adversaries"][who]["tracks"][number]


def _add(numbers: list[float], index: int, more: float = 1e-9) -> None:
    numbers[index] += more


def _lift(design: Design) -> None:
    track = _of(design, PLACE)
    track["even"] = [x * (1 + 1e-9) for x in track["even"]]


def _exchange(design: Design) -> None:
    tracks = design["adversaries"][PLACE]["tracks"]
    tracks[0], tracks[1] = tracks[1], tracks[0]


def _one_side(design: Design) -> None:
    """The same noise for one side: whoever reads it draws a difference of two."""
    design["sides"] = 3 - design["sides"]


def _state(who: int, **changed: Any) -> Callable[[Design], None]:
    return lambda design: design["adversaries"][who].update(changed)


FAULTS: dict[str, Callable[[Design], Any]] = {
    "value in the window": lambda d: _add(_of(d, STRANGER)["even"], 0),
    "value at steady": lambda d: _add(_of(d, STRANGER)["even"], 1),
    "slope at steady": lambda d: _add(_of(d, STRANGER)["even"], 2),
    "value on the path": lambda d: _add(_of(d, PATH)["even"], -1),
    "value of a place": _lift,
    "a knot": lambda d: _add(d["knots"], d["knots"].index(240)),
    "a place nearer by": _state(PLACE, place=600 - 1e-6),
    "no first track": lambda d: d["adversaries"][PLACE]["tracks"].pop(0),
    "no far track": lambda d: d["adversaries"][PLACE]["tracks"].pop(),
    "no last place": lambda d: d["adversaries"][PLACE]["tracks"].pop(-2),
    "order of places": _exchange,
    "above the diagonal": lambda d: _add(d["even"][0], 3),
    "bound": lambda d: d.update(bound=d["bound"] * 0.95),
    "negative bound": lambda d: d.update(bound=-1.0),
    "endless bound": lambda d: d.update(bound=math.inf),
    "other sides": _one_side,
    "three sides": lambda d: d.update(sides=3),
    "no adversary": lambda d: d.update(adversaries=[]),
    "no tracks": _state(STRANGER, tracks=[]),
    "better accuracy": _state(PLACE, accuracy=7.0),
    "no accuracy": _state(PLACE, accuracy=0),
    "slower": _state(STRANGER, speed=0.95),
    "negative time": _state(STRANGER, time_constant=-60.0),
    "shorter time": _state(STRANGER, time_constant=54.0),
    "longer steady": _state(STRANGER, steady=98),
    "steady off knots": _state(STRANGER, steady=61),
    "negative steady": _state(STRANGER, steady=-1),
    "nearer path": _state(PATH, path=170),
    "place at 0": _state(STRANGER, place=0),
    "path at 0": _state(STRANGER, path=0),
    "both": _state(PATH, place=600),
    "no number": lambda d: _add(d["even"][0], 0, math.nan),
    "a word": lambda d: d.update(knots="no"),
    "none": lambda d: d.update(even=None),
    "singular": lambda d: _add(d["even"][2], 2, -d["even"][2][2]),
    "short row": lambda d: d["even"][2].pop(),
    "fewer rows": lambda d: d["even"].pop(),
    "a knot less": lambda d: d["knots"].pop(),
    "a knot twice": lambda d: d["knots"].insert(1, 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_rejected(honest: Design, name: str) -> None:
    """A billionth wherever a track must be exact, or a knot; coarser lies elsewhere."""
    design = copy.deepcopy(honest)
    FAULTS[name](design)
    faults = check(design)
    assert len(faults) >= 1
    assert all("\n" not in line for line in faults)


def test_knots_and_places_grow(honest: Design) -> None:
    """Pieces of a negative length would cost less than nothing."""
    design = copy.deepcopy(honest)
    design["knots"][1:3] = design["knots"][2:0:-1]
    assert check(design) == ["no design: ValueError('knots must grow')"]
    design = copy.deepcopy(honest)
    tracks = design["adversaries"][PLACE]["tracks"]
    tracks[1], tracks[2] = tracks[2], tracks[1]
    assert check(design) == ["no design: ValueError('places must grow')"]


def test_half_of_the_bound_fails_for_each_adversary_and_says_where(honest: Design) -> None:
    design = copy.deepcopy(honest)
    design["bound"] /= 2
    gaps = list(unproved(design))
    assert {number for number, _ in gaps} == {STRANGER, PLACE, PATH}
    between = [[float(x) for x in at] for number, at in gaps if number == PLACE and at]
    assert all(a < b for a, b in between)
    assert f"not proved: place {between[0]}" in check(design)


def test_what_is_no_design_is_said() -> None:
    stated: list[Any] = [{}, {"adversaries": 1}, {"adversaries": [{}]}, [], None, "x"]
    for wrong in stated:
        (line,) = check(wrong)
        assert line.startswith("no design: ")


@settings(max_examples=25)
@given(data=st.data())
def test_no_corruption_beyond_the_bound_is_accepted(data: st.DataObject) -> None:
    """Whatever number is changed, and by how much: dense algebra says over, so does the checker."""
    design = copy.deepcopy(_design(data.draw(st.sampled_from([1, 2]))))
    design["adversaries"] = [data.draw(st.sampled_from(design["adversaries"]))]
    design["bound"] *= data.draw(st.sampled_from([1.0, 0.999, 0.996, 0.99]))
    size = data.draw(st.sampled_from([-1e-1, -1e-2, -1e-3, 1e-4, 1e-2, 0.3]))
    kind = data.draw(st.sampled_from(["noise", "track", "movement", "none"]))
    if kind == "noise":
        part = data.draw(st.sampled_from([x for x in ("even", "odd") if design[x]]))
        i = data.draw(st.integers(0, len(design[part]) - 1))
        j = data.draw(st.integers(0, i))
        design[part][i][j] *= 1 + size
    elif kind == "track":
        who = data.draw(st.sampled_from(design["adversaries"]))
        track = data.draw(st.sampled_from(who["tracks"]))
        part = data.draw(st.sampled_from([x for x in ("even", "odd") if track[x]]))
        i = data.draw(st.integers(1, len(track[part]) - 1))
        track[part][i] *= 1 + size
    elif kind == "movement":
        who = data.draw(st.sampled_from(design["adversaries"]))
        who[data.draw(st.sampled_from(["speed", "time_constant", "accuracy"]))] *= 1 + size
    worst = float(losses(design).max())
    if worst > 1e-6:
        assert check(design)
    elif kind == "none" and worst < -3.9e-3:
        assert check(design) == []


_DESIGNS: dict[int, Design] = {}


def _design(sides: int) -> Design:
    if sides not in _DESIGNS:
        who = [
            Knowledge("stranger", Movement(1.0, 60.0), steady=60),
            Knowledge("place", Movement(3.0, 60.0), place=2400),
            Knowledge("path", Movement(3.0, 60.0), path=240),
        ]
        _DESIGNS[sides] = window_noise(120.0, sides, who, BOUND).proof
    return _DESIGNS[sides]


def test_costs_are_those_of_dense_algebra(honest: Design) -> None:
    """The exact cost of each track, rounded up by less than 2^-90, is the float one."""
    expected = losses(honest)
    costs = []
    for stated in honest["adversaries"]:
        who = checker.StatedAdversary(honest, stated)
        for false_track in stated["tracks"]:
            track = who.track(false_track)
            cost = who.cost(track, track)
            if false_track["away"] is not None:
                at = Fraction(false_track["away"])
                value = sum(x for x in [who._piece(track, at, at + 1)[0]] if at < who.knots[-1])
                cost += (value / who.accuracy) ** 2 - 1 / who.movement.given_place(
                    at - who.steady, who.accuracy
                )
            elif who.path is not None:
                cost -= who.known
            costs.append(float(cost / who.bound) - 1)
    np.testing.assert_allclose(costs, expected, atol=1e-7)
