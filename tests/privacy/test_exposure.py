"""What an adversary is left with adds up in precisions."""

import math

import pytest

from trailveil.privacy.exposure import TrackExposure


@pytest.mark.parametrize(
    ("loss", "prior", "posterior"),
    [
        (1e-4, math.inf, 100.0),
        (0.0, 30.0, 30.0),
        (1 / 900, 40.0, 24.0),
        (0.0, math.inf, math.inf),
        (math.inf, 5.0, 0.0),
    ],
)
def test_precisions_add(loss: float, prior: float, posterior: float) -> None:
    assert TrackExposure("somebody", loss, prior).posterior == pytest.approx(posterior, rel=1e-15)


def test_somebody_without_any_idea_is_the_default() -> None:
    assert TrackExposure("somebody", 0.25) == TrackExposure("somebody", 0.25, math.inf)
