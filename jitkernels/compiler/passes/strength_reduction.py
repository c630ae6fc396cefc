"""Strength reduction: powers, divisions and remainders by constants, as products, roots, shifts and masks.

Results differ from those of the functions by at most 2 ULP, special values by nothing.

1. ``x ** 0`` is 1, also of NaN, and ``1 ** x`` is 1; ``x ** 1`` is ``x``.
2. ``x ** 2``, ``x ** 3`` and ``x ** 4`` are products; other whole powers of integers are, by repeated squaring.
3. ``x ** -1`` is a reciprocal, ``x ** -2`` its square: the square of x first would overflow where the result does not.
4. ``x ** 0.5`` is a root, as it is for NumPy if the exponent is one number, ``x ** -0.5`` the reciprocal of one where
   ``-0.0`` is 0 and ``-inf`` is ``inf`` before.
5. ``2 ** x`` is ``exp2(x)``.
6. ``x * x`` is ``square(x)``: one name for it, so that both are one subexpression.
7. ``1 / x`` is ``reciprocal(x)``, for the same reason.
8. ``x / c`` is ``x * (1 / c)`` where c is a power of two of which the reciprocal is a number: both are exact.
9. ``x // 2**k`` of integers is a shift.
10. ``x % 2**k`` of integers is a mask: the remainder has the sign of the divisor.
11. ``x * 2`` of floats is ``x + x``.
12. ``where(x < 0, e, 1) / (1 + e)`` with ``e = exp(-abs(x))`` is ``sigmoid(x)``, which rounds less.
"""

import math

import numpy as np

from jitkernels.graph.ir import Node
from jitkernels.graph.passes.matching import (
    KINDS,
    common_shape,
    constant,
    constant_like,
    is_float,
    is_integer,
    is_number,
    made,
    number,
    shaped,
)
from jitkernels.graph.passes.rewriting import Facts, Rewriting

strength = Rewriting("strength")


def exponent_of(node: Node) -> float | None:
    """The exponent that a power of floats or integers has, if it is a constant."""
    value = number(node.inputs[1])
    return None if value is None else float(value)


def step(name: str, *inputs: Node, dtype: str = "") -> Node:
    """An operation on the way to a result: of the shape that its operands have together."""
    shape = common_shape(one.shape for one in inputs)
    return Node(name, inputs, dtype or inputs[-1].dtype, inputs[0].shape if shape is None else shape)


@strength.rule("power")
def rule_1_power_of_zero_or_one(node: Node, facts: Facts) -> Node | None:
    exponent = exponent_of(node)
    if exponent == 0 or is_number(node.inputs[0], 1):
        return constant_like(1, node)
    return shaped(node.inputs[0], node.shape) if exponent == 1 else None


@strength.rule("power")
def rule_2_power_by_products(node: Node, facts: Facts) -> Node | None:
    exponent = exponent_of(node)
    if exponent is None or exponent != int_of(exponent) or exponent < 2:
        return None
    if exponent > (4 if is_float(node) else 64):
        return None
    return shaped(raised(node.inputs[0], int(exponent)), node.shape)


def int_of(value: float) -> int:
    return int(value) if math.isfinite(value) else 0


def raised(node: Node, exponent: int) -> Node:
    """A whole power of at least 1, by squaring."""
    result = None
    while True:
        if exponent & 1:
            result = node if result is None else step("multiply", result, node)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        node = step("square", node)


@strength.rule("power")
def rule_3_power_of_reciprocal(node: Node, facts: Facts) -> Node | None:
    exponent = exponent_of(node)
    if not is_float(node) or exponent not in (-1, -2):
        return None
    inverse = step("reciprocal", node.inputs[0])
    return shaped(inverse if exponent == -1 else step("square", inverse), node.shape)


@strength.rule("power")
def rule_4_power_by_root(node: Node, facts: Facts) -> Node | None:
    exponent, base = exponent_of(node), node.inputs[0]
    if not is_float(node) or exponent not in (0.5, -0.5):
        return None
    if exponent == 0.5:
        return made("sqrt", (base,), node)
    positive = step("add", base, constant(0.0, base.dtype))
    lowest = step("equal", base, constant(-math.inf, base.dtype), dtype="bool")
    root = step("where", lowest, constant(math.inf, base.dtype), step("sqrt", positive))
    return made("reciprocal", (root,), node)


@strength.rule("power")
def rule_5_power_of_two(node: Node, facts: Facts) -> Node | None:
    return made("exp2", (node.inputs[1],), node) if is_float(node) and is_number(node.inputs[0], 2) else None


@strength.rule("multiply")
def rule_6_square(node: Node, facts: Facts) -> Node | None:
    one, other = node.inputs
    return made("square", (one,), node) if one is other else None


@strength.rule("divide")
def rule_7_reciprocal(node: Node, facts: Facts) -> Node | None:
    return made("reciprocal", (node.inputs[1],), node) if is_number(node.inputs[0], 1) else None


@strength.rule("divide")
def rule_8_division_by_power_of_two(node: Node, facts: Facts) -> Node | None:
    value = number(node.inputs[1])
    if value is None or abs(math.frexp(value)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        inverse = float(np.dtype(node.dtype).type(1) / np.dtype(node.dtype).type(value))
    if inverse * value != 1:
        return None
    return made("multiply", (node.inputs[0], constant(inverse, node.dtype)), node)


def shift_of(node: Node) -> int | None:
    """k where the second operand of integers is 2**k."""
    value = number(node.inputs[1])
    if not is_integer(node) or value is None or value <= 0 or value & (value - 1):
        return None
    return int(value).bit_length() - 1


@strength.rule("floor_divide")
def rule_9_quotient_by_shift(node: Node, facts: Facts) -> Node | None:
    shift = shift_of(node)
    return None if shift is None else made("right_shift", (node.inputs[0], constant(shift, node.dtype)), node)


@strength.rule("remainder")
def rule_10_remainder_by_mask(node: Node, facts: Facts) -> Node | None:
    shift = shift_of(node)
    if shift is None:
        return None
    return made("bitwise_and", (node.inputs[0], constant((1 << shift) - 1, node.dtype)), node)


@strength.rule("multiply")
def rule_11_doubled(node: Node, facts: Facts) -> Node | None:
    one, other = node.inputs
    doubled = one if is_number(other, 2) else other if is_number(one, 2) else None
    return made("add", (doubled, doubled), node) if doubled is not None and KINDS[node.dtype] == "f" else None


@strength.rule("divide")
def rule_12_sigmoid(node: Node, facts: Facts) -> Node | None:
    choice, total = node.inputs
    if choice.operation != "where" or total.operation != "add" or node.dtype not in ("float32", "float64"):
        return None
    is_negative, small, largest = choice.inputs
    summands = [one for one in total.inputs if one is not small]
    if len(summands) != 1 or not (is_number(summands[0], 1) and is_number(largest, 1)):
        return None
    chain = [small]
    for name in ("exp", "negative", "absolute"):
        if chain[-1].operation != name:
            return None
        chain.append(chain[-1].inputs[0])
    x = chain[-1]
    if (
        is_negative.operation != "less"
        or is_negative.inputs[0] is not x
        or not is_number(is_negative.inputs[1], 0)
    ):
        return None
    return made("sigmoid", (x,), node)
