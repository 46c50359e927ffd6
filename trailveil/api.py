"""What `import trailveil as tv` offers of recordings: read, protect, publish, audit, write.

Options have the names and defaults of those of the commands. Spans of time are in seconds.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from trailveil.checks.scan import Scan, scan
from trailveil.errors import InvalidValue, check_kind, check_number
from trailveil.files.keys import key_of
from trailveil.files.output import staged
from trailveil.files.source import load as bytes_of
from trailveil.gp.threads import one_thread
from trailveil.ledger import Ledger, user_ledger
from trailveil.ledger.commit import (
    Receipt,
    check_released,
    known_places,
    known_public,
    visits_known,
)
from trailveil.ledger.commit import publish as publish_plan
from trailveil.ledger.identity import ME
from trailveil.ledger.planning import protect_versions
from trailveil.release.design_cache import DesignCache
from trailveil.release.options import (
    OF_NOISE,
    Options,
    Selection,
    check_options,
    chosen_of,
    request_of,
    zone_named,
)
from trailveil.release.plan import Plan
from trailveil.release.protect import protect as protect_parts
from trailveil.release.protect import requested
from trailveil.release.request import Method, Request
from trailveil.release.versions import Version
from trailveil.traces.fields import ALL
from trailveil.traces.formats import MOST_POINTS, size_of
from trailveil.traces.formats import write as write_trace
from trailveil.traces.formats.table import check_writable, format_to_write
from trailveil.traces.loading import load, load_readings
from trailveil.traces.readings import Readings
from trailveil.traces.trace import Trace

if TYPE_CHECKING:
    from pandas import DataFrame

File = str | PathLike[str]


def read(
    source: File,
    *,
    tz: str | None = None,
    keep: Sequence[str] = (),
    every: float | None = None,
    most: int = MOST_POINTS,
) -> Trace:
    """A cleaned trace from a file; its `repairs` say what was mended.

    tz: the zone of times without one, such as UTC. keep: fields to read besides. every: seconds
    between fixes, where the file has no times. most: how many fixes there may be. Raises
    UnreadableInput or Refused, in one line.

    >>> tv.write(tv.datasets.simulated_day(), "read.gpx")
    >>> len(tv.read("read.gpx"))
    907
    """
    return load(_path("source", source), zone=zone_named(tz), every=every, keep=keep, most=most)[0]


def read_readings(
    source: File,
    *,
    column: str | None = None,
    unit: str | None = None,
    tz: str | None = None,
    most: int = MOST_POINTS,
) -> Readings:
    """Cleaned readings of one quantity from a table. Raises as `read` does.

    column: of the values, unit: of them, such as degC; one of them at least.
    """
    zone = zone_named(tz)
    return load_readings(_path("source", source), column=column, unit=unit, zone=zone, most=most)[0]


def write(trace: Trace, output: File, *, overwrite: bool = False) -> None:
    """Write a trace as it is, in the format of the suffix: nothing in it is protected.

    Raises UnwritableOutput for a suffix that is not written, or a file that exists.

    >>> tv.write(tv.datasets.simulated_day(), "written.csv")
    """
    check_kind("trace", trace, Trace)
    path = _path("output", output)
    format_to_write(path.suffix)
    with staged(path, lambda out: write_trace(trace, out, path.suffix), overwrite=overwrite) as put:
        put()


@overload
def protect(
    trace: Trace,
    request: Request | None = None,
    *,
    ledger: Ledger | None = None,
    subject: str = ME,
    key: bytes | File | None = None,
    again: bool = False,
    replace: bool = False,
    versions: None = None,
    **options: Unpack[Options],
) -> Plan: ...


@overload
def protect(
    trace: Trace,
    request: Request | None = None,
    *,
    ledger: Ledger | None = None,
    subject: str = ME,
    key: bytes | File | None = None,
    again: bool = False,
    replace: bool = False,
    versions: Mapping[str, Options],
    **options: Unpack[Options],
) -> dict[str, Plan]: ...


def protect(
    trace: Trace,
    request: Request | None = None,
    *,
    ledger: Ledger | None = None,
    subject: str = ME,
    key: bytes | File | None = None,
    again: bool = False,
    replace: bool = False,
    versions: Mapping[str, Options] | None = None,
    **options: Unpack[Options],
) -> Plan | dict[str, Plan]:
    """The protected release of a trace, designed but not drawn: `publish` writes it.

    request: how, in place of options; what to protect is still in the options. ledger: of the user,
    where none is stated; places with names are known from it, and a second, different release of
    one recording is refused unless `again`, or `replace`, as of `publish`. subject: whose it is.
    key: a key file, or its 32 bytes: with one the same request is the same release on every
    machine. versions: by name, options that differ, such as radius: a plan for each, the finest
    first, in the order to publish them in (of these, only the first may replace others); all
    versions tell together what the finest tells. Raises Refused or InvalidValue, in one line.

    What to protect: ends (False leaves both as recorded), at, between, near, stops, returns, tz.
    How: mechanism (cut, noise, both) or everywhere, radius, epsilon, order, leave, withhold,
    activity or floor, adversaries, prior, uncertain, steady, longest_stay.

    >>> day = tv.datasets.simulated_day()
    >>> plan = tv.protect(day, between=[("08:39", "09:21")], tz="UTC", activity="ride")
    >>> round(plan.guarantee.epsilon, 2)
    1.0
    >>> apart = {"friends": {"radius": 30}, "public": {"radius": 100}}
    >>> plans = tv.protect(day, activity="drive", versions=apart)
    >>> list(plans)
    ['friends', 'public']
    """
    check_kind("trace", trace, Trace, "tv.read gives one of a file")
    check_kind("subject", subject, str)
    book = _ledger(ledger)
    secret = None if key is None else key_of(key)
    if request is not None and set(options) - set(Selection.__annotations__):
        raise InvalidValue("a request must come without options of its own, got both: state one")
    if versions is None:
        request = request_of(options) if request is None else request
        check_kind("request", request, Request, "or state options by name")
    places = known_places(book, trace, subject=subject, key=secret)
    cache = DesignCache.of(book.folder, book.key)
    whose: dict[str, Any] = {"subject": subject, "key": secret, "places": places}
    with one_thread():
        if versions is not None:
            check_kind("versions", versions, Mapping, "options of each by its name")
            stated = [Version(name, _of_version(options, more)) for name, more in versions.items()]
            if not any("mechanism" in more for more in versions.values()):
                request_of(options)  # what is of noise alone is refused
            about = (book, trace, chosen_of(options), stated)
            plans = protect_versions(*about, **whose, cache=cache, alone=again or replace)
            return {plan.version: plan for plan in plans}
        public = known_public(book, trace, subject)
        asked = requested(trace, chosen_of(options), cast(Request, request), places, public)
        plan = protect_parts(trace, asked, places=places, cache=cache)
        check_released(book, plan, again=again or replace, subject=subject, key=secret)
    return dataclasses.replace(plan, subject=subject, key=secret)


def _path(name: str, stated: File) -> Path:
    check_kind(name, stated, str | PathLike, "name a file")
    return Path(stated)


def _ledger(stated: Ledger | None) -> Ledger:
    if stated is None:
        return user_ledger()
    check_kind("ledger", stated, Ledger, "tv.open_ledger opens one")
    return stated


def _of_version(shared: Options, more: Options) -> Request:
    """What is asked of a version. Raises InvalidValue for what all versions must share.

    What is shared and of noise alone is of the versions that have some.
    """
    check_kind("a version", more, Mapping, 'such as {"radius": 50}')
    differ = {"mechanism", "radius", "epsilon", "order", "leave"}
    if wrong := set(more) - differ:
        raise InvalidValue(
            f"versions must differ by {', '.join(sorted(differ))} alone, got {min(wrong)}: state "
            "it for all"
        )
    whole: Options = {**shared, **more}
    if whole.get("mechanism", Method.CUT) == Method.CUT:
        whole = cast(Options, {name: v for name, v in whole.items() if name not in OF_NOISE})
    if "leave" in more and "epsilon" not in more:
        whole.pop("epsilon", None)
    if "epsilon" in more and "leave" not in more:
        whole.pop("leave", None)
    return request_of(whole)


def publish(
    plan: Plan,
    output: File,
    *,
    ledger: Ledger | None = None,
    again: bool = False,
    replace: bool = False,
    limit: float | None = None,
    overwrite: bool = False,
) -> Receipt[Trace]:
    """Count a release in the ledger, draw it and write it, in the format of the suffix.

    Its subject and its key are those of `protect`. replace: nobody has an earlier version, which
    counts no more; its file is overwritten. limit: of epsilon in total. Raises Refused for a
    different release of the recording unless `again`, and beyond the limit; UnwritableOutput where
    the file cannot be written.

    >>> plan = tv.protect(tv.datasets.simulated_day(), activity="ride")
    >>> receipt = tv.publish(plan, "shared.gpx")
    >>> len(receipt.released) == len(tv.read("shared.gpx"))
    True
    """
    check_kind("plan", plan, Plan, "tv.protect gives one, or one for each version")
    if limit is not None:
        check_number("limit", limit)
    path = _path("output", output)
    check_writable(path, overwrite=overwrite or replace)
    return publish_plan(
        plan,
        _ledger(ledger),
        path,
        overwrite=overwrite or replace,
        again=again,
        instead=replace,
        key=plan.key,
        subject=plan.subject or ME,
        limit=limit,
    )


def audit(
    original: File,
    released: File,
    *,
    everywhere: bool = False,
    keep: Sequence[str] = (),
    every: float | None = None,
    most: int = MOST_POINTS,
    ledger: Ledger | None = None,
    **selection: Unpack[Selection],
) -> Scan:
    """What a released file gives away of its original: `leaks`, of which there must be none.

    selection: what was protected, as for `protect`; everywhere: every fix was. keep: fields that
    were kept on purpose, or all. ledger: as of `protect`; visits of its places were protected, too.

    >>> day = tv.datasets.simulated_day()
    >>> tv.write(day, "audited.gpx")
    >>> receipt = tv.publish(tv.protect(day), "audited.private.gpx")
    >>> tv.audit("audited.gpx", "audited.private.gpx").clean
    True
    """
    check_options(selection, Selection)
    original, released = _path("original", original), _path("released", released)
    chosen = chosen_of(selection)
    return scan(
        (str(original), bytes_of(original, size_of(most))),
        (str(released), bytes_of(released, size_of(most))),
        None if everywhere else chosen,
        keep=(*ALL, *keep) if "all" in keep else keep,
        zone=zone_named(selection.get("tz")),
        every=every,
        most=most,
        visits=lambda trace: visits_known(_ledger(ledger), trace),
    )


def protect_frame(
    frame: "DataFrame",
    *,
    key: bytes | File,
    trace: str | None = None,
    ledger: Ledger | None = None,
    subject: str = ME,
    again: bool = False,
    refused: list[tuple[str, str]] | None = None,
    **options: Unpack[Options],
) -> "DataFrame":
    """The released fixes of a table of pandas or GeoPandas; see `trailveil.batch.frame`.

    key: a key file, or its 32 bytes. trace: the column that names the traces. ledger: where each
    release is counted; for None nothing is. refused: takes (trace, reason) of traces that are left
    out; without, the first refusal is raised.

    >>> import pandas as pd
    >>> day = tv.datasets.simulated_day()
    >>> frame = pd.DataFrame({"latitude": day.positions[:, 0], "longitude": day.positions[:, 1]})
    >>> frame["timestamp"] = pd.to_datetime(day.times, utc=True)
    >>> shared = tv.protect_frame(frame, key=bytes(32), activity="ride")
    >>> len(shared) < len(frame)
    True
    """
    from trailveil.batch.frame import protect_frame as protect_table
    from trailveil.batch.rules import Rules

    zone = zone_named(options.get("tz"))
    rules = Rules(chosen_of(options), request_of(options), zone=zone)
    return protect_table(
        frame,
        key=key,
        trace=trace,
        rules=rules,
        ledger=ledger,
        subject=subject,
        again=again,
        refused=refused,
    )
