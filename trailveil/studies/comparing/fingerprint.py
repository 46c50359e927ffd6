"""A fingerprint of a function: of its code, and of every value that its code names.

The functions and classes of one's own that it uses count by their own code and values, in turn.
What is installed counts by name and, for a package, by version.
"""

import dis
import sys
from collections.abc import Callable, Iterator
from copyreg import dispatch_table
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pickle import PicklingError
from secrets import token_hex
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

# What changes with each run, or says nothing of what is computed.
_UNSAID = {"__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl"}
_UNSAID |= {"__firstlineno__", "__static_attributes__"}

_SIMPLE = (type(None), bool, int, float, complex, str, bytes)


class _Opaque(Exception):
    """A value that cannot be digested."""


def fingerprint(function: Callable[..., Any]) -> str:
    """16 hexadecimal digits that change when the function or a value that it names does.

    New at each call where a value cannot be digested, such as an open file or a lock: then nothing
    is taken for the same. What a function reads as it runs, such as a file, does not count.
    """
    try:
        return _Walk().digest(function)[:16]
    except (_Opaque, RecursionError):
        return token_hex(8)


@cache
def _installed(package: str) -> bool:
    """Whether a package is this one, of the standard library, or installed."""
    if package in {"trailveil", *sys.stdlib_module_names} and package != "__main__":
        return True
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return False
    origin = (spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), ""))) or ""
    return "site-packages" in origin or "dist-packages" in origin


def _is_installed(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and _installed(module.partition(".")[0])


class _Walk:
    """Digests values. What was met before counts by its number, so that circles end."""

    def __init__(self) -> None:
        self._met: dict[Any, tuple[int, Any]] = {}

    def digest(self, value: Any, names: frozenset[str] = frozenset()) -> str:
        """names: of the code that names the value, which say what of a module it uses."""
        if type(value) in _SIMPLE:
            return _hash(type(value).__name__, repr(value))
        key = (id(value), names if isinstance(value, ModuleType) else None)
        if key in self._met:
            return _hash("met", str(self._met[key][0]))
        self._met[key] = (len(self._met), value)  # held, so that no other gets its id
        return _hash(type(value).__qualname__, *self._parts(value, names))

    def _parts(self, value: Any, names: frozenset[str]) -> Iterator[str]:
        if isinstance(value, ModuleType):
            yield from self._of_module(value, names)
        elif isinstance(value, FunctionType | type | BuiltinFunctionType) and _is_installed(value):
            yield f"{value.__module__}.{value.__qualname__}"
        elif isinstance(value, FunctionType):
            yield from self._of_function(value)
        elif isinstance(value, CodeType):
            yield from self._of_code(value)
        elif isinstance(value, type):
            yield value.__qualname__
            yield from map(self.digest, value.__bases__)
            named = {name: each for name, each in vars(value).items() if name not in _UNSAID}
            yield from self._of_items(named)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            yield from (str(value.dtype), str(value.shape), sha256(value.tobytes()).hexdigest())
        elif type(value) in (dict, MappingProxyType):
            yield from self._of_items(value)
        elif type(value) in (list, tuple):
            yield from map(self.digest, value)
        elif type(value) in (set, frozenset):
            yield from sorted(_Walk().digest(each) for each in value)
        else:
            yield from self._of_object(value)

    def _of_items(self, value: Any) -> Iterator[str]:
        for name, each in value.items():
            yield self.digest(name)
            yield self.digest(each)

    def _of_module(self, module: ModuleType, names: frozenset[str]) -> Iterator[str]:
        yield module.__name__
        if _installed(module.__name__.partition(".")[0]):
            yield str(getattr(module, "__version__", ""))
            return
        for name in sorted(names & vars(module).keys()):
            yield name
            yield self.digest(vars(module)[name], names)

    def _of_function(self, function: FunctionType) -> Iterator[str]:
        names = frozenset(_names(function.__code__))
        yield from self._of_code(function.__code__)
        yield self.digest(function.__defaults__)
        yield self.digest(function.__kwdefaults__)
        yield self.digest(vars(function))
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                continue  # not yet assigned
            yield self.digest(content, names)
        for name in sorted(names & function.__globals__.keys()):
            yield name
            yield self.digest(function.__globals__[name], names)

    def _of_code(self, code: CodeType) -> Iterator[str]:
        yield from (code.co_code.hex(), code.co_exceptiontable.hex())
        yield from (*code.co_names, "", *code.co_varnames, "", *code.co_freevars)
        yield str((code.co_flags, code.co_argcount, code.co_kwonlyargcount))
        yield from map(self.digest, code.co_consts)

    def _of_object(self, value: Any) -> Iterator[str]:
        if isinstance(value, property):
            yield from map(self.digest, (value.fget, value.fset, value.fdel))
        elif isinstance(value, classmethod | staticmethod | MethodType):
            yield self.digest(value.__func__)
            yield self.digest(getattr(value, "__self__", None))
        else:
            yield from self._of_reduced(value)

    def _of_reduced(self, value: Any) -> Iterator[str]:
        """What pickle would make the object of."""
        reducer = dispatch_table.get(type(value))
        try:
            reduced = reducer(value) if reducer else value.__reduce_ex__(4)
        except (PicklingError, AttributeError, TypeError, ValueError, RuntimeError):
            raise _Opaque from None
        if isinstance(reduced, str):
            yield reduced
            if not (_is_installed(value) or _is_installed(type(value))):
                raise _Opaque
            if wrapped := getattr(value, "__wrapped__", None):  # a function with a cache
                yield self.digest(wrapped)
            return
        how, of, state, items, pairs = (*reduced, None, None, None)[:5]
        for part in (how, of, state, items and list(items), pairs and dict(pairs)):
            yield self.digest(part)


def _hash(*parts: str) -> str:
    digest = sha256()
    for part in parts:
        digest.update(f"{len(part)} {part}".encode(errors="surrogatepass"))
    return digest.hexdigest()


def _names(code: CodeType) -> Iterator[str]:
    """All names in a code and in those within it. Raises _Opaque for an import of one's own."""
    yield from code.co_names
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME" and not _installed(str(step.argval).partition(".")[0]):
            raise _Opaque
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
