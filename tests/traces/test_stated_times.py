"""The zone of a recording by where it is."""

import numpy as np
import pytest

from trailveil.errors import Refused
from trailveil.traces.selection import Chosen
from trailveil.traces.stated_times import zone_of
from trailveil.traces.trace import Trace


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
    zone_info = zone_of(trace(place, (place[0] + 0.01, place[1])))
    assert zone_info is not None
    assert zone_info.key == zone


def test_a_recording_of_several_zones_has_none() -> None:
    assert zone_of(trace((48.58, 7.75), (48.57, 7.95))) is None  # over the Rhine


def test_nobody_says_what_clocks_show_at_sea() -> None:
    assert zone_of(trace((45.71, -32.97), (45.72, -32.97))) is None


def test_clock_times_are_those_of_the_place() -> None:
    berlin = trace(*[(52.52, 13.40)] * 7200)  # from 01:00 in Berlin on, in winter
    (part,) = Chosen(("01:30",)).stated(berlin)
    assert part.begin == 1800 * 10**9
    border = trace(*[(48.58, 7.75), (48.57, 7.95)])
    with pytest.raises(Refused, match="must state its zone"):
        Chosen(("01:30",)).stated(border)


def test_an_excursion_counts_however_short() -> None:
    places = [(52.52, 13.40)] * 1000
    places[777] = (51.75, 14.95)  # in Poland
    assert zone_of(trace(*places)) is None
