"""What has to hold of an everyday call for its code to be right, and what a trace goes back to where it has none."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph import construct
from jitkernels.graph.ir import Node
from jitkernels.named.shapes import KernelShapes
from jitkernels.signature import Argument


class Before:
    """What a trace knew, to which it goes back where a reference cannot be traced."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.guards, self.extents = dict(tracer.guards), dict(tracer.scope.guards)
        self.notes, self.inputs = dict(tracer.notes), len(tracer.inputs)
        self.checks, self.picks = len(tracer.checks), len(tracer.picks)

    def restore(self) -> None:
        tracer = self.tracer
        tracer.guards, tracer.scope.guards, tracer.notes = (
            dict(self.guards),
            dict(self.extents),
            dict(self.notes),
        )
        del tracer.checks[self.checks :], tracer.picks[self.picks :], tracer.inputs[self.inputs :]
        del tracer.constants[len(tracer.constants) - (len(tracer.leaves) - self.inputs) :]
        del tracer.leaves[self.inputs :]

    def is_for_sizes(self) -> bool:
        """Whether the trace is for some sizes alone since then."""
        guards = self.tracer.scope.guards
        new = [guards[key].extent for key in guards if key not in self.extents and key[1] == "=="]
        return any(abs(one.terms.get((), 0)) > 1 and ((-one).key, "==") not in self.extents for one in new)


def names_rows(argument: Argument) -> bool:
    """Whether an input is of numbers that have to name something in another."""
    return argument.dtype is not None and isinstance(argument.domain[1], str)


def look_at_indices(tracer: Tracer, argument: Argument, node: Node, shapes: KernelShapes) -> None:
    """Let the everyday function refuse numbers that name nothing."""
    low, high = argument.domain
    last = construct.extent(shapes.values[str(high)])
    outside = construct.elementwise(
        "logical_or",
        construct.elementwise("less", node, int(low)),
        construct.elementwise("greater_equal", node, last),
    )
    tracer.checks.append(construct.reduce("any", outside, [*range(node.ndim)]))


def within(argument: Argument, node: Node, shapes: KernelShapes) -> Node:
    """Numbers that name something in any case: the check of those that do not may come later."""
    low, high = argument.domain
    last = construct.elementwise("subtract", construct.extent(shapes.values[str(high)]), 1)
    return construct.elementwise("maximum", construct.elementwise("minimum", node, last), int(low))


def look_at_number(tracer: Tracer, attr: Any, name: str, node: Node) -> None:
    """Let the everyday function refuse a number that its row does not take."""
    field = attr.known_fields()[name]
    most = min(field.most, float(np.finfo(attr.fields()["dtype"]).max))
    least = max(field.least, -most)
    fits = construct.elementwise(
        "logical_and",
        construct.elementwise("greater_equal", node, construct.constant(least, node.dtype)),
        construct.elementwise("less_equal", node, construct.constant(most, node.dtype)),
    )
    tracer.checks.append(construct.elementwise("logical_not", fits))


def in_dtype(tracer: Tracer, value: Traced, fields: Mapping[str, Any]) -> Traced:
    """A number as the attr has it: the nearest of its dtype."""
    made = fresh(
        tracer, construct.cast(construct.cast(value.node, fields["dtype"]), "float64"), is_scalar=True
    )
    made.is_weak = True
    return made
