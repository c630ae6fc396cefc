"""Index-set splitting of loops, with scalar replacement of loads in each part; loop-carried array pointers.

A loop is split at the iteration in which the induction variable equals an index that every iteration reads, or where
indices begin and end to wrap around.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from jitkernels.compiler.codegen.control_flow.nest_calls import NestCalls
from jitkernels.compiler.codegen.control_flow.region_evaluator import StridedPointer, Values
from jitkernels.compiler.codegen.control_flow.wrapped_indices import Wrap, wraps_of
from jitkernels.compiler.codegen.core.ir_builder import Register
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.transforms import index_set_splitting


class SplitRange(NamedTuple):
    """Iterations up to `end`: the loads to hoist out of them, and the remainders that equal their dividends there.

    `is_short`: there are so few that LLVM need not vectorize or unroll them.
    """

    end: str
    hoisted: Sequence[Node] = ()
    unwrapped: Sequence[Node] = ()
    is_short: bool = False


class SplitLoop(NestCalls):
    """Emits the parts of a split loop."""

    def _parts(self, node: Node, operands: list[Any], swapped: Collection[int]) -> list[SplitRange]:
        """Return the parts of a split loop."""
        split = index_set_splitting.conflict_of(node, swapped)
        if split is None:
            wraps = wraps_of(node)
            if wraps:
                return self._parts_by_wraps(wraps, node, operands)
            return [SplitRange(operands[1].text if node.options["counts"] else "")]
        begin, end = operands[0].text, operands[1].text
        parameter_ids = list(node.options["body"].inputs)
        index = operands[parameter_ids.index(split.index) + 2].text
        split_at = self._min_or_max("slt", index, end)
        split_at = self._min_or_max("sgt", split_at, begin)
        resume_at = self._min_or_max("slt", self._new(f"add i64 {split_at}, 1"), end)
        return [SplitRange(split_at, split.reads), SplitRange(resume_at, is_short=True), SplitRange(end, split.reads)]

    def _parts_by_wraps(self, wraps: Sequence[Wrap], node: Node, operands: list[Any]) -> list[SplitRange]:
        """The iterations before, in which and behind those in which no index wraps around."""
        first, last = operands[0].text, operands[1].text
        inputs = dict(zip(node.options["body"].inputs[1:], operands[3:], strict=True))
        for wrap in wraps:
            total = self._sum_of(wrap.dividend.terms, inputs)
            if wrap.is_below:
                first = self._min_or_max("sgt", first, self._new(f"sub i64 0, {total}"))
            if wrap.is_above:
                divisor = self._sum_of([(1, wrap.divisor)], inputs)
                last = self._min_or_max("slt", last, self._new(f"sub i64 {divisor}, {total}"))
        first = self._min_or_max("slt", first, operands[1].text)
        last = self._min_or_max("sgt", first, last)
        middle = SplitRange(last, unwrapped=[wrap.node for wrap in wraps])
        return [SplitRange(first, is_short=True), middle, SplitRange(operands[1].text, is_short=True)]

    def _sum_of(self, terms: Sequence[tuple[int, Node]], inputs: Mapping[Node, Any]) -> str:
        """Return the sum of loop-invariant terms; `inputs`: the values of the body's parameters."""
        total = "0"
        for sign, term in terms:
            text = (inputs[term] if term in inputs else self._number(term)).text
            total = self._new(f"{'add' if sign > 0 else 'sub'} i64 {total}, {text}")
        return total

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
