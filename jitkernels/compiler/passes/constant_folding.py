"""Constant folding: what depends on nothing but constants is computed once, by NumPy and as NumPy does.

1. An elementwise operation of constants, which may be broadcast, is a constant.
2. A cast of a constant is one.
3. A cast of an extent is the extent in that dtype. Extents themselves stay: they are not known yet.
4. A reshape of a constant that is broadcast is a broadcast constant.
5. An update with a constant of an array that is that constant changes nothing.
"""

import numpy as np

from jitkernels.graph import construct, interpreter
from jitkernels.graph.ir import Node
from jitkernels.graph.passes.matching import KINDS, constant, constant_like, number, shaped
from jitkernels.graph.passes.rewriting import Facts, Rewriting
from jitkernels.graph.scalars import SCALARS

folding = Rewriting("folding")


@folding.rule(*SCALARS)
def rule_1_operation_of_constants(node: Node, facts: Facts) -> Node | None:
    values = [number(one) for one in node.inputs]
    if any(value is None for value in values):
        return None
    arrays = [np.asarray(value).astype(one.dtype) for value, one in zip(values, node.inputs, strict=True)]
    try:
        with np.errstate(all="ignore"):
            result = interpreter.of_node(node, arrays, int)
    except (ValueError, TypeError):
        return None  # NumPy refuses, and does so when it is called
    return constant_like(result.astype(node.dtype).item(), node)


@folding.rule("cast")
def rule_2_cast_of_constant(node: Node, facts: Facts) -> Node | None:
    value = number(node.inputs[0])
    if value is None:
        return None
    return shaped(construct.cast(constant(value, node.inputs[0].dtype), node.dtype), node.shape)


@folding.rule("cast")
def rule_3_cast_of_extent(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if inner.operation != "extent" or inner.dtype != "int64" or KINDS[node.dtype] == "b":
        return None
    return construct.extent(inner.options["extent"], node.dtype)


@folding.rule("reshape")
def rule_4_reshape_of_constant(node: Node, facts: Facts) -> Node | None:
    value = number(node.inputs[0])
    return None if value is None else constant_like(value, node)


@folding.rule("update")
def rule_5_update_with_the_same_constant(node: Node, facts: Facts) -> Node | None:
    array, value = map(number, node.inputs)
    if array is None or value is None:
        return None
    one, other = (np.asarray(item).astype(node.dtype).tobytes() for item in (array, value))
    return node.inputs[0] if one == other else None
