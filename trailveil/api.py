"""What `import trailveil as tv` offers of recordings: read, protect, publish, audit, write.

The options have the names, meanings and defaults of those of the commands.
"""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack
from zoneinfo import ZoneInfo

from trailveil.checks.scan import Scan, scan
from trailveil.errors import InvalidValue
from trailveil.files.keys import load_key
from trailveil.files.output import staged
from trailveil.files.source import load as bytes_of
from trailveil.gp.kernels import Kernel
from trailveil.ledger import Ledger, user_ledger
from trailveil.ledger.commit import Receipt, check_released, known_places
from trailveil.ledger.commit import publish as publish_plan
from trailveil.ledger.identity import ME
from trailveil.privacy.adversaries import named
from trailveil.release.design_cache import DesignCache
from trailveil.release.plan import Plan
from trailveil.release.protect import protect as protect_parts
from trailveil.release.protect import requested
from trailveil.release.request import Method, Request
from trailveil.threads import one_thread
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.fields import ALL
from trailveil.traces.formats import MOST_POINTS, size_of
from trailveil.traces.formats import write as write_trace
from trailveil.traces.formats.table import check_writable, format_to_write
from trailveil.traces.loading import load, load_readings
from trailveil.traces.prior_file import prior_in
from trailveil.traces.readings import Readings
from trailveil.traces.selection import Chosen
from trailveil.traces.stops import LASTS, WITHIN
from trailveil.traces.trace import Trace
from trailveil.traces.visits import Circle

if TYPE_CHECKING:
    from pandas import DataFrame

File = str | PathLike[str]


class Selection(TypedDict, total=False):
    """What to protect: both ends of the recording, and what is stated besides.

    ends: False leaves the two ends as recorded. at: times. between: stays, (begin, end) each. near:
    places, (latitude, longitude, metres) each. stops: whether every stay that is found is
    protected. returns: whether other visits to protected places are, True by default. tz: the zone
    of times of the clock, such as Europe/Berlin.
    """

    ends: bool
    at: Sequence[str]
    between: Sequence[tuple[str, str]]
    near: Sequence[tuple[float, float, float]]
    stops: bool
    returns: bool
    tz: str | None


class Options(Selection, total=False):
    """What to protect (`Selection`), and how.

    mechanism: cut, noise or both. everywhere: noise for every place at once. radius: metres.
    epsilon, order: of the Renyi divergence. leave: metres of the 68 % circle that is left, in place
    of epsilon. withhold: seconds around a part, at least, without a fix. activity: walk, run, ride
    or drive; floor: m/s, in its place. adversaries: names, as of --adversary. prior: a name, a file
    of `trailveil fit`, or a kernel with measurement noise (metres, seconds). uncertain, steady:
    seconds around a part of which nothing is assumed, by anybody and by a stranger.
    """

    mechanism: str
    everywhere: bool
    radius: float
    epsilon: float
    order: float
    leave: float
    withhold: float
    activity: str
    floor: float
    adversaries: Sequence[str]
    prior: str | Kernel
    uncertain: int
    steady: int


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
    """
    return load(Path(source), zone=_zone(tz), every=every, keep=keep, most=most)[0]


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
    zone = _zone(tz)
    return load_readings(Path(source), column=column, unit=unit, zone=zone, most=most)[0]


def write(trace: Trace, output: File, *, overwrite: bool = False) -> None:
    """Write a trace as it is, in the format of the suffix: nothing in it is protected.

    Raises UnwritableOutput for a suffix that is not written, or a file that exists.
    """
    path = Path(output)
    format_to_write(path.suffix)
    with staged(path, lambda out: write_trace(trace, out, path.suffix), overwrite=overwrite) as put:
        put()


def protect(
    trace: Trace,
    request: Request | None = None,
    *,
    ledger: Ledger | None = None,
    subject: str = ME,
    key: bytes | Path | None = None,
    again: bool = False,
    **options: Unpack[Options],
) -> Plan:
    """The protected release of a trace, designed but not drawn: `publish` writes it.

    request: how, in place of options; what to protect is still in the options. ledger: of the user,
    where none is stated; places with names are known from it, and a second, different release of
    one recording is refused unless `again`. key: a key file, or its 32 bytes: with one the same
    request is the same release on every machine. Raises Refused or InvalidValue, in one line.
    """
    book = user_ledger() if ledger is None else ledger
    secret = load_key(key) if isinstance(key, Path) else key
    if request is not None and set(options) - set(Selection.__annotations__):
        raise InvalidValue("a request must come without options of its own, got both: state one")
    whole = request_of(options) if request is None else request
    places = known_places(book, trace, subject=subject, key=secret)
    with one_thread():
        asked = requested(trace, chosen_of(options), whole, places)
        check_released(
            *(book, trace, asked), again=again, subject=subject, key=secret, places=places
        )
        cache = DesignCache.of(book.folder, book.key)
        return protect_parts(trace, asked, places=places, cache=cache)


def publish(
    plan: Plan,
    output: File,
    *,
    ledger: Ledger | None = None,
    subject: str = ME,
    key: bytes | Path | None = None,
    again: bool = False,
    limit: float | None = None,
    overwrite: bool = False,
) -> Receipt[Trace]:
    """Count a release in the ledger, draw it and write it, in the format of the suffix.

    limit: of epsilon in total. Raises Refused for a different release of the recording unless
    `again`, and beyond the limit; UnwritableOutput where the file cannot be written.
    """
    path = Path(output)
    check_writable(path, overwrite=overwrite)
    return publish_plan(
        plan,
        user_ledger() if ledger is None else ledger,
        path,
        overwrite=overwrite,
        again=again,
        key=load_key(key) if isinstance(key, Path) else key,
        subject=subject,
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
    **selection: Unpack[Selection],
) -> Scan:
    """What a released file gives away of its original: `leaks`, of which there must be none.

    selection: what was protected, as for `protect`; everywhere: every fix was. keep: fields that
    were kept on purpose, or all.
    """
    chosen = chosen_of(selection)
    return scan(
        (str(original), bytes_of(original, size_of(most))),
        (str(released), bytes_of(released, size_of(most))),
        None if everywhere else chosen,
        keep=(*ALL, *keep) if "all" in keep else keep,
        zone=_zone(selection.get("tz")),
        every=every,
        most=most,
    )


def protect_frame(
    frame: "DataFrame",
    *,
    key: bytes | Path,
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
    """
    from trailveil.batch.frame import protect_frame as protect_table
    from trailveil.batch.rules import Rules

    zone = _zone(options.get("tz"))
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


def chosen_of(options: Selection) -> Chosen:
    """What was chosen."""
    return Chosen(
        tuple(options.get("at", ())),
        tuple(options.get("between", ())),
        _zone(options.get("tz")),
        tuple(Circle(*place) for place in options.get("near", ())),
        (WITHIN, LASTS) if options.get("stops") else None,
        options.get("returns", True),
        options.get("ends", True),
    )


def request_of(options: Options) -> Request:
    """What is asked for, of no part yet. Raises InvalidValue for what cannot be."""
    activity, floor = options.get("activity"), options.get("floor")
    if activity is not None and (activity not in ACTIVITIES or floor is not None):
        raise InvalidValue(
            f"activity must be one of {', '.join(ACTIVITIES)}, without a floor, got {activity!r}"
        )
    if options.get("leave") is not None and "epsilon" in options:
        raise InvalidValue("leave must come without epsilon, got both: state one of them")
    method = Method.EVERYWHERE if options.get("everywhere") else options.get("mechanism", "cut")
    if method not in list(Method):
        raise InvalidValue(f"mechanism must be cut, noise or both, got {method!r}")
    same: dict[str, Any] = {
        name: options[name]
        for name in ("radius", "epsilon", "order", "leave", "withhold", "uncertain", "steady")
        if name in options
    }
    if "adversaries" in options:
        same["who"] = named(options["adversaries"])
    if "prior" in options:
        same["kernel"] = _kernel(options["prior"])
    pace = (floor, None) if activity is None else (ACTIVITIES[activity], MIDDLE[activity])
    return Request((), method=Method(method), floor=pace[0], middle=pace[1], **same)


def _kernel(prior: str | Kernel) -> Kernel:
    kernel = prior if isinstance(prior, Kernel) else prior_in("metres", prior).kernel
    if not any(term.is_white() for term in kernel.terms()):
        raise InvalidValue("a prior must state a measurement noise (a White term), got none")
    return kernel


def _zone(name: str | None) -> ZoneInfo | None:
    try:
        return None if name is None else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidValue(
            f"tz must be a time zone such as Europe/Berlin or UTC, got {name!r}"
        ) from None
