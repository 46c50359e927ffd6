"""What is asked of a release, as the command line states it."""

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from trailveil.adversaries import Named
from trailveil.adversaries import named as known_as
from trailveil.cli.parameters import ABOVE_ONE, POSITIVE
from trailveil.cli.selecting import SELECTING
from trailveil.errors import InvalidValue
from trailveil.formats.source import named as file_named
from trailveil.kernels import Kernel
from trailveil.kinds import DesignFor
from trailveil.prior_file import prior_in
from trailveil.release import AUTO, RATE, Noise, Request

_OPTIONS = (
    click.option("--radius", type=POSITIVE, default=200.0, show_default=True, help="Metres."),
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
        metavar="auto|SECONDS",
        help="Release nothing this near a protected time; auto: as long as is cheapest.",
    ),
    click.option(
        "--metres-a-minute",
        "rate",
        type=POSITIVE,
        default=RATE,
        show_default=True,
        help="For --withhold auto: a minute moved so far is as bad as a minute withheld.",
    ),
    click.option(
        "--adversary",
        "who",
        multiple=True,
        type=click.Choice(["default", *(one.value for one in Named)]),
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
        type=click.Choice([kind.value for kind in Noise if kind is not Noise.EVERYWHERE]),
        default="optimal",
        show_default=True,
    ),
    click.option(
        "--design-for",
        type=click.Choice([one.value for one in DesignFor]),
        default="auto",
        show_default=True,
        help="This recording alone (least noise), or all of its kind (kept, used again).",
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
    noise = Noise.EVERYWHERE if options["everywhere"] else Noise(options["mechanism"])
    withhold = _seconds(options["withhold"])
    if options["leave"] and was_given("epsilon"):
        raise click.UsageError("--leave must come without --epsilon: state one of them")
    if noise is Noise.WITHHOLD and withhold is None:
        raise click.UsageError("--mechanism withhold must come with --withhold SECONDS")
    return Request(
        (),
        options["radius"],
        options["epsilon"],
        options["order"],
        withhold,
        known_as(options["who"] or ("default",)),
        noise,
        _prior(options["prior"]),
        options["leave"],
        options["rate"],
        DesignFor(options["design_for"]),
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
    others = [name for name in (*SELECTING, "withhold", "leave", "keep") if options[name]]
    if options["mechanism"] != Noise.OPTIMAL.value:
        others.append("mechanism")
    if options["everywhere"] and others:
        raise click.UsageError(
            f"--everywhere must come alone, got --{others[0]} as well: protect every place, or "
            "state what to protect"
        )


def was_given(option: str) -> bool:
    """Whether an option was stated, and is not a default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not None and source is not ParameterSource.DEFAULT


def _seconds(stated: str | None) -> float | str | None:
    if stated is None or stated == AUTO:
        return stated
    try:
        seconds = float(stated)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:  # 30 years
        raise click.BadParameter(
            f"must be auto, or seconds from 0 to less than 1,000,000,000, got {stated!r}"
        )
    return seconds
