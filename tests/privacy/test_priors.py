"""Priors as text: what is written is read, and nothing is read by half."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.gp.kernels import RBF, Constant, IntegratedOU, Kernel, White
from trailveil.privacy.priors import (
    BUILT_IN,
    KERNELS,
    LEVEL_STD,
    FittedOn,
    PriorSpec,
    from_json,
    to_json,
)

BASIS = FittedOn(
    files=2,
    windows=3,
    fixes=200,
    seconds=1500.0,
    how="median",
    spread={"std": (1.0, 2.0, 3.0)},
    at_bounds={"noise_std": 1},
    unfinished=0,
)
SPEC = PriorSpec("x", IntegratedOU(3.0, 60.0) + White(2.0), "metres", BASIS)

positive = st.floats(1e-9, 1e9)
count = st.integers(0, 10**9)
one_kernel = st.one_of(
    *(
        st.builds(kernel, *[positive for _ in fields(kernel)])  # type: ignore[arg-type]  # dataclasses all
        for kernel in KERNELS.values()
    )
)
kernels = st.lists(one_kernel, min_size=1, max_size=4).map(lambda terms: sum(terms[1:], terms[0]))
bases = st.builds(
    FittedOn,
    count,
    count,
    count,
    positive,
    st.sampled_from(["median", "pooled"]),
    st.dictionaries(st.text(max_size=5), st.tuples(positive, positive, positive), max_size=3),
    st.dictionaries(st.text(max_size=5), count, max_size=3),
    count,
)


@settings(max_examples=40)
@given(kernel=kernels, unit=st.text(max_size=9), basis=st.none() | bases)
def test_what_is_written_is_read(kernel: Kernel, unit: str, basis: FittedOn | None) -> None:
    spec = PriorSpec("x", kernel, unit, basis)
    assert from_json(to_json(spec), "x") == spec


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_priors_are_motion_with_noise_and_an_open_level(name: str) -> None:
    spec = BUILT_IN[name]
    assert (spec.name, spec.unit) == (name, "metres")
    movement, level, noise = spec.kernel.terms()
    assert isinstance(movement, IntegratedOU)
    assert level == Constant(LEVEL_STD) == Constant(100_000.0)
    assert isinstance(noise, White)
    assert from_json(to_json(spec), name) == spec
    if name == "default":
        assert (movement.std, movement.time_constant, noise.std) == (3.0, 60.0, 2.0)
        assert spec.fitted_on is None
        return
    assert spec.fitted_on is not None
    parameters = {
        "std": movement.std,
        "time_constant": movement.time_constant,
        "noise_std": noise.std,
    }
    for parameter, (low, middle, high) in spec.fitted_on.spread.items():
        assert low <= middle <= high
        assert parameters.pop(parameter) == middle
    assert parameters == {}


def test_a_kernel_that_is_no_such_sum_is_not_written() -> None:
    for kernel in (RBF(1.0) * RBF(2.0), 2.0 * RBF(1.0)):
        with pytest.raises(InvalidValue, match="a prior file must hold a sum of"):
            to_json(PriorSpec("x", kernel, "metres", None))


def test_an_origin_may_be_left_out() -> None:
    content = json.loads(to_json(SPEC))
    del content["terms"][0]["origin"]
    assert from_json(json.dumps(content), "x") == SPEC


def put(*path: str | int, value: Any) -> Callable[[Any], None]:
    def change(content: Any) -> None:
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("format", value="other"), "of format trailveil-prior, version 1"),
        (put("version", value=2), "version 1"),
        (put("version", value=True), "version 1"),
        (put("unit", value=7), "a unit and one term"),
        (put("terms", value=[]), "a unit and one term"),
        (put("terms", value={}), "a unit and one term"),
        (put("terms", 0, value="rbf"), "must name a kernel"),
        (put("terms", 0, "kernel", value="rbf2"), "must name a kernel"),
        (put("terms", 0, "kernel", value=["rbf"]), "must name a kernel"),
        (put("terms", 0, "speed", value=1.0), "integrated-ou must have"),
        (lambda content: content["terms"][0].pop("std"), "integrated-ou must have"),
        (put("terms", 0, "std", value="3"), "std must be a finite number"),
        (put("terms", 0, "std", value=True), "std must be a finite number"),
        (put("terms", 0, "std", value=-3.0), "std of IntegratedOU must be a positive"),
        (put("terms", 0, "std", value=10**400), "std must be a finite number"),
        (put("extra", value=1), "a prior file must be an object with"),
        (lambda content: content.pop("unit"), "a prior file must be an object with"),
        (put("fitted_on", value=3), "fitted_on must be an object"),
        (put("fitted_on", "files", value=-1), "files must be a whole number"),
        (put("fitted_on", "files", value=1.5), "files must be a whole number"),
        (put("fitted_on", "place", value="home"), "fitted_on must be an object with"),
        (put("fitted_on", "spread", "std", value=[1.0]), "three numbers"),
        (put("fitted_on", "spread", value=[]), "spread must be an object"),
        (put("fitted_on", "at_bounds", "std", value="1"), "std must be a whole number"),
        (put("fitted_on", "how", value=None), "must be text"),
        (put("fitted_on", "seconds", value=None), "seconds must be a finite number"),
    ],
)
def test_what_is_not_understood_is_refused(change: Callable[[Any], None], message: str) -> None:
    content = json.loads(to_json(SPEC))
    change(content)
    with pytest.raises(UnreadableInput, match=message) as caught:
        from_json(json.dumps(content), "my.json")
    assert str(caught.value).endswith(("my.json", "trailveil fit: my.json"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        to_json(SPEC).replace("3.0", "NaN"),
        to_json(SPEC).replace("3.0", "Infinity"),
        to_json(SPEC).replace('"version": 1', '"version": 1, "version": 1'),
        to_json(SPEC).replace("3.0", "1e999"),
        to_json(SPEC).replace("1500.0", "1e999"),
        to_json(SPEC).replace("3.0", "3" * 5000),
        "[" * 100_000,
        to_json(SPEC) + "x",
    ],
)
def test_text_that_is_no_prior_is_refused(text: str) -> None:
    with pytest.raises(UnreadableInput, match=r"my\.json"):
        from_json(text, "my.json")


def test_the_page_states_the_same_numbers() -> None:
    page = (Path(__file__).parents[2] / "docs" / "priors.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    stated = {
        row[0]: [float(cell) for cell in row[1:]]
        for row in rows
        if len(row) == 5 and row[0] in BUILT_IN
    }
    assert stated.keys() == BUILT_IN.keys()
    for name, numbers in stated.items():
        movement, level, noise = BUILT_IN[name].kernel.terms()
        assert isinstance(movement, IntegratedOU)
        assert isinstance(level, Constant)
        assert isinstance(noise, White)
        assert numbers == [movement.std, movement.time_constant, noise.std, level.std / 1000]


def test_the_example_of_the_page_is_a_prior_file() -> None:
    page = (Path(__file__).parents[2] / "docs" / "priors.md").read_text(encoding="utf-8")
    example = page.split("```json\n")[1].split("```")[0]
    movement, level, noise = BUILT_IN["default"].kernel.terms()
    assert from_json(example, "x").kernel == movement + noise + level
