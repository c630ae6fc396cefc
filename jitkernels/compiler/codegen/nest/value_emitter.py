"""Values of nodes in a loop nest: loads and lane operations, each hoisted to the outermost loop that it depends on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core import divide_by_invariant
from jitkernels.compiler.codegen.core.casts import broadcast, emit_cast
from jitkernels.compiler.codegen.core.divide_by_row_sum import divides_sums, has_fma, quotient
from jitkernels.compiler.codegen.core.gather_scatter import Index, emit_gather, emit_scatter, emit_scatter_add
from jitkernels.compiler.codegen.core.ir_builder import Block, Register
from jitkernels.compiler.codegen.core.load_store import Memory
from jitkernels.compiler.codegen.core.scalar_calls import emit_elementwise
from jitkernels.compiler.codegen.nest.scan import emit_scan
from jitkernels.compiler.ir import access_map
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.schedule.nest.nest_values import NestValues, scanned_loop


@dataclass
class ValueEmitter(NestValues, Memory):
    """Computes nodes at access maps.

    `reduced`: the registers of finished reductions. `column_loop_count`: column loops begun, each of which restarts
    its scans. `keeps_fp_flags_exact`: inactive lanes must set no floating-point flag.
    """

    reduced: dict[Any, tuple[Block, Register]] = field(default_factory=dict)
    column_loop_count: int = 0
    multiplies: bool = field(default_factory=has_fma)
    keeps_fp_flags_exact: bool = False

    def value(self, block: Block, node: Node, index_map: IndexMap) -> Register:
        """Compute a node's value in a block, in lanes if it depends on the lane loop."""
        for dependency, where in self.needed(node, index_map):
            self._compute(block, dependency, where)
        return self._known(block, node, index_map)[1]

    def in_lanes(self, block: Block, node: Node, index_map: IndexMap) -> Register:
        """Compute a node's value in all lanes."""
        self.value(block, node, index_map)
        home, register = self._known(block, node, index_map)
        return broadcast(self.function, home, register, self.lanes(block))

    def _known(self, block: Block, node: Node, index_map: IndexMap) -> tuple[Block, Register]:
        key = self.key(node, index_map)
        if key in self.reduced:
            return self.reduced[key]
        result: tuple[Block, Register] = block.find(key)
        return result

    def _compute(self, block: Block, node: Node, index_map: IndexMap) -> None:
        """Compute a node whose operands are computed, unless it is itself."""
        key = self.key(node, index_map)
        if key in self.reduced or block.find(key) is not None:
            return
        array = self.scratch_of_value.get(key) or self.arrays.get(node)
        if array is not None:
            home, register = self.load(block, array, index_map)
        elif node.operation == "constant":
            kind = NUMBERS[node.dtype]
            home, register = self.function.block, Register(constant(kind, node.options["value"]), node.dtype)
        elif node.operation == "extent":
            home = self.function.block
            text = self.function.extent(node.options["extent"])
            register = emit_cast(self.function, home, Register(text, "int64"), node.dtype)
        elif node.operation == "iota":
            home, register = self._iota(block, node, index_map)
        elif node.operation == "scan":
            home, register = self._scanned(block, node, index_map)
        elif node.operation == "gather":
            home, register = self._gather(block, node, index_map)
        else:
            home, register = self._computed(block, node, index_map)
        home.known[key] = (home, register)

    def _scanned(self, block: Block, node: Node, index_map: IndexMap) -> tuple[Block, Register]:
        result = self._known(block, node.inputs[0], self.inside(node, 0, index_map))
        loop = scanned_loop(index_map, node.options["axis"])
        if loop is None:
            return result
        return emit_scan(
            self, block, loop, node.options["kind"], ("scan", self.column_loop_count, self.key(node, index_map)), result
        )

    def _gather(self, block: Block, node: Node, index_map: IndexMap) -> tuple[Block, Register]:
        array, axis = self.indexed(node), node.options["axis"]
        source = node.inputs[0]
        numbers = self._numbers(block, node, index_map, array, source.shape[axis:])
        return emit_gather(self, block, array, self.inside(node, 0, index_map), numbers)

    def _numbers(
        self, block: Block, node: Node, index_map: IndexMap, array: StridedArray, extents: Sequence[Number]
    ) -> list[Index]:
        results = []
        strides = array.strides[node.options["axis"] :]
        for i, operand in enumerate(node.inputs[1:]):
            home, register = self._known(block, operand, self.inside(node, i + 1, index_map))
            results.append(Index(home, register, extents[i], strides[i]))
        return results

    def store_node(
        self, block: Block, node: Node, index_map: IndexMap, array: StridedArray, where: IndexMap, value: Register
    ) -> None:
        """Store a node's value at an access map of an array, scattered by indices if the node is a scatter."""
        if node.operation != "placed":
            self.store(block, array, where, value)
            return
        numbers = self._numbers(block, node, index_map, array, node.options["extents"])
        store = emit_scatter_add if access_map.adds(node) else emit_scatter
        store(self, block, array, where, numbers, value)

    def _computed(self, block: Block, node: Node, index_map: IndexMap) -> tuple[Block, Register]:
        operands = [
            self._known(block, operand, self.inside(node, number, index_map))
            for number, operand in enumerate(node.inputs)
        ]
        home = self.function.block
        for inner, _ in operands:
            if len(inner.path()) > len(home.path()):
                home = inner
        if node.operation in ("view", "reduce", "placed"):  # a reduction over no axis
            return operands[0]
        lanes = max(register.lanes for _, register in operands)
        divisor_block, divisor = operands[-1]
        is_fixed = divisor_block is not home and divisor.lanes < lanes
        if self.multiplies and is_fixed and divides_sums(node, self.arrays):
            return home, quotient(self.function, home, divisor_block, operands[0][1], divisor)
        if is_fixed and divide_by_invariant.is_strength_reduced(node.operation, divisor.dtype, lanes):
            return home, divide_by_invariant.multiply_by_reciprocal(
                self.function, home, divisor_block, node.operation, operands[0][1], divisor
            )
        registers = [broadcast(self.function, inner, register, lanes) for inner, register in operands]
        if node.operation == "cast":
            return home, emit_cast(self.function, home, registers[0], node.dtype)
        return home, emit_elementwise(self.function, home, node.operation, registers, node.dtype)

    def _iota(self, block: Block, node: Node, index_map: IndexMap) -> tuple[Block, Register]:
        start, steps = index_map[node.options["axis"]]
        function = self.function
        home, text = function.block, function.extent(start)
        coefficients = dict(steps)
        for inner in block.path()[1:]:
            if inner.loop in coefficients and inner.loop is not None:
                home = inner
                distance = function.new(
                    inner, f"mul nsw i64 {inner.index}, {function.extent(coefficients[inner.loop])}"
                )
                text = function.new(inner, f"add nsw i64 {text}, {distance}")
        register = Register(text, "int64")
        lanes = self.lanes(block)
        stride = coefficients.get(self.lane_loop, 0) if self.lane_loop is not None and lanes > 1 else 0
        if not same(stride, 0):
            splat_start = broadcast(function, home, register, lanes)
            text = function.new(
                home, f"add nsw <{lanes} x i64> {splat_start.text}, {self.lane_distances(stride, lanes)}"
            )
            register = Register(text, "int64", lanes)
        return home, emit_cast(function, home, register, node.dtype)
