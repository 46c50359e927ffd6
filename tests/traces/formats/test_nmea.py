"""NMEA: dates that come from a neighbour, sentences that are none, logs that do harm."""

from pathlib import Path

import numpy as np
import pytest

from tests.traces.formats.builders import sentence
from tests.traces.formats.samples import SAMPLES
from tests.traces.formats.traces import PLACES
from trailveil.errors import TrailveilError, UnreadableInput
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read as read_file
from trailveil.traces.formats.nmea import read
from trailveil.traces.formats.table import format_of
from trailveil.traces.trace import Recording

PLACE = "4612.00000,N,00730.00000,W"


def rmc(clock: str, date: str = "010524", state: str = "A", place: str = PLACE) -> str:
    return sentence(f"GNRMC,{clock},{state},{place},1.00,90.0,{date},,")


def gga(clock: str, quality: str = "1", place: str = PLACE) -> str:
    return sentence(f"GPGGA,{clock},{place},{quality},07,1.1,512.3,M,46.0,M,,")


def taken(*lines: str, field_names: tuple[str, ...] = ()) -> Recording:
    return read("\r\n".join([*lines, ""]).encode(), "x", field_names)


def stamps(recording: Recording) -> list[str]:
    return [str(at)[:19] for at in recording.times]


def test_two_sentences_of_one_moment_are_one_fix() -> None:
    for lines in ((rmc("080000"), gga("080000.00")), (gga("080000"), rmc("080000"))):
        riders = taken(*lines, field_names=("elevation", "speed", "course"))
        assert riders.positions.tolist() == [[46.2, -7.5]]
        assert stamps(riders) == ["2024-05-01T08:00:00"]
        fields = {name: values.tolist() for name, values in riders.fields}
        assert fields == {"elevation": [512.3], "speed": [1852 / 3600], "course": [90.0]}


def test_a_date_holds_across_midnight_in_both_directions() -> None:
    riders = taken(gga("235959.5"), rmc("000001", "020524"), gga("000002"), gga("005900"))
    assert stamps(riders) == [
        "2024-05-01T23:59:59",
        "2024-05-02T00:00:01",
        "2024-05-02T00:00:02",
        "2024-05-02T00:59:00",
    ]
    assert stamps(taken(rmc("235959", "311299"), gga("000001"))) == [
        "1999-12-31T23:59:59",
        "2000-01-01T00:00:01",
    ]


def test_a_clock_that_is_far_from_any_date_has_no_time() -> None:
    riders = taken(gga("050000"), rmc("080000"), gga("090000"), gga("100001"))
    assert np.isnat(riders.times).tolist() == [True, False, False, True]
    assert np.isnat(taken(gga("080000"), gga("080001")).times).all()


def test_a_date_of_zda_is_one() -> None:
    zda = sentence("GPZDA,080001,01,05,2024,00,00")
    assert stamps(taken(gga("080000"), zda)) == ["2024-05-01T08:00:00"]
    many = f"01,05,{9**30}"
    for odd in ("32,05,2024", "01,05,9999", "x,y,z", "1_0,05,2024", many):
        riders = taken(gga("080000"), sentence(f"GPZDA,080001,{odd},00,00"))
        assert np.isnat(riders.times).all()


def test_what_says_that_it_is_not_valid_is_no_fix() -> None:
    mode = sentence(f"GNRMC,080002,A,{PLACE},1.00,90.0,010524,,,N")
    riders = taken(rmc("080000", state="V"), gga("080001", "0"), mode, rmc("080003"))
    assert stamps(riders) == ["2024-05-01T08:00:03"]
    assert riders.seen.without_position == 3


def test_a_wrong_checksum_is_counted_and_none_is_fine_where_there_is_none() -> None:
    right, other = rmc("080000"), rmc("080001")
    wrong = other.replace("W", "E")
    riders = taken(right, wrong, other[:-3], other[:-2] + "zz")
    assert (len(riders), riders.seen.wrong_checksums) == (1, 3)
    assert len(taken(right[:-3], other[:-3])) == 2


@pytest.mark.parametrize(
    "place",
    [
        "9912.0,N,00730.0,W",
        "4612.0,X,00730.0,W",
        ",,,",
        "nan,N,inf,E",
        "4612.0,,00730.0,",
        "1,N,1,E",
    ],
)
def test_positions_that_are_none_are_refused(place: str) -> None:
    with pytest.raises(UnreadableInput, match=r"must have a position|look swapped"):
        clean(taken(*(rmc(f"08000{i}", place=place) for i in range(3))))


@pytest.mark.parametrize("clock", ["240000", "086000", "8", "", "08:00:00"])
@pytest.mark.parametrize("date", ["320124", "000000", "", "2024-05-01"])
def test_clocks_and_dates_that_are_none(clock: str, date: str) -> None:
    with pytest.raises(UnreadableInput, match="got without position: 1"):
        taken(rmc(clock))
    assert np.isnat(taken(rmc("080000", date)).times).all()


def test_lines_of_a_log_may_have_more_before_them_and_rubbish_between() -> None:
    noise = ["x" * 100_000, "$" * 10_000, "$GPRMC," * 1000, "\x00\xff"]
    riders = taken(f"2024-05-01 08:00 > {rmc('080000')}", *noise, rmc("080001"))
    assert stamps(riders) == ["2024-05-01T08:00:00", "2024-05-01T08:00:01"]


def test_a_log_is_known_by_its_content() -> None:
    for name in ("ride.log", "ride", "ride.txt"):
        assert format_of(name, SAMPLES["NMEA"]).name == "NMEA"
    with pytest.raises(UnreadableInput, match="got another"):
        format_of("ride.log", b"2024-05-01 08:00:00 INFO started\n")
    with pytest.raises(UnreadableInput, match="got none"):
        read(b"$GPGSV,3,1,11*00\r\n", "x")
    utf16 = SAMPLES["NMEA"].decode().encode("utf-16")
    assert read(utf16, "x").positions.tolist() == PLACES.tolist()


REAL = {
    "track__addmultipledaysmid.nmea": (28, "2019-03-08T22:00:00", "2019-03-10T01:00:00"),
    "track__backfilldate.nmea": (500, "2019-03-08T23:56:00", "2019-03-09T00:04:19"),
    "track__amod-cleansed": (3, "2008-06-05T20:06:42", "2008-06-05T20:06:44"),
    "track__nmea+ms.txt": (32, "2007-08-17T09:31:56", "2007-08-17T09:32:05"),
}
REAL_REFUSED = {
    "track__addmultipledaysbkw.nmea": "usable time",
    "track__addmultipledaysfwd.nmea": "usable time",
    "waypoints.nmea.gz": "got another",
}


def test_real_files(shared: Path) -> None:
    folder = shared / "traces/nmea/gpsbabel"
    for name, expected in REAL.items():
        trace, _ = clean(read_file(folder / name))
        ends = [str(at)[:19] for at in trace.times[[0, -1]].astype("datetime64[ns]")]
        assert (len(trace), *ends) == expected
    for name, reason in REAL_REFUSED.items():
        with pytest.raises(TrailveilError, match=reason):
            clean(read_file(folder / name))
