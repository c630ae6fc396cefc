"""Arguments put together again, with traced arrays and numbers in them: what the function is run with while traced."""

import builtins
import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jitkernels.frontends.arguments import Leaf
from jitkernels.frontends.callees import only_called
from jitkernels.frontends.places import line_of, line_of_def
from jitkernels.frontends.rewriting.calls import FLOW
from jitkernels.frontends.rewriting.code import rewritten, why_not
from jitkernels.frontends.standin import CALLED, seen
from jitkernels.frontends.tracer import current
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import NONE

HEAP_TYPE = 1 << 9
"""The bit of `type.__flags__` that classes written in Python have."""


class Rebuilder:
    """Makes values of structures. `leaf` gives what stands for each leaf, `static` what for constants.

    `names` are what functions see by these names where they have no globals of the kind. `flow` is what their loops and
    branches call; without it they are as they were written.

    Containers are new ones, so that the caller's stay as they are. Where the function changes one, NumPy
    has to do that.
    """

    def __init__(
        self,
        leaf: Callable[[str], Any],
        static: Callable[[Any], Any],
        names: Mapping[str, Any] = NONE,
        flow: Any = None,
    ) -> None:
        self._leaf, self._static, self._names, self._flow = leaf, static, names, flow
        self._made: list[tuple[Any, Any]] = []
        self.tables: set[int] = set()
        self._kept: list[Any] = []

    def rebuild(self, structure: Any) -> Any:
        """The value that a structure describes; leaves are taken in order."""
        if type(structure) is Leaf:
            return self._leaf(structure)
        kind = structure[0]
        if kind == "static":
            return self._static(structure[2])
        if kind == "slice":
            return slice(*(self.rebuild(one) for one in structure[1:]))
        if kind is tuple:
            return tuple([self.rebuild(one) for one in structure[1]])
        if kind is list:
            return self._remember([self.rebuild(one) for one in structure[1]])
        if kind is dict:
            return self._remember(
                {key: self.rebuild(one) for key, one in zip(structure[1], structure[2], strict=True)}
            )
        if kind == "named":
            return structure[1](*[self.rebuild(one) for one in structure[2]])
        if kind == "method":
            return types.MethodType(self.rebuild(structure[1]), self.rebuild(structure[2]))
        if kind == "partial":
            function, given, named = (self.rebuild(one) for one in structure[1:])
            return functools.partial(function, *given, **named)
        if kind == "object":
            return self._object(*structure[1:])
        return self._function(*structure[1:])

    def _remember(self, made: Any) -> Any:
        self._made.append((made, _content(made)))
        return made

    def _object(
        self, kind: type, names: tuple[str, ...], parts: tuple[Any, ...], methods: tuple[Any, ...]
    ) -> Any:
        made: Any = _blank(kind)
        for name, part in zip(names, parts, strict=True):
            object.__setattr__(made, name, self.rebuild(part))
        for name, (what, one) in methods:
            value = one.value if what == "value" else types.MethodType(self.rebuild(one), made)
            if hasattr(made, "__dict__"):
                vars(made)[name] = value
        return self._remember(made)

    def _function(
        self,
        code: types.CodeType,
        table: Any,
        cells: tuple[Any, ...],
        defaults: tuple[Any, ...],
        keywords: tuple[Any, ...],
        bound: tuple[Any, ...],
        read: tuple[Any, ...],
    ) -> Any:
        closure = tuple([types.CellType(self.rebuild(one)) for one in cells])
        flowing = rewritten(code) if self._flow is not None else None
        tracer = current()
        if flowing is None and tracer is not None and why_not(code):
            tracer.note(why_not(code))
        given = tuple([self.rebuild(one) for one in defaults])
        named = {name: self.rebuild(one) for name, one in keywords}
        names = {**self._names, **table.value, **{name: self.rebuild(one) for name, one in bound}}
        around = dict(zip(code.co_freevars, closure, strict=True))
        for chain, one in read:
            value = self.rebuild(one)
            if chain[0] in around:
                around[chain[0]].cell_contents = seen(around[chain[0]].cell_contents, chain[1:], value)
            else:
                names[chain[0]] = seen(names[chain[0]], chain[1:], value)
        for name in only_called(code):
            value = names.get(name) if name in names else getattr(builtins, name, None)
            if isinstance(value, types.BuiltinFunctionType | type) and value in CALLED:
                names[name] = CALLED[value]
        self.tables.add(id(names))
        self._kept.append(names)
        if flowing is not None:
            names[FLOW], code = self._flow, flowing
            closure = tuple([around[name] for name in code.co_freevars])
        made = types.FunctionType(code, names, code.co_name, given or None, closure)
        made.__kwdefaults__ = named or None
        return made

    def check(
        self, code: types.CodeType | None, positional: Sequence[Any], keywords: Mapping[str, Any]
    ) -> None:
        """Raise UnknownError where the function, of some code, changed a list, dict or object that it was given."""
        for made, content in self._made:
            now = _content(made)
            if len(now) != len(content) or any(
                one is not other for one, other in zip(_flat(now), _flat(content), strict=True)
            ):
                text = f"the function changes a {type(made).__name__} that it was given"
                names = code.co_varnames if code is not None else ()
                given = {**dict(zip(names, positional, strict=False)), **keywords}
                name = next((name for name, one in given.items() if one is made), "")
                if code is not None and name:
                    line = line_of(name, line_of_def(code), code.co_filename)
                    text = f"{text}, {name!r}: return a new one ({code.co_filename}:{line})"
                raise UnknownError(text, is_placed=True)


def _content(made: Any) -> list[tuple[Any, Any]]:
    if isinstance(made, list):
        return [(None, one) for one in made]
    if isinstance(made, dict):
        return list(made.items())
    if hasattr(made, "__dict__"):
        return list(vars(made).items())
    return [(name, getattr(made, name)) for name in type(made).__dataclass_fields__]


def _flat(content: list[tuple[Any, Any]]) -> Iterator[Any]:
    for name, value in content:
        yield name
        yield value


def _blank(kind: type) -> Any:
    """An object that its own ``__new__`` has not seen. Raises UnknownError for what is more than its attributes."""
    base: Any = next(one for one in kind.__mro__ if not one.__flags__ & HEAP_TYPE)
    if base not in (object, types.SimpleNamespace):
        raise UnknownError(f"an argument of type {kind.__name__}, which is a {base.__name__}")
    return base.__new__(kind)
