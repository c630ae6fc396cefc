"""Loop trees as readable pseudo-code: one line for each statement, bodies indented."""

from collections.abc import Mapping, Sequence

from jitkernels.compiler.codegen.numba.python_expressions import constant_text, extent_text, index_text, parenthesize
from jitkernels.compiler.ir.access_map import INNER
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Number
from jitkernels.compiler.schedule.loop_tree.loop_statements import (
    Compute,
    Direction,
    For,
    If,
    Iota,
    Let,
    Literal,
    LoadElement,
    LocalVariable,
    LoopKind,
    LoopPart,
    Misaligned,
    Prefetch,
    Reduce,
    ScratchLanes,
    Statement,
    StoreElement,
    Value,
)
from jitkernels.core.frozen_dataclass import frozen_dataclass

INDENT = "    "
INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "power": "**",
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
    "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip
ADDITIVE = {"sum": "+", "prod": "*"}


class _Variables(dict[int, str]):
    """The variables of loops: those of the nest by number, those of reductions apart."""

    def __missing__(self, loop: int) -> str:
        return f"i{loop}" if loop < INNER else f"k{loop - INNER}"


@frozen_dataclass
class LoopPrinter:
    """Prints loop trees. `arrays`: the names of arrays, by their frame words."""

    arrays: Mapping[int, str]

    def lines(self, statements: Sequence[Statement]) -> list[str]:
        """The lines of statements. Parts of a loop with one body are headers above it."""
        result: list[str] = []
        for position, statement in enumerate(statements):
            if not isinstance(statement, For):
                result += self._statement(statement)
                continue
            following = statements[position + 1] if position + 1 < len(statements) else None
            shares = isinstance(following, For) and (following.loop, following.body) == (statement.loop, statement.body)
            result.append(self._header(statement) + (", then" if shares else ":"))
            result += [] if shares else self._indented(statement.body)
        return result

    def _indented(self, statements: Sequence[Statement]) -> list[str]:
        return [INDENT + line for line in self.lines(statements)]

    def _header(self, loop: For) -> str:
        name, notes = "chunk" if loop.loop is None else str(_Variables()[loop.loop]), [*loop.notes]
        if loop.kind is LoopKind.VECTOR:
            vectors = loop.step // loop.lanes
            lanes = f"{vectors} x {loop.lanes} lanes" if vectors > 1 else f"{loop.lanes} lanes"
            notes = [lanes, *(["masked"] if loop.is_masked else []), *notes]
        notes += [loop.direction.value] if loop.direction is not Direction.FORWARDS else []
        return f"{loop.kind.value} {name} in {self._range(loop)}" + (f" ({', '.join(notes)})" if notes else "")

    def _range(self, loop: For) -> str:
        if loop.part not in (LoopPart.WHOLE, LoopPart.STEPS):
            return str(loop.part.value)
        extent = f"0..{parenthesize(extent_text(loop.extent))}"
        return f"{extent} step {loop.step}" if loop.step > 1 else extent if loop.step else f"ranges of {extent}"

    def _statement(self, statement: Statement) -> list[str]:
        match statement:
            case Let(name, value):
                return [f"{name} = {self._value(value)}"]
            case ScratchLanes(name, kind, dtype, lanes):
                where = f"{lanes} lanes of {dtype}" if lanes > 1 else dtype
                return [f"{name} = accumulator of {kind}, {where}"]
            case Reduce():
                return [self._reduce(statement)]
            case StoreElement():
                return [self._store(statement)]
            case Prefetch():
                return [self._prefetch(statement)]
            case If(guard, body, otherwise):
                other = ["else:", *self._indented(otherwise)] if otherwise else []
                return [f"if {self._guard(guard)}:", *self._indented(body), *other]
        raise NotImplementedError(type(statement).__name__)

    def _guard(self, guard: tuple[Number, str, int] | Misaligned) -> str:
        if not isinstance(guard, Misaligned):
            return f"{extent_text(guard[0])} {guard[1]} {guard[2]}"
        least = [f"{guard.vectors} vectors"] if guard.vectors else []
        least += [f"{guard.stream_bytes:,} bytes"] if guard.stream_bytes else []
        return f"{self._array(guard.array)} is misaligned" + (f", from {' or '.join(least)} on" if least else "")

    def _reduce(self, statement: Reduce) -> str:
        name, kind = statement.name, statement.kind
        if statement.value is None:
            return f"{name} = {kind} of {statement.combined.value} of {name}"
        value = self._value(statement.value)
        if kind in ADDITIVE:
            return f"{name} {ADDITIVE[kind]}= {value}"
        return f"{name} = {kind}({name}, {value})"

    def _store(self, store: StoreElement) -> str:
        line = f"{self._value(store.target)} {'+=' if store.adds else '='} {self._value(store.value)}"
        notes = ["scratch"] if store.is_scratch else []
        notes += [f"streaming stores from {store.stream_bytes:,} bytes on"] if store.stream_bytes else []
        return f"{line}  # {', '.join(notes)}" if notes else line

    def _prefetch(self, prefetch: Prefetch) -> str:
        every = f", every {prefetch.lines} lines" if prefetch.lines > 1 else ""
        what = f"{prefetch.ahead.value} of {self._array(prefetch.array)}"
        return f"prefetch {what} to {'store' if prefetch.writes else 'load'}{every}"

    def _array(self, array: StridedArray) -> str:
        return self.arrays.get(array.word, f"t{array.word}")

    def _value(self, value: Value) -> str:
        match value:
            case LocalVariable(name):
                return name
            case Literal(number, dtype):
                if isinstance(number, Extent):
                    return extent_text(number)
                return constant_text(number, dtype) if dtype in ("bool", "float64", "int64") else str(number)
            case Iota(start, steps):
                return index_text(start, dict(steps), _Variables())
            case LoadElement(array, access_map, indices):
                first, coefficients = array.coefficients(access_map)
                more = [self._scaled(index, extent_text(stride)) for index, stride in indices]
                return f"{self._array(array)}[{index_text(first + array.first, coefficients, _Variables(), more)}]"
            case Compute(name, operands, dtype):
                return self._operation(name, [self._value(operand) for operand in operands], dtype)
        raise NotImplementedError(type(value).__name__)

    def _scaled(self, index: Value, stride: str) -> str:
        text = self._value(index)
        return text if stride == "1" else f"{parenthesize(text)} * {parenthesize(stride)}"

    def _operation(self, name: str, texts: Sequence[str], dtype: str) -> str:
        if name in INFIX and len(texts) == 2:
            return f" {INFIX[name]} ".join(map(parenthesize, texts))
        if name == "negative":
            return f"-{parenthesize(texts[0])}"
        return f"{dtype if name == 'cast' else name}({', '.join(texts)})"
