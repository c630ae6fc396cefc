"""Lookup tables of the kernel language: each lane loads its own row of numbers.

A row is loaded whole, for any number of lanes, and columns are transposed from the rows of all lanes: with four
columns that is faster than gather instructions, and works on every machine. Columns of sixteen 4-byte numbers that
fit into one or two registers are permuted there by one instruction, or two.
"""

import ast
from typing import TYPE_CHECKING, Any

from jitkernels.codegen.python import types
from jitkernels.codegen.python.types import INT64, Type, Value
from jitkernels.codegen.source_protocol import Table
from jitkernels.core import cpu_target
from jitkernels.core.hashing import sha256

if TYPE_CHECKING:
    from jitkernels.codegen.python.call_expressions import Calls

PERMUTED_HALF = "llvm.x86.avx2.permps"
"""Permutes eight floats: of sixteen, both halves are, and the fourth bit of an index chooses one."""
MAX_REGISTER_TABLE_ROWS = 16
"""The most rows of a table whose columns are permuted in registers."""


def row(writer: "Calls", node: ast.AST, table: Table, index: Value) -> Value:
    """Emit the row of each lane, as a tuple; `index`, an int64, counts modulo the number of rows."""
    count, widths = len(table.rows), {len(numbers) for numbers in table.rows}
    kinds = {types.OF_NUMPY.get(type(number)) for numbers in table.rows for number in numbers}
    kind, width = kinds.pop() if len(kinds) == 1 else None, min(widths, default=0)
    if kind is None or kind.kind == "bool" or len(widths) > 1 or width < 2 or count & (count - 1):
        raise writer.failure(
            node, "a table: expected rows, as many as a power of two, of two or more of NumPy's numbers of one type"
        )
    permuted = _permutation(writer.lanes) if count <= MAX_REGISTER_TABLE_ROWS and kind.memory == "float" else None
    if permuted:
        columns = zip(*table.rows, strict=True)
        parts = tuple(Value(kind, _chosen(writer, permuted, column, index)) for column in columns)
        return Value(types.tuple_of(tuple(part.type for part in parts)), parts=parts)
    symbol, definition = _constant(table, kind)
    writer.program.know(symbol, definition)
    last = writer.constant(INT64, count - 1)
    row_index = writer.new(f"and {writer.register(INT64)} {index.text}, {last}")
    whole, row_type = f"[{width} x {kind.memory}]", f"<{width} x {kind.memory}>"
    if writer.lanes == 1:
        row_address = writer.new(f"getelementptr {whole}, ptr {symbol}, i64 {row_index}")
        results = []
        for column in range(width):
            element_address = writer.new(f"getelementptr {kind.memory}, ptr {row_address}, i64 {column}")
            results.append(writer.new(f"load {kind.memory}, ptr {element_address}, align {kind.size}"))
    else:
        writer.most_lanes = 0
        rows = []
        for lane in range(writer.lanes):
            number = writer.new(f"extractelement {writer.register(INT64)} {row_index}, i64 {lane}")
            row_address = writer.new(f"getelementptr {whole}, ptr {symbol}, i64 {number}")
            rows.append(writer.new(f"load {row_type}, ptr {row_address}, align {kind.size}"))
        joined, size = _joined(writer, rows, kind.memory, width), width * writer.lanes
        all_schemas = f"<{size} x {kind.memory}>"
        results = [
            writer.new(
                f"shufflevector {all_schemas} {joined}, {all_schemas} poison, {_mask(range(column, size, width))}"
            )
            for column in range(width)
        ]
    values = tuple(Value(kind, text) for text in results)
    return Value(types.tuple_of(tuple(value.type for value in values)), parts=values)


def _permutation(lanes: int) -> tuple[str, int] | None:
    """The instruction that permutes sixteen floats, and its lanes; None if there is none."""
    has = cpu_target.target().features
    if lanes >= 16 and "avx512f" in has:
        return "llvm.x86.avx512.permvar.sf.512", 16
    if lanes == 8 and "avx512vl" in has:
        return "llvm.x86.avx512.vpermi2var.ps.256", 8
    if lanes >= 8 and "avx2" in has:
        return PERMUTED_HALF, 8
    return None


def _chosen(writer: "Calls", permuted: tuple[str, int], column: tuple[Any, ...], index: Value) -> str:
    """Permute a column by the lanes' indices, modulo its length; shorter columns are repeated."""
    name, lanes = permuted
    whole, writer.most_lanes = writer.lanes, 0
    index_type, permute_type, numbers = f"<{whole} x i32>", f"<{lanes} x i32>", f"<{lanes} x float>"
    kind = types.NUMBERS["float32"]
    listed = [f"float {types.constant(kind, number)}" for number in column * (MAX_REGISTER_TABLE_ROWS // len(column))]
    first, *more = (
        f"{numbers} <{', '.join(listed[at : at + lanes])}>" for at in range(0, MAX_REGISTER_TABLE_ROWS, lanes)
    )
    halves = more if name == PERMUTED_HALF else []
    writer.program.declare(name, numbers, [numbers, permute_type, *[numbers] * (len(more) - len(halves))])
    at = writer.new(f"trunc {writer.register(INT64)} {index.text} to {index_type}")
    joined = []
    for start in range(0, whole, lanes):
        part = f"shufflevector {index_type} {at}, {index_type} poison, {_mask(range(start, start + lanes))}"
        own = f"{permute_type} {writer.new(part)}"
        if halves:
            low, high = (writer.new(f"call {numbers} @{name}({half}, {own})") for half in (first, *halves))
            bit = writer.new(f"and {own}, splat (i32 {lanes})")
            is_high = writer.new(f"icmp ne {permute_type} {bit}, zeroinitializer")
            joined.append(writer.new(f"select <{lanes} x i1> {is_high}, {numbers} {high}, {numbers} {low}"))
        else:
            joined.append(writer.new(f"call {numbers} @{name}({', '.join([first, own, *more])})"))
    return _joined(writer, joined, "float", lanes)


def _joined(writer: "Calls", parts: list[str], kind: str, size: int) -> str:
    """Concatenate a power of two of vectors of `size` lanes."""
    while len(parts) > 1:
        half, mask = f"<{size} x {kind}>", _mask(range(2 * size))
        parts = [
            writer.new(f"shufflevector {half} {part}, {half} {other}, {mask}")
            for part, other in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    return parts[0]


def _mask(places: range) -> str:
    return f"<{len(places)} x i32> <{', '.join(f'i32 {place}' for place in places)}>"


def _constant(table: Table, kind: Type) -> tuple[str, str]:
    """The symbol of a table, a hash of its content, and its definition."""
    whole = f"[{len(table.rows[0])} x {kind.memory}]"
    rows = (
        f"{whole} [{', '.join(f'{kind.memory} {types.constant(kind, number)}' for number in numbers)}]"
        for numbers in table.rows
    )
    content = f"[{len(table.rows)} x {whole}] [{', '.join(rows)}], align 64"
    symbol = f'@"table.{sha256(content.encode()).hexdigest()[:12]}"'
    return symbol, f"{symbol} = private unnamed_addr constant {content}"
