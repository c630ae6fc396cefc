"""Branch refinement of int intervals: inside ``while i < n`` the condition bounds i, which removes bounds checks."""

import math
from typing import Any, Self

from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, is_at_least

MAX_REFINED_INT = 2**61
NEGATED = {
    "less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less",
    "not_equal": "equal", "equal": "not_equal",
}  # fmt: skip


class Assumed:
    """Context in which a condition is assumed to be true, or false."""

    def __init__(self, tracer: Tracer, condition: Node, *, truth: bool) -> None:
        self.tracer, self.condition, self.truth = tracer, condition, truth
        self._outside: dict[Node, Any] = {}

    def __enter__(self) -> Self:
        self._assume(self.condition, truth=self.truth)
        return self

    def __exit__(self, *_: object) -> None:
        for node, bounds in self._outside.items():
            if bounds is None:
                self.tracer.ranges.pop(node, None)
            else:
                self.tracer.ranges[node] = bounds

    def _assume(self, node: Node, *, truth: bool) -> None:
        if node.operation == "logical_not":
            self._assume(node.inputs[0], truth=not truth)
        elif truth and node in self.tracer.implied_conditions:
            for operand in self.tracer.implied_conditions[node]:
                self._assume(operand, truth=True)
        elif len(node.inputs) == 2 and all(operand.dtype == "int64" and not operand.ndim for operand in node.inputs):
            self._compare(node.operation if truth else NEGATED.get(node.operation, ""), *node.inputs)

    def _compare(self, name: str, left: Node, right: Node) -> None:
        """Refine both operands by ``left <name> right``."""
        first, second = self._bounds(left), self._bounds(right)
        match name:
            case "less" | "less_equal":
                margin = 1 if name == "less" else 0
                self._narrow(left, None, second[1] - margin)
                self._narrow(right, first[0] + margin, None)
                if left.operation == "multiply" and left.inputs[0] is left.inputs[1]:
                    root = math.isqrt(max(intervals.upper_limit(second[1]), 0))
                    self._narrow(left.inputs[0], -root, root)
            case "greater" | "greater_equal":
                self._compare("less" if name == "greater" else "less_equal", right, left)
            case "equal":
                self._narrow(left, *second)
                self._narrow(right, *first)
            case "not_equal":
                self._exclude(left, second)
                self._exclude(right, first)

    def _exclude(self, node: Node, number: intervals.Interval) -> None:
        """Refine a node that is not a number: where that is its least or its largest value, by one."""
        if not symbolic_dims.same(*number):
            return
        least, most = self._bounds(node)
        if symbolic_dims.same(least, number[0]):
            self._narrow(node, least + 1, None)
        if symbolic_dims.same(most, number[0]):
            self._narrow(node, None, most - 1)

    def _bounds(self, node: Node) -> intervals.Interval:
        return intervals.interval(self.tracer, node) or intervals.ANY

    def _narrow(self, node: Node, low: Number | None, high: Number | None) -> None:
        """Intersect a node's interval with bounds."""
        if node.operation in ("constant", "extent"):
            return
        least, most = bounds = self._bounds(node)
        if low is not None and (
            intervals.lower_limit(least) <= -MAX_REFINED_INT < intervals.lower_limit(low) or is_at_least(low - least, 0)
        ):
            least = low
        if high is not None and (
            intervals.upper_limit(most) >= MAX_REFINED_INT > intervals.upper_limit(high) or is_at_least(most - high, 0)
        ):
            most = high
        if (least, most) != bounds:
            self._outside.setdefault(node, self.tracer.ranges.get(node))
            intervals.note(self.tracer, node, (least, most))
