"""What settings may say, and what is said of those that are wrong."""

from pathlib import Path
from typing import Any

import pytest

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.studies.comparing import compare
from trailveil.studies.comparing.settings import Entrant, Settings, read_settings, settings_of
from trailveil.studies.comparing.tables import ATTACKS, DATA, MECHANISMS, METRICS, SLOW

EXAMPLE = """
seed = 7
draws = 2
data = ["prior", "rides"]
mechanisms = ["cut", "strong"]
metrics = ["moved"]
[data-of.rides]
kind = "folder"
folder = "my rides"
[mechanism.strong]
kind = "planar-laplace"
epsilon = 0.001
"""


def test_settings_are_as_the_file_has_them(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(EXAMPLE, encoding="utf-8")
    settings = read_settings(file)
    assert (settings.seed, settings.draws) == (7, 2)
    strong = settings.entrants("mechanisms")[1]
    assert strong == Entrant("strong", MECHANISMS["planar-laplace"], (("epsilon", 0.001),))
    rides = settings.entrants("data")[1]
    assert rides == Entrant("rides", DATA["folder"], (("folder", str(tmp_path / "my rides")),))
    assert settings.attacks == tuple(name for name in ATTACKS if name not in SLOW)


def test_what_is_not_stated_is_everything() -> None:
    settings = Settings(("prior",))
    assert settings.mechanisms == tuple(MECHANISMS)
    assert settings.metrics == tuple(METRICS)
    assert set(settings.attacks) | set(SLOW) == set(ATTACKS)


def test_functions_of_ones_own_are_added() -> None:
    def mine(case: object, random: object, *, metres: float = 1.0) -> None:
        del case, random, metres

    settings = settings_of({"data": "prior", "mechanism": {}, "mechanisms": ["cut"]})
    names = [each.name for each in settings.entrants("mechanisms", {"mine": mine})]
    assert names == ["cut", "mine"]
    stated = {"data": ["prior"], "mechanisms": ["mine"], "mechanism": {"mine": {"metres": 3.0}}}
    (entrant,) = settings_of(stated).entrants("mechanisms", {"mine": mine})
    assert entrant.parameters == (("metres", 3.0),)


def test_an_identity_changes_with_parameters_and_code() -> None:
    one, other = (Entrant("x", MECHANISMS["cut"], (("radius", r),)) for r in (1.0, 2.0))
    assert one.identity != other.identity != Entrant("x", MECHANISMS["noise"]).identity


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({}, "data must name data sets, of prior"),
        ({"data": 3}, "data must be a list of names, got 3"),
        ({"data": ["prior"], "speed": 1}, "settings must be of .*, got 'speed'"),
        ({"data": ["prior"], "draws": 0}, "draws must be a whole number from 1 on"),
        ({"data": ["prior"], "seed": "x"}, "seed must be a whole number from 0 on"),
        (
            {"data": ["prior"], "mechanism": {"cut": 3}},
            r"a table such as \[mechanism.NAME",
        ),
        (
            {"data": ["prior"], "mechanisms": ["cut"], "mechanism": {"noise": {}}},
            "mechanisms must name all that have parameters, got none of 'noise'",
        ),
    ],
)
def test_wrong_settings_are_told(stated: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        settings_of(stated)


@pytest.mark.parametrize(
    ("kind", "stated", "message"),
    [
        ("mechanisms", {"mechanisms": ["cat"]}, "mechanisms must be of cut, .*, got 'cat'"),
        (
            "mechanisms",
            {"mechanisms": ["cut"], "mechanism": {"cut": {"metres": 3}}},
            "parameters of cut must be of radius, epsilon, floor, got 'metres'",
        ),
        ("attacks", {"attacks": ["guess"]}, "attacks must be of"),
        ("metrics", {"metrics": ["moved"], "metric": {"moved": {"x": 1}}}, "of none, got 'x'"),
    ],
)
def test_wrong_names_and_parameters_are_told(
    kind: str, stated: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        settings_of({"data": ["prior"], **stated}).entrants(kind)


@pytest.mark.parametrize(
    ("data", "values", "message"),
    [
        ("geolife", {}, r"geolife must have folder, got none: state it in \[data-of.geolife\]"),
        ("porto", {"traces": 3}, "porto must have file, got none"),
        ("people", {"people": "a"}, "people of people must be a whole number, got 'a'"),
        ("people", {"people": 2.5}, "people of people must be a whole number, got 2.5"),
        ("people", {"days": True}, "days of people must be a whole number, got True"),
        ("people", {"step": "a"}, "step of people must be a number, got 'a'"),
        ("folder", {"folder": 3}, "folder of folder must be text, got 3"),
        ("people", {"kind": ["people"]}, "data must be of prior"),
    ],
)
def test_parameters_are_of_the_kind_that_a_function_takes(
    data: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        settings_of({"data": [data], "data-of": {data: values}}).entrants("data")


def test_what_is_asked_in_python_is_told_in_a_line() -> None:
    ask: Any = compare
    whole = {"data": ["people"], "mechanisms": ["identity"]}

    def mine(case: object, random: object) -> None:
        del case, random

    for settings, options, message in (
        (None, {}, "settings must be str or PathLike, got NoneType"),
        (whole, {"mechanisms": [mine]}, "mechanisms must be Mapping, got list"),
        (whole, {"mechanisms": {"mine": 3}}, "mine must be a function, got int"),
        (whole, {"mechanisms": {"cut": mine}}, "names of their own, got 'cut': rename it"),
        (whole, {"workers": -1}, "workers must be a whole number from 0 on, got -1"),
        (whole, {"folder": 3}, "folder must be str or PathLike, got int"),
    ):
        with pytest.raises(InvalidValue, match=message):
            ask(settings, **options)


def test_a_file_that_is_no_toml_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("data = [", encoding="utf-8")
    with pytest.raises(UnreadableInput, match="settings must be TOML"):
        read_settings(file)
