"""Operand checks of kernel calls in a trace, and the snapshot that a failed inlining restores."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import Argument
from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node


class Before:
    """A snapshot of a trace's guards, checks and inputs."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.guards, self.extents = dict(tracer.guards), dict(tracer.scope.guards)
        self.notes, self.inputs = dict(tracer.notes), len(tracer.inputs)
        self.checks, self.picks = len(tracer.checks), len(tracer.picks)

    def restore(self) -> None:
        tracer = self.tracer
        tracer.guards, tracer.scope.guards, tracer.notes = (dict(self.guards), dict(self.extents), dict(self.notes))
        del tracer.checks[self.checks :], tracer.picks[self.picks :], tracer.inputs[self.inputs :]
        del tracer.constants[len(tracer.constants) - (len(tracer.leaves) - self.inputs) :]
        del tracer.leaves[self.inputs :]

    def is_for_sizes(self) -> bool:
        """Whether new guards tie the trace to particular sizes."""
        guards = self.tracer.scope.guards
        new = [guards[key].extent for key in guards if key not in self.extents and key[1] == "=="]
        return any(abs(one.terms.get((), 0)) > 1 and ((-one).key, "==") not in self.extents for one in new)


def is_index_input(argument: Argument) -> bool:
    """Whether an input holds indices into another one."""
    return argument.dtype is not None and isinstance(argument.domain[1], str)


def check_index_bounds(tracer: Tracer, argument: Argument, node: Node, shapes: KernelShapes) -> None:
    """Add a check for out-of-bounds indices, on which the call bails out to the operator."""
    low, high = argument.domain
    last = builder.extent(shapes.values[str(high)])
    outside = builder.elementwise(
        "logical_or", builder.elementwise("less", node, int(low)), builder.elementwise("greater_equal", node, last)
    )
    tracer.checks.append(builder.reduce("any", outside, [*range(node.ndim)]))


def within(argument: Argument, node: Node, shapes: KernelShapes) -> Node:
    """Indices clamped to their bounds, as the check may run later."""
    low, high = argument.domain
    last = builder.elementwise("subtract", builder.extent(shapes.values[str(high)]), 1)
    return builder.elementwise("maximum", builder.elementwise("minimum", node, last), int(low))


def check_number_limits(tracer: Tracer, attr: Any, name: str, node: Node) -> None:
    """Add a check of a number's limits, on which the call bails out to the operator."""
    field = attr.known_fields()[name]
    most = min(field.most, float(np.finfo(attr.fields()["dtype"]).max))
    least = max(field.least, -most)
    fits = builder.elementwise(
        "logical_and",
        builder.elementwise("greater_equal", node, builder.constant(least, node.dtype)),
        builder.elementwise("less_equal", node, builder.constant(most, node.dtype)),
    )
    tracer.checks.append(builder.elementwise("logical_not", fits))


def in_dtype(tracer: Tracer, value: Traced, fields: Mapping[str, Any]) -> Traced:
    """A number rounded to the dtype of the attr."""
    made = fresh(tracer, builder.cast(builder.cast(value.node, fields["dtype"]), "float64"), is_scalar=True)
    made.is_weak = True
    return made
