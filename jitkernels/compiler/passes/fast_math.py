"""Rewrites that hold for real numbers but not for floats: only with ``fast_math``, which also assumes no NaNs.

1. ``x * 0`` becomes 0, ``x - x`` becomes 0, ``x + 0`` becomes ``x``, ``x / x`` becomes 1.
2. ``x / c`` becomes ``x * (1 / c)``, also for a broadcast c: one division instead of many.
3. ``(x + c) + d`` and ``(x * c) * d`` fold their two constants to one.
4. ``a * b + a * c`` becomes ``a * (b + c)`` and ``a / c + b / c`` becomes ``(a + b) / c``, if the inner nodes have one
   use.
5. ``x ** -0.5`` becomes the reciprocal of a square root, ``x ** 1.5`` becomes ``x * sqrt(x)``, powers of a third cube
   roots.
6. Integral powers of magnitude up to 64 become products, also where the error exceeds 2 ULP.
7. ``log(exp(x))``, ``exp(log(x))`` and the square of a square root become ``x``.
"""

import math

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.passes.algebraic_simplify import fold_nested_constants
from jitkernels.compiler.passes.matchers import (
    broadcast_like,
    constant_like,
    constant_value,
    is_float,
    nontrivial_rank,
    replacement_like,
)
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass
from jitkernels.compiler.passes.strength_reduction import exponent_of, int_of, power_by_squaring, step

fast_math_pass = RewritePass("fast_math")


@fast_math_pass.rule("multiply", "subtract", "add", "divide", fast_math=True)
def rule_1_no_special_values(node: Node, context: MatchContext) -> Node | None:
    if not is_float(node):
        return None
    left, right = node.inputs
    zeros = [constant_value(operand) == 0 for operand in node.inputs]
    match node.operation:
        case "multiply":
            return constant_like(0.0, node) if any(zeros) else None
        case "subtract":
            return constant_like(0.0, node) if left is right else None
        case "divide":
            return constant_like(1.0, node) if left is right else None
    return broadcast_like(right, node.shape) if zeros[0] else broadcast_like(left, node.shape) if zeros[1] else None


@fast_math_pass.rule("divide", fast_math=True)
def rule_2_times_reciprocal(node: Node, context: MatchContext) -> Node | None:
    dividend, divisor = node.inputs
    value = constant_value(divisor)
    if value is not None:
        inverse = 1 / value if value and math.isfinite(value) else None
        return (
            None
            if inverse is None
            else replacement_like("multiply", (dividend, builder.constant(inverse, node.dtype)), node)
        )
    if nontrivial_rank(divisor) >= nontrivial_rank(dividend):
        return None
    return replacement_like("multiply", (dividend, step("reciprocal", divisor)), node)


@fast_math_pass.rule("add", "multiply", fast_math=True)
def rule_3_constants_together(node: Node, context: MatchContext) -> Node | None:
    return fold_nested_constants(node) if is_float(node) else None


@fast_math_pass.rule("add", "subtract", fast_math=True)
def rule_4_common_factor(node: Node, context: MatchContext) -> Node | None:
    left, right = node.inputs
    if not is_float(node) or left.operation != right.operation or left is right:
        return None
    if left.operation not in ("multiply", "divide") or not (context.has_one_use(left) and context.has_one_use(right)):
        return None
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)) if left.operation == "multiply" else ((1, 1),):
        if left.inputs[i] is right.inputs[j]:
            rest = step(node.operation, left.inputs[1 - i], right.inputs[1 - j])
            operands = (left.inputs[i], rest) if left.operation == "multiply" else (rest, left.inputs[1])
            return replacement_like(left.operation, operands, node)
    return None


@fast_math_pass.rule("power", fast_math=True)
def rule_5_bare_roots(node: Node, context: MatchContext) -> Node | None:
    exponent, base = exponent_of(node), node.inputs[0]
    if not is_float(node) or exponent is None:
        return None
    if exponent == -0.5:
        return replacement_like("reciprocal", (step("sqrt", base),), node)
    if exponent == 1.5:
        return replacement_like("multiply", (base, step("sqrt", base)), node)
    third = builder.constant(1 / 3, node.dtype).options["value"]
    if abs(exponent) != third:
        return None
    root = replacement_like("cbrt", (base,), node)
    return root if exponent > 0 or root is None else replacement_like("reciprocal", (root,), node)


@fast_math_pass.rule("power", fast_math=True)
def rule_6_whole_powers(node: Node, context: MatchContext) -> Node | None:
    exponent = exponent_of(node)
    if exponent is None or exponent != int_of(exponent) or -3 < exponent < 5 or abs(exponent) > 64:
        return None
    result = power_by_squaring(node.inputs[0], int(abs(exponent)))
    return broadcast_like(result if exponent > 0 else step("reciprocal", result), node.shape)


INVERSES = {("log", "exp"), ("exp", "log"), ("square", "sqrt")}


@fast_math_pass.rule("log", "exp", "square", fast_math=True)
def rule_7_inverse_functions(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    return inner.inputs[0] if (node.operation, inner.operation) in INVERSES else None
