"""Partial derivatives of elementwise operations: for each operand a function of the operands and the result.

Rules consist of operations that have rules themselves, so that higher derivatives exist. Where a function is not
differentiable, the rule follows JAX: one half for each of two equal operands of a maximum, zero for `absolute` at zero.
Operations with integral or boolean results have derivative zero, written None.
"""
# ruff: noqa: ARG005  # rules take all operands and the result, and use what they need

import math
from collections.abc import Callable

from jitkernels.compiler.ir.node_operators import Term, apply, number

Partial = Callable[..., "Term | float"] | None
"""The partial derivative with respect to one operand, from the operands and then the result."""


def _extreme_share(operand: Term, other_operand: Term, result: Term) -> Term:
    """1 where `operand` alone is the result of the extreme, one half where both operands are."""
    other_is = apply("equal", other_operand, result)
    return apply("where", apply("equal", operand, result), apply("where", other_is, number(0.5, result), 1.0), 0.0)


_EXTREME: tuple[Partial, Partial] = (_extreme_share, lambda x, y, z: _extreme_share(y, x, z))


def _power_of_base(x: Term, y: Term, z: Term) -> Term:
    safe = apply("where", apply("equal", y, 0.0), 1.0, y - 1.0)
    return apply("where", apply("equal", y, 0.0), 0.0, y * apply("power", x, safe))


def _power_of_exponent(x: Term, y: Term, z: Term) -> Term:
    is_zero = apply("equal", x, 0.0)
    return apply("where", is_zero, 0.0, z * apply("log", apply("where", is_zero, 1.0, x)))


def _safe_quotient(x: Term, z: Term) -> Term:
    """``x / z``, or 0 where z is 0."""
    return x / apply("where", apply("equal", z, 0.0), 1.0, z)


TRIGAMMA_TERMS = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)
"""Of the asymptotic series of the trigamma function in 1 / x**2 (DLMF 5.15.8)."""


def _trigamma(x: Term) -> Term:
    """The derivative of digamma: by recurrence from x + 10 on, negative numbers by reflection (DLMF 5.15.6)."""
    is_negative = apply("less", x, 0.0)
    y = apply("where", is_negative, 1.0 - x, x)
    inverse = 1.0 / (y + 10.0)
    square = inverse * inverse
    tail: Term | float = TRIGAMMA_TERMS[-1]
    for term in TRIGAMMA_TERMS[-2::-1]:
        tail = tail * square + term
    total = inverse + square * (0.5 + inverse * tail)
    for k in range(10):
        each = 1.0 / (y + float(k))
        total = total + each * each
    distance = x - apply("rint", x)
    sine = apply("sin", math.pi * apply("where", is_negative, distance, 0.5))
    return apply("where", is_negative, (math.pi / sine) * (math.pi / sine) - total, total)


def _same_sign(x: Term, y: Term) -> Term:
    return apply("copysign", number(1.0, x), x) * apply("copysign", number(1.0, y), y)


def _sign(x: Term, y: Term) -> Term:
    return apply("sign", x)


PARTIALS: dict[str, tuple[Partial, ...]] = {
    "add": (lambda x, y, z: 1.0, lambda x, y, z: 1.0),
    "subtract": (lambda x, y, z: 1.0, lambda x, y, z: -1.0),
    "multiply": (lambda x, y, z: y, lambda x, y, z: x),
    "divide": (lambda x, y, z: 1.0 / y, lambda x, y, z: -z / y),
    "floor_divide": (None, None),
    "remainder": (lambda x, y, z: 1.0, lambda x, y, z: -apply("floor_divide", x, y)),
    "fmod": (lambda x, y, z: 1.0, lambda x, y, z: -apply("trunc", x / y)),
    "negative": (lambda x, y: -1.0,),
    "positive": (lambda x, y: 1.0,),
    "absolute": (_sign,),
    "fabs": (_sign,),
    "square": (lambda x, y: 2.0 * x,),
    "reciprocal": (lambda x, y: -(y * y),),
    "sqrt": (lambda x, y: 0.5 / y,),
    "floor": (None,),
    "ceil": (None,),
    "trunc": (None,),
    "rint": (None,),
    "sign": (None,),
    "copysign": (lambda x, y, z: _same_sign(x, y), None),
    "heaviside": (None, lambda x, y, z: apply("where", apply("equal", x, 0.0), number(1.0, y), 0.0)),
    "nextafter": (lambda x, y, z: 1.0, None),
    "spacing": (None,),
    "ldexp": (lambda x, y, z: apply("ldexp", number(1.0, x), y), None),
    "maximum": _EXTREME,
    "minimum": _EXTREME,
    "fmax": _EXTREME,
    "fmin": _EXTREME,
    **dict.fromkeys(("exp", "libm_exp"), (lambda x, y: y,)),
    "exp2": (lambda x, y: math.log(2.0) * y,),
    "expm1": (lambda x, y: y + 1.0,),
    **dict.fromkeys(("log", "libm_log"), (lambda x, y: 1.0 / x,)),
    "log2": (lambda x, y: 1.0 / (math.log(2.0) * x),),
    "log10": (lambda x, y: 1.0 / (math.log(10.0) * x),),
    **dict.fromkeys(("log1p", "libm_log1p"), (lambda x, y: 1.0 / (1.0 + x),)),
    "power": (_power_of_base, _power_of_exponent),
    "cbrt": (lambda x, y: 1.0 / (3.0 * (y * y)),),
    "hypot": (lambda x, y, z: _safe_quotient(x, z), lambda x, y, z: _safe_quotient(y, z)),
    "log_hypot": (lambda x, y, z: x / (x * x + y * y), lambda x, y, z: y / (x * x + y * y)),
    "sin": (lambda x, y: apply("cos", x),),
    "cos": (lambda x, y: -apply("sin", x),),
    "tan": (lambda x, y: 1.0 + y * y,),
    "arcsin": (lambda x, y: 1.0 / apply("sqrt", (1.0 - x) * (1.0 + x)),),
    "arccos": (lambda x, y: -1.0 / apply("sqrt", (1.0 - x) * (1.0 + x)),),
    "arctan": (lambda x, y: 1.0 / (1.0 + x * x),),
    "arctan2": (lambda x, y, z: y / (x * x + y * y), lambda x, y, z: -x / (x * x + y * y)),
    "sinh": (lambda x, y: apply("cosh", x),),
    "cosh": (lambda x, y: apply("sinh", x),),
    "tanh": (lambda x, y: 1.0 - y * y,),
    "arcsinh": (lambda x, y: 1.0 / apply("sqrt", x * x + 1.0),),
    "arccosh": (lambda x, y: 1.0 / apply("sqrt", (x - 1.0) * (x + 1.0)),),
    "arctanh": (lambda x, y: 1.0 / ((1.0 - x) * (1.0 + x)),),
    "logaddexp": (lambda x, y, z: apply("sigmoid", x - y), lambda x, y, z: apply("sigmoid", y - x)),
    "logaddexp2": (
        lambda x, y, z: apply("sigmoid", math.log(2.0) * (x - y)),
        lambda x, y, z: apply("sigmoid", math.log(2.0) * (y - x)),
    ),
    "erf": (lambda x, y: 2.0 / math.sqrt(math.pi) * apply("exp", -(x * x)),),
    "erfc": (lambda x, y: -2.0 / math.sqrt(math.pi) * apply("exp", -(x * x)),),
    "gamma": (lambda x, y: y * apply("digamma", x),),
    "lgamma": (lambda x, y: apply("digamma", x),),
    "digamma": (lambda x, y: _trigamma(x),),
    "sigmoid": (lambda x, y: y * (1.0 - y),),
    "softplus": (lambda x, y: apply("sigmoid", x),),
}
"""By elementwise operation, the partial derivative with respect to each operand."""
