"""What is asked of a release, as the command line states it."""

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from trailveil.cli.parameters import ABOVE_ONE, POSITIVE, FiniteRange
from trailveil.cli.selecting import SELECTING
from trailveil.errors import InvalidValue
from trailveil.files.source import named as file_named
from trailveil.gp.kernels import Kernel
from trailveil.privacy.adversaries import named as known_as
from trailveil.release.request import NOISE_AGAINST, Method, Request
from trailveil.traces.activities import ACTIVITIES, MIDDLE
from trailveil.traces.prior_file import prior_in

AUTO = "auto"

_OPTIONS = (
    click.option("--radius", type=POSITIVE, default=100.0, show_default=True, help="Metres."),
    click.option("--epsilon", type=POSITIVE, default=1.0, show_default=True, help="Privacy loss."),
    click.option(
        "--order",
        type=ABOVE_ONE,
        default=5.0,
        show_default=True,
        help="Renyi order.",
    ),
    click.option(
        "--leave",
        type=POSITIVE,
        metavar="METRES",
        help="In place of --epsilon: the 68 % circle around the place that everyone is left with.",
    ),
    click.option(
        "--withhold",
        type=FiniteRange(min=0, max=1e9),
        metavar="SECONDS",
        help="Release nothing this near a protected time, at least.",
    ),
    click.option(
        "--adversary",
        "who",
        multiple=True,
        type=click.Choice(["default", *(adversary.value for adversary in NOISE_AGAINST)]),
        help="Whom the noise is made against, besides the plain one; may be repeated. "
        "Default: all.",
    ),
    click.option(
        "--prior",
        default="default",
        show_default=True,
        metavar="NAME|FILE",
        help="How people move: default, walk, bike, drive, or a file made by trailveil fit.",
    ),
    click.option(
        "--mechanism",
        type=click.Choice([kind.value for kind in Method if kind is not Method.EVERYWHERE]),
        default="cut",
        show_default=True,
        help="Leave out the time around what is protected, move the track by noise, or both.",
    ),
    click.option(
        "--activity",
        type=click.Choice([AUTO, *ACTIVITIES]),
        default=AUTO,
        show_default=True,
        help="How you moved around what is protected: the slowest pace to reckon with. "
        "auto: as the file states it, else walk.",
    ),
    click.option(
        "--floor",
        type=FiniteRange(0.01, 1000),
        metavar="M_PER_S",
        help="The same pace as a number, in place of --activity.",
    ),
    click.option(
        "--uncertain",
        type=click.IntRange(0, 86_400),
        default=60,
        show_default=True,
        metavar="SECONDS",
        help="Around each protected part, assume nothing about how you moved.",
    ),
    click.option(
        "--steady-for",
        type=FiniteRange(0, 1440),
        default=5.0,
        show_default=True,
        metavar="MINUTES",
        help="With noise: you may keep one steady pace for so long around a part.",
    ),
    click.option(
        "--slow-for",
        type=FiniteRange(0, 1440),
        default=0.0,
        show_default=True,
        metavar="MINUTES",
        help="With noise: you may hardly move for so long around a part.",
    ),
)


def requesting(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that state how much is to be left, to whom, and by what noise."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def requested_of(options: dict[str, Any]) -> Request:
    """What is asked for, of no part yet. Raises InvalidValue for what cannot be."""
    _refuse_what_is_missing(options)
    method = Method.EVERYWHERE if options["everywhere"] else Method(options["mechanism"])
    if options["leave"] and was_given("epsilon"):
        raise click.UsageError("--leave must come without --epsilon: state one of them")
    if options["floor"] is not None and was_given("activity"):
        raise click.UsageError("--floor must come without --activity: state one of them")
    # Nothing at all is assumed for so long: that holds a steady pace, and one that is slow.
    steady = round(60 * max(options["steady_for"], options["slow_for"]))
    return Request(
        (),
        options["radius"],
        options["epsilon"],
        options["order"],
        known_as(options["who"] or ("default",)),
        method,
        _prior(options["prior"]),
        options["leave"],
        options["withhold"],
        options["floor"] or ACTIVITIES.get(options["activity"]),
        None if options["floor"] else MIDDLE.get(options["activity"]),
        options["uncertain"],
        max(steady, options["uncertain"]),
    )


def _prior(stated: str) -> Kernel:
    """The kernel of a built-in prior or of a prior file, in metres and with measurement noise."""
    spec = prior_in("metres", stated)
    if not any(term.is_white() for term in spec.kernel.terms()):
        raise InvalidValue(
            f"--prior must state a measurement noise (a white term), got none: {file_named(stated)}"
        )
    return spec.kernel


def _refuse_what_is_missing(options: dict[str, Any]) -> None:
    others = [
        name for name in (*SELECTING, "no_ends", "withhold", "leave", "keep") if options[name]
    ]
    if was_given("mechanism"):
        others.append("mechanism")
    if options["everywhere"] and others:
        raise click.UsageError(
            f"--everywhere must come alone, got --{others[0].replace('_', '-')} as well: protect "
            "every place, or state what to protect"
        )


def was_given(option: str) -> bool:
    """Whether an option was stated, and is not a default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not None and source is not ParameterSource.DEFAULT
