"""Index-set splitting of loops, with scalar replacement of loads in each part; loop-carried array pointers.

A loop is split at the iteration in which the induction variable equals an index that every iteration reads.
"""

from collections.abc import Collection, Sequence
from typing import Any

from jitkernels.compiler.codegen.control_flow.nest_calls import NestCalls
from jitkernels.compiler.codegen.control_flow.region_evaluator import StridedPointer, Values
from jitkernels.compiler.codegen.core.ir_builder import Register
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.transforms import index_set_splitting


class SplitLoop(NestCalls):
    """Emits the parts of a split loop."""

    def _parts(self, node: Node, operands: list[Any], swapped: Collection[int]) -> list[tuple[str, Sequence[Node]]]:
        """Return the end of each part of a split loop, and the loads to hoist out of that part."""
        split = index_set_splitting.conflict_of(node, swapped)
        if split is None:
            return [(operands[1].text if node.options["counts"] else "", ())]
        begin, end = operands[0].text, operands[1].text
        parameter_ids = list(node.options["body"].inputs)
        index = operands[parameter_ids.index(split.index) + 2].text
        split_at = self._min_or_max("slt", index, end)
        split_at = self._min_or_max("sgt", split_at, begin)
        resume_at = self._min_or_max("slt", self._new(f"add i64 {split_at}, 1"), end)
        return [(split_at, split.reads), (resume_at, ()), (end, split.reads)]

    def _min_or_max(self, sign: str, left: str, right: str) -> str:
        """Return the minimum (`sign` "slt") or maximum ("sgt") of two i64."""
        return self._new(f"select i1 {self._new(f'icmp {sign} i64 {left}, {right}')}, i64 {left}, i64 {right}")

    def _read_before(self, node: Node, known: Values) -> Register:
        """Load an element of an array that no earlier iteration has changed."""
        array = node.inputs[0]
        while array not in known:
            array = array.inputs[0]  # a version of it: they share memory
        indices = [
            self._number(operand) if operand.operation == "constant" else known[operand] for operand in node.inputs[1:]
        ]
        return self._loaded(self._element(known[array], indices), node.dtype)

    def _pointer_slot(self, array: StridedPointer) -> str:
        """Return the address of an alloca that holds an array's address."""
        slot = self.function.variable("ptr")
        self.block.lines.append(f"  store ptr {array.pointer}, ptr {slot}")
        return slot

    def _now(self, slot: str, value: Any) -> Any:
        """Return the value of a loop-carried value in this iteration."""
        if not slot:
            return value
        if isinstance(value, StridedPointer):
            return StridedPointer(self._new(f"load ptr, ptr {slot}"), value.strides, value.dtype)
        return self._get(slot, value.dtype)
