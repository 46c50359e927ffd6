"""Lines in and lines out: what is read, what leaves, and what hostile lines come to."""

import json
from functools import reduce
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.live.lines import LONGEST, Fix, Lines
from trailveil.traces.formats import nmea

TIME = 1_715_672_400_000_000_000  # 2024-05-14T07:40:00Z


def rmc(body: str) -> bytes:
    return f"${body}*{reduce(xor, body.encode()):02X}\r\n".encode()


GOOD = {
    "nmea": rmc("GPRMC,074000.00,A,4808.22000,N,01134.50000,E,1.2,30.0,140524,,,A"),
    "owntracks": b'{"_type":"location","lat":48.137,"lon":11.575,"tst":1715672400,"batt":81,'
    b'"SSID":"home","alt":520}\n',
    "csv": b"2024-05-14T07:40:00Z,48.137,11.575\n",
}


@pytest.mark.parametrize("form", sorted(GOOD))
def test_a_fix_leaves_in_its_form_with_time_and_place_alone(form: str) -> None:
    lines = Lines("time,lat,lon")
    fix = lines.fix(GOOD[form])
    assert fix is not None
    assert (fix.time, fix.latitude, fix.longitude, fix.form) == (TIME, 48.137, 11.575, form)
    out = fix.line()
    assert b"batt" not in out
    assert b"home" not in out
    again = lines.fix(out)
    assert again is not None
    assert (again.time, again.latitude, again.longitude) == (TIME, 48.137, 11.575)
    assert "48.137" not in repr(fix)


@pytest.mark.parametrize("form", sorted(GOOD))
@pytest.mark.parametrize("place", [(48.1234567, 11.7654321), (-33.999999, -0.000001), (0.5, -180)])
def test_a_place_that_was_moved_is_on_the_public_grid(
    form: str, place: tuple[float, float]
) -> None:
    cells = ("$GPRMC", "074000.00", *[""] * 7, "140524")
    lines = Lines("time,lat,lon")
    out = lines.fix(Fix(TIME, *place, form, cells, moved=True).line())
    assert out is not None
    step = 1 / 600_000 if form == "nmea" else 1e-6
    assert out.latitude == pytest.approx(place[0], abs=step / 2 + 1e-9)
    assert out.longitude == pytest.approx(place[1], abs=step / 2 + 1e-9)
    if form != "nmea":
        assert out.latitude * 1e6 == pytest.approx(round(out.latitude * 1e6), abs=1e-6)


def test_a_sentence_has_its_checksum_and_a_message_is_json() -> None:
    fix = Lines().fix(GOOD["nmea"])
    assert fix is not None
    assert len(nmea.read(fix.line(), "x")) == 1
    message = json.loads(Fix(TIME + 500_000_000, 1.5, 2.5, "owntracks").line())
    assert message == {"_type": "location", "lat": 1.5, "lon": 2.5, "tst": 1715672400.5}


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"$GPGSV,3,1,11,03,03,111,00*74\r\n",
        b"$GPGGA,074000.00,4808.22,N,01134.5,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n",
        rmc("GPRMC,074000.00,V,,,,,,,140524,,,N"),
        rmc("GNGNS,074000.00,4808.22,N,01134.5,E,AA,12,0.9,545.4,46.9,,"),
        rmc("GPGLL,4808.22,N,01134.5,E,074000.00,A,A"),
        rmc("PGRMC,A,223.8,,,,,,,,,,,"),
        b"!AIVDM,1,1,,A,14eG;o@034o8sd<L9i:a;WF>062D,0*7D\r\n",
        b'{"_type":"transition","event":"enter","lat":48.1,"lon":11.5,"tst":1}\n',
        b'{"_type":["location"],"lat":48.1,"lon":11.5,"tst":1}\n',
        b'{"_type":"encrypted","data":"x"}\n',
        b'{"class":"VERSION","release":"3.22","proto_major":3,"proto_minor":14}\r\n',
        b'{"class":"TPV","mode":3,"time":"2024-05-14T07:40:00Z","lat":48.1,"lon":11.5}\r\n',
        b"# 48.137,11.575\r\n",
    ],
)
def test_what_is_no_fix_by_its_kind_is_passed_over(line: bytes) -> None:
    lines = Lines("time,lat,lon")
    assert lines.fix(line) is None
    assert (lines.skipped, lines.fixes) == (int(line.strip()[:1] not in {b"", b"#"}), 0)


def test_marks_ends_and_blanks_around_a_line_do_no_harm() -> None:
    for form in sorted(GOOD):
        for line in (b"\xef\xbb\xbf" + GOOD[form], b" " + GOOD[form].strip() + b" \r\n"):
            lines = Lines("time,lat,lon")
            fix = lines.fix(line)
            assert fix is not None
            assert (fix.time, fix.latitude, lines.fixes) == (TIME, 48.137, 1)
    assert Lines().is_header(b"\xef\xbb\xbftime,lat,lon\r\n")
    assert not Lines().is_header(b"# time,lat,lon\n")


def test_sentences_that_ran_into_each_other_are_none() -> None:
    """A line that lost its end has cells of two: a place would be where the date is."""
    whole = rmc("GPRMC,074001.00,A,4808.23000,N,01134.50000,E,1.2,30.0,140524,,,A")
    for length in range(8, len(GOOD["nmea"]) - 2):
        line = GOOD["nmea"][:length] + whole
        with pytest.raises(UnreadableInput):
            Lines().fix(line)
    for line in (whole.strip() + b" 4808.22\r\n", whole.strip() + b"!AIVDM,1\r\n"):
        with pytest.raises(UnreadableInput):
            Lines().fix(line)


def test_a_stream_is_of_the_device_that_its_first_fix_names() -> None:
    def line(more: str, lat: float = 48.1) -> bytes:
        return f'{{"_type":"location","lat":{lat},"lon":11.5,"tst":1715672400{more}}}'.encode()

    lines = Lines()
    assert lines.fix(line(""))
    with pytest.raises(UnreadableInput):  # what is no fix names no device
        lines.fix(line(',"tid":"zz"', 91.0))
    assert lines.fix(line(',"tid":"ph"'))
    assert lines.fix(line(',"tid":"ph","topic":"owntracks/me/phone"'))
    assert lines.fix(line(',"topic":"owntracks/me/phone"'))
    assert lines.fix(line(',"tid":null'))
    for other in (',"tid":"ta"', ',"tid":"ph","topic":"owntracks/me/tablet"', ',"tid":["ph"]'):
        with pytest.raises(UnreadableInput, match="of one device"):
            lines.fix(line(other))


BAD = [
    rmc("GPRMC,074000.00,A,4808.22,N,01134.5,E,1.2,30.0,140524,,,A").replace(b"*", b"*0"),
    rmc("GPRMC,074000.00,A,9908.22,N,01134.5,E,1.2,30.0,140524,,,A"),
    rmc("GPRMC,074000.00,A,4808.22,N,01134.5,E,1.2,30.0,,,,A"),
    b'{"_type":"location","lat":48.137}\n',
    b'{"_type":"location","lat":"48.137","lon":11.5,"tst":1715672400}\n',
    b'{"lat":48.137,\n',
    b'{"_type":"location","lat":48.137,"lon":NaN,"tst":1715672400}\n',
    b'{"_type":"location","lat":48.137,"lon":1e400,"tst":1715672400}\n',
    b'{"_type":"location","lat":[48.137],"lon":11.5,"tst":1715672400}\n',
    b'{"_type":"location","lat":true,"lon":11.5,"tst":1715672400}\n',
    b'{"_type":"location","lat":48.137,"lon":11.5,"tst":NaN}\n',
    b'{"_type":"location","lat":48.137,"lon":11.5,"tst":1715672400000}\n',
    b'{"_type":"location","lat":48.137,"lon":11.5,"tst":' + b"9" * 5000 + b"}\n",
    b'{"_type":"location","lat":48.137,"lon":11.5,"tst":1715672400,"lat":1}\n',
    b'{"_type":"location","lat":48.137,"lon":11.5,"tst":1715672400}{"_type":"location"}\n',
    b"[" * 5000,
    b"{" * 5000,
    b"2024-05-14T07:40:00,48.137,11.575\n",
    b"2024-05-14T07:40:00Z,148.137,11.575\n",
    b"2024-05-14T07:40:00Z,nan,11.575\n",
    b"2024-05-14T07:40:00Z,48.137,11.575,1,2,3\n",
    b"48.137,11.575,2024-05-14T07:40:00Z\n",
    b'2024-05-14T07:40:00Z,"48.137,11.575\n',
    b"\xff\xfe\x00\x00\n",
    b"x" * (LONGEST + 1),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_a_bad_line_is_named_in_one_line_without_a_place(number: int) -> None:
    with pytest.raises(UnreadableInput) as caught:
        Lines("time,lat,lon").fix(BAD[number])
    assert "48" not in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"$GPRMC,", b'{"_type":"location",', b"2024"])
)
def test_any_bytes_are_a_fix_nothing_or_refused(tail: bytes, head: bytes) -> None:
    lines = Lines("time,lat,lon")
    line = head + tail
    if lines.is_header(line):
        return
    try:
        fix = lines.fix(line)
    except UnreadableInput:
        return
    assert fix is None or fix.line().endswith(b"\n")


def test_rows_need_names_of_columns() -> None:
    lines = Lines()
    with pytest.raises(UnreadableInput, match="a line that names time"):
        lines.fix(GOOD["csv"])
    assert lines.is_header(b"lon;time;lat;note\n")
    fix = lines.fix(b"11.5;2024-05-14T07:40:00Z;48.1;secret\n")
    assert fix is not None
    assert fix.line() == b"2024-05-14T07:40:00Z,48.1,11.5\n"
    assert not lines.is_header(GOOD["nmea"])
    # A second line of names turns nothing round: the same is passed over, another is refused.
    assert not lines.is_header(b"lon;time;lat;note\n")
    assert lines.fix(b"lon;time;lat;note\n") is None
    assert not lines.is_header(b"lat;time;lon;note\n")
    with pytest.raises(UnreadableInput):
        lines.fix(b"lat;time;lon;note\n")
    with pytest.raises(InvalidValue, match="columns must name"):
        Lines("a,b,c")
