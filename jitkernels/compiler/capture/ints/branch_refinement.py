"""What conditions tell of ints: in the body of ``while i < n`` there is no other i, and so no index to be tested."""

import math
from typing import Any, Self

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node

LARGE = 2**61
NEGATED = {
    "less": "greater_equal", "less_equal": "greater", "greater": "less_equal", "greater_equal": "less",
    "not_equal": "equal",
}  # fmt: skip


class Assumed:
    """In this, a condition holds, or does not."""

    def __init__(self, tracer: Tracer, condition: Node, *, truth: bool) -> None:
        self.tracer, self.condition, self.truth = tracer, condition, truth
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._assume(self.condition, truth=self.truth)
        return self

    def __exit__(self, *_: object) -> None:
        for key, before in self._before.items():
            if before is None:
                self.tracer.ranges.pop(key, None)
            else:
                self.tracer.ranges[key] = before

    def _assume(self, node: Node, *, truth: bool) -> None:
        if node.operation == "logical_not":
            self._assume(node.inputs[0], truth=not truth)
        elif truth and id(node) in self.tracer.implied:
            for one in self.tracer.implied[id(node)][1]:
                self._assume(one, truth=True)
        elif len(node.inputs) == 2 and all(one.dtype == "int64" and not one.ndim for one in node.inputs):
            name = node.operation if truth else NEGATED.get(node.operation, "")
            self._compare(name, *node.inputs)

    def _compare(self, name: str, one: Node, other: Node) -> None:
        """``one <name> other`` holds."""
        first, second = self._bounds(one), self._bounds(other)
        match name:
            case "less" | "less_equal":
                apart = 1 if name == "less" else 0
                self._narrow(one, None, second[1] - apart)
                self._narrow(other, first[0] + apart, None)
                if one.operation == "multiply" and one.inputs[0] is one.inputs[1]:
                    root = math.isqrt(max(ranges.highest(second[1]), 0))
                    self._narrow(one.inputs[0], -root, root)
            case "greater" | "greater_equal":
                self._compare("less" if name == "greater" else "less_equal", other, one)
            case "equal":
                self._narrow(one, *second)
                self._narrow(other, *first)

    def _bounds(self, node: Node) -> ranges.Interval:
        return ranges.interval(self.tracer, node) or (ranges.LEAST, ranges.MOST)

    def _narrow(self, node: Node, low: Number | None, high: Number | None) -> None:
        """A node lies between bounds, too."""
        if node.operation in ("constant", "extent"):
            return
        before = self._bounds(node)
        least, most = before
        if low is not None and (
            ranges.lowest(least) <= -LARGE < ranges.lowest(low) or ranges.is_at_least(low - least, 0)
        ):
            least = low
        if high is not None and (
            ranges.highest(most) >= LARGE > ranges.highest(high) or ranges.is_at_least(most - high, 0)
        ):
            most = high
        if (least, most) != before:
            self._before.setdefault(id(node), self.tracer.ranges.get(id(node)))
            ranges.note(self.tracer, node, (least, most))
