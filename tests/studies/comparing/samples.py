"""Small made-up samples of published data sets, in the layouts of their authors."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from tests.studies.datasets.geolife_files import HEADER
from trailveil.gp.gaussian import FloatArray

DAY = datetime(2008, 2, 4, 1, 0, tzinfo=UTC)  # 9:00 in Beijing


def way(count: int, seed: int, east: float) -> FloatArray:
    """Degrees (count, 2): a way with a stay in its middle third."""
    steps = np.random.default_rng(seed).normal(0, 40, (count, 2)) + np.array([300.0, 100.0])
    steps[count // 3 : 2 * count // 3] = 0.0
    metres = np.cumsum(steps, axis=0)
    degrees = np.array([39.9, east]) + metres[:, ::-1] / [111_000.0, 85_000.0]
    return np.asarray(degrees)


def moments(count: int, step: int) -> Iterator[int]:
    """Seconds since 1970."""
    first = int(DAY.timestamp())
    return iter(range(first, first + count * step, step))


def geolife(folder: Path) -> None:
    for user in ("000", "010"):
        place = folder / "Data" / user / "Trajectory"
        place.mkdir(parents=True)
        lines = HEADER.splitlines()[:6]
        for seconds, (lat, lon) in zip(moments(90, 30), way(90, int(user), 116.3), strict=True):
            when = datetime.fromtimestamp(seconds, UTC)
            days = seconds / 86_400 + 25_569
            lines.append(f"{lat:.6f},{lon:.6f},0,150,{days:.10f},{when:%Y-%m-%d},{when:%H:%M:%S}")
        (place / "20080204010000.plt").write_text("\n".join(lines), encoding="utf-8")


def t_drive(folder: Path) -> None:
    for taxi in (1, 2):
        lines = []
        for seconds, (lat, lon) in zip(moments(60, 177), way(60, taxi, 116.4), strict=True):
            when = datetime.fromtimestamp(seconds + 8 * 3600, UTC)
            lines.append(f"{taxi},{when:%Y-%m-%d %H:%M:%S},{lon:.5f},{lat:.5f}")
        lines += lines[1:3]  # twice, and out of order
        (folder / f"{taxi}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def porto(file: Path) -> None:
    rows = [
        '"TRIP_ID","CALL_TYPE","ORIGIN_CALL","ORIGIN_STAND","TAXI_ID","TIMESTAMP","DAY_TYPE",'
        '"MISSING_DATA","POLYLINE"'
    ]
    for trip in (1, 2, 3):
        line = [[round(lon, 6), round(lat, 6)] for lat, lon in way(90, trip, -8.6)]
        begin = int(DAY.timestamp()) + 7200 * trip
        rows.append(
            f'"{begin}62000000{trip}","C","","","2000058{trip % 2}","{begin}","A","False",'
            f'"{json.dumps(line)}"'
        )
    rows.append(rows[1])  # as some trips of the published file
    rows.append(rows[2].replace("False", "True").replace("2000058", "3000058"))
    rows.append('"9","C","","","20000589","1372636858","A","False","[]"')
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")


def cabspotting(folder: Path) -> None:
    for name in ("abboip", "acdiyy"):
        rows = list(zip(moments(60, 60), way(60, len(name), -122.4), strict=True))
        lines = [
            f"{lat:.5f} {lon:.5f} {i % 2} {seconds}"
            for i, (seconds, (lat, lon)) in enumerate(reversed(rows))
        ]
        (folder / f"new_{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def gowalla(file: Path) -> None:
    lines = []
    for user in (0, 1):
        rows = list(zip(moments(40, 5400), way(40, user, -97.7), strict=True))
        for i, (seconds, (lat, lon)) in enumerate(reversed(rows)):
            when = datetime.fromtimestamp(seconds, UTC)
            lines.append(f"{user}\t{when:%Y-%m-%dT%H:%M:%SZ}\t{lat:.9f}\t{lon:.9f}\t{22_847 + i}")
        lines += [f"{user}\t\t\t\t", f"{user}"]  # as some check-ins of Brightkite
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def yjmob(file: Path) -> None:
    lines = ["uid,d,t,x,y"]
    for user in (0, 1):
        for day in (0, 1):
            for slot in range(14, 44):
                at = 100 if slot < 20 or slot > 38 else 100 + min(slot - 20, 6) + user
                lines.append(f"{user},{day},{slot},{at},{50 + day}")
        lines += [f"{user},{day},{slot},{999},{999}" for day in (0, 2) for slot in range(44, 48)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
