"""Data sets x mechanisms x attacks x metrics, from one small file of settings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trailveil.errors import InvalidValue, check_kind
from trailveil.studies.comparing.cases import Case
from trailveil.studies.comparing.results import Results, results_of
from trailveil.studies.comparing.running import Comparison, run
from trailveil.studies.comparing.settings import Entrant, Settings, read_settings, settings_of
from trailveil.studies.comparing.workers import engine_of
from trailveil.studies.datasets.workers import Watch, unwatched

Functions = Mapping[str, Callable[..., Any]]


def compare(
    settings: str | PathLike[str] | Mapping[str, Any] | Settings,
    *,
    data: Functions | None = None,
    mechanisms: Functions | None = None,
    attacks: Functions | None = None,
    metrics: Functions | None = None,
    folder: str | PathLike[str] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    watch: Watch = unwatched,
) -> Results:
    """Compare mechanisms: release recordings, attack them, measure them.

    settings: a TOML file, or what it would hold. data, mechanisms, attacks, metrics: functions of
    your own by name, besides those of the settings. folder: keeps what is done, so that a run that
    was stopped goes on. workers: processes, 0 for all processors; scheduler: of Dask, in their
    place. The result is the same for any number. Raises InvalidValue for settings that are none.
    """
    if isinstance(settings, Mapping):
        settings = settings_of(settings)
    elif not isinstance(settings, Settings):
        check_kind("settings", settings, str | PathLike, "name a file, or state a dict")
        settings = read_settings(settings)
    check_kind("workers", workers, int)
    if workers < 0:
        raise InvalidValue(f"workers must be a whole number from 0 on, got {workers}")
    if folder is not None:
        check_kind("folder", folder, str | PathLike, "name a folder")
    cases = {entrant.name: _cases(entrant) for entrant in settings.entrants("data", data)}
    comparison = Comparison(
        settings.seed,
        settings.draws,
        cases,
        settings.entrants("mechanisms", mechanisms),
        settings.entrants("attacks", attacks),
        settings.entrants("metrics", metrics),
    )
    with TemporaryDirectory() as temporary, engine_of(workers, scheduler) as engine:
        place = Path(temporary if folder is None else folder)
        return results_of(comparison, run(comparison, place, engine, watch))


def _cases(entrant: Entrant) -> tuple[Case, ...]:
    """The cases of a data set, under its name. Raises InvalidValue for none, or a name twice."""
    given: Iterable[Case] = entrant()
    cases = tuple(replace(case, data=entrant.name) for case in given)
    if not cases or len({case.name for case in cases}) < len(cases):
        raise InvalidValue(
            f"{entrant.name} must hold recordings, each of a name, got "
            f"{'a name twice' if cases else 'none'}"
        )
    return cases
