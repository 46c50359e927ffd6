"""Numbers as people read them."""

import pytest

from trailveil.errors import (
    InvalidValue,
    Refused,
    in_python,
    number_between,
    python_errors,
    said,
)
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


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            "state a smaller --radius or --activity drive",
            "state a smaller radius or activity='drive'",
        ),
        ("with --radius 120.5; say --leave 300", "with radius=120.5; say leave=300"),
        ("add --replace if nobody has it", "add replace=True if nobody has it"),
        ("(--no-ends with --between)", "(ends=False with between)"),
        ("add --tz ZONE (the zone)", "add tz=ZONE (the zone)"),
        ("or stops (--stops auto)", "or stops (stops=True)"),
        ("a noise (--noise-std)", "a noise (tv.kernels.White)"),
        ("(trailveil place add --change), or --mechanism cut", None),
        ("add --overwrite", "add overwrite=True"),
        ("pass --assume-utc, or --tz ZONE", "pass tz='UTC', or tz=ZONE"),
        ("got others: add --round-times 1, or choose GPX (-o)", "got others: choose GPX"),
        ("nothing of - or -- that is -5", "nothing of - or -- that is -5"),
    ],
)
def test_options_are_arguments_in_python(message: str, expected: str | None) -> None:
    command = "(trailveil place add --change), or mechanism='cut'"
    assert in_python(message) == (command if expected is None else expected)


def test_an_error_keeps_its_kind_and_names_arguments() -> None:
    with pytest.raises(Refused, match=r"^state radius=5$"), python_errors():
        raise Refused("state --radius 5")
    with pytest.raises(KeyError), python_errors():
        raise KeyError("--radius")
