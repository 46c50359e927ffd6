"""Apple Health: routes are GPX and are read; the list of records is refused with what to name."""

from pathlib import Path

import pytest

from trailveil.errors import UnreadableInput
from trailveil.traces.cleaning import clean
from trailveil.traces.formats import read

EXPORT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE HealthData [
<!-- HealthKit Export Version: 13 -->
<!ELEMENT HealthData (ExportDate,Me,(Record|Workout)*)>
]>
<HealthData locale="en_GB"><Record type="HKQuantityTypeIdentifierHeight" value="61"/></HealthData>
"""


@pytest.mark.parametrize("name", ["export.xml", "export", "export.gpx"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_list_of_records_is_refused_with_what_to_name(
    name: str, encoding: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    clinical = '<?xml version="1.0"?><ClinicalDocument xmlns="urn:hl7-org:v3"/>'
    for text in (EXPORT, EXPORT[EXPORT.index("<HealthData") :], clinical):
        path.write_bytes(text.encode(encoding))
        with pytest.raises(UnreadableInput, match=r"workout-routes/\*\.gpx$") as caught:
            read(path)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300


def test_routes_are_read(shared: Path) -> None:
    folder = shared / "traces/applehealth"
    lengths = {path.name: len(clean(read(path))[0]) for path in sorted(folder.rglob("*.gpx"))}
    assert lengths == {"route_2024-02-10_10.00am.gpx": 8, "togeojson_apple_watch_route.gpx": 44}
