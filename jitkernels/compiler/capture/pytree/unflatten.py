"""Unflattens a structure into arguments with traced leaves, on which the function runs while it is traced."""

import builtins
import functools
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.bytecode_calls import only_called
from jitkernels.compiler.capture.control_flow import runtime_hooks
from jitkernels.compiler.capture.free_variables import names_of, strings_in
from jitkernels.compiler.capture.numpy_namespace_proxy import BUILTINS, CALLED, seen, stand_in
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.pytree.flatten import Leaf
from jitkernels.compiler.capture.rewrite.aliases import aliases_of, value_of
from jitkernels.compiler.capture.rewrite.ast_builder import FLOW
from jitkernels.compiler.capture.rewrite.rewrite_function import compares_identities, rewrite_blocker, rewrite_code
from jitkernels.compiler.capture.source_locations import line_of_change
from jitkernels.compiler.capture.structured import structured_array
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.core import hooks

MAX_INSIDE = 64
"""Most elements of a container that are searched for replaced functions."""
HEAP_TYPE, IMMUTABLE_TYPE = 1 << 9, 1 << 8
"""Bits of `type.__flags__`: classes that are made at run time, of Python and of C; those of C are mostly immutable."""


MAX_RECURSION_DEPTH, MAX_RECURSIVE_CALLS = 32, 512
"""Depth of recursive calls, and their number, that tracing inlines."""


class Unflattener:
    """Builds the function and the arguments of a call around the proxies of its leaves.

    Containers are copies, so that the caller's stay unchanged. A function that changes one falls back to NumPy.
    """

    def __init__(self, proxies: Sequence[Any]) -> None:
        self._proxies = iter(proxies)
        self._copies: list[tuple[Any, Any]] = []
        self.tables: set[int] = set()
        self.generators: list[Any] = []
        self._enclosing: list[list[tuple[dict[str, Any], str]]] = []
        """The functions under construction: the globals that refer to each, by recursion."""
        self._scopes: list[tuple[types.CodeType, dict[str, Any]]] = []
        self._comparing: types.CodeType | None = None
        """The first function whose tests of identity are not rewritten."""

    def unflatten_call(self, structure: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The function of a call, its positional and its named arguments."""
        self.function, self.positional, self.named = (self.unflatten(part) for part in structure)
        return self.function, self.positional, self.named

    def unflatten(self, structure: Any) -> Any:
        """The value that a structure describes; consumes the proxies in order."""
        if type(structure) is Leaf:
            return next(self._proxies)
        kind = structure[0]
        if kind == "static":
            if type(structure[2]) is str:
                self._note_strings((structure[2],))
            return stand_in(structure[2])
        if kind == "guarded":
            return self.unflatten(structure[2])
        if kind == "ufunc":
            function = self.unflatten(structure[2])
            return SERVICES["universal"](function, _code_of(structure[2]), *structure[1])
        if kind == "slice":
            return slice(*(self.unflatten(value) for value in structure[1:]))
        if kind is tuple:
            return tuple([self.unflatten(value) for value in structure[1]])
        if kind is list:
            return self._remember([self.unflatten(value) for value in structure[1]])
        if kind is dict:
            return self._remember(
                {key: self.unflatten(value) for key, value in zip(structure[1], structure[2], strict=True)}
            )
        if kind == "named":
            return structure[1](*[self.unflatten(value) for value in structure[2]])
        if kind == "method":
            return types.MethodType(self.unflatten(structure[1]), self.unflatten(structure[2]))
        if kind == "partial":
            function, arguments, named = (self.unflatten(value) for value in structure[1:])
            return functools.partial(function, *arguments, **named)
        if kind == "structured":
            fields = dict(zip(structure[2].names, map(self.unflatten, structure[3]), strict=True))
            return structured_array.argument(structure[2], fields, is_record=structure[1] is not np.ndarray)
        if kind == "object":
            return self._object(*structure[1:])
        if kind == "drawn":
            return self._drawn(*structure[1:])
        if kind in ("generator", "same generator"):
            return self._generator(*structure[1:])
        return self._function(structure)

    @staticmethod
    def _note_strings(strings: Iterable[str]) -> None:
        tracer = current()
        if tracer is not None:
            tracer.strings.update(strings)

    def _remember(self, copy: Any) -> Any:
        self._copies.append((copy, _content(copy)))
        tracer = current()
        if tracer is not None:
            tracer.copied_arguments[id(copy)] = copy
        return copy

    def _object(self, kind: type, names: tuple[str, ...], parts: tuple[Any, ...], methods: tuple[Any, ...]) -> Any:
        if kind is np.vectorize:
            return SERVICES["vectorize"](*map(self.unflatten, parts))
        result: Any = blank(kind)
        own = getattr(result, "__dict__", None)
        for name, part in zip(names, parts, strict=True):
            if own is None:
                object.__setattr__(result, name, self.unflatten(part))
            else:
                own[name] = self.unflatten(part)  # past descriptors of the class, which may store it elsewhere
        for name, (what, item) in methods:
            if what == "function" and hasattr(result, "__dict__"):
                vars(result)[name] = types.MethodType(self.unflatten(item), result)
        return self._remember(result)

    def _drawn(self, name: str, part: Any) -> Any:
        """A method of a random generator: of the global one, where it is a function of `numpy.random`."""
        generator = self.unflatten(part)
        tracer = current()
        if generator.is_global and tracer is not None:
            tracer.random_state = generator
        return hooks.trace_random_method(generator, name)

    def _generator(self, *structure: Any) -> Any:
        """A random generator; `structure`: its type, that of its bit generator, and the leaves, or its number."""
        if len(structure) == 1:
            return self.generators[structure[0]]
        owner, kind, parts = structure
        tracer = current()
        assert tracer is not None, "unflattened in a trace"
        arrays = [self.unflatten(part) for part in parts]
        self.generators.append(hooks.trace_random_generator(tracer, owner, kind, arrays))
        return self.generators[-1]

    def _function(self, structure: tuple[Any, ...]) -> Any:
        try:
            return self._function_of(structure)
        except UnsupportedError as error:
            code: types.CodeType = structure[1]
            line = names_of(code).prints
            if not line or error.is_placed:
                raise
            raise UnsupportedError(f"the function calls print ({code.co_filename}:{line})", is_placed=True) from error

    def _function_of(self, structure: tuple[Any, ...]) -> Any:
        code: types.CodeType
        _, code, table, cells, defaults, keywords, bound, read = structure
        references: list[tuple[dict[str, Any], str]] = []
        self._note_strings(strings_in(code))
        self._enclosing.append(references)
        free = dict(zip(code.co_freevars, map(self.unflatten, cells), strict=True))
        flowing = self._rewritten(code, {**table.value, **free})
        positional_defaults = tuple([self.unflatten(part) for part in defaults])
        keyword_defaults = {name: self.unflatten(part) for name, part in keywords}
        recursive = {name: part[1] for name, part in bound if type(part) is tuple and part[0] == "recursive"}
        names = {
            **BUILTINS,
            **table.value,
            **{name: self.unflatten(part) for name, part in bound if name not in recursive},
        }
        for name, number in recursive.items():
            self._enclosing[number].append((names, name))
        around = {name: types.CellType(value) for name, value in free.items()}
        closure = tuple(around.values())
        for chain, part in read:
            value = self.unflatten(part)
            if chain[0] in around:
                around[chain[0]].cell_contents = seen(around[chain[0]].cell_contents, chain[1:], value)
            else:
                names[chain[0]] = seen(names[chain[0]], chain[1:], value)
        _replace_callees(code, names, around)
        self.tables.add(id(names))
        self._scopes.append((structure[1], names))
        if flowing is not None:
            names[FLOW], code = runtime_hooks, flowing
            closure = tuple([around[name] for name in code.co_freevars])
        function = types.FunctionType(code, names, code.co_name, positional_defaults or None, closure)
        function.__kwdefaults__ = keyword_defaults or None
        self._enclosing.pop()
        limited = limited_recursion(function)
        for scope, name in references:
            scope[name] = limited
        return function

    def _rewritten(self, code: types.CodeType, values: Mapping[str, Any]) -> types.CodeType | None:
        """The code with loops and branches rewritten; None where it stays, of which the trace notes the reason."""
        chains = [*_chains(code)]
        resolves = any(_is_alias(chain, values) for chain in chains)
        flowing = rewrite_code(code, aliases_of(chains, values), resolves=resolves)
        tracer = current()
        if flowing is None and tracer is not None and rewrite_blocker(code):
            tracer.note(rewrite_blocker(code))
        if flowing is None and compares_identities(code):
            self._comparing = self._comparing or code
        return flowing

    def check(self) -> None:
        """Raise UnsupportedError if the function changed a list, dict or object argument.

        Or if Python itself compared identities, where copies stand for the caller's objects.
        """
        if self._comparing is not None and self._copies:
            place = f"{self._comparing.co_filename}:{self._comparing.co_firstlineno}"
            text = f"{self._comparing.co_name} tests identity or membership, and its source cannot be rewritten"
            raise UnsupportedError(f"{text} ({place})", is_placed=True)
        for value, content in self._copies:
            now = _content(value)
            if len(now) == len(content) and all(map(operator.is_, now, content)):
                continue
            text = f"the function changes a {type(value).__name__} that it was given"
            raise UnsupportedError(f"{text}{self._change_of(value)}", is_placed=True)

    def _change_of(self, value: Any) -> str:
        """Which variable of which function it is that was changed, and where; empty if that is unknown."""
        code = getattr(self.function, "__code__", None)
        names = code.co_varnames if code is not None else ()
        arguments = {**dict(zip(names, self.positional, strict=False)), **self.named}
        own = [] if code is None else [(code, arguments)]
        for scope, variables in [*own, *reversed(self._scopes)]:  # those of the function, and then of its callees
            name = next((name for name, one in variables.items() if one is value), "")
            if name:
                return f", {name!r}: return a new one ({scope.co_filename}:{line_of_change(name, scope)})"
        return ""


def limited_recursion(function: types.FunctionType) -> Callable[..., Any]:
    """The function for its own recursive calls, which end only where tracing decides the conditions that end them.

    Raises UnsupportedError beyond the limits, and then always: enclosing loops may trace their bodies again.
    """
    depth = count = 0

    def call(*arguments: Any, **keywords: Any) -> Any:
        nonlocal depth, count
        count += 1
        if depth >= MAX_RECURSION_DEPTH or count > MAX_RECURSIVE_CALLS:
            count = MAX_RECURSIVE_CALLS
            raise UnsupportedError(f"{function.__name__!r} calls itself too often while tracing: write a loop")
        depth += 1
        try:
            return function(*arguments, **keywords)
        finally:
            depth -= 1

    return call


def _replace_callees(code: types.CodeType, names: dict[str, Any], cells: Mapping[str, types.CellType]) -> None:
    """Bind globals and free variables that the code only calls to the replacements of Python's functions."""
    for name in only_called(code):
        cell = cells.get(name)
        value = names.get(name, getattr(builtins, name, None)) if cell is None else cell.cell_contents
        if _is_replaced(value):
            if cell is None:
                names[name] = CALLED[value]
            else:
                cell.cell_contents = CALLED[value]


OWNERS = ("numpy", "math", "cmath", "builtins")
"""Modules that are replaced in traced functions, see `capture.numpy_namespace_proxy`."""


def _is_alias(chain: tuple[str, ...], values: Mapping[str, Any]) -> bool:
    """Whether an attribute or container element is a Python function that tracing replaces."""
    value = value_of(chain, values)
    if isinstance(value, dict | list | tuple):
        elements = value.values() if isinstance(value, dict) else value
        return len(value) < MAX_INSIDE and any(map(_is_replaced, elements))
    owner = value_of(chain[:-1], values) if len(chain) > 1 else None
    is_known = isinstance(owner, types.ModuleType) and owner.__name__.partition(".")[0] in OWNERS
    return owner is not None and not is_known and _is_replaced(value)


def _is_replaced(value: Any) -> bool:
    return isinstance(value, types.BuiltinFunctionType | type) and value in CALLED


def _chains(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    """The names in code: globals, free variables, and attribute chains of globals."""
    known = names_of(code)
    yield from ((name,) for name in (*known.names, *code.co_freevars))
    yield from known.chains


def _content(value: Any) -> list[Any]:
    """The names and values that a list, dict or object holds, alternating; elements alone for a list."""
    if isinstance(value, list):
        return [*value]
    names = value if isinstance(value, dict) else pytree.attribute_names(value)
    values = value.values() if isinstance(value, dict) else (getattr(value, name) for name in names)
    return [part for entry in zip(names, values, strict=True) for part in entry]


def _code_of(structure: Any) -> Any:
    """The code of the function that a structure describes."""
    inner = structure[2] if structure[0] == "guarded" else structure
    return inner[1] if inner[0] == "function" else inner[2].__code__


def _is_of_c(kind: type) -> bool:
    """Whether a class is written in C, so that its objects may have state beyond attributes."""
    is_immutable = not kind.__flags__ & HEAP_TYPE or bool(kind.__flags__ & IMMUTABLE_TYPE)
    return is_immutable or isinstance(vars(kind).get("__new__"), types.BuiltinFunctionType)


def blank(kind: type) -> Any:
    """An instance made without its own ``__new__``. Raises UnsupportedError if it has state beyond attributes."""
    base: Any = next(value for value in kind.__mro__ if _is_of_c(value))
    if base not in (object, types.SimpleNamespace):
        raise UnsupportedError(f"an argument of type {kind.__name__}, which is a {base.__name__}")
    return base.__new__(kind)
