"""Operand checks of kernel calls in a trace, and the snapshot that a failed inlining restores."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import Argument
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node


class TraceSnapshot:
    """A snapshot of a trace's guards, checks and inputs."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.guards, self.extents = dict(tracer.guards), dict(tracer.scope.guards)
        self.notes, self.inputs = dict(tracer.notes), len(tracer.inputs)
        self.checks, self.picks = len(tracer.checks), len(tracer.picks)
        self.bailouts, self.has_flows = len(tracer.bailout_results), tracer.has_flows

    def restore(self) -> None:
        tracer = self.tracer
        tracer.guards, tracer.scope.guards, tracer.notes = (dict(self.guards), dict(self.extents), dict(self.notes))
        del tracer.checks[self.checks :], tracer.picks[self.picks :]
        del tracer.bailout_results[self.bailouts :]
        tracer.has_flows = self.has_flows
        tracer.truncate_inputs(self.inputs)

    def is_specialized_to_sizes(self) -> bool:
        """Whether new guards tie the trace to particular sizes."""
        guards = self.tracer.scope.guards
        new = [guards[key].extent for key in guards if key not in self.extents and key[1] == "=="]
        return any(abs(extent.terms.get((), 0)) > 1 and ((-extent).key, "==") not in self.extents for extent in new)


def is_index_input(argument: Argument) -> bool:
    """Whether an input holds indices into another one."""
    return argument.dtype is not None and isinstance(argument.domain[1], str)


def check_index_bounds(tracer: Tracer, argument: Argument, node: Node, shapes: KernelShapes) -> None:
    """Add a check for out-of-bounds indices, on which the call bails out to the operator."""
    low, high = argument.domain
    last = builder.extent(shapes.values[str(high)])
    outside = elementwise("logical_or", elementwise("less", node, int(low)), elementwise("greater_equal", node, last))
    tracer.checks.append(builder.reduce("any", outside, [*range(node.ndim)]))


def clamp_indices(argument: Argument, node: Node, shapes: KernelShapes) -> Node:
    """Indices clamped to their bounds, as the check may run later."""
    low, high = argument.domain
    last = elementwise("subtract", builder.extent(shapes.values[str(high)]), 1)
    return elementwise("maximum", elementwise("minimum", node, last), int(low))


def check_number_limits(tracer: Tracer, attr: Any, name: str, node: Node) -> None:
    """Add a check of a number's limits, on which the call bails out to the operator."""
    field = attr.known_fields()[name]
    most = min(field.most, float(np.finfo(attr.fields()["dtype"]).max))
    least = max(field.least, -most)
    fits = elementwise(
        "logical_and",
        elementwise("greater_equal", node, builder.constant(least, node.dtype)),
        elementwise("less_equal", node, builder.constant(most, node.dtype)),
    )
    tracer.checks.append(elementwise("logical_not", fits))


def round_to_dtype(value: Traced, dtype: str) -> Node:
    """A number rounded to the dtype of the attr."""
    return builder.cast(builder.cast(value.node, dtype), "float64")
