"""Translate functions of the kernel language, of which range kernels consist, to LLVM IR.

The language is the subset of Python that C has too: numbers of fixed types, elements of pointers, ``if``, ``while``,
``for ... in range``, tuples of values, calls of inlined functions. A variable has one type. Literals take the type of
the other operand; casts between integers and floats must be explicit. Constants of the enclosing scopes are folded,
and branches that they decide are not emitted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.codegen.function_ast import place_of
from jitkernels.codegen.parameters import parameters_of, struct_fields
from jitkernels.codegen.python import types
from jitkernels.codegen.python.control_statements import WEIGHTS
from jitkernels.codegen.python.function_writer import FunctionWriter
from jitkernels.codegen.python.types import Type, Value
from jitkernels.codegen.source_protocol import COLD, NOINLINE
from jitkernels.errors import BuildError

Function = Callable[..., Any]
FIRST_LOOP = 9
HINTS = """!2 = !{!"llvm.loop.vectorize.enable", i1 true}
!3 = !{!"llvm.loop.interleave.count", i32 1}
!4 = !{!"llvm.loop.unroll.disable"}
!5 = !{!"llvm.loop.vectorize.predicate.enable", i1 true}"""
"""Loop metadata of `vectors` loops: vectorize without interleaving or unrolling, mask the remainder."""


@dataclass
class KernelModule:
    """The functions of one LLVM module: each is translated once per argument types and flags."""

    name: str
    texts: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    translated: dict[tuple[Any, ...], tuple[str, Type]] = field(default_factory=dict)
    translating: set[int] = field(default_factory=set)
    hints: list[str] = field(default_factory=list)

    def export(
        self, name: str, function: Function, arguments: Sequence[str], flags: Sequence[str], names: Sequence[str] = ()
    ) -> None:
        """Define a C function of these C types that returns ``int64_t``: the status of the function, or 0.

        names: those of the arguments, by which parameters are bound, and of absent ones; without them by position.
        """
        restrict = [text.endswith("restrict") for text in arguments]
        arguments_ = types.numbered(map(types.of_c, arguments))
        values = {**dict.fromkeys(names, Value(types.NONE, "null")), **dict(zip(names, arguments_, strict=False))}
        bound = tuple(_bound(*each, values) for each in parameters_of(function)) if names else arguments_
        try:
            _, body = FunctionWriter(self, function, bound, flags).body(status_of=name)
        except RecursionError:
            where = place_of(function.__code__)
            raise BuildError(f"{where}: nested too deeply, itself or in what it calls") from None
        head = ", ".join(
            f"{value.type.llvm}{' noalias' if alone else ''} {value.text}"
            for value, alone in zip(arguments_, restrict, strict=True)
        )
        # Not inlined: its ``noalias`` attributes would be lost. No memcpy: rows are short, and calls are slow.
        self.texts.append(f'define i64 @{name}({head}) noinline nounwind "no-builtin-memcpy" {{\n{body}\n}}')

    def called(self, function: Function, arguments: tuple[Value, ...]) -> tuple[str, Type]:
        """The symbol and result type of an inlined function for arguments of these types."""
        key = (id(function), *(value.type for value in arguments))
        if key in self.translated:
            return self.translated[key]
        number = len(self.translated) + len(self.translating)
        symbol = f'@"{function.__code__.co_name}.{number}"'
        parameters = types.numbered(value.type for value in arguments)
        self.translating.add(id(function))
        flags = function.fastmath  # type: ignore[attr-defined]  # set by `inlined`
        writer = FunctionWriter(self, function, parameters, [flag for flag in flags if flag not in (NOINLINE, COLD)])
        result, body = writer.body()
        self.translating.discard(id(function))
        head = ", ".join(f"{leaf.type.llvm} {leaf.text}" for value in parameters for leaf in types.leaves(value))
        returned = result.llvm
        inlining = "noinline" if NOINLINE in flags else "alwaysinline"
        self.texts.append(f"define internal {returned} {symbol}({head}) {inlining} nounwind {{\n{body}\n}}")
        self.translated[key] = symbol, result
        return symbol, result

    def vector_loop(self, lanes: int, *, masked: bool = False) -> str:
        """The metadata of the latch of a `vectors` loop; distinct for each loop."""
        number = FIRST_LOOP + 2 * len(self.hints)
        self.hints.append(
            f"!{number} = distinct !{{!{number}, !2, !3, !4, {'!5' if masked else f'!{number + 1}'}}}\n"
            f'!{number + 1} = !{{!"llvm.loop.vectorize.width", i32 {lanes}}}'
        )
        return f", !llvm.loop !{number}"

    def declare(self, symbol: str, result: str, arguments: Sequence[str]) -> None:
        self.declared[symbol] = f"declare {result} @{symbol}({', '.join(arguments)})"

    def know(self, symbol: str, definition: str) -> None:
        self.declared[symbol] = definition

    @property
    def text(self) -> str:
        """LLVM IR of all functions."""
        return "\n".join([*self.declared.values(), *self.texts, f"!0 = {WEIGHTS}", HINTS, *self.hints, ""])


def _bound(name: str, annotation: Any, values: Mapping[str, Value]) -> Value:
    """The value of a parameter: the argument of its name, or a struct of those that its fields name."""
    fields = struct_fields(annotation)
    if fields is None:
        return values[name]
    parts = tuple(_bound(field, kind, values) for field, kind in fields.items())
    return Value(types.tuple_of(tuple(part.type for part in parts), annotation.__name__, tuple(fields)), parts=parts)
