"""Line ends of Windows, and of old: every text that is read means the same with them."""

from pathlib import Path

import numpy as np
import pytest

from tests.traces.formats.samples import SAMPLES
from trailveil.files.keys import load_key, new_key
from trailveil.privacy.priors import BUILT_IN, to_json
from trailveil.traces.formats.table import FORMATS
from trailveil.traces.loading import read_prior

TEXTS = [row.name for row in FORMATS if b"\0" not in SAMPLES[row.name]]


@pytest.mark.parametrize("ending", [b"\r\n", b"\r"])
@pytest.mark.parametrize("name", TEXTS)
def test_recordings(name: str, ending: bytes) -> None:
    row = next(known_format for known_format in FORMATS if known_format.name == name)
    plain = SAMPLES[name].replace(b"\r\n", b"\n")
    expected, recording = row.read(plain, "x"), row.read(plain.replace(b"\n", ending), "x")
    np.testing.assert_array_equal(recording.times, expected.times)
    np.testing.assert_array_equal(recording.positions, expected.positions)
    assert recording.seen == expected.seen


def test_keys_and_priors(tmp_path: Path) -> None:
    path = tmp_path / "key"
    new_key(path)
    key = load_key(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_key(path) == key
    prior = tmp_path / "prior.json"
    prior.write_bytes(to_json(BUILT_IN["walk"]).encode().replace(b"\n", b"\r\n"))
    assert read_prior(prior).kernel == BUILT_IN["walk"].kernel
