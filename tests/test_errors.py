"""Numbers as people read them."""

import pytest

from trailveil.errors import InvalidValue, number_between, said
from trailveil.release.request import Request


@pytest.mark.parametrize(
    ("number", "digits", "text"),
    [
        (1330.4, 3, "1,330"),
        (1e9, 6, "1,000,000,000"),
        (2e-5, 2, "0.00002"),
        (0.0, 3, "0"),
        (-12.5, 6, "-12.5"),
        (719.4, 3, "719"),
        (1e20, 3, "1e+20"),
        (1e-12, 3, "1e-12"),
        (float("inf"), 3, "inf"),
        (float("nan"), 3, "nan"),
        (10**400, 3, "inf"),
        (-(10**400), 3, "-inf"),
    ],
)
def test_numbers_are_said_without_an_exponent(number: float, digits: int, text: str) -> None:
    assert said(number, digits) == text


@pytest.mark.parametrize("number", [1, 1e9, 10**400, -(10**400), float("nan"), float("inf"), -3.0])
def test_out_of_bounds_states_both_bounds(number: float) -> None:
    with pytest.raises(InvalidValue, match="above 1 and below 1,000,000,000, got ") as refusal:
        Request((), order=number)
    assert "\n" not in str(refusal.value)
    assert number_between("order", 5, 1, 1e9) == 5.0
