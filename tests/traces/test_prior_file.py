"""A prior by its name, or from its file."""

from pathlib import Path

import pytest

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.gp.kernels import IntegratedOU, White
from trailveil.privacy.priors import BUILT_IN, PriorSpec, to_json
from trailveil.traces.loading import prior_named, read_prior

SPEC = PriorSpec("mine", IntegratedOU(3.0, 60.0) + White(2.0), "metres", None)


def write_prior(path: Path) -> None:
    path.write_text(to_json(SPEC), encoding="utf-8")


def test_what_is_in_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    write_prior(path)
    prior_spec = read_prior(path)
    assert (prior_spec.kernel, prior_spec.unit, prior_spec.fitted_on) == (
        SPEC.kernel,
        "metres",
        None,
    )
    assert prior_spec.name.endswith("mine.json")


def test_names_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, spec in BUILT_IN.items():
        assert prior_named(name) is spec
    write_prior(Path("walk"))  # a file of that name needs its folder
    assert prior_named("walk") is BUILT_IN["walk"]
    assert prior_named("./walk").kernel == SPEC.kernel
    with pytest.raises(InvalidValue, match="one of default, walk, bike, drive or a file"):
        prior_named("swim")


def test_what_is_no_prior_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(UnreadableInput, match="UTF-8"):
        read_prior(path)
    path.write_text('{"lat": 12.345678}')
    with pytest.raises(UnreadableInput, match="must be an object with") as caught:
        read_prior(path)
    assert "12.3" not in str(caught.value)
    with pytest.raises(UnreadableInput, match="got a directory"):
        prior_named(str(tmp_path))
