"""Inputs by their number: the same seed and number make the same input, on any machine.

What they are mutated from depends on whether the real recordings are there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.fuzz.bytewise import INTERESTING, mutated
from tests.fuzz.packed import fit, kmz
from tests.fuzz.photos import SEEDS as PHOTOS
from tests.fuzz.photos import exif
from tests.fuzz.seeds import KEYS, MADE, PRIORS, READINGS, SUFFIXES, recordings
from tests.fuzz.structured import Structured, bounded, jsons, lines, sentences, table, xml
from tests.fuzz.tabled import parquet
from tests.leaks import released
from trailveil.errors import TrailveilError
from trailveil.traces.fields import KEEPABLE
from trailveil.traces.formats import read
from trailveil.traces.formats.table import FORMATS

STRUCTURED: Mapping[str, Structured] = {
    **dict.fromkeys(("xml", "kml"), bounded(xml)),
    **dict.fromkeys(("json", "json lines"), bounded(jsons)),
    **dict.fromkeys(("table", "plt"), bounded(table)),
    "nmea": bounded(sentences),
    "fit": bounded(fit),
    "kmz": kmz,
    "parquet": parquet,
}
"""The mutation that knows a structure of formats."""

MUTATIONS: Mapping[str, Structured] = {
    row.name: STRUCTURED.get(row.structure, bounded(lines)) for row in FORMATS
}
"""The same by the name of a format: of another structure, one that knows lines and words."""

READ = (*(row.name for row in FORMATS), "readings", "photo")
"""What readers are given, in turn."""

RUN = (*(("protect",) * 6), "readings", "audit", "prior", "key", "import")
"""What is run of the command line, in turn."""

FAST = ("--floor", "30")
"""Options by which noise is found soon, and cuts leave something of short recordings."""

_PLAIN = ("--adversary", "plain")
_OPTIONS: tuple[tuple[str, ...], ...] = (
    *((), (), ("--at", "start+1m"), ("--at", "end-30s", "--at", "start")),
    ("--everywhere", *_PLAIN),
    *(("--between", "start+30s", "end-45s"), ("--stops", "auto", "--stops-for", "20")),
    *(("--near", "46.1250,7.6580,100"), ("--between", "start", "end")),
)
_FURTHER: tuple[tuple[str, ...], ...] = (
    *(("--round-times", "10"), ("--round-times", "3600"), ("--shift-times",), ("--every", "5")),
    *(("--assume-utc",), ("--tz", "Europe/Berlin"), ("--withhold", "10"), ("--withhold", "x")),
    *(
        ("--mechanism", "noise", *_PLAIN),
        ("--mechanism", "both"),
        ("--radius", "50"),
        ("--no-returns",),
    ),
    *(("--activity", "drive"), ("--floor", "2"), ("--uncertain", "5")),
    ("--mechanism", "both", "--steady-for", "2", *_PLAIN),
    *(("--json",), ("--report", "report.json"), ("--report", "report.txt")),
    *(("--keep", name) for name in KEEPABLE),
)
_WRITTEN = tuple(SUFFIXES[row.name] for row in FORMATS if row.write)


@dataclass(frozen=True, slots=True)
class Input:
    """Files by their names, and what is done with them.

    target: which of the targets takes it. kind: the format, or what is mutated. wanted: fields to
    read, for readers. arguments: of the command line, for the others; audited: those that `audit`
    takes of the same release.
    """

    target: str
    kind: str
    files: Mapping[str, bytes]
    wanted: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    audited: tuple[str, ...] = ()

    @property
    def content(self) -> bytes:
        """All that messages must not repeat."""
        return b"\n".join(self.files.values())


def made(group: str, seed: int, number: int, real: Path | None) -> Input:
    """The input of a number. group: readers, protect, or all: one in forty of protect then."""
    rng = Random(f"{group}/{seed}/{number}")
    if group == "protect":
        return _run(rng, number, real)
    if group == "all" and number % 40 == 0:
        return _run(rng, number // 40, real)
    return _read(rng, READ[number % len(READ)], real)


def _read(rng: Random, kind: str, real: Path | None) -> Input:
    if kind == "readings":
        data = _changed(rng, rng.choice(READINGS), bounded(table), READINGS)
        return Input("series", kind, {"input.csv": data})
    if kind == "photo":
        return Input("photo", kind, {"input.jpg": _photo(rng)})
    every = recordings(real)
    seeds = MADE[kind] if rng.random() < 0.4 else every[kind]
    data = _changed(rng, rng.choice(seeds), MUTATIONS[kind], every[_other(rng, kind)])
    suffix = SUFFIXES[kind] if rng.random() < 0.95 else rng.choice([*SUFFIXES.values(), "", ".x"])
    wanted = KEEPABLE if rng.random() < 0.5 else ()
    return Input("read", kind, {f"input{suffix}": data}, tuple(wanted))


def _photo(rng: Random) -> bytes:
    return _changed(rng, rng.choice(PHOTOS), bounded(exif), PHOTOS)


def _other(rng: Random, kind: str) -> str:
    """Whose seeds are spliced in: most often those of the same format."""
    return kind if rng.random() < 0.8 else rng.choice(list(MADE))


def _changed(rng: Random, data: bytes, change: Structured, others: tuple[bytes, ...]) -> bytes:
    if rng.random() < 0.7:
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            data = change(rng, data)
        if rng.random() < 0.85:
            return data
    return mutated(rng, data, others)


def _run(rng: Random, number: int, real: Path | None) -> Input:
    makers: Mapping[str, Callable[[Random, Path | None], Input]] = {
        "protect": _protect,
        "readings": _readings,
        "audit": _audit,
        "prior": _prior,
        "key": _key,
        "import": _import,
    }
    return makers[RUN[number % len(RUN)]](rng, real)


def _still_read(rng: Random, kind: str, real: Path | None) -> bytes:
    """A mutated file that is read all the same, if one of some is."""
    every = recordings(real)[kind]
    where = Path(f"tried{SUFFIXES[kind]}")
    data = rng.choice(every)
    for _ in range(6):
        data = _changed(rng, rng.choice(every), MUTATIONS[kind], every)
        where.write_bytes(data)
        try:
            if 2 <= len(read(where)) <= 400:
                break
        except TrailveilError:
            continue
        except Exception:  # noqa: BLE001 - a fault, which is found when the input is run
            break
        finally:
            where.unlink()
    return data


def _protect(rng: Random, real: Path | None) -> Input:
    kind = rng.choice(list(MADE))
    selection = rng.choice(_OPTIONS)
    further = rng.sample(_FURTHER, rng.choice((0, 1, 2, 3)))
    name, output = f"input{SUFFIXES[kind]}", f"output{rng.choice(_WRITTEN)}"
    whole = [*selection, *(word for one in further for word in one)]
    if rng.random() < 0.05 and whole:
        whole[rng.randrange(len(whole))] = rng.choice(INTERESTING).decode(errors="replace")
    told = ("--keep", "--tz", "--assume-utc", "--every")
    audited = [*selection, *(word for one in further if one[0] in told for word in one)]
    return Input(
        "protect",
        kind,
        {name: _still_read(rng, kind, real)},
        arguments=("protect", name, "-o", output, *FAST, *whole),
        audited=("audit", name, output, *audited),
    )


def _readings(rng: Random, _: Path | None) -> Input:
    data = _changed(rng, READINGS[0], bounded(table), READINGS)
    chosen = rng.choice((("--everywhere",), ("--at", "start+5m"), ("--between", "start", "end-3m")))
    stated = ("--prior", "prior.json", "--radius", "1", "--unit", "degC")
    name = ("--column", rng.choice(("temperature (degC)",) * 8 + ("value", "", "time")))
    return Input(
        "run",
        "protect readings",
        {"input.csv": data, "prior.json": PRIORS[2]},
        arguments=("protect", "input.csv", "-o", "output.csv", *stated, *name, *chosen),
    )


def _audit(rng: Random, real: Path | None) -> Input:
    kind = rng.choice([row.name for row in FORMATS if row.write])
    data = released(SUFFIXES[kind])
    every = recordings(real)[kind]
    changed = _changed(rng, data, MUTATIONS[kind], every)
    original = rng.choice(list(MADE))
    names = f"input{SUFFIXES[original]}", f"output{SUFFIXES[kind]}"
    return Input(
        "run",
        "audit",
        dict(zip(names, (rng.choice(MADE[original]), changed), strict=True)),
        arguments=("audit", *names, *rng.choice((("--everywhere",), ("--json",), ()))),
    )


def _prior(rng: Random, _: Path | None) -> Input:
    data = _changed(rng, rng.choice(PRIORS), bounded(jsons), PRIORS)
    return _with(("--prior", "prior.json"), {"prior.json": data}, "prior")


def _key(rng: Random, _: Path | None) -> Input:
    data = mutated(rng, KEYS[0], PRIORS) if rng.random() < 0.9 else KEYS[0]
    return _with(("--key", "key"), {"key": data}, "key")


def _import(rng: Random, real: Path | None) -> Input:
    kind = rng.choice(list(MADE))
    name = rng.choice(("input.jpg", f"input{SUFFIXES[kind]}"))
    data = _photo(rng) if name.endswith("jpg") else _still_read(rng, kind, real)
    further = rng.choice(((), ("--tz", "Europe/Berlin"), ("--accuracy", "30")))
    return Input("run", "import", {name: data}, arguments=("ledger", "import", name, *further))


def _with(options: tuple[str, ...], files: Mapping[str, bytes], kind: str) -> Input:
    """A release of a sound recording with a file besides."""
    arguments = ("protect", "input.csv", "-o", "output.csv", *FAST, *options)
    sound = {"input.csv": MADE["CSV"][0]}
    return Input("run", kind, {**sound, **files}, arguments=arguments)
