"""Tables of a command's arguments and options, from the program itself, as Markdown."""

import re

import click

from trailveil.cli import cli

# Where an option has no value of its own, its help may say in words what is done without it.
_IN_WORDS = re.compile(r"[;.]?\s*\bdefault: (.+?)\.(?=\s|$)", flags=re.IGNORECASE)


def all_options(name: str) -> str:
    """The section "All options" of the page of a command, and of each command below it.

    `name` is that of a command of `trailveil`. Raises KeyError where there is none.
    """
    root = click.Context(cli, info_name="trailveil", **cli.context_settings)
    command = cli.get_command(root, name)
    if command is None:
        raise KeyError(name)
    said = "Written by the program itself, as `--help` says it."
    return "\n\n".join(["## All options", said, *_tables(command, root, name)]) + "\n"


def _tables(command: click.Command, parent: click.Context, name: str) -> list[str]:
    context = click.Context(command, parent, info_name=name, show_default=True)
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"```text\n{context.command_path} {usage}\n```", _table(command, context)]
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                parts += [f"### {context.command_path} {below}"]
                parts += _tables(found, context, below)
    return parts


def _table(command: click.Command, context: click.Context) -> str:
    rows = ["| option | meaning | default |", "|---|---|---|"]
    for option in command.get_params(context):
        if isinstance(option, click.Option) and not option.hidden:
            names, _ = option.get_help_record(context) or ("", "")
            rows.append(f"| {_code(names)} | {_cell(_meaning(option, context))} | "
                        f"{_cell(_default(option, context))} |")  # fmt: skip
    return "\n".join(rows)


def _meaning(option: click.Option, context: click.Context) -> str:
    extra = option.get_help_extra(context)
    limits = f" [{extra['range']}]" if "range" in extra else ""
    said = (option.help or "").strip()
    plain = _IN_WORDS.sub(".", said).lstrip(". ") or "See the default."
    again = " May be repeated." if option.multiple and "may be" not in said else ""
    return plain + again + limits


def _default(option: click.Option, context: click.Context) -> str:
    extra = option.get_help_extra(context)
    if "required" in extra:
        return "must be given"
    if "default" in extra:
        return extra["default"]
    in_words = _IN_WORDS.search(option.help or "")
    if in_words is not None:
        return in_words[1]
    return "off" if option.is_flag else "none"


def _code(text: str) -> str:
    return "`" + " ".join(text.split()).replace("|", "\\|") + "`"


def _cell(text: str) -> str:
    """Plain text for a cell: nothing in it is markup."""
    for sign in "\\`*_[]<>|$":
        text = text.replace(sign, "\\" + sign)
    return " ".join(text.split()).replace("--", "\\-\\-")
