"""Algebra of sums, products and signs that holds for every value: NaN, infinities, signed zeros, integers that wrap.

1. ``x * 1``, ``x / 1`` and ``x // 1`` of integers are ``x``.
2. ``x - 0`` and ``x + -0.0`` are ``x``, and ``x + 0`` of integers; ``-0.0 + 0.0`` is ``0.0``, so floats keep that one.
3. ``x * 0`` of integers is 0.
4. ``x - x`` of integers is 0.
5. ``-(-x)`` and ``+x`` are ``x``.
6. ``abs`` of ``abs(x)``, of squares of floats and of unsigned integers is what it is of; ``abs(-x)`` is ``abs(x)``.
7. ``a + -b`` is ``a - b``, ``a - -b`` is ``a + b``.
8. ``-a * -b`` is ``a * b``, and so for quotients.
9. ``x * -1`` and ``x / -1`` are ``-x``.
10. ``-0.0 - x`` of floats and ``0 - x`` of integers are ``-x``.
11. ``(x + c) + d`` and ``(x * c) * d`` of integers have one constant.
12. ``square`` of ``-x`` and ``abs(x)`` is that of ``x``.
13. Rounding what is a whole number already changes nothing.
"""

import numpy as np

from jitkernels.graph.ir import Node
from jitkernels.graph.passes.matching import (
    KINDS,
    constant,
    constant_like,
    is_bool,
    is_float,
    is_integer,
    is_number,
    made,
    shaped,
    with_number,
)
from jitkernels.graph.passes.rewriting import Facts, Rewriting

arithmetic = Rewriting("arithmetic")


@arithmetic.rule("multiply", "divide", "floor_divide")
def rule_1_times_one(node: Node, facts: Facts) -> Node | None:
    left, right = node.inputs
    if is_number(right, 1) and (node.operation != "floor_divide" or is_integer(node)):
        return shaped(left, node.shape)
    return shaped(right, node.shape) if node.operation == "multiply" and is_number(left, 1) else None


@arithmetic.rule("add", "subtract")
def rule_2_plus_zero(node: Node, facts: Facts) -> Node | None:
    left, right = node.inputs
    if node.operation == "subtract":
        return shaped(left, node.shape) if is_number(right, 0) else None
    zero = -0.0 if is_float(node) else 0
    if is_number(right, zero):
        return shaped(left, node.shape)
    return shaped(right, node.shape) if is_number(left, zero) else None


@arithmetic.rule("multiply")
def rule_3_times_zero(node: Node, facts: Facts) -> Node | None:
    if is_integer(node) and any(is_number(one, 0) for one in node.inputs):
        return constant_like(0, node)
    return None


@arithmetic.rule("subtract")
def rule_4_minus_itself(node: Node, facts: Facts) -> Node | None:
    left, right = node.inputs
    return constant_like(0, node) if is_integer(node) and left is right else None


@arithmetic.rule("negative", "positive")
def rule_5_double_sign(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if node.operation == "positive":
        return inner
    return inner.inputs[0] if inner.operation == "negative" else None


@arithmetic.rule("absolute", "fabs")
def rule_6_sign_that_is_lost(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if KINDS[inner.dtype] in "ub":
        return inner
    if inner.operation in ("absolute", "fabs") or (inner.operation == "square" and is_float(inner)):
        return inner
    return made(node.operation, inner.inputs, node) if inner.operation == "negative" else None


@arithmetic.rule("add", "subtract")
def rule_7_negative_term(node: Node, facts: Facts) -> Node | None:
    left, right = node.inputs
    if right.operation == "negative":
        return made("subtract" if node.operation == "add" else "add", (left, right.inputs[0]), node)
    if node.operation == "add" and left.operation == "negative":
        return made("subtract", (right, left.inputs[0]), node)
    return None


@arithmetic.rule("multiply", "divide")
def rule_8_negative_factors(node: Node, facts: Facts) -> Node | None:
    if not all(one.operation == "negative" for one in node.inputs):
        return None
    return made(node.operation, [one.inputs[0] for one in node.inputs], node)


@arithmetic.rule("multiply", "divide")
def rule_9_times_minus_one(node: Node, facts: Facts) -> Node | None:
    left, right = node.inputs
    if is_number(right, -1):
        return made("negative", (left,), node)
    return made("negative", (right,), node) if node.operation == "multiply" and is_number(left, -1) else None


@arithmetic.rule("subtract")
def rule_10_zero_minus(node: Node, facts: Facts) -> Node | None:
    left, right = node.inputs
    zero = -0.0 if is_float(node) else 0
    return made("negative", (right,), node) if is_number(left, zero) else None


@arithmetic.rule("add", "multiply")
def rule_11_constants_together(node: Node, facts: Facts) -> Node | None:
    return None if is_float(node) or is_bool(node) else joined_constants(node)


def joined_constants(node: Node) -> Node | None:
    """``(x + c) + d`` with the constants joined, and so for products; None of any other node."""
    outer = with_number(node)
    if outer is None or outer[0].operation != node.operation:
        return None
    inner = with_number(outer[0])
    if inner is None:
        return None
    kind = np.dtype(node.dtype)
    one, other = (np.asarray(value).astype(kind) for value in (inner[2], outer[2]))
    with np.errstate(all="ignore"):
        joined = np.add(one, other) if node.operation == "add" else np.multiply(one, other)
    return made(node.operation, (inner[0], constant(joined.item(), node.dtype)), node)


@arithmetic.rule("square")
def rule_12_square_of_signed(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    return made("square", inner.inputs, node) if inner.operation in ("negative", "absolute", "fabs") else None


WHOLE = ("floor", "ceil", "trunc", "rint")


@arithmetic.rule(*WHOLE)
def rule_13_rounded_already(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if inner.dtype != node.dtype:
        return None
    return inner if not is_float(inner) or inner.operation in WHOLE else None
