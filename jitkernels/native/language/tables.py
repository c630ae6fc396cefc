"""Tables in the language of loop nests: rows of numbers, of which each lane has one of its own.

A row is read whole, whatever the number of lanes, and the columns are put together from the rows of all: with rows of
four that is quicker than the instructions that gather numbers from many places, and there is no machine without it.
"""

import ast
from typing import TYPE_CHECKING

from jitkernels.checksums import sha256
from jitkernels.native.language import types
from jitkernels.native.language.types import INT64, Type, Value
from jitkernels.native.source import Table

if TYPE_CHECKING:
    from jitkernels.native.language.calls import Calls


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
        joined, size = rows, width
        while len(joined) > 1:
            size *= 2
            mask = _mask(range(size))
            half = f"<{size // 2} x {kind.memory}>"
            joined = [
                writer.new(f"shufflevector {half} {one}, {half} {other}, {mask}")
                for one, other in zip(joined[::2], joined[1::2], strict=True)
            ]
        all_rows = f"<{size} x {kind.memory}>"
        found = [
            writer.new(
                f"shufflevector {all_rows} {joined[0]}, {all_rows} poison, {_mask(range(column, size, width))}"
            )
            for column in range(width)
        ]
    parts = tuple(Value(kind, text) for text in found)
    return Value(types.tuple_of(tuple(part.type for part in parts)), parts=parts)


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
