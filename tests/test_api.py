"""The public interface: what is exported, that it is typed and documented, and what it does."""

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trailveil as tv
from trailveil.errors import InvalidValue, Refused
from trailveil.files.keys import new_key
from trailveil.ledger import Ledger, open_ledger
from trailveil.release.options import Options, Selection

EXPORTED = """
Adversary Certificate Fix Guarantee Ledger Mechanism Plan Prior Readings Release Request Secret
Stream Trace __version__ audit compare compose datasets design errors exposure kernels
loss_bound_for open_ledger plots priors protect protect_frame publish read read_readings studies
write
"""


PRIOR = tv.Prior(tv.kernels.RBF(2.0), np.arange(5.0))
SECRET = tv.Secret.at(2.0)
NOISE = tv.Mechanism(PRIOR.times, np.zeros((5, 0)), 1.0)
DAY = tv.datasets.simulated_day()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(tmp_path / "state")


@pytest.fixture
def ride(tmp_path: Path) -> Path:
    path = tmp_path / "ride.gpx"
    tv.write(tv.datasets.simulated_day(), path)
    return path


def test_the_public_names_are_these() -> None:
    assert sorted(tv.__all__) == sorted(EXPORTED.split())
    assert dir(tv) == tv.__all__
    with pytest.raises(AttributeError, match="no attribute 'protec'"):
        tv.protec  # noqa: B018


@pytest.mark.parametrize("name", [public for public in tv.__all__ if public != "__version__"])
def test_every_public_name_is_documented_and_typed(name: str) -> None:
    public = getattr(tv, name)
    assert inspect.getdoc(public)
    if inspect.isfunction(public):
        signature = inspect.signature(public)
        assert signature.return_annotation is not inspect.Signature.empty
        stated = [parameter.annotation for parameter in signature.parameters.values()]
        assert inspect.Parameter.empty not in stated


def test_importing_it_loads_nothing_else() -> None:
    counted = "import sys, trailveil; print(sum(m.startswith('trailveil') for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", counted], capture_output=True, check=True)
    assert int(done.stdout) <= 2


def test_a_name_stays_what_it_is_when_packages_of_like_names_are_loaded() -> None:
    import trailveil.designer.window  # noqa: F401

    assert inspect.isfunction(tv.design)


def test_a_ride_is_read_protected_published_and_audited(
    ride: Path, tmp_path: Path, ledger: Ledger
) -> None:
    trace = tv.read(ride)
    plan = tv.protect(trace, between=[("08:39", "09:21")], tz="UTC", activity="walk", ledger=ledger)
    assert plan.guarantee.epsilon <= 1.0
    assert all(exposure.posterior > 150 for exposure in plan.exposures if exposure.prior == np.inf)
    target = tmp_path / "ride.private.gpx"
    receipt = tv.publish(plan, target, ledger=ledger)
    assert not receipt.further
    released = tv.read(target)
    assert set(released.times) < set(trace.times)
    scanned = tv.audit(ride, target, between=[("08:39", "09:21")], tz="UTC")
    assert scanned.leaks == ()


def test_a_second_release_is_refused_before_it_is_designed(
    ride: Path, tmp_path: Path, ledger: Ledger
) -> None:
    trace = tv.read(ride)
    tv.publish(tv.protect(trace, radius=200, ledger=ledger), tmp_path / "a.gpx", ledger=ledger)
    with pytest.raises(Refused):
        tv.protect(trace, radius=50, activity="ride", ledger=ledger)


def test_a_place_with_a_name_is_known_to_what_is_published(
    ride: Path, tmp_path: Path, ledger: Ledger
) -> None:
    plan = tv.protect(tv.read(ride), ledger=ledger)
    assert plan.visited == ()


def test_what_was_mended_is_said(tmp_path: Path) -> None:
    path = tmp_path / "twice.csv"
    rows = [f"2024-05-14T08:00:{i:02}Z,45.0000{i:02},7.0" for i in (0, 1, 1, 2, 3)]
    path.write_text("time,latitude,longitude\n" + "\n".join(rows) + "\n")
    assert tv.read(path).repairs == (
        "Left out because they had the time and place of another fix: 1 fixes.",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activity": "swim"}, "activity must be one of"),
        ({"activity": "walk", "floor": 1.0}, "without a floor"),
        ({"mechanism": "fog"}, "mechanism must be cut, noise or both, got 'fog'"),
        ({"tz": "Berlin"}, "tz must be a time zone"),
        ({"leave": 200, "epsilon": 1.0}, "leave must come without epsilon"),
        ({"prior": tv.kernels.RBF(60.0)}, "measurement noise"),
        ({"radius": -1.0}, "radius"),
    ],
)
def test_wrong_options_are_named(
    options: dict[str, object], message: str, ride: Path, ledger: Ledger
) -> None:
    with pytest.raises(InvalidValue, match=message):
        tv.protect(tv.read(ride), ledger=ledger, **options)  # type: ignore[call-overload]  # wrong on purpose


def test_a_request_stands_in_place_of_options(ride: Path, ledger: Ledger) -> None:
    trace = tv.read(ride)
    with pytest.raises(InvalidValue, match="without options of its own"):
        tv.protect(trace, tv.Request(()), radius=3, ledger=ledger)
    what: Selection = {"at": ["start+1h"], "ends": False}
    plan = tv.protect(trace, tv.Request((), radius=50.0), **what, ledger=ledger)
    other = tv.protect(trace, radius=50.0, **what, ledger=ledger)
    assert plan.request == other.request


def test_ten_lines_do_the_research_of_the_paper() -> None:
    prior = tv.Prior(tv.kernels.RBF(6.1) + tv.kernels.White(0.1), np.arange(50.0))
    secret = tv.Secret.at(24.0, recorded=True)
    mechanism, certificate = tv.design(prior, [secret], budget=1.0)
    assert certificate.proved
    learnt = tv.exposure(prior, secret, mechanism)
    more = tv.exposure(prior, secret, mechanism, tv.Adversary.knows_point(away=5.0, accuracy=0.1))
    assert more.posterior < learnt.posterior < learnt.prior
    both = tv.compose(prior.kernel, [tv.Release(mechanism), tv.Release(mechanism)])
    assert both.loss(secret).largest > learnt.loss


def test_a_plan_is_published_of_its_subject_and_under_its_key(tmp_path: Path) -> None:
    trace = tv.datasets.simulated_day()
    for name in ("a", "b"):
        ledger = open_ledger(tmp_path / name)
        whose: dict[str, Any] = {"subject": "anna", "key": bytes(range(32)), "ledger": ledger}
        plan = tv.protect(trace, ends=False, at=["start+60m"], mechanism="noise", **whose)
        tv.publish(plan, tmp_path / f"{name}.gpx", ledger=ledger)
        with ledger.open() as book:
            assert [row.subject for row in book.standing()] == ["anna"]
    assert (tmp_path / "a.gpx").read_bytes() == (tmp_path / "b.gpx").read_bytes()


def test_protect_names_every_option() -> None:
    words = set(re.findall(r"[a-z_]+", inspect.getdoc(tv.protect) or ""))
    assert set(Options.__annotations__) <= words


def test_refusals_name_arguments_of_python(ride: Path, ledger: Ledger) -> None:
    trace = tv.read(ride)
    tv.publish(tv.protect(trace, ledger=ledger), ride.with_name("a.gpx"), ledger=ledger)
    with pytest.raises(Refused, match="add replace=True if nobody has") as refusal:
        tv.protect(trace, radius=50, ledger=ledger)
    assert "--" not in str(refusal.value)
    assert tv.protect is tv.protect


def test_a_version_that_nobody_has_is_replaced(ride: Path, ledger: Ledger) -> None:
    trace, output = tv.read(ride), ride.with_name("a.gpx")
    tv.publish(tv.protect(trace, ledger=ledger), output, ledger=ledger)
    plan = tv.protect(trace, radius=50, replace=True, ledger=ledger)
    receipt = tv.publish(plan, output, replace=True, ledger=ledger)
    assert len(tv.read(output)) == len(receipt.released)
    again = tv.protect(trace, radius=50, ledger=ledger)  # the one that counts
    assert again.guarantee.epsilon == plan.guarantee.epsilon


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tv.Prior(np.eye(3), np.arange(3.0)), "must have a kernel, got ndarray: .*matrix"),  # type: ignore[arg-type]  # on purpose
        (lambda: tv.Guarantee(mu=1.0, order=5).odds(0.01), "at least 0.5 and below 1"),
        (lambda: tv.protect(DAY, betwen=[("08:39", "09:21")]), "got betwen: did you mean between"),  # type: ignore[call-overload]  # on purpose
        (lambda: tv.protect(DAY, no_ends=True), "got no_ends: did you mean ends"),  # type: ignore[call-overload]  # on purpose
        (lambda: tv.audit("a.gpx", "b.gpx", radius=3), "got radius: it may be at, between"),  # type: ignore[call-arg]  # on purpose
        (lambda: tv.protect(DAY, adversaries=["still"]), "a list of default, plain, point, path"),
        (lambda: tv.protect(DAY, adversaries="plain"), "must be a list of"),
        (lambda: tv.protect(DAY, adversaries=["plain"]), "must come with mechanism noise or both"),
        (lambda: tv.protect(DAY, steady=900), "steady must come with mechanism noise or both"),
        (lambda: tv.protect(DAY, longest_stay=60.0), "longest_stay must come with everywhere"),
        (
            lambda: tv.protect(DAY, steady=900, versions={"friends": {"radius": 50}}),
            "steady must come with mechanism noise or both",
        ),
        (lambda: tv.protect(DAY, prior=PRIOR), "a file, or a kernel, got Prior"),  # type: ignore[call-overload]  # on purpose
        (lambda: tv.compose(PRIOR, []), "must get a kernel, got Prior"),  # type: ignore[arg-type]  # on purpose
        (lambda: tv.Adversary.knows([1.0], [8.0], 0.0), "a positive variance"),
        (lambda: tv.Adversary.knows([1.0], [8.0, 9.0], 1.0), "weights must be finite"),
        (lambda: tv.kernels.Function(lambda a, b: a - b)([1.0, 2.0], [1.0, 2.0]), "as a.:, None"),
        (lambda: tv.design(PRIOR, [SECRET]), "a budget or bounds of the loss, got neither"),
        (lambda: tv.design(PRIOR, [SECRET], budget=1.0, bounds=[1.0]), "the loss, got both"),
    ],
)
def test_what_is_easily_mistaken_is_refused_in_words(call: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        call()


ANY: Any = tv  # what follows is mistaken on purpose


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ANY.design(PRIOR.kernel, [SECRET], budget=1.0), "prior must be Prior, got RBF"),
        (lambda: ANY.design(PRIOR, [2.0], budget=1.0), "each of secrets must be Secret, got float"),
        (lambda: ANY.design(PRIOR, SECRET, budget="1"), "budget must be a number, got str"),
        (lambda: ANY.exposure(PRIOR, [SECRET], None), "secret must be Secret, got list: one at"),
        (lambda: ANY.exposure(PRIOR, SECRET, (1, 2)), "the first of what tv.design returns"),
        (lambda: ANY.Adversary.sees_stillness((1.0, 2.0)), r"write \[\(60, 120\)\]"),
        (lambda: ANY.Secret.at("60"), "times must be seconds"),
        (lambda: ANY.kernels.Matern32("2", 3.0), "must be a number, got str"),
        (lambda: ANY.protect("ride.gpx"), "trace must be Trace, got str: tv.read"),
        (lambda: ANY.protect(DAY, {"radius": 50}), "request must be Request, got dict"),
        (lambda: ANY.protect(DAY, at=5), "at must be Iterable, got int"),
        (lambda: ANY.protect(DAY, radius="100"), "radius must be a number, got str"),
        (lambda: ANY.protect(DAY, everywhere="yes"), "everywhere must be bool, got str"),
        (lambda: ANY.protect(DAY, ledger="state"), "must be Ledger, got str: tv.open_ledger"),
        (lambda: ANY.protect(DAY, versions=["friends"]), "versions must be Mapping, got list"),
        (lambda: ANY.protect(DAY, versions={"friends": 50}), "a version must be Mapping, got int"),
        (lambda: ANY.publish(DAY, "out.gpx"), "plan must be Plan, got Trace"),
        (lambda: ANY.write("out.gpx", DAY), "trace must be Trace, got str"),
        (lambda: ANY.compose(PRIOR.kernel, [None]), "each of releases must be Release, got None"),
        (lambda: ANY.read(5), "source must be str or PathLike, got int"),
        (lambda: ANY.plots.trade_off(None, "ab"), "each of asked must be a number, got str"),
        (lambda: ANY.plots.trade_off(lambda e: (NOISE, e), [1, 2]), "take the first of what"),
        (lambda: ANY.plots.trade_off(3, [1, 2]), "designed must be a function, got int"),
        (lambda: ANY.plots.trade_off(None, 3), "asked must be Iterable, got int"),
        (lambda: ANY.plots.posterior(PRIOR, NOISE, "a"), "released must be numbers"),
        (lambda: ANY.plots.posterior("a", NOISE, [0.0]), "prior must be Prior, got str"),
        (lambda: ANY.plots.covariance((NOISE, 1)), "mechanism must be Mechanism, got tuple"),
        (lambda: ANY.design(PRIOR, [SECRET], bounds=["a"]), "bounds must be numbers"),
        (lambda: ANY.design(PRIOR, [SECRET], budget=1.0, mechanism=["uniform"]), "must be one of"),
        (lambda: ANY.design(PRIOR, [SECRET], budget=1.0, weights="a"), "positive numbers, got"),
        (lambda: ANY.Prior.from_covariance("abc"), "must be a square matrix, got <U3"),
        (lambda: ANY.Prior.from_covariance(None), "must be a square matrix, got NoneType"),
        (lambda: ANY.Prior.from_covariance([[1.0], [1.0, 2.0]]), "rows of different lengths"),
        (lambda: ANY.Prior.from_covariance(np.eye(3), noise=-1), "noise must be above 0 .*got -1"),
        (lambda: ANY.Prior(PRIOR.kernel, "abc"), "times must be seconds, got <U3"),
        (lambda: ANY.Prior(PRIOR.kernel, [0.0, np.nan]), "times must be finite"),
        (lambda: ANY.Prior(PRIOR.kernel, [0.0], mean="a"), "a mean must be numbers"),
        (lambda: PRIOR.draw(ANY), "seed must be int"),
        (lambda: 1 + ANY.kernels.White(1.0), "added to a kernel must be Kernel, got int"),
        (lambda: ANY.kernels.White(1.0) * "a", "multiplied by must be a number, got str"),
        (lambda: ANY.kernels.Function(3), "a kernel must be a function, got int"),
        (lambda: ANY.kernels.from_sklearn(3), "called, got int of scikit-learn"),
        (lambda: ANY.kernels.from_gpytorch(3), "called, got int of GPyTorch"),
        (lambda: ANY.Guarantee("a"), "mu must be a number, got str"),
        (lambda: ANY.Guarantee(1.0).odds("a"), "confidence must be a number, got str"),
        (lambda: ANY.loss_bound_for("a", 1), "epsilon must be a number, got str"),
        (lambda: ANY.loss_bound_for(1, None), "radius must be a number, got NoneType"),
        (lambda: ANY.Adversary("a") & 3, "joined to an adversary must be Adversary, got int"),
        (lambda: ANY.Adversary.knows_point("a"), "away must be a number, got str"),
        (lambda: ANY.Adversary.believes("a", 3), "kernel must be Kernel, got int"),
        (lambda: ANY.Release("a"), "mechanism must be Mechanism, got str"),
        (lambda: ANY.compose(PRIOR.kernel, [tv.Release(NOISE)]).loss("a"), "secret must be Secret"),
        (lambda: NOISE.hiding(np.nan), "deviation must be a number from 0 on, got nan"),
        (lambda: ANY.Mechanism(PRIOR.times, np.eye(5), "a"), "floor must be a number, got str"),
        (lambda: ANY.Mechanism(PRIOR.times, np.eye(5), process=3), "process must be a kernel"),
        (lambda: ANY.protect(DAY, between="08:39"), "between must be a list of .begin, end."),
        (lambda: ANY.protect(DAY, near=(45, -32)), "near must be a list of .*got another form"),
        (lambda: ANY.protect(DAY, tz=3), "tz must be str, got int"),
        (lambda: ANY.protect(DAY, radius=None), "radius must be a number, got NoneType"),
        (lambda: ANY.protect(DAY, subject=3), "subject must be str, got int"),
        (lambda: ANY.protect(DAY, key=3), "name a key file, or give its 32 bytes"),
        (lambda: ANY.protect(DAY, key=b"short"), "a key must be 32 bytes, got 5"),
        (lambda: ANY.publish(tv.protect(DAY), "out.gpx", limit="a"), "limit must be a number"),
        (lambda: ANY.read("out.gpx", most="a"), "most must be int, got str"),
        (lambda: ANY.read("out.gpx", keep=3), "what is kept must be Iterable, got int"),
        (lambda: ANY.open_ledger(3), "folder must be str or PathLike, got int"),
        (lambda: ANY.compare(DAY, "out.gpx"), "after must be Trace, got str"),
        (lambda: ANY.protect_frame({}, key=bytes(32)), "frame must be DataFrame, got dict"),
    ],
)
def test_what_is_of_another_kind_is_refused_in_words(call: Any, words: str) -> None:
    with pytest.raises(InvalidValue, match=words):
        call()


@pytest.mark.parametrize("far", [60.0, 80.0, 1e6])
def test_a_budget_is_for_secrets_that_a_release_tells_of(far: float) -> None:
    """Of the others nothing is lost, with noise or without, so that bounds are met by none."""
    prior = tv.Prior(tv.kernels.RBF(2.0) + tv.kernels.White(0.1), np.arange(5.0))
    untold, told = tv.Secret.at(far), tv.Secret.at(2.0)
    for secrets in ([untold], [untold, told], [tv.Secret.at([2.0, far])]):
        with pytest.raises(InvalidValue, match="got one that nothing tells of"):
            tv.design(prior, secrets, budget=1.0)
    assert tv.design(prior, [untold], bounds=[1.0])[0].noise_trace == 0.0


def test_a_function_is_a_kernel_where_it_is_symmetric() -> None:
    lopsided = tv.kernels.Function(lambda a, b: np.exp(-abs(a[:, None] - 1.1 * b)))
    prior = tv.Prior(lopsided + tv.kernels.White(0.1), np.arange(5.0))
    with pytest.raises(InvalidValue, match="a function must be symmetric"):
        tv.exposure(prior, SECRET, NOISE)


def test_a_key_and_a_ledger_are_stated_by_a_name(tmp_path: Path) -> None:
    new_key(tmp_path / "k.key")
    named, loaded = (
        tv.protect(DAY, key=key, ledger=tv.open_ledger(str(tmp_path / "state"))).key
        for key in (str(tmp_path / "k.key"), tmp_path / "k.key")
    )
    assert named == loaded
    assert len(named or b"") == 32
    with pytest.raises(tv.errors.UnreadableInput, match="a key must be a file that exists"):
        tv.protect(DAY, key=str(tmp_path / "other.key"), ledger=open_ledger(tmp_path / "state"))


def test_one_alone_is_a_list_of_one(ledger: Ledger) -> None:
    knows = tv.Adversary.knows_point()
    prior = tv.Prior(tv.kernels.RBF(2.0) + tv.kernels.White(0.1), np.arange(5.0))
    alone: Any = ANY.design(prior, SECRET, budget=1.0, adversaries=knows)
    listed = tv.design(prior, [SECRET], budget=1.0, adversaries=[knows])
    assert alone[1].outcomes[0].deviation == listed[1].outcomes[0].deviation
    one: Any = {"at": "08:50", "between": ("08:39", "09:21"), "tz": "UTC"}
    many = tv.protect(DAY, at=["08:50"], between=[("08:39", "09:21")], tz="UTC", ledger=ledger)
    assert tv.protect(DAY, **one, ledger=ledger).request == many.request


@pytest.mark.parametrize("name", tv.__all__)
def test_examples_in_docstrings_run(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    public = getattr(tv, name)
    found = doctest.DocTestFinder(recurse=inspect.isclass(public)).find(
        inspect.unwrap(public), name, globs={"tv": tv, "np": np}
    )
    examples = [test for test in found if test.examples]
    if inspect.isfunction(public) and name not in {"read_readings", "open_ledger"}:
        assert examples, "an example says more than words"
    for test in examples:
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0
