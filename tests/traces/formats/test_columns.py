"""Names of columns: what each is taken for."""

import math

import pytest

from trailveil.traces.formats.columns import Columns, columns_beside, columns_of


def columns_found(names: str) -> Columns:
    columns = columns_of(names.split(","))
    assert columns is not None
    return columns


@pytest.mark.parametrize(
    ("names", "degree"),
    [
        ("lat,lon", 1.0),
        ("Latitude,Longitude", 1.0),
        ("LATITUDE N/S,LONGITUDE E/W", 1.0),
        ("lat,lng", 1.0),
        ("location-lat,location-long", 1.0),
        ("gps_latitude,gps_longitude", 1.0),
        ("Latitude (deg),Longitude (deg)", 1.0),
        ("LatitudeDegrees,LongitudeDegrees", 1.0),
        ("Breitengrad,L\u00e4ngengrad", 1.0),
        ("Breite,L\u00e4nge", 1.0),
        ("latitud,longitud", 1.0),
        ("latitudeE7,longitudeE7", 1e7),
        ("latitudee7,longitudee7", 1e7),
        ("latE7,lngE7", 1e7),
        ("LAT_E6,LON_E6", 1e6),
        ("position_lat [semicircles],position_long [semicircles]", 2**31 / 180),
        ("lat_rad,lon_rad", math.radians(1)),
    ],
)
def test_latitude_and_longitude_by_many_names(names: str, degree: float) -> None:
    columns = columns_found(names)
    assert (columns.latitude, columns.longitude) == (0, 1)
    assert columns.per_degree == pytest.approx((degree, degree))
    assert (columns.time, columns.others) == (None, 0)


@pytest.mark.parametrize(
    "names",
    ["x,y", "lat", "lon,lon", "latency,longevity", "flat,along", "lat_std,lon_std", ",", "z"],
)
def test_what_is_not_named_is_not_guessed(names: str) -> None:
    assert columns_of(names.split(",")) is None


@pytest.mark.parametrize(
    ("names", "time", "unit", "utc"),
    [
        ("time", 0, None, False),
        ("Timestamp (UTC)", 0, None, True),
        ("timestampMs", 0, 1000, False),
        ("unix_time_ns", 0, 10**9, False),
        ("time_s", 0, 1, False),
        ("Date and time", 0, None, False),
        ("epoch", 0, None, False),
        ("Zeitstempel", 0, None, False),
        ("date", 0, None, False),
        ("time,tracked_at", 1, None, False),
        ("servertime,devicetime,fixtime", 2, None, False),
        ("ts", 0, None, False),
        ("accuracy,location_timestamp", 1, None, False),
        ("recordedTimestampMs", 0, 1000, False),
        ("fix_datetime_utc", 0, None, True),
        ("begin_timestamp,end_timestamp", None, None, False),
        ("runtime,timeout", None, None, False),
        ("", None, None, False),
    ],
)
def test_the_time_and_its_unit(names: str, time: int | None, unit: int | None, utc: bool) -> None:
    columns = columns_beside(names.split(","))
    assert (columns.time, columns.per_second, columns.utc) == (time, unit, utc)
    assert columns.date is None


@pytest.mark.parametrize(
    ("names", "date", "time", "utc"),
    [
        ("date,time", 0, 1, False),
        ("utc_d,utc_t", 0, 1, True),
        ("Datum,Uhrzeit", 0, 1, False),
        ("Time,Date(UTC)", 1, 0, True),
        ("date,time,timestamp", None, 2, False),
    ],
)
def test_date_and_clock_apart(names: str, date: int | None, time: int, utc: bool) -> None:
    columns = columns_beside(names.split(","))
    assert (columns.date, columns.time, columns.utc) == (date, time, utc)


def test_tracks_segments_and_people_and_the_rest() -> None:
    columns = columns_found("user_id,track,segment,lat,lon,time,elevation,heart rate")
    assert (columns.person, columns.track, columns.segment, columns.others) == (0, 1, 2, 2)
    assert columns_beside(["a" * 1000, 7, None]).others == 3
