"""The report of a released trace as a type: JSON, text and page are functions of it.

Each entry is described in docs/report.md. Lengths are metres and times seconds, as their names say.
Those that are not required are for the owner alone, or of one mechanism.
"""

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, cast

from trailveil.ledger.retractions import Retraction

METRES = "m"
"""The unit of lengths where a report states no other."""
READER = "someone who knows how such readings vary"
"""The adversary of readings."""

# What is named otherwise in the report of readings, where no length is in metres.
_OF_READINGS = {
    "radius": "radius_m",
    "interval_68": "circle_68_m",
    "readings": "fixes",
    "released_readings": "released_fixes",
    "withheld_readings": "withheld_fixes",
    "rms": "rms_m",
    "largest_std": "largest_rms_m",
    "largest_99": "largest_99_m",
}


class AdversaryReport(TypedDict):
    """What one adversary is left with, and knew before; None for nothing learnt, and no idea."""

    adversary: str
    circle_68_m: float | None
    circle_68_before_m: float | None
    epsilon: NotRequired[float]
    knows: NotRequired[str]
    speed_m_s: NotRequired[float]
    stay_s: NotRequired[float]


class Guaranteed(TypedDict):
    """What a guarantee means."""

    mu: float
    epsilon: float
    order: float
    odds_factor_99: float
    advantage: float
    paper_gap: dict[str, float]


class Meaning(Guaranteed):
    """What a guarantee means for a place."""

    circle_68_m: float | None


class PartReport(Meaning):
    """A protected part."""

    kind: str
    label: str
    chosen_by_place: bool
    begin_utc: str
    end_utc: str
    begin_local: str
    end_local: str
    begin_ns: int
    end_ns: int
    sides: int
    fixes: int
    withheld: int
    circle_68_joint_m: float | None
    cut_s: float | None
    reckoned_with: int
    exposures: list[AdversaryReport]


class PriceReport(TypedDict):
    """What another mechanism would cost."""

    mechanism: str
    released_fixes: int
    withheld_fixes: int
    withheld_min: float
    withheld_km: float
    rms_m: float
    within_min: float


class OfDesign(TypedDict, total=False):
    """What depends on which parts are protected."""

    parts: int
    components: int
    gap: float | None
    half_with: list[str]
    grid_deg: float


class NoiseReport(OfDesign):
    """What is cut, and how much is moved."""

    name: str
    withheld_min: float | None
    withheld_km: float | None
    released_fixes: int
    withheld_fixes: int | None
    rms_m: float | None
    largest_rms_m: float | None
    largest_99_m: float | None
    independent_m: float


class TargetReport(TypedDict):
    """What was asked for. unit: of readings alone; every length is then in it."""

    unit: NotRequired[str]
    every_reading: NotRequired[bool]
    radius_m: float
    epsilon: float
    order: float
    ways: int | None
    leave_m: float | None
    withhold: float | None
    floor_m_s: float
    floor_middle_m_s: float
    activity: str | None
    activity_in_file: bool
    uncertain_s: int
    steady_s: int
    time_constant_s: float


class Times(TypedDict):
    """What became of the times."""

    rounded_to_s: float | None
    shifted: bool
    dropped: bool
    left_out: int


class KeptField(TypedDict):
    """A field of fixes, or of the track, that was to be kept."""

    field: str
    unit: str | None
    recorded: bool
    fixes: int
    tells: str


class PlaceReport(TypedDict):
    """A place with a name that the recording visits."""

    name: str
    visits: int
    fixes: int
    withheld: int
    cut: bool
    radius_m: float
    epsilon: float
    order: float
    ways: int
    moved_m: float
    left: list[AdversaryReport]


class PlaceTotal(TypedDict):
    """What all releases tell of a place with a name; None for all that can be told."""

    name: str
    releases: int
    epsilon: float | None
    total: float | None
    at_most: float | None
    circle_68_m: float | None
    stated: float
    visits: int
    visits_left: int | None
    ways: float
    ways_left: int | None


class LedgerReport(TypedDict):
    """What all releases of one person tell; None for all that can be told."""

    subject: str
    releases: int
    overlapping: int
    epsilon: float
    total: float | None
    radius_m: float
    known: float | None
    times: float | None
    if_one_place: float | None
    if_one_place_circle_68_m: float | None
    finest: str | None
    finest_circle_68_m: float | None
    places: list[PlaceTotal]
    cannot_know: str


class PublicReport(TypedDict):
    """What is public already. counted: what a cut reckons with; besides: how many tell no more."""

    counted: list[dict[str, Any]]
    besides: int


class RecordingReport(TypedDict):
    """How much was recorded, and what was mended."""

    fixes: int
    cleaning: dict[str, int]
    cleaning_in_words: list[str]


class InFrame(TypedDict):
    """The frame of the lattice, in whole degrees."""

    latitude: int
    longitude: int
    scale_error: float


class ReleaseReport(TypedDict):
    """Everything that is said of a release; it holds no true position and no drawn noise."""

    trailveil: str
    output: str
    private: bool
    recording: RecordingReport
    target: TargetReport
    prior: dict[str, str]
    frame: InFrame
    times: Times
    adversaries: list[str]
    mechanism: NoiseReport
    worst: Meaning
    kept: list[KeptField]
    warnings: list[str]
    not_protected: list[str]
    everywhere: NotRequired[dict[str, Any]]
    secrets: NotRequired[list[PartReport]]
    designs: NotRequired[list[dict[str, Any]]]
    instead: NotRequired[list[PriceReport]]
    heed: NotRequired[list[str]]
    places: NotRequired[list[PlaceReport]]
    ledger: NotRequired[LedgerReport | None]
    public: NotRequired[PublicReport]
    retracted: NotRequired[list[Retraction]]


def of_any(report: Mapping[str, Any]) -> ReleaseReport:
    """A report as one of a trace, under whose names the lengths of readings are in their unit."""
    target = report["target"]
    if "unit" not in target:
        return cast(ReleaseReport, report)
    whole: dict[str, Any] = _renamed(report)
    whole["target"] |= {"leave_m": None, "ways": None}
    whole["mechanism"] |= {"name": "", "withheld_min": None, "withheld_km": None}
    for part in whole.get("secrets", []):
        size = part["circle_68_m"]
        stranger = {"adversary": READER, "circle_68_m": size, "circle_68_before_m": None}
        part |= {"exposures": [stranger], "circle_68_joint_m": size, "cut_s": None}
        part["reckoned_with"] = 1
    return cast(ReleaseReport, {"places": [], "kept": [], **whole})


def _renamed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_OF_READINGS.get(name, name): _renamed(entry) for name, entry in value.items()}
    return [_renamed(entry) for entry in value] if isinstance(value, list) else value


def unit_of(report: ReleaseReport) -> str:
    """The unit of its lengths."""
    return report["target"].get("unit", METRES)
