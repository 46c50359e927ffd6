"""--certify: the option, and what must be there for it."""

import click

from trailveil.balls import load_flint
from trailveil.certifying import no_certificate_everywhere

certify_option = click.option(
    "--certify",
    is_flag=True,
    help="Prove what is said of privacy, in ball arithmetic (trailveil[certify]).",
)


def check_certify(*, certify: bool, everywhere: bool = False) -> None:
    """Refuse before any work what cannot be certified, or not here. Raises Unavailable."""
    if not certify:
        return
    if everywhere:
        raise no_certificate_everywhere()
    load_flint()
