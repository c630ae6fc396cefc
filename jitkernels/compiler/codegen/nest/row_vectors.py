"""Pack several short rows into one wide vector: the columns of each row are adjacent lanes.

A scalar per row is a vector of as many lanes as there are rows, so that square roots and quotients of all rows are
computed together, and rows are summed by folding the vectors of all of them into one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jitkernels.compiler.codegen.core import complex_lanes
from jitkernels.compiler.codegen.core.casts import broadcast
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type
from jitkernels.compiler.codegen.nest.value_emitter import ValueEmitter
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray


@dataclass
class RowGroup(ValueEmitter):
    """Values in an iteration over `rows` rows of at most `columns` columns.

    `row`: the block of the group, and `whole`: that of all its elements. `single`: the same for each row alone.
    """

    row_loop: int = -1
    rows: int = 1
    columns: int = 1
    row: Block = field(default_factory=Block)
    whole: Block = field(default_factory=Block)
    alone_rows: list[Block] = field(default_factory=list)
    single: list[tuple[Block, Block]] = field(default_factory=list)
    multiplies: bool = False

    def __post_init__(self) -> None:
        self.alone = ValueEmitter(
            self.function, self.lane_loop, self.arrays, self.inside, keeps_fp_flags_exact=self.keeps_fp_flags_exact
        )

    def begin(self, block: Block, numbers: list[str]) -> None:
        """Begin an iteration over rows with these indices."""
        self.row = Block(block, self.row_loop, numbers[0], self.rows, lines=block.lines)
        self.alone_rows = [Block(block, self.row_loop, number, lines=block.lines) for number in numbers]

    def at(self, block: Block, column: str, masks: tuple[str, str]) -> None:
        """Begin the columns from `column` on; `masks`: those of one row and of all rows, "" if all lanes are active."""
        self.whole = Block(self.row, self.lane_loop, column, self.rows * self.columns, masks[1], lines=block.lines)
        self.single = [
            (row, Block(row, self.lane_loop, column, self.columns, masks[0], lines=block.lines))
            for row in self.alone_rows
        ]

    def lanes(self, block: Block) -> int:
        return block.lanes if block in (self.row, self.whole) else 1

    def mask(self, block: Block) -> str:
        return block.mask

    def load(
        self, block: Block, array: StridedArray, index_map: IndexMap, moves: Sequence[tuple[Block, str]] = ()
    ) -> tuple[Block, Register]:
        loops = {*array.coefficients(index_map)[1]}
        if not loops & {self.row_loop, self.lane_loop}:
            return super().load(block, array, index_map, moves)
        return self._of_rows(loops, lambda inside: self.alone.load(inside, array, index_map)[1])

    def _iota(self, block: Block, node: Node, index_map: IndexMap) -> tuple[Block, Register]:
        loops = {loop for loop, _ in index_map[node.options["axis"]][1]}
        if not loops & {self.row_loop, self.lane_loop}:
            return super()._iota(block, node, index_map)
        return self._of_rows(loops, lambda inside: self.alone._iota(inside, node, index_map)[1])

    def _of_rows(
        self, loops: "set[int] | set[int | None]", load_row: Callable[[Block], Register]
    ) -> tuple[Block, Register]:
        """Concatenate a value of each row; broadcast it if it is the same for all rows."""
        if self.row_loop not in loops:
            value = load_row(self.single[0][1])
            numbers = [i % self.columns for i in range(self.columns * self.rows)]
            return self.whole, self._shuffled(self.whole, value, value, numbers)
        inside = self.lane_loop in loops
        home = self.whole if inside else self.row
        return home, self._joined(home, [load_row(row[inside]) for row in self.single])

    def _joined(self, block: Block, parts: list[Register]) -> Register:
        """Concatenate registers."""
        if parts[0].lanes == 1:
            return self._listed(block, parts)
        while len(parts) > 1:
            numbers = [*range(2 * parts[0].lanes)]
            parts = [
                self._shuffled(block, part, other, numbers) for part, other in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def _listed(self, block: Block, parts: list[Register]) -> Register:
        """Build a vector of scalars."""
        if len(parts) == 1:
            return parts[0]
        if parts[0].dtype in PLANES:
            return complex_lanes.listed(self.function, block, parts)
        kind, vector, text = llvm_type(parts[0].dtype), llvm_type(parts[0].dtype, len(parts)), "poison"
        for i, part in enumerate(parts):
            text = self.function.new(block, f"insertelement {vector} {text}, {kind} {part.text}, i64 {i}")
        return Register(text, parts[0].dtype, len(parts))

    def _shuffled(self, block: Block, left: Register, right: Register, numbers: list[int]) -> Register:
        if numbers == [*range(left.lanes)]:
            return left
        kind = llvm_type(left.dtype)
        text = self.function.shuffle(block, kind, left.lanes, left.text, right.text, numbers)
        return Register(text, left.dtype, len(numbers))

    def store(self, block: Block, array: StridedArray, index_map: IndexMap, value: Register) -> None:
        """Store each row's part."""
        inside = block is self.whole
        value = broadcast(self.function, block, value, self.lanes(block))
        for i, row in enumerate(self.single):
            if inside:
                numbers = [i * self.columns + column for column in range(self.columns)]
                part = self._shuffled(block, value, value, numbers)
            elif self.rows == 1:
                part = value
            elif value.dtype in PLANES:
                part = complex_lanes.element(self.function, block, value, i)
            else:
                kind = llvm_type(value.dtype, value.lanes)
                text = self.function.new(block, f"extractelement {kind} {value.text}, i64 {i}")
                part = Register(text, value.dtype)
            self.alone.store(row[inside], array, index_map, part)
