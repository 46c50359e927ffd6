"""What a recording says that it is, as one of four activities, and how slow people are in each."""

import re
from collections.abc import Iterable
from typing import Final

ACTIVITIES: Final = {"walk": 0.92, "run": 0.92, "ride": 1.4, "drive": 3.6}
"""Metres per second: the pace floor of each activity, slowest first, where a recording begins or
ends. From labelled recordings: see docs/activities.md, also why a run counts as a walk."""

MIDDLE: Final = {"walk": 0.49, "run": 0.49, "ride": 1.2, "drive": 2.5}
"""The same where the recording goes on at both sides of what is cut."""

UNKNOWN: Final = "walk"
"""What is reckoned with where nobody says what it was: the slowest."""

SPORTS: Final = {"walk": "walking", "run": "running", "ride": "cycling", "drive": "driving"}
"""What each is called in files that are written, as other programs know it."""

_WORDS: Final = {
    "walk": ("walk", "walking", "hike", "hiking", "trek", "trekking", "stroll"),
    "run": ("run", "running", "jog", "jogging"),
    "ride": ("ride", "biking", "bike", "bicycle", "bicycling", "cycling", "cycle", "mtb"),
    "drive": ("drive", "driving", "car", "bus", "taxi", "motorcycle", "motorcycling", "motorbike"),
}
_BY_WORD: Final = {word: name for name, words in _WORDS.items() for word in words}
# What may stand beside them and makes nobody slower than the slowest of its activity.
_BESIDE: Final = {
    *("road", "trail", "street", "track", "mountain", "gravel", "indoor", "outdoor", "virtual"),
    *("e", "electric", "generic", "race", "commute", "commuting", "fitness", "training"),
}
# What Strava wrote into GPX for some years.
_NUMBERS: Final = {"1": "ride", "9": "run"}


def activity_of(stated: str) -> str:
    """The activity that a name means, such as "trail_running" or "MountainBikeRide"; "" for none.

    Of two the slower counts. A word that is not known makes the whole unknown: a name is free text.
    """
    words = [
        word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\W\d_]+", stated)
    ]
    if len(words) == 1 and words[0] in _NUMBERS:
        return _NUMBERS[words[0]]
    if not words or any(word not in _BY_WORD and word not in _BESIDE for word in words):
        return ""
    return slowest(_BY_WORD[word] for word in words if word in _BY_WORD)


def called(floor: float, middle: float, stated: str = "") -> str:
    """The activity that has this floor: the stated one of several, "" for none."""
    names = [name for name in ACTIVITIES if (ACTIVITIES[name], MIDDLE[name]) == (floor, middle)]
    return stated if stated in names else (names or [""])[0]


def slowest(names: Iterable[str]) -> str:
    """The slowest of several activities; "" for none, and where one of them is ""."""
    known = set(names)
    if not known or "" in known:
        return ""
    return next(name for name in ACTIVITIES if name in known)
