"""The contract that every kernel keeps. A new kernel is a row of KERNELS."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trailveil.errors import InvalidValue
from trailveil.gp.extended import Extended
from trailveil.gp.gaussian import KERNEL_ROUNDING, UNIT_ROUNDOFF, FloatArray
from trailveil.gp.kernels import (
    RBF,
    Conditioned,
    Constant,
    Function,
    IntegratedOU,
    Kernel,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Product,
    Scaled,
    StoppedClock,
    Sum,
    Tabulated,
    Warped,
    White,
    latent,
    split,
)

STOP = StoppedClock(((64.0, 256.0), (1024.0, 1088.0)))
LATER = StoppedClock(((512.0, 768.0),))


def twice_as_fast(times: Any) -> Any:
    return 2 * times


SIMPLE: dict[str, Kernel] = {
    "rbf": RBF(60.0, 3.0),
    "periodic": Periodic(0.7, 100.0, 3.0),
    "matern12": Matern12(60.0, 3.0),
    "matern32": Matern32(60.0, 3.0),
    "matern52": Matern52(60.0, 3.0),
    "integrated": IntegratedOU(3.0, 60.0),
    "integrated from the middle": IntegratedOU(3.0, 60.0, 500.0),
    "level": Constant(1e5),
    "white": White(2.0),
}
KERNELS: dict[str, Kernel] = SIMPLE | {
    "default prior": IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0),
    "sum of sums": (RBF(60.0) + White(0.1)) + (Matern12(5.0) + Constant(2.0)),
    "scaled": 0.25 * Matern32(60.0),
    "scaled sum": 2.5 * (Matern52(60.0) + White(2.0) + Constant(9.0)),
    "scaled twice": 3.0 * (2.0 * RBF(60.0)),
    "product": Periodic(0.7, 100.0) * RBF(300.0, 2.0),
    "product of sums": (RBF(60.0) + Constant(2.0)) * (Matern12(90.0) + White(0.5)),
    "product with noise": White(2.0) * Matern32(60.0, 3.0),
    "level of levels": Constant(2.0) * Constant(3.0) * RBF(60.0),
    "two noises": White(2.0) + White(1.0),
    "warped": Warped(Matern32(60.0, 3.0), twice_as_fast),
    "stopped": IntegratedOU(3.0, 60.0).warp(STOP),
    "stopped default prior": (IntegratedOU(3.0, 60.0) + Constant(1e5) + White(2.0)).warp(STOP),
    "stopped twice": Matern52(60.0, 3.0).warp(STOP).warp(LATER),
    "stopped on another clock": Matern12(60.0, 3.0).warp(twice_as_fast).warp(STOP),
    "stopped product": (Periodic(0.7, 100.0) * RBF(300.0)).warp(STOP),
    "stopped scaled sum": (0.5 * (RBF(60.0) + White(1.0))).warp(STOP),
}
EACH = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
# Of half an hour, and of twelve days. On a lattice, so that a clock rounds no time that it reads:
# such rounding is no kernel's error.
TIMES = st.one_of(
    st.lists(st.integers(0, 2**31), min_size=2, max_size=9, unique=True),
    st.lists(st.integers(0, 2**40), min_size=2, max_size=9, unique=True),
).map(lambda ticks: np.array(sorted(ticks)) / 2**20)


MP = mpmath.MPContext()
MP.dps = 60


def _displacement(d: Any) -> Any:
    """Variance of the way in time d, for integrated OU of 3 and 60."""
    return 2 * 9 * 60 * (abs(d) - 60 * (1 - MP.exp(-abs(d) / 60)))


def _integrated(origin: int) -> Callable[[Any, Any], Any]:
    def value(a: Any, b: Any) -> Any:
        return (_displacement(a - origin) + _displacement(b - origin) - _displacement(a - b)) / 2

    return value


def _matern(order: int) -> Callable[[Any, Any], Any]:
    """2^(1-v) / Gamma(v) z^v K_v(z), z = sqrt(2 v) d / 60, v = order + 1/2."""
    v = order + MP.mpf("0.5")

    def value(a: Any, b: Any) -> Any:
        z = MP.sqrt(2 * v) * abs(a - b) / 60
        return 9 * (2 ** (1 - v) / MP.gamma(v) * z**v * MP.besselk(v, z) if z else 1)

    return value


def _periodic(a: Any, b: Any) -> Any:
    return 9 * MP.exp(-2 * MP.sin(MP.pi * (a - b) / 100) ** 2 / MP.mpf(0.7) ** 2)


# The equations as the literature has them, not as they are best computed.
EQUATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "rbf": lambda a, b: 9 * MP.exp(-(((a - b) / 60) ** 2) / 2),
    "periodic": _periodic,
    "matern12": _matern(0),
    "matern32": _matern(1),
    "matern52": _matern(2),
    "integrated": _integrated(0),
    "integrated from the middle": _integrated(500),
    "level": lambda a, b: MP.mpf(10) ** 10,
    "white": lambda a, b: 4 * (a == b),
}


def parts(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel and all kernels in it."""
    yield kernel
    for field in fields(kernel):  # type: ignore[arg-type]  # every final kernel is a dataclass
        value = getattr(kernel, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Kernel):
                yield from parts(part)


def added(terms: list[Kernel], times: FloatArray) -> FloatArray:
    return np.asarray(sum((term(times, times) for term in terms), np.zeros((times.size,) * 2)))


def agree(computed: FloatArray, expected: FloatArray, kernel: Kernel, times: FloatArray) -> bool:
    """Whether two ways to a matrix differ by no more than each may round."""
    deviations = np.sqrt(kernel.diagonal(times))
    allowed = 2 * KERNEL_ROUNDING * UNIT_ROUNDOFF * np.outer(deviations, deviations)
    return bool(np.all(np.abs(computed - expected) <= allowed))


def test_every_kernel_has_a_row() -> None:
    kinds = {type(part) for kernel in KERNELS.values() for part in parts(kernel)}
    # Those three are of what is given, at stated times or in double precision alone.
    elsewhere = {Tabulated, Function, Conditioned}  # tests/gp/test_adapters.py
    assert kinds == set(Kernel.__subclasses__()) - elsewhere
    # An equation of its own is held against the literature's, by an equation in EQUATIONS.
    assert {type(kernel) for kernel in SIMPLE.values()} == kinds - {Scaled, Sum, Product, Warped}
    assert EQUATIONS.keys() == SIMPLE.keys()


@EACH
@settings(max_examples=20)
@given(times=TIMES)
def test_a_covariance(kernel: Kernel, times: FloatArray) -> None:
    matrix = kernel(times, times)
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(np.diagonal(matrix), kernel.diagonal(times))
    assert np.array_equal(matrix[1:, :-1], kernel(times[1:], times[:-1]))
    # Entries off by 64 roundings of two deviations move an eigenvalue by at most so much of the
    # trace; computing it adds a rounding for each row.
    allowed = (KERNEL_ROUNDING + times.size) * UNIT_ROUNDOFF * np.trace(matrix)
    assert np.linalg.eigvalsh(matrix)[0] >= -allowed


@EACH
@settings(max_examples=10)
@given(times=TIMES)
def test_the_formula_in_many_digits(kernel: Kernel, times: FloatArray) -> None:
    m = Extended(200)
    exact_times = m.numbers(times)
    value = kernel.formula(exact_times[:, None], exact_times[None, :], m)
    exact = np.broadcast_to(value, (times.size,) * 2)
    error = np.abs(kernel(times, times) - exact).astype(np.float64)
    variances = np.diagonal(exact).astype(np.float64)
    size = np.sqrt(np.outer(variances, variances))
    assert np.all(error <= 1e-12 * size)
    # What error bounds of losses count on is sharper.
    assert np.all(error <= KERNEL_ROUNDING * UNIT_ROUNDOFF * size)


@pytest.mark.parametrize("name", SIMPLE)
@settings(max_examples=10)
@given(times=TIMES)
def test_the_equation_of_the_literature(name: str, times: FloatArray) -> None:
    equation = EQUATIONS[name]
    exact = np.array([[equation(MP.mpf(a), MP.mpf(b)) for a in times] for b in times])
    deviations = np.sqrt(np.diagonal(exact).astype(np.float64))
    error = np.abs(SIMPLE[name](times, times) - exact).astype(np.float64)
    assert np.all(error <= 1e-12 * np.outer(deviations, deviations))


@EACH
@settings(max_examples=10)
@given(times=TIMES)
def test_parts_add_up(kernel: Kernel, times: FloatArray) -> None:
    matrix = kernel(times, times)
    assert agree(added(list(kernel.terms()), times), matrix, kernel, times)
    assert all(len(term.terms()) == 1 for term in kernel.terms())
    without_level, level = split(kernel)
    assert agree(
        added([without_level] if without_level else [], times) + level, matrix, kernel, times
    )
    assert without_level is None or split(without_level) == (without_level, 0.0)
    place, white = latent(kernel), [term for term in kernel.terms() if term.is_white()]
    assert agree(added([*([place] if place else []), *white], times), matrix, kernel, times)
    assert place is None or not any(term.is_white() for term in place.terms())
    noise = added(white, times)
    assert np.array_equal(noise, np.diag(np.diagonal(noise)))


@EACH
@settings(max_examples=10)
@given(times=TIMES)
def test_on_another_clock_places_move_and_noise_stays(kernel: Kernel, times: FloatArray) -> None:
    place = latent(kernel)
    warped = kernel.warp(twice_as_fast)
    noise = added([term for term in kernel.terms() if term.is_white()], times)
    read = place(2 * times, 2 * times) if place else np.zeros_like(noise)
    assert agree(warped(times, times), read + noise, warped, times)


@EACH
def test_a_stop_is_one_place(kernel: Kernel) -> None:
    held = latent(kernel.warp(STOP))
    if held is None:
        return
    inside, others = np.array([64.0, 100.3, 256.0]), np.array([0.0, 30.0, 128.0, 300.0, 2e3])
    rows = held(inside, others)
    assert np.array_equal(rows, np.tile(rows[0], (3, 1)))
    assert np.ptp(held(inside, inside)) == 0.0


@EACH
@given(factor=st.floats(1e-6, 1e6))
@settings(max_examples=5)
def test_sums_products_and_scales(kernel: Kernel, factor: float) -> None:
    times = np.array([3.0, 70.0, 70.5, 300.0])
    first, other = kernel(times, times), RBF(60.0, 2.0)(times, times)
    for combined, expected in (
        (kernel + RBF(60.0, 2.0), first + other),
        (kernel * RBF(60.0, 2.0), first * other),
        (RBF(60.0, 2.0) * kernel, first * other),
        (factor * kernel, factor * first),
        (kernel * factor, factor * first),
    ):
        assert agree(combined(times, times), expected, combined, times)


@EACH
def test_equal_and_hashed_by_value(kernel: Kernel) -> None:
    again = replace(kernel)  # type: ignore[type-var]  # every final kernel is a dataclass
    assert again is not kernel
    assert again == kernel
    assert hash(again) == hash(kernel)
    others = [other for other in KERNELS.values() if other is not kernel]
    assert kernel not in others
    # Draws of a noise are named by its text: two kernels must never read alike, nor one differ.
    assert repr(again) == repr(kernel)
    assert repr(kernel) not in map(repr, others)


def numbers(kernel: Kernel) -> list[str]:
    return [
        field.name
        for field in fields(kernel)  # type: ignore[arg-type]  # every final kernel is a dataclass
        if isinstance(getattr(kernel, field.name), float)
    ]


@pytest.mark.parametrize("name", [*SIMPLE, "scaled"])
def test_every_parameter_decides(name: str) -> None:
    kernel: Any = KERNELS[name]
    assert numbers(kernel)
    for parameter in numbers(kernel):
        value = getattr(kernel, parameter)
        nearly = replace(kernel, **{parameter: np.nextafter(value, np.inf)})
        assert nearly != kernel
        assert repr(nearly) != repr(kernel)
        whole = replace(kernel, **{parameter: 7})
        assert (whole, repr(whole)) == (again := replace(kernel, **{parameter: 7.0}), repr(again))


@pytest.mark.parametrize("name", [*SIMPLE, "scaled"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), -float("inf")])
def test_parameters_out_of_range_are_refused_in_one_line(name: str, value: float) -> None:
    kernel: Any = KERNELS[name]
    for parameter in numbers(kernel):
        if parameter == "origin" and np.isfinite(value):
            continue
        with pytest.raises(InvalidValue, match=f"{parameter} of {type(kernel).__name__}") as caught:
            replace(kernel, **{parameter: value})
        assert "\n" not in str(caught.value)
        assert str(value) in str(caught.value)


@pytest.mark.parametrize(
    "inputs", [[[1.0]], [float("nan")], [0.0, float("inf")], 1.0], ids=["2-d", "nan", "inf", "0-d"]
)
def test_inputs_that_are_not_one_finite_number_a_point(inputs: Any) -> None:
    kernel = RBF(60.0)
    for use in (kernel.diagonal, lambda a: kernel(a, [0.0]), lambda a: kernel([0.0], a)):
        with pytest.raises(InvalidValue, match="one finite number a point"):
            use(inputs)


def test_what_cannot_be_meant() -> None:
    with pytest.raises(InvalidValue, match="at least one"):
        Sum(())
    for noisy in (White(1.0), RBF(1.0) + White(1.0), White(1.0) * RBF(1.0), Scaled(White(1.0), 2)):
        with pytest.raises(InvalidValue, match="must not be put on a clock"):
            Warped(noisy, STOP)
    assert Product(White(1.0), RBF(1.0)).warp(STOP) == Product(White(1.0), RBF(1.0))
    assert Constant(1.0).warp(STOP) == Constant(1.0)
    assert latent(White(1.0) + White(2.0)) is None
    assert split(Constant(3.0) + Constant(4.0)) == (None, 25.0)


@EACH
def test_no_points_at_all(kernel: Kernel) -> None:
    assert kernel([], [1.0]).shape == (0, 1)
    assert kernel.diagonal([]).shape == (0,)
