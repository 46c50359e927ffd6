"""The tables of what can be compared: one line each, by the name that settings have."""

from collections.abc import Callable
from typing import Any

from trailveil.studies.comparing import (
    audited,
    clusters,
    gaussian,
    learned,
    linking,
    location_sets,
    metrics,
    published,
    regimes,
    rivals,
    simulated,
)

Function = Callable[..., Any]

DATA: dict[str, Function] = {
    "prior": simulated.from_prior,
    "people": simulated.people,
    "town": simulated.on_streets,
    "geolife": published.geolife,
    "t-drive": published.t_drive,
    "porto": published.porto,
    "cabspotting": published.cabspotting,
    "gowalla": published.gowalla,
    "yjmob": published.yjmob,
    "folder": published.recordings,
}
"""Data sets: functions that yield cases, of keyword arguments alone."""

MECHANISMS: dict[str, Function] = {
    "cut": gaussian.cut,
    "noise": gaussian.noise,
    "both": gaussian.both,
    "everywhere": gaussian.everywhere,
    "sdp-a": gaussian.sdp_a,
    "multiple-secrets": gaussian.multiple_secrets,
    "uniform": gaussian.uniform,
    "concentrated": gaussian.concentrated,
    "planar-laplace": rivals.planar_laplace,
    "correlated-laplace": rivals.correlated_laplace,
    "planar-isotropic": location_sets.planar_isotropic,
    "promesse": rivals.promesse,
    "downsampling": rivals.downsampling,
    "truncation": rivals.truncation,
    "suppression": rivals.suppression,
    "zones": rivals.zones,
    "shifted-zones": rivals.shifted_zones,
    "identity": rivals.identity,
    "nothing": rivals.nothing,
}
"""Mechanisms: functions of a case and a random generator that return a trace or a disclosure."""

ATTACKS: dict[str, Function] = {
    "posterior": audited.posterior,
    "still": audited.still,
    "place": audited.place,
    "path": audited.path,
    "true-places": audited.true_places,
    "speed": audited.speed,
    "misspecified": audited.misspecified,
    "regimes": regimes.regimes,
    "learned": learned.learned,
    **audited.BY_THEMSELVES,
    "lattice": audited.lattice,
    "repeated": audited.repeated,
    "known-paths": audited.earlier_ride,
    "map": audited.street_map,
    "stays": clusters.stays,
    "home": clusters.home,
    "zone-circle": clusters.zone_circle,
    "heat-map": linking.heat_map,
}
"""Attacks: functions of a sighting and of clues that return places or a person."""

SLOW = ("lattice", "map", "repeated")
"""Attacks that take a hundred times as long as others: tried where they are named."""

METRICS: dict[str, Function] = {**metrics.METRICS}
"""Metrics: functions of a case and a sighting that return a number."""
