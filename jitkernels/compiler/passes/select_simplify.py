"""Algebra of conditions, comparisons, bits, minima and maxima, and casts, exact for every value.

1. ``where`` with a constant condition, or of the same twice, is what it chooses.
2. ``where(not c, a, b)`` is ``where(c, b, a)``.
3. ``where(c, True, False)`` is ``c``, and ``where(c, False, True)`` is ``not c``.
4. Maxima, minima and bits of a value with itself are the value; its ``xor`` with itself is 0.
5. ``x & -1``, ``x | 0``, ``x ^ 0`` and shifts by 0 are ``x``; ``x & 0`` is 0 and ``x | -1`` is -1.
6. ``not not x`` of bools and ``~~x`` are ``x``.
7. ``not (a == b)`` is ``a != b``, and the reverse; so are orders where there is no NaN: of integers.
8. A bool compared with a constant is itself or its inverse, also once it was cast to numbers.
9. Integers compared with themselves are equal.
10. A cast to the own dtype is nothing; of two casts the first goes if it loses nothing, or what the second loses too.
11. What is computed in wider floats and rounded at once is computed in the narrow ones: sums, products, quotients and
    roots of numbers with p bits are the same when they are rounded to 2p + 2 bits first.
12. ``max(max(x, c), d)`` has one constant; so has ``min``.
"""

import numpy as np

from jitkernels.graph import construct
from jitkernels.graph.ir import Node
from jitkernels.graph.passes.matching import (
    KINDS,
    constant,
    constant_like,
    is_all_ones,
    is_bool,
    is_float,
    is_number,
    made,
    number,
    shaped,
    with_number,
)
from jitkernels.graph.passes.rewriting import Facts, Rewriting

choices = Rewriting("choices")
OPPOSITE = {"equal": "not_equal", "not_equal": "equal"}
INVERSE = {
    **OPPOSITE,
    "less": "greater_equal",
    "greater_equal": "less",
    "greater": "less_equal",
    "less_equal": "greater",
}
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
OF_BOOLS = {
    "logical_and": "bitwise_and",
    "logical_or": "bitwise_or",
    "logical_xor": "bitwise_xor",
    "multiply": "bitwise_and",
    "add": "bitwise_or",
}
"""What these operations of bools are."""
EXTREMES = ("maximum", "minimum", "fmax", "fmin")


@choices.rule("where")
def rule_1_choice_that_is_known(node: Node, facts: Facts) -> Node | None:
    condition, one, other = node.inputs
    if one is other:
        return shaped(one, node.shape)
    found = number(condition)
    return None if found is None else shaped(one if found else other, node.shape)


@choices.rule("where")
def rule_2_inverted_condition(node: Node, facts: Facts) -> Node | None:
    condition, one, other = node.inputs
    if condition.operation in ("logical_not", "invert") and is_bool(condition.inputs[0]):
        return made("where", (condition.inputs[0], other, one), node)
    return None


@choices.rule("where")
def rule_3_choice_of_truths(node: Node, facts: Facts) -> Node | None:
    condition, one, other = node.inputs
    values = number(one), number(other)
    if not is_bool(node) or None in values or values[0] == values[1]:
        return None
    return shaped(condition, node.shape) if values[0] else made("logical_not", (condition,), node)


def bits_of(node: Node) -> str:
    """The operation on bits that a node is; empty if it is none."""
    if node.operation in BITS:
        return node.operation
    return OF_BOOLS.get(node.operation, "") if is_bool(node.inputs[0]) else ""


@choices.rule(*BITS, *OF_BOOLS, *EXTREMES)
def rule_4_with_itself(node: Node, facts: Facts) -> Node | None:
    one, other = node.inputs
    bits = bits_of(node)
    if one is not other or not (bits or node.operation in EXTREMES):
        return None
    return constant_like(0, node) if bits == "bitwise_xor" else one


@choices.rule(*BITS, *OF_BOOLS, "left_shift", "right_shift")
def rule_5_none_or_all_bits(node: Node, facts: Facts) -> Node | None:
    bits = bits_of(node)
    if node.operation in ("left_shift", "right_shift"):
        return shaped(node.inputs[0], node.shape) if is_number(node.inputs[1], 0) else None
    for one, other in (node.inputs, reversed(node.inputs)):
        if not bits:
            return None
        if is_number(other, 0):
            return constant_like(0, node) if bits == "bitwise_and" else shaped(one, node.shape)
        if is_all_ones(other) and bits != "bitwise_xor":
            return shaped(one if bits == "bitwise_and" else other, node.shape)
    return None


@choices.rule("logical_not", "invert")
def rule_6_twice_inverted(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if inner.operation not in ("logical_not", "invert") or inner.inputs[0].dtype != node.dtype:
        return None
    return inner.inputs[0] if is_bool(node) or inner.operation == node.operation else None


@choices.rule("logical_not", "invert")
def rule_7_inverted_comparison(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if inner.operation not in INVERSE:
        return None
    if inner.operation not in OPPOSITE and is_float(inner.inputs[0]):
        return None
    return made(INVERSE[inner.operation], inner.inputs, node)


@choices.rule("equal", "not_equal")
def rule_8_truth_compared(node: Node, facts: Facts) -> Node | None:
    pair = with_number(node)
    if pair is None or pair[2] not in (0, 1):
        return None
    truth = pair[0].inputs[0] if pair[0].operation == "cast" else pair[0]
    if not is_bool(truth):
        return None
    keeps = bool(pair[2]) is (node.operation == "equal")
    return shaped(truth, node.shape) if keeps else made("logical_not", (truth,), node)


@choices.rule(*INVERSE)
def rule_9_compared_with_itself(node: Node, facts: Facts) -> Node | None:
    one, other = node.inputs
    if one is not other or is_float(one):
        return None
    return constant_like(node.operation in ("equal", "less_equal", "greater_equal"), node)


@choices.rule("cast")
def rule_10_cast_of_cast(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if inner.dtype == node.dtype:
        return inner
    if inner.operation != "cast":
        return None
    first = inner.inputs[0]
    source, middle, target = KINDS[first.dtype], KINDS[inner.dtype], KINDS[node.dtype]
    lossless = loses_nothing(first.dtype, inner.dtype)
    if target in "iu" and "f" in (source, middle):  # what floats out of range become is the machine's own
        lossless = lossless and loses_nothing(first.dtype, node.dtype)
    bits = [np.dtype(dtype).itemsize for dtype in (inner.dtype, node.dtype)]
    dropped = source in "iu" and middle in "iu" and target in "iu" and bits[1] <= bits[0]
    return construct.cast(first, node.dtype) if lossless or dropped else None


def loses_nothing(dtype: str, wider: str) -> bool:
    """Whether every value of a dtype is one of another: NumPy calls int64 to float64 safe, which rounds."""
    one, other = np.dtype(dtype), np.dtype(wider)
    if not np.can_cast(one, other, "safe"):
        return False
    return not (one.kind in "iu" and other.kind == "f" and one.itemsize * 8 > np.finfo(other).nmant + 1)


EXACT = ("add", "subtract", "multiply", "divide", "sqrt", "negative", "absolute", "square", "reciprocal")


@choices.rule("cast")
def rule_11_narrow_arithmetic(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    wide = {"float16": ("float32", "float64"), "float32": ("float64",)}.get(node.dtype, ())
    if inner.operation not in EXACT or inner.dtype not in wide:
        return None
    narrow = [narrowed(one, node.dtype) for one in inner.inputs]
    return None if None in narrow else made(inner.operation, [one for one in narrow if one is not None], node)


def narrowed(node: Node, dtype: str) -> Node | None:
    """The same values in a narrower dtype; None if they may not fit."""
    if node.operation == "cast" and loses_nothing(node.inputs[0].dtype, dtype):
        return construct.cast(node.inputs[0], dtype)
    value = number(node)
    if value is None:
        return None
    with np.errstate(all="ignore"):
        fits = float(np.dtype(dtype).type(value)) == value
    return constant(value, dtype) if fits else None


@choices.rule("maximum", "minimum")
def rule_12_one_bound(node: Node, facts: Facts) -> Node | None:
    outer = with_number(node)
    if outer is None or outer[0].operation != node.operation:
        return None
    inner = with_number(outer[0])
    if inner is None or (
        is_float(node) and any(value == 0 or value != value for value in (inner[2], outer[2]))
    ):
        return None  # which of two zeros is the larger one depends on their order
    bound = max(inner[2], outer[2]) if node.operation == "maximum" else min(inner[2], outer[2])
    return made(node.operation, (inner[0], constant(bound, node.dtype)), node)
