"""The zone of a recording by where it is."""

import numpy as np
import pytest

from trailveil.traces.trace import Trace
from trailveil.traces.zones import zone_of


def trace(*places: tuple[float, float]) -> Trace:
    count = len(places)
    times = np.arange(count, dtype=np.int64) * 10**9
    return Trace(times, np.array(places), np.zeros(count, dtype=np.int64), (0,))


@pytest.mark.parametrize(
    ("place", "zone"),
    [
        ((52.52, 13.40), "Europe/Berlin"),
        ((40.71, -74.01), "America/New_York"),
        ((39.90, 116.40), "Asia/Shanghai"),
        ((-36.85, 174.76), "Pacific/Auckland"),
        ((27.70, 85.32), "Asia/Kathmandu"),
    ],
)
def test_a_recording_in_one_zone_has_it(place: tuple[float, float], zone: str) -> None:
    found = zone_of(trace(place, (place[0] + 0.01, place[1])))
    assert found is not None
    assert found.key == zone


def test_a_recording_of_several_zones_has_none() -> None:
    assert zone_of(trace((48.58, 7.75), (48.57, 7.95))) is None  # over the Rhine


def test_an_excursion_counts_however_short() -> None:
    places = [(52.52, 13.40)] * 1000
    places[777] = (51.75, 14.95)  # in Poland
    assert zone_of(trace(*places)) is None
