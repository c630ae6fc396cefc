"""Arithmetic and comparisons of complex numbers in terms of their real and imaginary planes, as NumPy computes them.

Formulas are those of NumPy's loops (``loops.c.src`` and ``loops_arithm_fp.dispatch.c.src``), special values included:
products by the textbook formula, quotients by Smith's (R. L. Smith, Algorithm 116, CACM 5, 1962), absolute values by
``hypot``; comparisons are lexicographic.
"""

from collections.abc import Callable
from typing import NamedTuple

from jitkernels.compiler.ir.node_operators import Term, apply, number


class Pair(NamedTuple):
    """The planes of a complex node."""

    re: Term
    im: Term

    def __add__(self, other: "Pair") -> "Pair":  # type: ignore[override]
        return Pair(self.re + other.re, self.im + other.im)

    def __sub__(self, other: "Pair") -> "Pair":
        return Pair(self.re - other.re, self.im - other.im)

    def __mul__(self, other: "Pair") -> "Pair":  # type: ignore[override]
        return Pair(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __truediv__(self, other: "Pair") -> "Pair":
        return divide(self, other)

    def __neg__(self) -> "Pair":
        return Pair(-self.re, -self.im)


def choose(condition: Term, yes: Term, no: Term) -> Term:
    return apply("where", condition, yes, no)


def both(left: Term, right: Term) -> Term:
    return apply("logical_and", left, right)


def either(left: Term, right: Term) -> Term:
    return apply("logical_or", left, right)


def inverse(condition: Term) -> Term:
    return apply("logical_not", condition)


def divide(x: Pair, y: Pair) -> Pair:
    """Smith's quotient; the divisor zero divides both planes by it."""
    is_wide = apply("greater_equal", apply("absolute", y.re), apply("absolute", y.im))
    large, small = choose(is_wide, y.re, y.im), choose(is_wide, y.im, y.re)
    is_zero = apply("equal", large, 0.0)
    ratio = small / large
    scale = 1.0 / choose(is_zero, apply("absolute", y.re), large + small * ratio)
    first, second = choose(is_wide, x.re, x.im), choose(is_wide, x.im, x.re)
    re, im = first + second * ratio, second - first * ratio
    im = choose(is_wide, im, first * ratio - second)
    return Pair(choose(is_zero, x.re, re) * scale, choose(is_zero, x.im, im) * scale)


def reciprocal(x: Pair) -> Pair:
    """Smith's reciprocal."""
    is_wide = apply("less_equal", apply("absolute", x.im), apply("absolute", x.re))
    large, small = choose(is_wide, x.re, x.im), choose(is_wide, x.im, x.re)
    ratio = small / large
    total = large + small * ratio
    one = number(1.0, ratio)
    return Pair(choose(is_wide, one, ratio) / total, choose(is_wide, -ratio, -one) / total)


def square(x: Pair) -> Pair:
    return Pair(x.re * x.re - x.im * x.im, x.re * x.im + x.im * x.re)


def absolute(x: Pair) -> Term:
    return apply("hypot", x.re, x.im)


def is_nan(x: Pair) -> Term:
    return either(apply("isnan", x.re), apply("isnan", x.im))


def sign(x: Pair) -> Pair:
    """``x / abs(x)``; zero of zero, and the axes' or diagonals' direction of infinities, as NumPy 2 has it."""
    size = absolute(x)
    zero, one = number(0.0, size), number(1.0, size)
    is_zero, is_infinite = apply("equal", size, 0.0), apply("isinf", size)
    ends_re, ends_im = apply("isinf", x.re), apply("isinf", x.im)
    are_both = both(ends_re, ends_im)
    nan = number(float("nan"), size)

    def plane(part: Term, is_end: Term) -> Term:
        of_infinite = choose(are_both, nan, choose(is_end, apply("copysign", one, part), zero))
        return choose(is_zero, zero, choose(is_infinite, of_infinite, part / size))

    return Pair(plane(x.re, ends_re), plane(x.im, ends_im))


def compared(strict: str, last: str) -> Callable[[Pair, Pair], Term]:
    """A lexicographic comparison: `strict` of the real parts, or of equal ones `last` of the imaginary parts."""

    def compare(x: Pair, y: Pair) -> Term:
        are_numbers = inverse(either(apply("isnan", x.im), apply("isnan", y.im)))
        first = both(apply(strict, x.re, y.re), are_numbers)
        return either(first, both(apply("equal", x.re, y.re), apply(last, x.im, y.im)))

    return compare


def extreme(comparison: str, *, keeps_nan: bool) -> Callable[[Pair, Pair], Pair]:
    """The first operand where it compares, or is NaN (`keeps_nan`) or the second one is; else the second."""

    def choice(x: Pair, y: Pair) -> Pair:
        is_first = either(COMPARISONS[comparison](x, y), is_nan(x if keeps_nan else y))
        return Pair(choose(is_first, x.re, y.re), choose(is_first, x.im, y.im))

    return choice


def truth(x: Pair) -> Term:
    return either(apply("not_equal", x.re, 0.0), apply("not_equal", x.im, 0.0))


def _of_truth(name: str) -> Callable[[Pair, Pair], Term]:
    return lambda x, y: apply(name, truth(x), truth(y))


COMPARISONS: dict[str, Callable[[Pair, Pair], Term]] = {
    "equal": lambda x, y: both(apply("equal", x.re, y.re), apply("equal", x.im, y.im)),
    "not_equal": lambda x, y: either(apply("not_equal", x.re, y.re), apply("not_equal", x.im, y.im)),
    "less": compared("less", "less"),
    "less_equal": compared("less", "less_equal"),
    "greater": compared("greater", "greater"),
    "greater_equal": compared("greater", "greater_equal"),
}
ARITHMETIC: dict[str, Callable[..., Pair | Term]] = {
    **COMPARISONS,
    "add": Pair.__add__,
    "subtract": Pair.__sub__,
    "multiply": Pair.__mul__,
    "divide": divide,
    "negative": Pair.__neg__,
    "positive": lambda x: x,
    "conjugate": lambda x: Pair(x.re, -x.im),
    "absolute": absolute,
    "square": square,
    "reciprocal": reciprocal,
    "sign": sign,
    "isnan": is_nan,
    "isinf": lambda x: either(apply("isinf", x.re), apply("isinf", x.im)),
    "isfinite": lambda x: both(apply("isfinite", x.re), apply("isfinite", x.im)),
    "logical_and": _of_truth("logical_and"),
    "logical_or": _of_truth("logical_or"),
    "logical_xor": _of_truth("logical_xor"),
    "logical_not": lambda x: inverse(truth(x)),
    "maximum": extreme("greater_equal", keeps_nan=True),
    "minimum": extreme("less_equal", keeps_nan=True),
    "fmax": extreme("greater_equal", keeps_nan=False),
    "fmin": extreme("less_equal", keeps_nan=False),
}
"""For each operation, its planes or real result from the planes of its operands."""
