"""--certify: the option, and what must be there for it."""

import click

from trailveil.gp.balls import load_flint

certify_option = click.option(
    "--certify",
    is_flag=True,
    help="Prove what is said of privacy, in ball arithmetic (trailveil[certify]).",
)


def check_certify(*, certify: bool) -> None:
    """Refuse before any work what cannot be certified here. Raises Unavailable."""
    if certify:
        load_flint()
