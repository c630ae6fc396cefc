"""Tables in the language of loop nests: rows of numbers, of which each lane has one of its own.

A row is read whole, whatever the number of lanes, and the columns are put together from the rows of all: with rows of
four that is quicker than the instructions that gather numbers from many places, and there is no machine without it.
Columns of sixteen numbers of 4 bytes that fit into one register, or two, are permuted there by one instruction.
"""

import ast
from typing import TYPE_CHECKING, Any

from jitkernels import machine
from jitkernels.checksums import sha256
from jitkernels.native.language import types
from jitkernels.native.language.types import INT64, Type, Value
from jitkernels.native.source import Table

if TYPE_CHECKING:
    from jitkernels.native.language.calls import Calls

MOST_ROWS = 16
"""Of a table whose columns are permuted in registers."""


def row(writer: "Calls", node: ast.AST, table: Table, index: Value) -> Value:
    """The numbers of a row for each lane, as a tuple; `index`, an int64, counts modulo the number of rows."""
    count, widths = len(table.rows), {len(numbers) for numbers in table.rows}
    kinds = {types.OF_NUMPY.get(type(number)) for numbers in table.rows for number in numbers}
    kind, width = kinds.pop() if len(kinds) == 1 else None, min(widths, default=0)
    if kind is None or kind.kind == "bool" or len(widths) > 1 or width < 2 or count & (count - 1):
        raise writer.failure(
            node,
            "a table: expected rows, as many as a power of two, of two or more of NumPy's numbers of one type",
        )
    permuted = _permutation(writer.lanes) if count <= MOST_ROWS and kind.memory == "float" else None
    if permuted:
        columns = zip(*table.rows, strict=True)
        parts = tuple(Value(kind, _chosen(writer, permuted, column, index)) for column in columns)
        return Value(types.tuple_of(tuple(part.type for part in parts)), parts=parts)
    symbol, definition = _constant(table, kind)
    writer.program.know(symbol, definition)
    last = writer.constant(INT64, count - 1)
    place = writer.new(f"and {writer.register(INT64)} {index.text}, {last}")
    whole, held = f"[{width} x {kind.memory}]", f"<{width} x {kind.memory}>"
    if writer.lanes == 1:
        at = writer.new(f"getelementptr {whole}, ptr {symbol}, i64 {place}")
        found = []
        for column in range(width):
            one = writer.new(f"getelementptr {kind.memory}, ptr {at}, i64 {column}")
            found.append(writer.new(f"load {kind.memory}, ptr {one}, align {kind.size}"))
    else:
        writer.most_lanes = 0
        rows = []
        for lane in range(writer.lanes):
            number = writer.new(f"extractelement {writer.register(INT64)} {place}, i64 {lane}")
            at = writer.new(f"getelementptr {whole}, ptr {symbol}, i64 {number}")
            rows.append(writer.new(f"load {held}, ptr {at}, align {kind.size}"))
        joined, size = _joined(writer, rows, kind.memory, width), width * writer.lanes
        all_rows = f"<{size} x {kind.memory}>"
        found = [
            writer.new(
                f"shufflevector {all_rows} {joined}, {all_rows} poison, {_mask(range(column, size, width))}"
            )
            for column in range(width)
        ]
    values = tuple(Value(kind, text) for text in found)
    return Value(types.tuple_of(tuple(value.type for value in values)), parts=values)


def _permutation(lanes: int) -> tuple[str, int] | None:
    """The instruction that takes one of sixteen floats for each lane, and of how many lanes; None where none does."""
    has = machine.target().features
    if lanes >= 16 and "avx512f" in has:
        return "llvm.x86.avx512.permvar.sf.512", 16
    if lanes == 8 and "avx512vl" in has:
        return "llvm.x86.avx512.vpermi2var.ps.256", 8
    return None


def _chosen(writer: "Calls", permuted: tuple[str, int], column: tuple[Any, ...], index: Value) -> str:
    """Of a column what each lane asks for; numbers are counted modulo those of the column, which is written again."""
    name, lanes = permuted
    whole, writer.most_lanes = writer.lanes, 0
    every, places, numbers = f"<{whole} x i32>", f"<{lanes} x i32>", f"<{lanes} x float>"
    kind = types.NUMBERS["float32"]
    listed = [f"float {types.constant(kind, number)}" for number in column * (MOST_ROWS // len(column))]
    first, *more = (f"{numbers} <{', '.join(listed[at : at + lanes])}>" for at in range(0, MOST_ROWS, lanes))
    writer.program.declare(name, numbers, [numbers, places, *[numbers] * len(more)])
    at = writer.new(f"trunc {writer.register(INT64)} {index.text} to {every}")
    joined = []
    for start in range(0, whole, lanes):
        part = f"shufflevector {every} {at}, {every} poison, {_mask(range(start, start + lanes))}"
        taken = ", ".join([first, f"{places} {writer.new(part)}", *more])
        joined.append(writer.new(f"call {numbers} @{name}({taken})"))
    return _joined(writer, joined, "float", lanes)


def _joined(writer: "Calls", parts: list[str], kind: str, size: int) -> str:
    """One vector of several, as many as a power of two, each of so many numbers."""
    while len(parts) > 1:
        half, mask = f"<{size} x {kind}>", _mask(range(2 * size))
        parts = [
            writer.new(f"shufflevector {half} {one}, {half} {other}, {mask}")
            for one, other in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    return parts[0]


def _mask(places: range) -> str:
    return f"<{len(places)} x i32> <{', '.join(f'i32 {place}' for place in places)}>"


def _constant(table: Table, kind: Type) -> tuple[str, str]:
    """The symbol of a table, which tells what is in it, and its definition."""
    whole = f"[{len(table.rows[0])} x {kind.memory}]"
    rows = (
        f"{whole} [{', '.join(f'{kind.memory} {types.constant(kind, number)}' for number in numbers)}]"
        for numbers in table.rows
    )
    content = f"[{len(table.rows)} x {whole}] [{', '.join(rows)}], align 64"
    symbol = f'@"table.{sha256(content.encode()).hexdigest()[:12]}"'
    return symbol, f"{symbol} = private unnamed_addr constant {content}"
