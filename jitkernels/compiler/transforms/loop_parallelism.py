"""Dependence analysis: find loops whose iterations are independent and can run in parallel.

That is so if only arrays and int reductions (see `jitkernels.compiler.transforms.parallel_int_reductions`) are
loop-carried, and all accesses to each array have, in one of its dimensions, the same index ``factor * induction
variable + offset``: then iterations access different rows. Arrays that nests compute in an iteration live in the
thread's workspace (see `jitkernels.compiler.codegen.control_flow.parallel_loop`).
"""

from collections.abc import Collection, Container, Sequence
from typing import Any

from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.dim_proofs import linear
from jitkernels.compiler.ir.graph import Graph, Node, has_value, number_of
from jitkernels.compiler.ir.region_memory import is_direct
from jitkernels.compiler.ir.regions import LoopParts, regions_of
from jitkernels.compiler.ir.symbolic_dims import Number, is_loop_variant, same
from jitkernels.compiler.transforms.parallel_int_reductions import IntReduction, int_reductions_of
from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class RowIndex:
    """An index that differs in every iteration: a multiple of the induction variable plus an offset."""

    factor: int
    offset: Number


class _DependentError(Exception):
    """Iterations may depend on one another."""


Known = dict[Node, Any]
"""Abstract values by node id: a `RowIndex`, the number of a loop-carried array, or None."""


class _Reader:
    """Interprets an iteration, and collects for each array the dimensions in which it is accessed by rows."""

    def __init__(self, symbol: str, hoisted: Collection[Node] = ()) -> None:
        """`symbol`: the induction variable's symbol in extents; `hoisted`: loads that stand in front of the loop."""
        self.symbol, self.hoisted = symbol, hoisted
        self.rows: dict[int, list[tuple[int, RowIndex]]] = {}

    def region(self, graph: Graph, arguments: Sequence[Any]) -> list[Any]:
        """Return the abstract values of a region's outputs, for those of its parameters."""
        known: Known = {
            node: argument for node, argument in zip(graph.inputs, arguments, strict=True) if argument is not None
        }
        for node in graph:
            if node not in known:
                value = self._node(node, known)
                if value is not None:
                    known[node] = value
        return [known.get(node) for node in graph.outputs]

    def _node(self, node: Node, known: Known) -> Any:
        operands = [known.get(operand) for operand in node.inputs]
        if node.operation == "call" or "grows" in node.options:
            raise _DependentError  # a call into Python, or an append, whose order matters
        if not is_direct(node):
            return self._of_arrays(node, operands)
        match node.operation:
            case "parameter" | "constant" | "extent":
                return None
            case "loop":
                return self._loop(node, operands)
            case "branch":
                return self._branch(node, operands)
            case "item":
                return operands[0][node.options["index"]] if isinstance(operands[0], list) else None
            case "gather" if node in self.hoisted:
                return None
            case "gather":
                self._access(operands[0], operands[1:])
                return None
            case "scatter":
                self._access(operands[0], operands[2:])
                return operands[0]
            case "add" | "subtract" | "multiply":
                return _combined(node, operands)
            case "bounded":
                return None if node.options["counts_back"] else operands[0]
            case "cast":
                return operands[0] if node.dtype == "int64" else None
        if any(type(argument) is int for argument in operands):
            raise _DependentError
        return None

    def _of_arrays(self, node: Node, operands: Sequence[Any]) -> Any:
        """Accesses of loop nests to a loop-carried array; they must be views or updates of it."""
        if any(type(argument) is int for argument in operands[1:]) or (
            type(operands[0] if operands else None) is int and node.operation not in ("view", "update")
        ):
            raise _DependentError
        if node.operation == "view":
            self._access(operands[0], self._places(node.options["map"], node.shape))
        if node.operation == "update":
            self._access(operands[0], self._places(node.options["map"], node.options["extents"]))
            return operands[0]
        return None

    def _places(self, index_map: IndexMap, shape: Sequence[Number]) -> list[Any]:
        """The rows of an array's dimensions that an index map accesses; None for other dimensions."""
        results: list[Any] = []
        for start, steps in index_map:
            rest, factor = linear(start, self.symbol) or (0, 0)
            is_one = all(same(shape[dimension], 1) for dimension, _ in steps)
            results.append(RowIndex(factor, rest) if factor and is_one and not is_loop_variant(rest) else None)
        return results

    def _access(self, array: Any, indices: Sequence[Any]) -> None:
        if array is None:
            return
        rows = [(i, index) for i, index in enumerate(indices) if isinstance(index, RowIndex)]
        before = self.rows.setdefault(array, rows)
        self.rows[array] = [row for row in before if any(_is_same_row(row, other) for other in rows)]
        if not self.rows[array]:
            raise _DependentError

    def _loop(self, node: Node, operands: list[Any]) -> list[Any]:
        counts, many = node.options["counts"], node.options["carried"]
        first = 3 if counts else 0
        carried = [argument if type(argument) is int else None for argument in operands[first : first + many]]
        inside = [*([None] if counts else []), *carried, *operands[first + many :]]
        self.region(node.options["condition"], inside)
        after = self.region(node.options["body"], inside)
        if [one if type(one) is int else None for one in after] != carried:
            raise _DependentError
        return carried

    def _branch(self, node: Node, operands: list[Any]) -> list[Any]:
        sides = [
            [one if type(one) is int else None for one in self.region(node.options[name], operands[1:])]
            for name in ("yes", "no")
        ]
        if sides[0] != sides[1]:
            raise _DependentError
        return sides[0]


def _is_same_row(left: tuple[int, RowIndex], right: tuple[int, RowIndex]) -> bool:
    (first, row), (second, other_row) = left, right
    return first == second and row.factor == other_row.factor and same(row.offset, other_row.offset)


def _combined(node: Node, operands: Sequence[Any]) -> RowIndex | None:
    """The row that a sum, difference or product with a loop-invariant number is; None otherwise."""
    left, right = operands
    if node.dtype != "int64" or isinstance(left, RowIndex) == isinstance(right, RowIndex):
        return None
    row, number = (
        (left, number_of(node.inputs[1])) if isinstance(left, RowIndex) else (right, number_of(node.inputs[0]))
    )
    if number is None:
        return None
    if node.operation == "add":
        return RowIndex(row.factor, row.offset + number)
    if node.operation == "multiply":
        known = type(number) is int and number != 0
        return RowIndex(row.factor * int(number), row.offset * number) if known else None
    return RowIndex(row.factor, row.offset - number) if row is left else RowIndex(-row.factor, number - row.offset)


def parallel_reductions_of(loop: Node, loop_variant: Container[str]) -> dict[int, IntReduction] | None:
    """Return the int reductions of a loop by position, if its iterations are independent; else None.

    `moving`: the loop-variant symbols that extents depend on.
    """
    options = loop.options
    if loop.operation != "loop" or not options["counts"]:
        return None
    if not has_value(options["condition"].outputs[0], True) or options["condition"].checks:
        return None
    if not has_value(loop.inputs[2], 1):
        return None
    body, many = options["body"], options["carried"]
    arrays = [i if loop.inputs[3 + i].ndim else None for i in range(many)]
    joined = int_reductions_of(loop, loop_variant)
    if not joined and not any(array is not None for array in arrays):
        return None
    for i, one in enumerate(arrays):
        if (
            one is None
            and i not in joined
            and body.outputs[i] is not body.inputs[1 + i]
            and body.outputs[i].operation != "constant"
        ):
            return None
    reader = _Reader(body.inputs[0].options.get("symbol", ""))
    try:
        after = reader.region(body, [RowIndex(1, 0), *arrays, *[None] * (len(body.inputs) - 1 - many)])
    except _DependentError:
        return None
    return joined if all(a == b for a, b in zip(after, arrays, strict=True) if b is not None) else None


def has_independent_accesses(loop: Node, hoisted: Collection[Node] = ()) -> bool:
    """Whether no iteration of an innermost loop reads or writes an element that another one writes.

    LLVM compares addresses in the run where it cannot tell, of all iterations of the enclosing loops at once, so that
    ``a[i, j] -= f * a[k, j]`` stays scalar for all rows i of a block that row k is in. `hoisted`: see `_Reader`.
    """
    parts = LoopParts(loop)
    if not parts.has_unit_step or parts.condition.checks or any(map(_has_loop, parts.body)):
        return False
    arrays = [i if parameter.ndim else None for i, parameter in enumerate(parts.carried_parameters)]
    reader = _Reader(parts.induction[0].options.get("symbol", ""), hoisted)
    arguments = [RowIndex(1, 0), *arrays, *[None] * len(parts.captured)]
    try:
        after = reader.region(parts.body, arguments)
    except _DependentError:
        return False
    return bool(reader.rows) and all(a == b for a, b in zip(after, arrays, strict=True) if b is not None)


def _has_loop(node: Node) -> bool:
    """Whether a node is a loop, or a branch with one."""
    return node.operation == "loop" or any(_has_loop(one) for region in regions_of(node) for one in region)
