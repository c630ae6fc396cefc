"""Loop-invariant code motion of element loads and bounds checks: hoist loads of elements that a loop never writes.

``for j in range(k + 1, n): a[i, j] -= a[i, k] * a[k, j]`` never writes ``a[i, k]``, as j differs from k. LLVM cannot
prove this, and would neither keep the element in a register nor vectorize the loop.

``while True: np.add.at(new, targets, old[sources])`` tests all sources and targets before the first iteration: each one
looks at the results only.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.region_memory import element_writes
from jitkernels.compiler.ir.symbolic_dims import Extent, is_at_least, is_loop_variant


class CarriedArray(NamedTuple):
    """A loop-carried array: its parameter in an iteration, its value at the end of it, and that before the loop."""

    parameter: Node
    output: Node
    initial: Node


class InductionVariable(NamedTuple):
    """The induction variable of a loop: its parameter, initial value and direction."""

    parameter: Node
    begin: Node
    is_up: bool


def hoist(
    tracer: Tracer, roots: Sequence[Node], arrays: Sequence[CarriedArray], induction: InductionVariable, start: int
) -> dict[Node, Node]:
    """By loads in an iteration, the same loads before the loop. Nodes older than `start` are loop-invariant."""
    loads: dict[Node, Node] = {}
    nodes = sorted_nodes(roots)
    for array in arrays:
        writes = element_writes(array.parameter, array.output)
        if not writes:
            continue
        versions = {array.parameter, *writes}
        for node in nodes:
            if node.operation != "gather" or node.ndim or node.inputs[0] not in versions:
                continue
            indices = node.inputs[1:]
            if all(index.serial < start or index.operation == "constant" for index in indices) and all(
                _is_disjoint(tracer, indices, write.inputs[2:], induction) for write in writes
            ):
                loads[node] = Node("gather", (array.initial, *indices), node.dtype, (), node.options)
    return loads


TESTS = frozenset({"less", "greater_equal", "logical_or", "view", "reduce"})
"""The operations of which a test consists whether any of several indices is out of bounds."""


def invariant_tests(roots: Sequence[Node], start: int) -> dict[Node, Node]:
    """The bounds tests of index arrays that are older than `start`: what a loop captures in place of making them."""
    invariant: set[Node] = set()
    for node in sorted_nodes(roots):
        is_part = node.operation == "extent" or (node.operation in TESTS and node.dtype == "bool")
        is_invariant = is_part and invariant.issuperset(node.inputs) and not _varies(node)
        if node.serial < start or node.operation == "constant" or is_invariant:
            invariant.add(node)
    return {node: node for node in invariant if node.serial >= start and node.operation == "reduce"}


def _varies(node: Node) -> bool:
    """Whether the shape of a node, or where it views another one, differs between iterations of a loop."""
    numbers = pytree.leaves((node.shape, *node.options.values()))
    return any(isinstance(number, Extent) and is_loop_variant(number) for number in numbers)


def _is_disjoint(tracer: Tracer, read: Sequence[Node], written: Sequence[Node], induction: InductionVariable) -> bool:
    """Whether no iteration writes the element read: an index that is the induction variable starts past it."""
    return any(
        written_index is induction.parameter and _precedes_range(tracer, index, induction)
        for index, written_index in zip(read, written, strict=True)
    )


def _precedes_range(tracer: Tracer, index: Node, induction: InductionVariable) -> bool:
    begin = induction.begin
    if begin.operation in ("add", "subtract") and index in begin.inputs:
        other = begin.inputs[1] if begin.inputs[0] is index else begin.inputs[0]
        step = other.options["value"] if other.operation == "constant" else 0
        if begin.operation == "subtract":
            step = -step if begin.inputs[0] is index else 0
        return bool(step > 0 if induction.is_up else step < 0)
    bounds, begin_bounds = intervals.interval(tracer, index), intervals.interval(tracer, begin)
    if bounds is None or begin_bounds is None:
        return False
    if induction.is_up:
        return is_at_least(begin_bounds[0] - bounds[1], 1)
    return is_at_least(bounds[0] - begin_bounds[1], 1)
