"""GeoLife's folders, files and labels: invented ones, and broken ones."""

from pathlib import Path

import numpy as np
import pytest

from tests.studies.datasets.geolife_files import (
    LABEL_HEADER,
    MORNING,
    plt_text,
    walked,
    write_user,
)
from trailveil.errors import InvalidValue, UnreadableInput
from trailveil.studies.datasets.geolife import (
    FASTEST,
    MODES,
    Label,
    labelled,
    labelled_traces,
    read_labels,
    users,
)
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import plt


@pytest.mark.parametrize("layout", ["Data/{}/Trajectory", "{}/Trajectory", "{}", "GeoLife/Data/{}"])
def test_users_are_found_in_every_layout(tmp_path: Path, layout: str) -> None:
    write_user(tmp_path / layout.format("004"), [1, 2], labels="")
    write_user(tmp_path / layout.format("001"), [3])
    (tmp_path / "User Guide").mkdir()
    first, second = users(tmp_path)
    assert (first.name, second.name) == ("001", "004")
    assert [file.name for file in second.files] == ["000.plt", "001.plt"]
    assert first.labels is None
    assert second.labels is not None
    assert read_labels(second.labels) == ()


def test_a_folder_without_users_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="must hold USER/Trajectory"):
        users(tmp_path)
    (tmp_path / "file").write_text("x")
    for name in ("file", "absent"):
        with pytest.raises(UnreadableInput, match="must be a folder"):
            users(tmp_path / name)


def labels_of(text: str, tmp_path: Path) -> tuple[Label, ...]:
    path = tmp_path / "labels.txt"
    path.write_text(text, newline="")
    return read_labels(path)


def test_labels_are_read_as_utc(tmp_path: Path) -> None:
    text = LABEL_HEADER + "2009/05/04 06:00:10\t2009/05/04 06:01:00\twalk\r\n\r\n"
    (label,) = labels_of(text, tmp_path)
    start = int(MORNING.astype("datetime64[ns]").astype(np.int64))
    assert label == Label(start + 10 * 10**9, start + 60 * 10**9, "walk")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "walk\n",
        LABEL_HEADER + "2009/05/04 06:00:10\t2009/05/04 06:01:00\n",
        LABEL_HEADER + "2009/05/04 06:00:10\tlater\twalk\n",
        LABEL_HEADER + "4/5/9\t2009/05/04 06:01:00\twalk\n",
    ],
)
def test_labels_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableInput, match=r"labels\.txt"):
        labels_of(text, tmp_path)


def test_only_what_was_labelled_so_is_taken() -> None:
    trace, _ = clean(plt.read(plt_text(*walked(60, seed=2)).encode(), "x"))
    start = int(trace.times[0])
    labels = (
        Label(start, start + 20 * 10**9, "car"),
        Label(start + 25 * 10**9, start + 50 * 10**9, "taxi"),
        Label(start + 55 * 10**9, start + 70 * 10**9, "walk"),
        Label(start + 71 * 10**9, start + 72 * 10**9, "car"),
    )
    traces = labelled(trace, labels, "drive")
    assert [(part.times[0] - start, part.times[-1] - start, len(part)) for part in traces] == [
        (0, 20 * 10**9, 5),
        (25 * 10**9, 50 * 10**9, 6),
    ]
    assert labelled(trace, labels, "bike") == []


def test_a_labelled_file_of_two_users_counts_once(tmp_path: Path) -> None:
    label = "2009/05/04 06:00:00\t2009/05/04 06:02:00\tbike\n"
    write_user(tmp_path / "000", [5])
    write_user(tmp_path / "001", [5, 6], labels=label)
    write_user(tmp_path / "002", [6, 7], labels=label)
    (tmp_path / "002" / "zzz.plt").write_text("nothing")
    labelled = labelled_traces(tmp_path, "bike")
    assert [(name, len(trace)) for name, trace in labelled] == [
        ("001", 25),
        ("001", 25),
        ("002", 25),
    ]
    with pytest.raises(UnreadableInput, match="labelled walk, got none"):
        labelled_traces(tmp_path, "walk")
    with pytest.raises(InvalidValue, match="labels must be one of walk, bike, drive, got boat"):
        labelled_traces(tmp_path, "boat")


def test_every_mode_has_a_limit() -> None:
    assert FASTEST.keys() == MODES.keys()


def test_the_real_folder_is_read_whole(shared: Path) -> None:
    people = users(shared / "traces" / "geolife")
    assert sum(len(user.files) for user in people) == 262
    assert sum(user.labels is not None for user in people) == 27
    recordings = [
        plt.read(file.read_bytes(), file.name) for user in people for file in user.files[:1]
    ]
    assert all(len(recording) > 1 for recording in recordings)
    assert not any(np.isnat(recording.times).any() for recording in recordings)
