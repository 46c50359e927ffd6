"""Families: ranges are checked, and every row builds the kernel it names."""

import numpy as np
import pytest

from trailveil.errors import InvalidValue
from trailveil.gp.kernels import White
from trailveil.studies.fit import FAMILIES, Parameter


@pytest.mark.parametrize("name", FAMILIES)
def test_each_row_builds_its_kernel_with_noise(name: str) -> None:
    family = FAMILIES[name]
    assert family.name == name
    assert family.parameters[-1].name == "noise_std"
    values = [parameter.start for parameter in family.parameters]
    motion, noise = family.build(values).terms()
    assert noise == White(values[-1])
    for parameter in family.parameters[:-1]:
        assert getattr(motion, parameter.name) == parameter.start == family[parameter.name].start


@pytest.mark.parametrize(
    "values",
    [(0.0, 1.0, 2.0), (1.0, 0.5, 2.0), (1.0, 3.0, 2.0), (1.0, 2.0, np.inf), (1.0, np.nan, 2.0)],
)
def test_impossible_ranges_are_refused(values: tuple[float, float, float]) -> None:
    with pytest.raises(InvalidValue, match="tau must have"):
        Parameter("tau", *values)


def test_set_makes_a_parameter_known_or_gives_it_another_range() -> None:
    family = FAMILIES["rbf"].set(std=1.0, length_scale=(1.0, 8.0, 40.0))
    assert family["std"].known
    assert not family["length_scale"].known
    assert family["length_scale"] == Parameter("length_scale", 1.0, 8.0, 40.0)
    assert family["noise_std"] == FAMILIES["rbf"]["noise_std"]
    with pytest.raises(InvalidValue, match="among length_scale, std, noise_std, got period"):
        family.set(period=1.0)
    with pytest.raises(KeyError):
        family["period"]
