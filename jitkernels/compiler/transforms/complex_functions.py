"""Elementary functions of complex numbers in terms of functions of their planes.

Formulas are those of C99 (Annex G gives the special values), in the forms that keep their digits by component: products
of real functions, ``log`` by `jitkernels.microkernels.maths.log_hypot`, ``sqrt`` by W. Kahan (Branch Cuts for Complex
Elementary Functions, 1987), ``tanh`` by its quotient of sums that do not cancel. Exponentials are squares of those of
half the argument, or have their last factor multiplied in the end, so that nothing overflows on the way.
"""

import math
from collections.abc import Callable

import numpy as np

from jitkernels.compiler.ir.node_operators import Term, apply, number
from jitkernels.compiler.transforms.complex_arithmetic import Pair, both, choose, either, inverse, truth

LARGEST_ARGUMENT = {"float32": 85.0, "float64": 705.0}
"""Where hyperbolic functions of that type are still finite."""
FLAT = {"float32": 11.0, "float64": 22.0}
"""Where the hyperbolic tangent has become 1."""


def _finite(x: Term) -> Term:
    return apply("isfinite", x)


def exp(x: Pair) -> Pair:
    """``exp(re) * (cos(im) + 1j * sin(im))``."""
    root = apply("exp", x.re * 0.5)
    re, im = (root * apply(name, x.im) * root for name in ("cos", "sin"))
    is_real = apply("equal", x.im, 0.0)
    is_endless = both(apply("isinf", x.re), inverse(_finite(x.im)))
    nothing = both(is_endless, apply("less", x.re, 0.0))
    zero = number(0.0, re)
    re = choose(is_endless, choose(nothing, zero, x.re), choose(is_real, root * root, re))
    return Pair(re, choose(is_real, x.im, choose(nothing, apply("copysign", zero, x.im), im)))


def log(x: Pair) -> Pair:
    return Pair(apply("log_hypot", x.re, x.im), apply("arctan2", x.im, x.re))


def _scaled_log(factor: float) -> Callable[[Pair], Pair]:
    def scaled(x: Pair) -> Pair:
        result = log(x)
        return Pair(result.re * factor, result.im * factor)

    return scaled


def exp2(x: Pair) -> Pair:
    """NumPy's: ``exp`` of the product with ``log(2)``."""
    return exp(Pair(x.re * math.log(2), x.im * math.log(2)))


def sqrt(x: Pair) -> Pair:
    """Kahan's root: the larger part from the length, the other one as a quotient; scaled where squares leave range."""
    info = np.finfo(x.re.node.dtype)
    largest = apply("maximum", apply("absolute", x.re), apply("absolute", x.im))
    is_large = apply("greater", largest, float(info.max) / 8)
    is_small = apply("less", largest, float(info.tiny) * 2.0 ** (info.nmant + 3))
    up = 2.0 ** (2 * ((info.nmant + 3) // 2 + 1))
    one = number(1.0, x.re)
    scale = choose(is_large, number(1 / 16, one), choose(is_small, number(up, one), one))
    back = choose(is_large, number(4.0, one), choose(is_small, number(up**-0.5, one), one))
    re, im = x.re * scale, x.im * scale
    root = apply("sqrt", (apply("absolute", re) + apply("hypot", re, im)) * 0.5)
    is_zero = apply("equal", largest, 0.0)
    other = choose(is_zero, im, im / (root * 2.0))
    is_left = apply("signbit", x.re)
    real = choose(is_left, apply("absolute", other), root) * back
    imag = choose(is_left, apply("copysign", root, x.im), other) * back
    infinity = number(math.inf, real)
    # Kahan's special values: infinite imaginary parts, then infinite real ones, then NaN.
    is_endless = apply("isinf", x.re)
    rest = choose(apply("isnan", x.im), x.im, number(0.0, real))
    right = Pair(infinity, choose(apply("isnan", x.im), x.im, apply("copysign", number(0.0, real), x.im)))
    left = Pair(apply("absolute", rest), apply("copysign", infinity, x.im))
    real = choose(is_endless, choose(is_left, left.re, right.re), choose(is_zero, number(0.0, real), real))
    imag = choose(is_endless, choose(is_left, left.im, right.im), choose(is_zero, x.im, imag))
    ends_im = apply("isinf", x.im)
    return Pair(choose(ends_im, infinity, real), choose(ends_im, x.im, imag))


def _clamped(x: Term) -> tuple[Term, Term]:
    """The argument up to the largest of hyperbolic functions, and the factor that is left for these."""
    limit = LARGEST_ARGUMENT[x.node.dtype]
    size = apply("absolute", x)
    inside = apply("minimum", size, limit)
    return apply("copysign", inside, x), apply("exp", size - inside)


def sinh(x: Pair) -> Pair:
    inside, rest = _clamped(x.re)
    re = apply("sinh", inside) * apply("cos", x.im) * rest
    im = apply("cosh", inside) * apply("sin", x.im) * rest
    is_real, is_wild = apply("equal", x.im, 0.0), inverse(_finite(x.im))
    keeps = either(both(is_wild, apply("equal", x.re, 0.0)), both(is_real, inverse(_finite(x.re))))
    re = choose(both(is_wild, apply("isinf", x.re)), apply("absolute", x.re), choose(keeps, x.re, re))
    return Pair(re, choose(is_real, x.im, im))


def cosh(x: Pair) -> Pair:
    inside, rest = _clamped(x.re)
    re = apply("cosh", inside) * apply("cos", x.im) * rest
    im = apply("sinh", inside) * apply("sin", x.im) * rest
    is_real, is_wild = apply("equal", x.im, 0.0), inverse(_finite(x.im))
    re = choose(both(inverse(_finite(x.re)), either(is_real, is_wild)), apply("absolute", x.re), re)
    signed = choose(apply("isnan", x.re), x.im, x.im * apply("copysign", number(1.0, im), x.re))
    im = choose(both(apply("equal", x.re, 0.0), is_wild), number(0.0, im), im)
    return Pair(re, choose(is_real, signed, im))


def tanh(x: Pair) -> Pair:
    """``(sinh x cosh x + 1j sin y cos y) / (sinh(x)**2 + cos(y)**2)``."""
    limit = FLAT[x.re.node.dtype]
    size = apply("absolute", x.re)
    inside = apply("copysign", apply("minimum", size, limit), x.re)
    rest = apply("exp", (apply("minimum", size, limit) - size) * 2.0)
    sine, cosine, length = apply("sin", x.im), apply("cos", x.im), apply("sinh", inside)
    is_flat = apply("greater_equal", size, limit)
    total = choose(is_flat, number(math.exp(2 * limit) / 4, size), length * length + cosine * cosine)
    one, zero = number(1.0, size), number(0.0, size)
    re = choose(is_flat, apply("copysign", one, x.re), length * apply("cosh", inside) / total)
    im = sine * cosine / total * rest
    is_real, is_endless = apply("equal", x.im, 0.0), apply("isinf", x.re)
    is_imaginary = both(apply("equal", x.re, 0.0), inverse(_finite(x.im)))
    is_wild = both(inverse(is_endless), inverse(_finite(x.im)))
    nan = number(math.nan, size)
    re = choose(is_imaginary, x.re, choose(is_wild, nan, re))
    unbounded = both(is_endless, inverse(_finite(x.im)))
    return Pair(re, choose(is_real, x.im, choose(unbounded, apply("copysign", zero, x.im), im)))


def _of_swapped(function: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """``-1j * f(1j * x)`` of an odd function, as ``sin`` is by ``sinh``: both planes change places."""

    def swapped(x: Pair) -> Pair:
        result = function(Pair(x.im, x.re))
        return Pair(result.im, result.re)

    return swapped


def power_by_int(x: Pair, exponent: int) -> Pair:
    """NumPy's products: of three factors at most, or from 1 on by the exponent's bits; zero has its own results."""
    one, zero = Pair(number(1.0, x.re), number(0.0, x.re)), number(0.0, x.re)
    if exponent == 0:
        return one
    if exponent in (1, 2, 3):
        result = x if exponent == 1 else x * x if exponent == 2 else x * (x * x)
    else:
        result, factor, bits = one, x, abs(exponent)
        while bits:
            result = result * factor if bits & 1 else result
            bits >>= 1
            factor = factor * factor if bits else factor
        result = one / result if exponent < 0 else result
    instead = number(math.nan, x.re) if exponent < 0 else zero
    is_zero = inverse(truth(x))
    return Pair(choose(is_zero, instead, result.re), choose(is_zero, instead, result.im))


FUNCTIONS: dict[str, Callable[[Pair], Pair]] = {
    "exp": exp,
    "exp2": exp2,
    "log": log,
    "log2": _scaled_log(1 / math.log(2)),
    "log10": _scaled_log(1 / math.log(10)),
    "sqrt": sqrt,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "sin": _of_swapped(sinh),
    "cos": lambda x: cosh(Pair(-x.im, x.re)),
    "tan": _of_swapped(tanh),
}
