"""Algebra of sums, products and signs that is exact for every value: NaN, infinities, signed zeros, wrapping integers.

1. ``x * 1``, ``x / 1`` and ``x // 1`` of integers become ``x``.
2. ``x - 0``, ``x + -0.0``, and ``x + 0`` of integers become ``x``; ``-0.0 + 0.0`` is ``0.0``, so ``x + 0.0`` of floats
   stays.
3. ``x * 0`` of integers becomes 0.
4. ``x - x`` of integers becomes 0.
5. ``-(-x)`` and ``+x`` become ``x``.
6. ``abs`` of ``abs(x)``, of a square of floats and of unsigned integers becomes its operand; ``abs(-x)`` becomes
   ``abs(x)``.
7. ``a + -b`` becomes ``a - b``, and ``a - -b`` becomes ``a + b``.
8. ``-a * -b`` becomes ``a * b``; quotients likewise.
9. ``x * -1`` and ``x / -1`` become ``-x``.
10. ``-0.0 - x`` of floats and ``0 - x`` of integers become ``-x``.
11. ``(x + c) + d`` and ``(x * c) * d`` of integers fold their two constants to one.
12. ``square`` of ``-x`` and of ``abs(x)`` becomes ``square(x)``.
13. ``floor``, ``ceil``, ``trunc`` and ``rint`` of a value that is already integral become that value.
"""

import numpy as np

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.passes.matchers import (
    KINDS,
    broadcast_like,
    constant_like,
    is_bool,
    is_constant,
    is_float,
    is_integer,
    replacement_like,
    split_constant_operand,
)
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass

algebraic_simplify_pass = RewritePass("algebraic_simplify")


@algebraic_simplify_pass.rule("multiply", "divide", "floor_divide")
def rule_1_times_one(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    if is_constant(right, 1) and (node.operation != "floor_divide" or is_integer(node)):
        return broadcast_like(left, node.shape)
    return broadcast_like(right, node.shape) if node.operation == "multiply" and is_constant(left, 1) else None


@algebraic_simplify_pass.rule("add", "subtract")
def rule_2_plus_zero(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    if node.operation == "subtract":
        return broadcast_like(left, node.shape) if is_constant(right, 0) else None
    zero = -0.0 if is_float(node) else 0
    if is_constant(right, zero):
        return broadcast_like(left, node.shape)
    return broadcast_like(right, node.shape) if is_constant(left, zero) else None


@algebraic_simplify_pass.rule("multiply")
def rule_3_times_zero(node: Node, context: MatchContext) -> Node | None:
    if is_integer(node) and any(is_constant(operand, 0) for operand in node.inputs):
        return constant_like(0, node)
    return None


@algebraic_simplify_pass.rule("subtract")
def rule_4_minus_itself(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    return constant_like(0, node) if is_integer(node) and left is right else None


@algebraic_simplify_pass.rule("negative", "positive")
def rule_5_double_sign(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if node.operation == "positive":
        return inner
    return inner.inputs[0] if inner.operation == "negative" else None


@algebraic_simplify_pass.rule("absolute", "fabs")
def rule_6_sign_that_is_lost(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if KINDS[inner.dtype] in "ub":
        return inner
    if inner.operation in ("absolute", "fabs") or (inner.operation == "square" and is_float(inner)):
        return inner
    return replacement_like(node.operation, inner.inputs, node) if inner.operation == "negative" else None


@algebraic_simplify_pass.rule("add", "subtract")
def rule_7_negative_term(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    if right.operation == "negative":
        return replacement_like("subtract" if node.operation == "add" else "add", (left, right.inputs[0]), node)
    if node.operation == "add" and left.operation == "negative":
        return replacement_like("subtract", (right, left.inputs[0]), node)
    return None


@algebraic_simplify_pass.rule("multiply", "divide")
def rule_8_negative_factors(node: Node, context: MatchContext) -> Node | None:
    if not all(operand.operation == "negative" for operand in node.inputs):
        return None
    return replacement_like(node.operation, [operand.inputs[0] for operand in node.inputs], node)


@algebraic_simplify_pass.rule("multiply", "divide")
def rule_9_times_minus_one(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    if is_constant(right, -1):
        return replacement_like("negative", (left,), node)
    return (
        replacement_like("negative", (right,), node) if node.operation == "multiply" and is_constant(left, -1) else None
    )


@algebraic_simplify_pass.rule("subtract")
def rule_10_zero_minus(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    zero = -0.0 if is_float(node) else 0
    return replacement_like("negative", (right,), node) if is_constant(left, zero) else None


@algebraic_simplify_pass.rule("add", "multiply")
def rule_11_constants_together(node: Node, context: MatchContext) -> Node | None:
    return None if is_float(node) or is_bool(node) else fold_nested_constants(node)


def fold_nested_constants(node: Node) -> Node | None:
    """``(x + c) + d`` and ``(x * c) * d`` with c and d folded to one constant; None for any other node."""
    outer = split_constant_operand(node)
    if outer is None or outer[0].operation != node.operation:
        return None
    inner = split_constant_operand(outer[0])
    if inner is None:
        return None
    kind = np.dtype(node.dtype)
    inner_value, outer_value = (np.asarray(value).astype(kind) for value in (inner[2], outer[2]))
    with np.errstate(all="ignore"):
        joined = np.add(inner_value, outer_value) if node.operation == "add" else np.multiply(inner_value, outer_value)
    return replacement_like(node.operation, (inner[0], builder.constant(joined.item(), node.dtype)), node)


@algebraic_simplify_pass.rule("square")
def rule_12_square_of_signed(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    return (
        replacement_like("square", inner.inputs, node) if inner.operation in ("negative", "absolute", "fabs") else None
    )


ROUNDING_OPERATIONS = ("floor", "ceil", "trunc", "rint")


@algebraic_simplify_pass.rule(*ROUNDING_OPERATIONS)
def rule_13_rounded_already(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if inner.dtype != node.dtype:
        return None
    return inner if not is_float(inner) or inner.operation in ROUNDING_OPERATIONS else None
