"""Derivatives of kernels by kernels: what a call becomes where it is differentiated, and its vector-Jacobian product.

Other kernels are inlined as their references there. A rule is a NumPy function of everyday functions, which is traced
in the reverse pass; those have rules themselves, so that derivatives of higher order and tangents follow.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.kernels.inline_reference import TracedFields
from jitkernels.compiler.capture.kernels.kernel_node import build_kernel_node
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes
from jitkernels.compiler.capture.kernels.vjp_registry import rules
from jitkernels.compiler.capture.numpy.numpy_callouts import traced_copy
from jitkernels.compiler.capture.symint import as_symint
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir.graph import Node


def differentiable_call(
    tracer: Tracer, shapes: KernelShapes, function: Any, values: Mapping[str, Any], options: Mapping[str, Any]
) -> list[Node] | None:
    """The results of a call that is differentiated, if its kernel has a rule; None inside of loops and branches."""
    rule = rules().get(shapes.schema)
    if rule is None or tracer.depth:
        return None
    expanded = traced_copy(rule.expand)(shapes.form.attr, function, values)
    if expanded is not None:
        return [traced(tracer, expanded).node]
    return build_kernel_node(tracer, shapes, options, vjp=kernel_cotangents)


def kernel_cotangents(node: Node, result_cotangents: Mapping[int, Node]) -> list[Node | None]:
    """The cotangents of the inputs of a kernel with a rule."""
    tracer = current()
    assert tracer is not None, "derivatives are built while a function is traced"
    kernel = node.options["function"]
    fields: dict[str, Any] = {name: as_symint(tracer, value) for name, value in kernel.values.items()}
    cotangent, inputs = fresh(tracer, result_cotangents[0]), [fresh(tracer, operand) for operand in node.inputs]
    tracer.differentiates += 1  # the rule's own calls get rules: tangents are transposed cotangents
    try:
        rule = traced_copy(rules()[type(kernel.attr)].cotangents)
        parts: Sequence[Traced | None] = rule(TracedFields(kernel.attr, fields), cotangent, *inputs)
    finally:
        tracer.differentiates -= 1
    return [None if part is None else traced(tracer, part).node for part in parts]
