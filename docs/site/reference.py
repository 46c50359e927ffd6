"""The reference of the public interface, from signatures and docstrings, as Markdown."""

import inspect
import re
from types import ModuleType
from typing import Any

import trailveil
from trailveil.release.options import Options, Selection

# What Markdown would take for something else.
_MARKS = re.compile(r"([*_<>\[\]|])")
_MODULE = re.compile(r"\b([a-z_]\w*\.)+(?=\w)")
_LONGEST = 30
_CODE = re.compile(r"(`[^`]*`)")


def reference() -> str:
    """A section for each name of `trailveil.__all__`: functions, values, then modules."""
    names = [name for name in trailveil.__all__ if name != "__version__"]
    public = {name: getattr(trailveil, name) for name in names}
    functions = [name for name in names if inspect.isfunction(public[name])]
    values = [name for name in names if inspect.isclass(public[name])]
    modules = [name for name in names if isinstance(public[name], ModuleType)]
    parts = []
    for title, group in (("Functions", functions), ("Values", values), ("Modules", modules)):
        parts.append(f"## {title}")
        parts += [_section(f"tv.{name}", public[name]) for name in group]
    parts += ["## Options", _prose(Selection), _prose(Options)]
    return "\n\n".join(parts) + "\n"


def _section(name: str, public: Any) -> str:
    lines = [f"### {name}"]
    if not isinstance(public, ModuleType):
        lines.append(f"```python\n{_signature(name, public)}\n```")
    lines.append(_prose(public))
    if inspect.isclass(public):
        lines += [f"- {_member(name, *member)}" for member in _members(public)]
    if isinstance(public, ModuleType):
        for inner in sorted(getattr(public, "__all__", _classes(public))):
            lines.append(f"- {_member(name, inner, getattr(public, inner))}")
    return "\n\n".join(lines)


def _classes(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and name[0] != "_"
    ]


def _members(public: type) -> list[tuple[str, Any]]:
    """Methods and properties of a class, in their order."""
    found = []
    for name, value in vars(public).items():
        inner = value.__func__ if isinstance(value, classmethod) else value
        if name[0] != "_" and (isinstance(inner, property) or inspect.isfunction(inner)):
            found.append((name, inner))
    return found


def _member(owner: str, name: str, value: Any) -> str:
    call = ""
    if inspect.isfunction(value):
        call = f"({', '.join(_names(value))})"
    return f"`{owner}.{name}{call}` {_prose(value)}".rstrip()


def _names(function: Any) -> list[str]:
    """The names of what it takes, `*` before those that must be named."""
    every = inspect.signature(function).parameters.values()
    taken = [one for one in every if one.name not in ("self", "cls")]
    named = next((i for i, one in enumerate(taken) if one.kind is one.KEYWORD_ONLY), None)
    names = [str(one).partition(":")[0].partition("=")[0] for one in taken]
    return names if named is None else [*names[:named], "*", *names[named:]]


def _signature(name: str, public: Any) -> str:
    """The call, an argument a line; types without the modules that they are of."""
    arguments = []
    keyword = False
    for one in inspect.signature(public).parameters.values():
        if one.kind is one.KEYWORD_ONLY and not keyword:
            arguments.append("*")
            keyword = True
        arguments.append(_argument(one))
    return f"{name}(\n" + "".join(f"    {one},\n" for one in arguments) + ")"


def _argument(one: inspect.Parameter) -> str:
    """An argument; a default that is a value of its own by its class alone."""
    text = _MODULE.sub("", re.sub(r"\*<class '([\w.]+)'>", r"\1", str(one)))
    before, _, default = text.partition(" = ")
    return f"{before} = ..." if len(default) > _LONGEST or default[:1] == "<" else text


def _prose(public: Any) -> str:
    """A docstring with its paragraphs joined to lines, and nothing in it that marks up."""
    text = inspect.getdoc(public) or ""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(
        "".join(part if part[:1] == "`" else _MARKS.sub(r"\\\1", part) for part in _CODE.split(one))
        for one in paragraphs
    )
