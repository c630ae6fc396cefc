"""Inlined functions translated for a number of lanes, for code with explicit vectors.

A fused expression is emitted vector by vector, without LLVM's vectorizer. Its scalar functions are written once, for
one element, and translated here for the lanes of the vectors. Translations are cached for the life of the functions,
so that a function that many expressions use is translated once; one translation serves other numbers of lanes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from jitkernels.codegen.function_ast import place_of
from jitkernels.codegen.python import masked_outlined_calls, translation_cache
from jitkernels.codegen.python.simd_function import ElementWriter, LaneWriter
from jitkernels.codegen.python.types import NOTHING, NUMBERS, Type, Value, register
from jitkernels.codegen.source_protocol import COLD, NOINLINE
from jitkernels.core import dtypes
from jitkernels.core.hashing import sha256
from jitkernels.errors import BuildError

Function = Callable[..., Any]
SYMBOL_PLACEHOLDER = "@NAME"
LANES_PLACEHOLDER = "\N{SECTION SIGN}"
"""The placeholder for the number of lanes in texts that are the same for any."""


class Lanes(int):
    """A number of lanes that formats as a placeholder."""

    def __format__(self, form: str) -> str:
        return LANES_PLACEHOLDER


@dataclass
class Definition:
    """One function in LLVM IR, as the module that it is translated for, and its dependences.

    `is_alone`: it is not inlined, and may be an object of its own, declared by `declaration`. `any_lanes`: the text
    for any number of lanes up to `most_lanes`, and its declarations; None if the text depends on the lanes. `callees`:
    the called functions with their argument types, and their symbols in the text.
    """

    lanes: int
    symbol: str = ""
    result: Type = NOTHING
    text: str = ""
    declared: dict[str, str] = field(default_factory=dict)
    needed: dict[str, "Definition"] = field(default_factory=dict)
    translating: frozenset[int] = frozenset()
    declaration: str = ""
    is_alone: bool = False
    any_lanes: tuple[str, dict[str, str]] | None = None
    callees: list[tuple[Function, tuple[Type, ...], str]] = field(default_factory=list)
    most_lanes: int = 0

    def called(self, function: Function, arguments: tuple[Value, ...]) -> tuple[str, Type]:
        """The symbol and result type of an inlined or outlined function, which becomes a dependence."""
        kinds = tuple(value.type for value in arguments)
        callee = self.needing(function, kinds)
        self.callees.append((function, kinds, callee.symbol))
        return callee.symbol, callee.result

    def needing(self, function: Function, kinds: tuple[Type, ...]) -> "Definition":
        """The definition of a function, which becomes a dependence."""
        flags = _flags(function)
        is_outlined = self.lanes > 1 and (NOINLINE in flags or COLD in flags)
        find = _in_memory if is_outlined else _definition
        callee = find(function, kinds, self.lanes, self.translating)
        self.needed[callee.symbol] = callee
        return callee

    def declare(self, symbol: str, result: str, arguments: Sequence[str]) -> None:
        self.declared[symbol] = f"declare {result} @{symbol}({', '.join(arguments)})"

    def know(self, symbol: str, definition: str) -> None:
        self.declared[symbol] = definition

    def define(self, title: str, text: str) -> None:
        """Set the text, in which SYMBOL_PLACEHOLDER stands for the symbol.

        The symbol is a hash of the content, so that it means one thing in every process: the text of a module is its
        cache key. It is private, as the loader would resolve internal symbols of other modules to it.
        """
        if self.most_lanes:
            self.any_lanes = text, self.declared
        text = text.replace(LANES_PLACEHOLDER, str(self.lanes))
        self.declared = {
            symbol.replace(LANES_PLACEHOLDER, str(self.lanes)): declaration.replace(LANES_PLACEHOLDER, str(self.lanes))
            for symbol, declaration in self.declared.items()
        }
        self.symbol = f'@"{title}.{sha256(text.encode()).hexdigest()[:12]}"'
        self.text = text.replace(SYMBOL_PLACEHOLDER, self.symbol, 1)
        self.declaration = f"declare {self.text[: self.text.index(')') + 1].removeprefix('define private ')}"

    def vector_loop(self, lanes: int, *, masked: bool = False) -> str:
        raise BuildError(f"vectors(..., {lanes}) inside of a function of elements (masked: {masked})")


_made: WeakKeyDictionary[Function, dict[tuple[object, ...], Definition]] = WeakKeyDictionary()


@dataclass
class Library:
    """The functions that one LLVM module calls.

    `alone`: those that are objects of their own; None if all are part of the module.
    """

    declared: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    alone: dict[str, Definition] | None = None

    def called(self, function: Function, kinds: Sequence[str], lanes: int = 1) -> tuple[str, str]:
        """The symbol of an inlined function for arguments of these dtypes and lanes, and its result's dtype.

        Arguments and result are registers: ``float`` or ``<16 x float>``, and ``i1`` or ``<16 x i1>`` for bool. A
        tuple of results is named ``(float32, float32)``. Raises BuildError for anything outside of the language.
        """
        try:
            types_ = tuple(NUMBERS[dtypes.named(kind).name] for kind in kinds)
            definition = _definition(function, types_, lanes, frozenset())
        except RecursionError:
            where = place_of(function.__code__)
            raise BuildError(f"{where}: nested too deeply, itself or in what it calls") from None
        self.take(definition)
        return definition.symbol, definition.result.name

    def take(self, definition: Definition) -> None:
        """Add a definition and its dependences."""
        if self.alone is not None and definition.is_alone:
            self.alone[definition.symbol] = definition
            self.declared[definition.symbol] = definition.declaration
        elif definition.symbol not in self.definitions:
            self.need(definition)
            self.definitions[definition.symbol] = definition

    def need(self, definition: Definition) -> None:
        """Add the dependences of a definition."""
        for needed in definition.needed.values():
            self.take(needed)
        self.declared |= definition.declared

    def declare(self, symbol: str, result: str, arguments: Sequence[str]) -> None:
        """Declare a symbol that the module also needs itself: a declaration may stand only once."""
        self.declared[symbol] = f"declare {result} @{symbol}({', '.join(arguments)})"

    @property
    def text(self) -> str:
        """LLVM IR of all functions called so far, and their dependences."""
        return "\n".join([*self.declared.values(), *(made.text for made in self.definitions.values()), ""])


def _flags(function: Function) -> tuple[str, ...]:
    if not hasattr(function, "fastmath"):
        raise BuildError(f"{function!r} has no mark: expected a function marked @inlined()")
    flags: tuple[str, ...] = function.fastmath
    return flags


def _definition(function: Function, kinds: tuple[Type, ...], lanes: int, callers: frozenset[int]) -> Definition:
    flags = _flags(function)
    if not isinstance(lanes, int) or lanes < 1 or lanes & (lanes - 1):
        raise BuildError(f"{place_of(function.__code__)} in {lanes!r} lanes: expected a power of two")
    known = _made.setdefault(function, {})
    key = (lanes, *(kind.name for kind in kinds))
    if key not in known:
        path = None if callers else translation_cache.path_of(function, kinds, lanes)
        definition = path and translation_cache.read(path, Definition)
        if not definition:
            definition = _in_other_lanes(function, kinds, lanes) or _translated(function, kinds, lanes, flags, callers)
            if path:
                translation_cache.keep(path, definition)
        known[key] = definition
    return known[key]


def _in_other_lanes(function: Function, kinds: tuple[Type, ...], lanes: int) -> Definition | None:
    """Instantiate a translation for other lanes, which takes a fraction of another translation."""
    names = [kind.name for kind in kinds]
    for (count, *others), known in _made[function].items():
        if known.any_lanes is None or others != names or count == 1 or not 1 < lanes <= known.most_lanes:
            continue
        text, declared = known.any_lanes
        made = Definition(lanes, result=known.result, declared=declared, translating=known.translating)
        made.most_lanes = known.most_lanes
        for called, passed, symbol in known.callees:
            there = made.needing(called, passed).symbol
            made.callees.append((called, passed, there))
            text = text.replace(symbol, there)
        made.define(function.__code__.co_name, text)
        return made
    return None


def _translated(
    function: Function, kinds: tuple[Type, ...], lanes: int, flags: tuple[str, ...], callers: frozenset[int]
) -> Definition:
    definition = Definition(lanes, translating=callers | {id(function)})
    parameters = tuple(Value(kind, f"%a{i}") for i, kind in enumerate(kinds))
    lanes = Lanes(lanes) if lanes > 1 else lanes
    own = [flag for flag in flags if flag not in (NOINLINE, COLD)]
    if lanes == 1:
        definition.result, body = ElementWriter(definition, function, parameters, own).body()
    else:
        writer = LaneWriter(definition, function, parameters, own, lanes)
        definition.result, body = writer.outlined_call(function, parameters) if NOINLINE in flags else writer.body()
        definition.most_lanes = writer.most_lanes
    if definition.result is NOTHING:
        raise BuildError(f"{place_of(function.__code__)} returns nothing: expected numbers")
    head = ", ".join(f"{register(value.type, lanes)} {value.text}" for value in parameters)
    definition.is_alone = NOINLINE in flags and lanes == 1
    inlining = "noinline" if definition.is_alone else "alwaysinline"
    returned = register(definition.result, lanes)
    definition.define(
        function.__code__.co_name,
        f"define private {returned} {SYMBOL_PLACEHOLDER}({head}) {inlining} nounwind {{\n{body}\n}}",
    )
    return definition


def _in_memory(function: Function, kinds: tuple[Type, ...], lanes: int, callers: frozenset[int]) -> Definition:
    """An outlined function over numbers in memory: for each active lane, or by vectors with active lanes."""
    flags, known = _flags(function), _made.setdefault(function, {})
    some = 1 if NOINLINE in flags else masked_outlined_calls.lanes_of(kinds, lanes)
    key = ("in memory", some, *(kind.name for kind in kinds))
    if key in known:
        return known[key]
    inside = _definition(function, kinds, some, callers)
    made = known[key] = Definition(some, result=inside.result, needed={inside.symbol: inside}, is_alone=True)
    if some == 1:
        made.declare("llvm.cttz.i64", "i64", ["i64", "i1"])
        text = masked_outlined_calls.each(SYMBOL_PLACEHOLDER, inside.symbol, kinds, made.result)
    else:
        text = masked_outlined_calls.in_vectors(SYMBOL_PLACEHOLDER, inside.symbol, kinds, made.result, some)
    made.define(f"{function.__code__.co_name}.in_memory", text)
    return made
