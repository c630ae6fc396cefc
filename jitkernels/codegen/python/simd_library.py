"""Marked functions of numbers translated for a number of lanes, for code that has its own vectors.

A fused expression is emitted vector by vector, and does not hope for LLVM to find them. What its elements go through is
written once, for one element, and is asked for here in as many lanes as the vectors have. Translations are kept for the
life of the functions, so that what many expressions use is translated once; for one number of lanes, of which texts for
others are made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from jitkernels import dtypes
from jitkernels.checksums import sha256
from jitkernels.errors import BuildError
from jitkernels.native.language import in_memory, translations
from jitkernels.native.language.lane_writer import ElementWriter, LaneWriter
from jitkernels.native.language.types import NOTHING, NUMBERS, Type, Value, register
from jitkernels.native.parsing import place_of
from jitkernels.native.source import APART, SELDOM

Function = Callable[..., Any]
NAME = "@NAME"
COUNT = "\N{SECTION SIGN}"
"""What stands for the number of lanes in texts that are the same for any."""


class Lanes(int):
    """A number of lanes, which texts that are made with it leave open."""

    def __format__(self, form: str) -> str:
        return COUNT


@dataclass
class Definition:
    """One function in LLVM IR, as the module that it is translated for sees it, and what it needs there.

    `is_alone`: it is not inlined, and may be an object of its own, which `declaration` makes known. `any_lanes` is the
    text for any number of lanes up to `most_lanes`, and what it declares; it is none where the text depends on that.
    `asked`: the functions that are called, with the types of their arguments, and their symbols in the text.
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
    asked: list[tuple[Function, tuple[Type, ...], str]] = field(default_factory=list)
    most_lanes: int = 0

    def called(self, function: Function, arguments: tuple[Value, ...]) -> tuple[str, Type]:
        """The symbol and result of a marked function, which this one needs from now on; in memory if apart."""
        kinds = tuple(value.type for value in arguments)
        made = self.needing(function, kinds)
        self.asked.append((function, kinds, made.symbol))
        return made.symbol, made.result

    def needing(self, function: Function, kinds: tuple[Type, ...]) -> "Definition":
        """The definition of a marked function, which this one needs from now on."""
        flags = _flags(function)
        is_apart = self.lanes > 1 and (APART in flags or SELDOM in flags)
        find = _in_memory if is_apart else _definition
        made = find(function, kinds, self.lanes, self.translating)
        self.needed[made.symbol] = made
        return made

    def declare(self, symbol: str, result: str, arguments: Sequence[str]) -> None:
        self.declared[symbol] = f"declare {result} @{symbol}({', '.join(arguments)})"

    def know(self, symbol: str, definition: str) -> None:
        self.declared[symbol] = definition

    def define(self, title: str, text: str) -> None:
        """Take a text in which NAME stands for the symbol.

        It is named by content, so that a name means one thing in every process: the text of a module is the key of its
        code. And it is private, as the loader would give other modules what is only internal.
        """
        if self.most_lanes:
            self.any_lanes = text, self.declared
        text = text.replace(COUNT, str(self.lanes))
        self.declared = {
            symbol.replace(COUNT, str(self.lanes)): one.replace(COUNT, str(self.lanes))
            for symbol, one in self.declared.items()
        }
        self.symbol = f'@"{title}.{sha256(text.encode()).hexdigest()[:12]}"'
        self.text = text.replace(NAME, self.symbol, 1)
        self.declaration = f"declare {self.text[: self.text.index(')') + 1].removeprefix('define private ')}"

    def vector_loop(self, lanes: int, *, masked: bool = False) -> str:
        raise BuildError(f"vectors(..., {lanes}) inside of a function of elements (masked: {masked})")


_made: WeakKeyDictionary[Function, dict[tuple[object, ...], Definition]] = WeakKeyDictionary()


@dataclass
class Library:
    """The functions that one LLVM module calls.

    `alone`: those of them that are objects of their own; None where all are part of the module.
    """

    declared: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    alone: dict[str, Definition] | None = None

    def called(self, function: Function, kinds: Sequence[str], lanes: int = 1) -> tuple[str, str]:
        """The symbol of a marked function for arguments of these dtypes in so many lanes, and its result's dtype.

        Arguments and result are registers: ``float`` or ``<16 x float>``, and ``i1`` or ``<16 x i1>`` for bool. A
        tuple of results is named ``(float32, float32)``. Raises BuildError for what cannot be done.
        """
        try:
            given = tuple(NUMBERS[dtypes.named(kind).name] for kind in kinds)
            made = _definition(function, given, lanes, frozenset())
        except RecursionError:
            where = place_of(function.__code__)
            raise BuildError(f"{where}: nested too deeply, itself or in what it calls") from None
        self.take(made)
        return made.symbol, made.result.name

    def take(self, definition: Definition) -> None:
        """Have a definition and what it needs."""
        if self.alone is not None and definition.is_alone:
            self.alone[definition.symbol] = definition
            self.declared[definition.symbol] = definition.declaration
        elif definition.symbol not in self.definitions:
            self.need(definition)
            self.definitions[definition.symbol] = definition

    def need(self, definition: Definition) -> None:
        """Have what a definition needs."""
        for needed in definition.needed.values():
            self.take(needed)
        self.declared |= definition.declared

    def declare(self, symbol: str, result: str, arguments: Sequence[str]) -> None:
        """Declare what the module that the text becomes a part of needs itself: a declaration may stand but once."""
        self.declared[symbol] = f"declare {result} @{symbol}({', '.join(arguments)})"

    @property
    def text(self) -> str:
        """LLVM IR of all functions called so far and of what they need."""
        return "\n".join([*self.declared.values(), *(made.text for made in self.definitions.values()), ""])


def _flags(function: Function) -> tuple[str, ...]:
    if not hasattr(function, "fastmath"):
        raise BuildError(f"{function!r} has no mark: expected a function marked @inlined()")
    flags: tuple[str, ...] = function.fastmath
    return flags


def _definition(
    function: Function, kinds: tuple[Type, ...], lanes: int, around: frozenset[int]
) -> Definition:
    flags = _flags(function)
    if not isinstance(lanes, int) or lanes < 1 or lanes & (lanes - 1):
        raise BuildError(f"{place_of(function.__code__)} in {lanes!r} lanes: expected a power of two")
    known = _made.setdefault(function, {})
    key = (lanes, *(kind.name for kind in kinds))
    if key not in known:
        path = None if around else translations.path_of(function, kinds, lanes)
        found = path and translations.read(path, Definition)
        if not found:
            found = _in_other_lanes(function, kinds, lanes) or _translated(
                function, kinds, lanes, flags, around
            )
            if path:
                translations.keep(path, found)
        known[key] = found
    return known[key]


def _in_other_lanes(function: Function, kinds: tuple[Type, ...], lanes: int) -> Definition | None:
    """What a translation for other lanes says of these, which takes a fraction of another translation."""
    names = [kind.name for kind in kinds]
    for (count, *others), known in _made[function].items():
        if known.any_lanes is None or others != names or count == 1 or not 1 < lanes <= known.most_lanes:
            continue
        text, declared = known.any_lanes
        made = Definition(lanes, result=known.result, declared=declared, translating=known.translating)
        made.most_lanes = known.most_lanes
        for called, passed, symbol in known.asked:
            there = made.needing(called, passed).symbol
            made.asked.append((called, passed, there))
            text = text.replace(symbol, there)
        made.define(function.__code__.co_name, text)
        return made
    return None


def _translated(
    function: Function, kinds: tuple[Type, ...], lanes: int, flags: tuple[str, ...], around: frozenset[int]
) -> Definition:
    made = Definition(lanes, translating=around | {id(function)})
    given = tuple(Value(kind, f"%a{i}") for i, kind in enumerate(kinds))
    lanes = Lanes(lanes) if lanes > 1 else lanes
    own = [flag for flag in flags if flag not in (APART, SELDOM)]
    if lanes == 1:
        made.result, body = ElementWriter(made, function, given, own).body()
    else:
        writer = LaneWriter(made, function, given, own, lanes)
        made.result, body = writer.apart_alone(function, given) if APART in flags else writer.body()
        made.most_lanes = writer.most_lanes
    if made.result is NOTHING:
        raise BuildError(f"{place_of(function.__code__)} returns nothing: expected numbers")
    head = ", ".join(f"{register(value.type, lanes)} {value.text}" for value in given)
    made.is_alone = APART in flags and lanes == 1
    inlining = "noinline" if made.is_alone else "alwaysinline"
    returned = register(made.result, lanes)
    made.define(
        function.__code__.co_name,
        f"define private {returned} {NAME}({head}) {inlining} nounwind {{\n{body}\n}}",
    )
    return made


def _in_memory(function: Function, kinds: tuple[Type, ...], lanes: int, around: frozenset[int]) -> Definition:
    """A function that stands apart for numbers in memory: each of those that are wanted, or vectors with such."""
    flags, known = _flags(function), _made.setdefault(function, {})
    some = 1 if APART in flags else in_memory.lanes_of(kinds, lanes)
    key = ("in memory", some, *(kind.name for kind in kinds))
    if key in known:
        return known[key]
    inside = _definition(function, kinds, some, around)
    made = known[key] = Definition(some, result=inside.result, needed={inside.symbol: inside}, is_alone=True)
    if some == 1:
        made.declare("llvm.cttz.i64", "i64", ["i64", "i1"])
        text = in_memory.each(NAME, inside.symbol, kinds, made.result)
    else:
        text = in_memory.in_vectors(NAME, inside.symbol, kinds, made.result, some)
    made.define(f"{function.__code__.co_name}.in_memory", text)
    return made
