"""A loop in front of which something is computed, and how it captures the results."""

from collections.abc import Mapping, Sequence

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.regions import LoopParts, clone_region, is_tiled_loop, parameter
from jitkernels.compiler.transforms.invariants.backward_slice import BackwardSlice
from jitkernels.compiler.transforms.loop_ints import Ints
from jitkernels.compiler.transforms.loop_iterations import iterations_of

MIN_TRIPS = 2
"""Least iterations of a loop for which it pays to compute something in front of it."""
MAX_INVARIANT_ELEMENTS = 1 << 20
"""Most elements of an array that is computed there: it should stay in a cache."""


class OuterLoop:
    """A loop; `parts`: its operands and parameters, `backward`: what of its body is loop-invariant."""

    def __init__(self, loop: Node, ints: Ints) -> None:
        self.loop, self.ints, self.parts = loop, ints, LoopParts(loop)
        self.backward = BackwardSlice(self.parts)
        iterations = iterations_of(self.parts, ints)
        self.trip_count = None if iterations is None else iterations.trip_count

    def has_trips(self, least: int) -> bool:
        """Whether it has so many iterations now, as far as that is known; loops over tiles stay as they are."""
        if is_tiled_loop(self.loop):
            return False
        return self.trip_count is None or symbolic_dims.value_of(self.trip_count) >= least


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


def parameters_like(nodes: Sequence[Node]) -> list[Node]:
    """New parameters of a region for captured nodes."""
    return [parameter(node.dtype, node.shape, 0) for node in nodes]
