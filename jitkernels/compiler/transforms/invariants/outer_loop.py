"""A loop in front of which something is computed: whether it runs at all, and how it captures the results."""

from collections.abc import Mapping, Sequence

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, has_value
from jitkernels.compiler.ir.region_memory import is_direct
from jitkernels.compiler.ir.regions import LoopParts, clone_region, items, parameter
from jitkernels.compiler.transforms.invariants.backward_slice import BackwardSlice
from jitkernels.compiler.transforms.loop_ints import Ints
from jitkernels.compiler.transforms.loop_iterations import iterations_of
from jitkernels.core.cached_property import unlocked_cached_property

MIN_TRIPS = 2
"""Least iterations of a loop for which it pays to compute something in front of it."""
MAX_INVARIANT_ELEMENTS = 1 << 20
"""Most elements of an array that is computed there: it should stay in a cache."""
LOADS_AND_CALLS = frozenset({"gather", "call", "native_call", "kernel"})
"""Scalar operations that a test in front of the loop does not repeat."""


class OuterLoop:
    """A loop; `parts`: its operands and parameters, `backward`: what of its body is loop-invariant."""

    def __init__(self, loop: Node, ints: Ints) -> None:
        self.loop, self.ints, self.parts = loop, ints, LoopParts(loop)
        self.backward = BackwardSlice(self.parts)
        iterations = iterations_of(self.parts, ints)
        self.trip_count = None if iterations is None else iterations.trip_count

    def has_trips(self, least: int) -> bool:
        """Whether it has so many iterations now, as far as that is known."""
        return self.trip_count is None or symbolic_dims.value_of(self.trip_count) >= least

    @property
    def is_known(self) -> bool:
        """Whether code in front of the loop can tell if it runs."""
        if self.parts.counts and self.parts.bounds[2].operation != "constant":
            return False
        condition = self.parts.condition
        return not condition.checks and all(
            is_direct(node) and node.operation not in LOADS_AND_CALLS for node in condition
        )

    @unlocked_cached_property
    def runs(self) -> Node | None:
        """Whether its first iteration runs, as a node in front of it; None where it always does."""
        parts = self.parts
        starts = [*parts.bounds[: parts.first_parameter], *parts.carried, *parts.captured]
        (condition,) = _inlined(parts.condition, starts)
        if not parts.counts:
            return condition
        is_certain = has_value(condition, 1)
        if is_certain and self.trip_count is not None and self._is_never_empty():
            return None
        first, last, _ = parts.bounds
        begins = builder.elementwise("less" if parts.step > 0 else "greater", first, last)
        return begins if is_certain else builder.elementwise("logical_and", begins, condition)

    def _is_never_empty(self) -> bool:
        """Whether there is an iteration, in all calls that this code serves."""
        trips = self.trip_count
        if trips is None or symbolic_dims.is_at_least(trips, 1):
            return trips is not None
        return not symbolic_dims.is_loop_variant(trips) and symbolic_dims.is_at_least_now(trips, 1)

    def capturing(self, operands: Sequence[Node], parameters: Sequence[Node], replaced: Mapping[Node, Node]) -> Node:
        """The loop with further captured operands, and nodes of its body replaced by others of the new parameters."""
        return with_captured(self.loop, operands, parameters, replaced)


def _inlined(region: Graph, operands: Sequence[Node]) -> list[Node]:
    """The outputs of a region of scalars for these operands, outside of it."""
    new = dict(zip(region.inputs, operands, strict=True))
    for node in region:
        if node not in new:
            new[node] = node.with_inputs([new[operand] for operand in node.inputs]) if node.inputs else node
    return [new[output] for output in region.outputs]


def with_captured(
    loop: Node, operands: Sequence[Node], parameters: Sequence[Node], replaced: Mapping[Node, Node]
) -> Node:
    """A loop with further captured operands, and nodes of its body replaced by others of the new parameters."""
    body, condition = loop.options["body"], loop.options["condition"]
    options = {
        **loop.options,
        "condition": clone_region([*condition.inputs, *parameters], condition.outputs, condition.checks),
        "body": clone_region([*body.inputs, *parameters], body.outputs, body.checks, replaced),
    }
    return Node("loop", (*loop.inputs, *operands), loop.dtype, loop.shape, options)


def where_it_runs(
    runs: Node | None, arrays: Sequence[Node], initial: Sequence[Node], others: Sequence[Node]
) -> list[Node]:
    """Arrays that are computed in a branch, if a loop runs, in the memory of initial ones; `others`: what they read."""
    if runs is None:
        return [*arrays]
    captured = list(dict.fromkeys([*initial, *others]))
    options = {
        "yes": clone_region(captured, arrays),
        "no": clone_region(captured, initial),
        "bases": tuple(map(captured.index, initial)),
    }
    return items(Node("branch", (runs, *captured), "int64", (), options), arrays)


def parameters_like(nodes: Sequence[Node]) -> list[Node]:
    """New parameters of a region for captured nodes."""
    return [parameter(node.dtype, node.shape, 0) for node in nodes]
