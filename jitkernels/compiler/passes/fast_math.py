"""What holds for real numbers and not for floats: only with ``fast_math``, which also means that there are no NaNs.

1. ``x * 0`` is 0, ``x - x`` is 0, ``x + 0`` is ``x``, ``x / x`` is 1.
2. ``x / c`` is ``x * (1 / c)``, also of a c that is broadcast: one division instead of many.
3. ``(x + c) + d`` and ``(x * c) * d`` have one constant.
4. ``a * b + a * c`` is ``a * (b + c)`` and ``a / c + b / c`` is ``(a + b) / c``, if nothing else reads the parts.
5. ``x ** -0.5`` is the reciprocal of a bare root, ``x ** 1.5`` is ``x * sqrt(x)``, thirds are cube roots.
6. Whole powers to 64 in size are products, also those that are beyond 2 ULP then.
7. ``log(exp(x))``, ``exp(log(x))`` and the square of a root are ``x``.
"""

import math

from jitkernels.graph.ir import Node
from jitkernels.graph.passes.arithmetic import joined_constants
from jitkernels.graph.passes.matching import (
    constant,
    constant_like,
    is_float,
    made,
    number,
    rank_of,
    shaped,
)
from jitkernels.graph.passes.rewriting import Facts, Rewriting
from jitkernels.graph.passes.strength import exponent_of, int_of, raised, step

reassociation = Rewriting("reassociation")


@reassociation.rule("multiply", "subtract", "add", "divide", fast_math=True)
def rule_1_no_special_values(node: Node, facts: Facts) -> Node | None:
    if not is_float(node):
        return None
    one, other = node.inputs
    zeros = [number(operand) == 0 for operand in node.inputs]
    match node.operation:
        case "multiply":
            return constant_like(0.0, node) if any(zeros) else None
        case "subtract":
            return constant_like(0.0, node) if one is other else None
        case "divide":
            return constant_like(1.0, node) if one is other else None
    return shaped(other, node.shape) if zeros[0] else shaped(one, node.shape) if zeros[1] else None


@reassociation.rule("divide", fast_math=True)
def rule_2_times_reciprocal(node: Node, facts: Facts) -> Node | None:
    one, other = node.inputs
    value = number(other)
    if value is not None:
        inverse = 1 / value if value and math.isfinite(value) else None
        return None if inverse is None else made("multiply", (one, constant(inverse, node.dtype)), node)
    if rank_of(other) >= rank_of(one):
        return None
    return made("multiply", (one, step("reciprocal", other)), node)


@reassociation.rule("add", "multiply", fast_math=True)
def rule_3_constants_together(node: Node, facts: Facts) -> Node | None:
    return joined_constants(node) if is_float(node) else None


@reassociation.rule("add", "subtract", fast_math=True)
def rule_4_common_factor(node: Node, facts: Facts) -> Node | None:
    left, right = node.inputs
    if not is_float(node) or left.operation != right.operation or left is right:
        return None
    if left.operation not in ("multiply", "divide") or not (
        facts.is_read_once(left) and facts.is_read_once(right)
    ):
        return None
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)) if left.operation == "multiply" else ((1, 1),):
        if left.inputs[i] is right.inputs[j]:
            rest = step(node.operation, left.inputs[1 - i], right.inputs[1 - j])
            operands = (left.inputs[i], rest) if left.operation == "multiply" else (rest, left.inputs[1])
            return made(left.operation, operands, node)
    return None


@reassociation.rule("power", fast_math=True)
def rule_5_bare_roots(node: Node, facts: Facts) -> Node | None:
    exponent, base = exponent_of(node), node.inputs[0]
    if not is_float(node) or exponent is None:
        return None
    if exponent == -0.5:
        return made("reciprocal", (step("sqrt", base),), node)
    if exponent == 1.5:
        return made("multiply", (base, step("sqrt", base)), node)
    third = constant(1 / 3, node.dtype).options["value"]
    if abs(exponent) != third:
        return None
    root = made("cbrt", (base,), node)
    return root if exponent > 0 or root is None else made("reciprocal", (root,), node)


@reassociation.rule("power", fast_math=True)
def rule_6_whole_powers(node: Node, facts: Facts) -> Node | None:
    exponent = exponent_of(node)
    if exponent is None or exponent != int_of(exponent) or -3 < exponent < 5 or abs(exponent) > 64:
        return None
    result = raised(node.inputs[0], int(abs(exponent)))
    return shaped(result if exponent > 0 else step("reciprocal", result), node.shape)


INVERSES = {("log", "exp"), ("exp", "log"), ("square", "sqrt")}


@reassociation.rule("log", "exp", "square", fast_math=True)
def rule_7_inverse_functions(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    return inner.inputs[0] if (node.operation, inner.operation) in INVERSES else None
