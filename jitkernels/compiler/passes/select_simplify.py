"""Algebra of selects, comparisons, bits, minima, maxima and casts, exact for every value.

1. ``where`` with a constant condition, or with two equal branches, becomes the selected branch.
2. ``where(not c, a, b)`` becomes ``where(c, b, a)``.
3. ``where(c, True, False)`` becomes ``c``, and ``where(c, False, True)`` becomes ``not c``.
4. Maxima, minima and bitwise operations of a value with itself become the value; its ``xor`` with itself becomes 0.
5. ``x & -1``, ``x | 0``, ``x ^ 0`` and shifts by 0 become ``x``; ``x & 0`` becomes 0 and ``x | -1`` becomes -1.
6. ``not not x`` of bools and ``~~x`` become ``x``.
7. ``not (a == b)`` becomes ``a != b``, and the reverse; so do inequalities of integers, which have no NaN.
8. A bool compared with a constant becomes itself or its inverse, also behind a cast to numbers.
9. A comparison of integers with themselves becomes a constant.
10. A cast to the same dtype becomes its operand; of two casts the first goes if it is lossless, or if the second drops
    what the first one does.
11. Arithmetic in wider floats that is rounded at once is done in the narrow ones: sums, products, quotients and square
    roots of numbers with p bits are the same when they are first rounded to 2p + 2 bits.
12. ``max(max(x, c), d)`` folds its two constants to one; ``min`` likewise.
"""

import numpy as np

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.passes.matchers import (
    KINDS,
    broadcast_like,
    constant_like,
    constant_value,
    is_all_ones,
    is_bool,
    is_constant,
    is_float,
    replacement_like,
    split_constant_operand,
)
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass

select_simplify_pass = RewritePass("select_simplify")
OPPOSITE = {"equal": "not_equal", "not_equal": "equal"}
INVERSE = {
    **OPPOSITE,
    "less": "greater_equal",
    "greater_equal": "less",
    "greater": "less_equal",
    "less_equal": "greater",
}
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
BOOL_EQUIVALENTS = {
    "logical_and": "bitwise_and",
    "logical_or": "bitwise_or",
    "logical_xor": "bitwise_xor",
    "multiply": "bitwise_and",
    "add": "bitwise_or",
}
"""The bitwise operation that each of these is for bools."""
EXTREMES = ("maximum", "minimum", "fmax", "fmin")


@select_simplify_pass.rule("where")
def rule_1_choice_that_is_known(node: Node, context: MatchContext) -> Node | None:
    condition, if_true, if_false = node.inputs
    if if_true is if_false:
        return broadcast_like(if_true, node.shape)
    known = constant_value(condition)
    return None if known is None else broadcast_like(if_true if known else if_false, node.shape)


@select_simplify_pass.rule("where")
def rule_2_inverted_condition(node: Node, context: MatchContext) -> Node | None:
    condition, if_true, if_false = node.inputs
    if condition.operation in ("logical_not", "invert") and is_bool(condition.inputs[0]):
        return replacement_like("where", (condition.inputs[0], if_false, if_true), node)
    return None


@select_simplify_pass.rule("where")
def rule_3_choice_of_truths(node: Node, context: MatchContext) -> Node | None:
    condition, if_true, if_false = node.inputs
    values = constant_value(if_true), constant_value(if_false)
    if not is_bool(node) or None in values or values[0] == values[1]:
        return None
    return broadcast_like(condition, node.shape) if values[0] else replacement_like("logical_not", (condition,), node)


def bitwise_equivalent(node: Node) -> str:
    """The bitwise operation that a node is equivalent to; "" for any other node."""
    if node.operation in BITS:
        return node.operation
    return BOOL_EQUIVALENTS.get(node.operation, "") if is_bool(node.inputs[0]) else ""


@select_simplify_pass.rule(*BITS, *BOOL_EQUIVALENTS, *EXTREMES)
def rule_4_with_itself(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    bits = bitwise_equivalent(node)
    if left is not right or not (bits or node.operation in EXTREMES):
        return None
    return constant_like(0, node) if bits == "bitwise_xor" else left


@select_simplify_pass.rule(*BITS, *BOOL_EQUIVALENTS, "left_shift", "right_shift")
def rule_5_none_or_all_bits(node: Node, context: MatchContext) -> Node | None:
    bits = bitwise_equivalent(node)
    if node.operation in ("left_shift", "right_shift"):
        return broadcast_like(node.inputs[0], node.shape) if is_constant(node.inputs[1], 0) else None
    for operand, mask in (node.inputs, reversed(node.inputs)):
        if not bits:
            return None
        if is_constant(mask, 0):
            return constant_like(0, node) if bits == "bitwise_and" else broadcast_like(operand, node.shape)
        if is_all_ones(mask) and bits != "bitwise_xor":
            return broadcast_like(operand if bits == "bitwise_and" else mask, node.shape)
    return None


@select_simplify_pass.rule("logical_not", "invert")
def rule_6_twice_inverted(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if inner.operation not in ("logical_not", "invert") or inner.inputs[0].dtype != node.dtype:
        return None
    return inner.inputs[0] if is_bool(node) or inner.operation == node.operation else None


@select_simplify_pass.rule("logical_not", "invert")
def rule_7_inverted_comparison(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if inner.operation not in INVERSE:
        return None
    if inner.operation not in OPPOSITE and is_float(inner.inputs[0]):
        return None
    return replacement_like(INVERSE[inner.operation], inner.inputs, node)


@select_simplify_pass.rule("equal", "not_equal")
def rule_8_truth_compared(node: Node, context: MatchContext) -> Node | None:
    pair = split_constant_operand(node)
    if pair is None or pair[2] not in (0, 1):
        return None
    condition = pair[0].inputs[0] if pair[0].operation == "cast" else pair[0]
    if not is_bool(condition):
        return None
    is_same = bool(pair[2]) is (node.operation == "equal")
    return broadcast_like(condition, node.shape) if is_same else replacement_like("logical_not", (condition,), node)


@select_simplify_pass.rule(*INVERSE)
def rule_9_compared_with_itself(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    if left is not right or is_float(left):
        return None
    return constant_like(node.operation in ("equal", "less_equal", "greater_equal"), node)


@select_simplify_pass.rule("cast")
def rule_10_cast_of_cast(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if inner.dtype == node.dtype:
        return inner
    if inner.operation != "cast":
        return None
    first = inner.inputs[0]
    source, middle, target = KINDS[first.dtype], KINDS[inner.dtype], KINDS[node.dtype]
    lossless = is_lossless_cast(first.dtype, inner.dtype)
    if target in "iu" and "f" in (source, middle):  # casts of floats out of range depend on the target
        lossless = lossless and is_lossless_cast(first.dtype, node.dtype)
    bits = [np.dtype(dtype).itemsize for dtype in (inner.dtype, node.dtype)]
    dropped = source in "iu" and middle in "iu" and target in "iu" and bits[1] <= bits[0]
    return builder.cast(first, node.dtype) if lossless or dropped else None


def is_lossless_cast(dtype: str, wider: str) -> bool:
    """Whether every value of `dtype` is a value of `wider`: NumPy calls int64 to float64 safe, though it rounds."""
    source, target = np.dtype(dtype), np.dtype(wider)
    if not np.can_cast(source, target, "safe"):
        return False
    return not (source.kind in "iu" and target.kind == "f" and source.itemsize * 8 > np.finfo(target).nmant + 1)


EXACTLY_ROUNDED = ("add", "subtract", "multiply", "divide", "sqrt", "negative", "absolute", "square", "reciprocal")


@select_simplify_pass.rule("cast")
def rule_11_narrow_arithmetic(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    wide = {"float16": ("float32", "float64"), "float32": ("float64",)}.get(node.dtype, ())
    if inner.operation not in EXACTLY_ROUNDED or inner.dtype not in wide:
        return None
    narrow = [narrowed(operand, node.dtype) for operand in inner.inputs]
    exact = [operand for operand in narrow if operand is not None]
    return replacement_like(inner.operation, exact, node) if len(exact) == len(narrow) else None


def narrowed(node: Node, dtype: str) -> Node | None:
    """The same values in a narrower dtype; None if they may not fit."""
    if node.operation == "cast" and is_lossless_cast(node.inputs[0].dtype, dtype):
        return builder.cast(node.inputs[0], dtype)
    value = constant_value(node)
    if value is None:
        return None
    with np.errstate(all="ignore"):
        fits = float(np.dtype(dtype).type(value)) == value
    return builder.constant(value, dtype) if fits else None


@select_simplify_pass.rule("maximum", "minimum")
def rule_12_one_bound(node: Node, context: MatchContext) -> Node | None:
    outer = split_constant_operand(node)
    if outer is None or outer[0].operation != node.operation:
        return None
    inner = split_constant_operand(outer[0])
    if inner is None or (is_float(node) and any(value == 0 or value != value for value in (inner[2], outer[2]))):
        return None  # the order decides which of two zeros is the larger one
    bound = max(inner[2], outer[2]) if node.operation == "maximum" else min(inner[2], outer[2])
    return replacement_like(node.operation, (inner[0], builder.constant(bound, node.dtype)), node)
