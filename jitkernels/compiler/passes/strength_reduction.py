"""Strength reduction: powers, divisions and remainders by constants become products, roots, shifts and masks.

Results differ from those of the original functions by at most 2 ULP; special values are the same.

1. ``x ** 0`` becomes 1, also for NaN, and ``1 ** x`` becomes 1; ``x ** 1`` becomes ``x``.
2. ``x ** 2``, ``x ** 3`` and ``x ** 4`` become products; other integral powers of integers do by repeated squaring.
3. ``x ** -1`` becomes a reciprocal, ``x ** -2`` its square: squaring x first would overflow where the result does not.
   ``x ** -3`` becomes ``1 / x / x / x`` for that reason.
4. ``x ** 0.5`` becomes a square root, as NumPy computes it for a scalar exponent; ``x ** -0.5`` becomes its reciprocal,
   with ``-0.0`` replaced by 0 and ``-inf`` by ``inf`` before. ``x ** 1.5`` becomes ``x * sqrt(x)``, and ``x ** -1.5``
   becomes ``1 / x / sqrt(x)``, with ``-inf`` replaced.
5. ``2 ** x`` becomes ``exp2(x)``.
6. ``x * x`` becomes ``square(x)``: one canonical form, so that both are one subexpression.
7. ``1 / x`` becomes ``reciprocal(x)``, for the same reason.
8. ``x / c`` becomes ``x * (1 / c)`` where c is a power of two with a finite reciprocal: both are exact.
9. ``x // 2**k`` of integers becomes a shift.
10. ``x % 2**k`` of integers becomes a mask: the remainder has the sign of the divisor.
11. ``x * 2`` of floats becomes ``x + x``.
12. ``where(x < 0, e, 1) / (1 + e)`` with ``e = exp(-abs(x))`` becomes ``sigmoid(x)``, which rounds less.
"""

import math

import numpy as np

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.passes.matchers import (
    KINDS,
    broadcast_like,
    common_shape,
    constant_like,
    constant_value,
    is_constant,
    is_float,
    is_integer,
    replacement_like,
)
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass

strength_reduction_pass = RewritePass("strength_reduction")


def exponent_of(node: Node) -> float | None:
    """The exponent of a power of floats or integers if it is constant, else None."""
    value = constant_value(node.inputs[1])
    return None if value is None else float(value)


def step(name: str, *inputs: Node, dtype: str = "") -> Node:
    """An intermediate node: it has the broadcast shape of its operands."""
    shape = common_shape(operand.shape for operand in inputs)
    return Node(name, inputs, dtype or inputs[-1].dtype, inputs[0].shape if shape is None else shape)


@strength_reduction_pass.rule("power")
def rule_1_power_of_zero_or_one(node: Node, context: MatchContext) -> Node | None:
    exponent = exponent_of(node)
    if exponent == 0 or is_constant(node.inputs[0], 1):
        return constant_like(1, node)
    return broadcast_like(node.inputs[0], node.shape) if exponent == 1 else None


@strength_reduction_pass.rule("power")
def rule_2_power_by_products(node: Node, context: MatchContext) -> Node | None:
    exponent = exponent_of(node)
    if exponent is None or exponent != int_of(exponent) or exponent < 2:
        return None
    if exponent > (4 if is_float(node) else 64):
        return None
    return broadcast_like(power_by_squaring(node.inputs[0], int(exponent)), node.shape)


def int_of(value: float) -> int:
    return int(value) if math.isfinite(value) else 0


def power_by_squaring(node: Node, exponent: int) -> Node:
    """An integral power of at least 1 by repeated squaring."""
    result = None
    while True:
        if exponent & 1:
            result = node if result is None else step("multiply", result, node)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        node = step("square", node)


@strength_reduction_pass.rule("power")
def rule_3_power_of_reciprocal(node: Node, context: MatchContext) -> Node | None:
    exponent = exponent_of(node)
    if not is_float(node) or exponent not in (-1, -2, -3):
        return None
    base = node.inputs[0]
    inverse = step("reciprocal", base)
    if exponent == -3:
        return broadcast_like(step("divide", step("divide", inverse, base), base), node.shape)
    return broadcast_like(inverse if exponent == -1 else step("square", inverse), node.shape)


@strength_reduction_pass.rule("power")
def rule_4_power_by_root(node: Node, context: MatchContext) -> Node | None:
    exponent, base = exponent_of(node), node.inputs[0]
    if not is_float(node) or exponent not in (0.5, -0.5, 1.5, -1.5):
        return None
    if exponent == 0.5:
        return replacement_like("sqrt", (base,), node)
    infinity = builder.constant(math.inf, base.dtype)
    lowest = step("equal", base, builder.constant(-math.inf, base.dtype), dtype="bool")
    if exponent == -0.5:
        positive = step("add", base, builder.constant(0.0, base.dtype))
        return replacement_like("reciprocal", (step("where", lowest, infinity, step("sqrt", positive)),), node)
    base = step("where", lowest, infinity, base)
    if exponent == 1.5:
        return replacement_like("multiply", (base, step("sqrt", base)), node)
    return replacement_like("divide", (step("reciprocal", base), step("sqrt", base)), node)


@strength_reduction_pass.rule("power")
def rule_5_power_of_two(node: Node, context: MatchContext) -> Node | None:
    return (
        replacement_like("exp2", (node.inputs[1],), node) if is_float(node) and is_constant(node.inputs[0], 2) else None
    )


@strength_reduction_pass.rule("multiply")
def rule_6_square(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    return replacement_like("square", (left,), node) if left is right else None


@strength_reduction_pass.rule("divide")
def rule_7_reciprocal(node: Node, context: MatchContext) -> Node | None:
    return replacement_like("reciprocal", (node.inputs[1],), node) if is_constant(node.inputs[0], 1) else None


@strength_reduction_pass.rule("divide")
def rule_8_division_by_power_of_two(node: Node, context: MatchContext) -> Node | None:
    value = constant_value(node.inputs[1])
    if value is None or abs(math.frexp(value)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        inverse = float(np.dtype(node.dtype).type(1) / np.dtype(node.dtype).type(value))
    if inverse * value != 1:
        return None
    return replacement_like("multiply", (node.inputs[0], builder.constant(inverse, node.dtype)), node)


def shift_of(node: Node) -> int | None:
    """k where the second operand of integers is 2**k."""
    value = constant_value(node.inputs[1])
    if not is_integer(node) or value is None or value <= 0 or value & (value - 1):
        return None
    return int(value).bit_length() - 1


@strength_reduction_pass.rule("floor_divide")
def rule_9_quotient_by_shift(node: Node, context: MatchContext) -> Node | None:
    shift = shift_of(node)
    return (
        None
        if shift is None
        else replacement_like("right_shift", (node.inputs[0], builder.constant(shift, node.dtype)), node)
    )


@strength_reduction_pass.rule("remainder")
def rule_10_remainder_by_mask(node: Node, context: MatchContext) -> Node | None:
    shift = shift_of(node)
    if shift is None:
        return None
    return replacement_like("bitwise_and", (node.inputs[0], builder.constant((1 << shift) - 1, node.dtype)), node)


@strength_reduction_pass.rule("multiply")
def rule_11_doubled(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    doubled = left if is_constant(right, 2) else right if is_constant(left, 2) else None
    return (
        replacement_like("add", (doubled, doubled), node) if doubled is not None and KINDS[node.dtype] == "f" else None
    )


@strength_reduction_pass.rule("divide")
def rule_12_sigmoid(node: Node, context: MatchContext) -> Node | None:
    select, total = node.inputs
    if select.operation != "where" or total.operation != "add" or node.dtype not in ("float32", "float64"):
        return None
    condition, small, largest = select.inputs
    addends = [operand for operand in total.inputs if operand is not small]
    if len(addends) != 1 or not (is_constant(addends[0], 1) and is_constant(largest, 1)):
        return None
    chain = [small]
    for name in ("exp", "negative", "absolute"):
        if chain[-1].operation != name:
            return None
        chain.append(chain[-1].inputs[0])
    x = chain[-1]
    if condition.operation != "less" or condition.inputs[0] is not x or not is_constant(condition.inputs[1], 0):
        return None
    return replacement_like("sigmoid", (x,), node)
