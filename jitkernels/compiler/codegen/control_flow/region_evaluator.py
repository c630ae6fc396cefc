"""Evaluation of a loop or branch region, node by node, for any code generator: of LLVM IR, or of Python."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.compiler.codegen.control_flow.linear_index import raveled
from jitkernels.compiler.codegen.core.ir_builder import Register
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, is_at_least
from jitkernels.compiler.schedule.region_stages import NestGroup
from jitkernels.core.frozen_dataclass import frozen_dataclass

Values = dict[Node, Any]
"""Values by node: a `Register`, a `StridedPointer`, or a list of these."""


@frozen_dataclass
class StridedPointer:
    """A strided array: the address of its first element, and strides in elements."""

    pointer: str
    strides: tuple[Number, ...]
    dtype: str


class RegionEvaluator:
    """Computes the values of a region's nodes in order; a subclass emits the code of each."""

    arrays: Mapping[Node, StridedArray]
    flow: Flow

    def _emit_flow(self) -> None:
        """Emit the loop or branch, and store the numbers that it returns."""
        node = self.flow.node
        results = self._value(node, {operand: self._captured(operand) for operand in node.inputs})
        for item in self.flow.items:
            if not item.ndim:
                self._stored(self._element(self._strided_pointer(item), ()), results[item.options["index"]])

    def _captured(self, node: Node) -> Any:
        """The value of a node that the region captures."""
        if node.operation in ("constant", "extent"):
            return self._number(node)
        array = self._strided_pointer(node)
        return array if node.ndim else self._loaded(self._element(array, ()), node.dtype)

    def _strided_pointer(self, node: Node) -> StridedPointer:
        """The array of a node."""
        array = self.arrays[node]
        return StridedPointer(self._pointer(array.word, array.dtype), array.strides, node.dtype)

    def _region(self, graph: Graph, arguments: Sequence[Any], known: Values | None = None) -> list[Any]:
        """Emit a region for the values of its parameters; return its outputs. `known`: values computed before."""
        values: Values = {**dict(zip(graph.inputs, arguments, strict=True)), **(known or {})}
        checks = set(graph.checks)
        for nodes, group in self.flow.bodies[id(graph)].stages:
            for node in nodes:
                if node not in values:
                    values[node] = self._value(node, values)
                if node in checks:
                    self._check(node, values[node])
            if group is not None:
                self._call_nests(group, values)
        return [values[node] for node in graph.outputs]

    def _value(self, node: Node, values: Values) -> Any:
        operands = [values[operand] for operand in node.inputs]
        match node.operation:
            case "constant" | "extent":
                return self._number(node)
            case "cast":
                return self._cast(operands[0], node.dtype)
            case "item":
                return operands[0][node.options["index"]]
            case "bounded":
                return self._bounded(node, operands[0])
            case "overflows":
                return self._overflows(node.options["of"], *operands)
            case "native_call":
                return self._native_call(node, operands[0], operands[2:])
            case "gather" if isinstance(operands[0], Register):  # of a number that is broadcast
                return operands[0]
            case "gather":
                return self._loaded(self._element(*_raveled(operands[0], node.inputs[1:], values)), node.dtype)
            case "scatter":
                self._stored(self._element(*_raveled(operands[0], node.inputs[2:], values)), operands[1])
                return operands[0]
            case "loop":
                return self._flow_loop(node, operands)
            case "branch":
                return self._branch(node, operands, values)
        if node.options.get("natural"):  # the operands are nonnegative and the divisor is not zero
            return self._natural_division(node, *operands)
        if "wraps" in node.options:
            return self._wrapped(node, *operands)
        if _divides_by_positive(node):
            return self._division_by_positive(node, *operands)
        return self._applied(node, operands)

    def _set_results(self, group: NestGroup, values: Values, scalar: Callable[[Node], Register]) -> None:
        """Set the values of a group's results after its nests ran; `scalar` reads a number that a nest stored."""
        outputs = len(group.program.graph.outputs)
        for node, result in zip(group.program.graph.outputs, group.results[:outputs], strict=True):
            if result.ndim:
                pointer = self._pointer(group.words[node], node.dtype)
                values[result] = StridedPointer(pointer, group.arrays[node].strides, node.dtype)
            else:
                values[result] = scalar(node)
        captured = dict(zip(group.graph.inputs, (values[node] for node in group.captured), strict=True))
        for (target, _), result in zip(group.graph.writes, group.results[outputs:], strict=True):
            # Also if the program dropped the write because nothing changes.
            values[result] = captured[target]

    def _pointer(self, word: int, dtype: str) -> str:
        """The address of the array at a frame word."""
        raise NotImplementedError

    def _number(self, node: Node) -> Register:
        """A constant or an extent."""
        raise NotImplementedError

    def _cast(self, value: Register, dtype: str) -> Register:
        raise NotImplementedError

    def _bounded(self, node: Node, index: Register) -> Register:
        """Normalize a negative index, and bail out if it is out of bounds."""
        raise NotImplementedError

    def _overflows(self, of: str, left: Register, right: Register) -> Register:
        """Return whether a 64-bit operation overflows."""
        raise NotImplementedError

    def _native_call(self, node: Node, address: Register, arguments: Sequence[Register]) -> list[Register]:
        """Call the function at an address; return its result, and the order token, which is false."""
        raise NotImplementedError

    def _element(self, array: StridedPointer, indices: Sequence[Register]) -> str:
        """An element of an array, for `_loaded` and `_stored`; the only one where there are no indices."""
        raise NotImplementedError

    def _loaded(self, element: str, dtype: str) -> Register:
        raise NotImplementedError

    def _stored(self, element: str, value: Register) -> None:
        raise NotImplementedError

    def _natural_division(self, node: Node, left: Register, right: Register) -> Register:
        """The quotient or remainder of nonnegative numbers."""
        raise NotImplementedError

    def _division_by_positive(self, node: Node, left: Register, right: Register) -> Register:
        """The quotient or remainder, rounded down, by a number that is at least 1."""
        return self._applied(node, [left, right])

    def _wrapped(self, node: Node, left: Register, right: Register) -> Register:
        """The remainder of an int that is at least ``-divisor`` and below ``2 * divisor``."""
        return self._applied(node, [left, right])

    def _applied(self, node: Node, operands: list[Register]) -> Register:
        """An elementwise operation."""
        raise NotImplementedError

    def _check(self, node: Node, condition: Register) -> None:  # noqa: ARG002  # for code that defers some checks
        """Bail out if a check of a region is true."""
        self._bail_out_if(condition)

    def _bail_out_if(self, condition: Register, label: str = "refused") -> None:
        """Leave the function with the status of a label where a condition is true."""
        raise NotImplementedError

    def _call_nests(self, group: NestGroup, values: Values) -> None:
        """Run the loop nests of a group, and set the values of its results."""
        raise NotImplementedError

    def _flow_loop(self, node: Node, operands: list[Any]) -> list[Any]:
        raise NotImplementedError

    def _branch(self, node: Node, operands: list[Any], values: Values) -> list[Any]:
        raise NotImplementedError


def _divides_by_positive(node: Node) -> bool:
    """Whether a division of ints is known to be by 1 or more, and so are those of NumPy's ints by sizes."""
    if node.operation not in ("floor_divide", "remainder") or node.dtype != "int64":
        return False
    divisor = node.inputs[1]
    is_size = divisor.operation == "extent" and is_at_least(divisor.options["extent"], 1)
    return is_size or "by_positive" in node.options


def _raveled(array: StridedPointer, indices: Sequence[Node], values: Values) -> tuple[StridedPointer, list[Register]]:
    """The array in as few dimensions as its strides allow, with the indices there."""
    strides, numbers = raveled(array.strides, indices)
    return StridedPointer(array.pointer, tuple(strides), array.dtype), [values[number] for number in numbers]
