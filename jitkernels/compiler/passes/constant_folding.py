"""Constant folding: evaluate nodes whose operands are constants, by NumPy itself.

1. An elementwise operation of constants, broadcast or not, becomes a constant.
2. A cast of a constant becomes a constant.
3. A cast of an extent becomes the extent in that dtype. Extents stay symbolic: only a call knows their values.
4. A reshape of a broadcast constant becomes a broadcast constant.
5. An update that writes a constant to an array of the same constant becomes that array.
"""

import numpy as np

from jitkernels.compiler.ir import builder, interpreter
from jitkernels.compiler.ir.elementwise_ops import SCALARS
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.passes.matchers import KINDS, broadcast_like, constant_like, constant_value
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass

constant_folding_pass = RewritePass("constant_folding")


@constant_folding_pass.rule(*SCALARS)
def rule_1_operation_of_constants(node: Node, context: MatchContext) -> Node | None:
    values = [constant_value(operand) for operand in node.inputs]
    if any(value is None for value in values):
        return None
    arrays = [np.asarray(value).astype(operand.dtype) for value, operand in zip(values, node.inputs, strict=True)]
    try:
        with np.errstate(all="ignore"):
            result = interpreter.of_node(node, arrays, int)
    except (ValueError, TypeError):
        return None  # NumPy raises: the compiled call has to raise, not the compiler
    return constant_like(result.astype(node.dtype).item(), node)


@constant_folding_pass.rule("cast")
def rule_2_cast_of_constant(node: Node, context: MatchContext) -> Node | None:
    value = constant_value(node.inputs[0])
    if value is None:
        return None
    return broadcast_like(builder.cast(builder.constant(value, node.inputs[0].dtype), node.dtype), node.shape)


@constant_folding_pass.rule("cast")
def rule_3_cast_of_extent(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if inner.operation != "extent" or inner.dtype != "int64" or KINDS[node.dtype] == "b":
        return None
    return builder.extent(inner.options["extent"], node.dtype)


@constant_folding_pass.rule("reshape")
def rule_4_reshape_of_constant(node: Node, context: MatchContext) -> Node | None:
    value = constant_value(node.inputs[0])
    return None if value is None else constant_like(value, node)


@constant_folding_pass.rule("update")
def rule_5_update_with_the_same_constant(node: Node, context: MatchContext) -> Node | None:
    array, value = map(constant_value, node.inputs)
    if array is None or value is None:
        return None
    old_bytes, new_bytes = (np.asarray(item).astype(node.dtype).tobytes() for item in (array, value))
    return node.inputs[0] if old_bytes == new_bytes else None
