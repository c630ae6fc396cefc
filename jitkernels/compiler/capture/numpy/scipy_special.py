"""Universal functions of `scipy.special` as operations of the graph, of arrays and of elements in loops.

They are SciPy's formulas, whose errors are those of logarithms and exponentials, and have the derivatives of their
operations. Functions that are not listed are calls of SciPy.
"""

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.node_operators import Term, apply

FLOATS = ("float32", "float64")


def _where(condition: Term, yes: Any, no: Any) -> Term:
    return apply("where", condition, yes, no)


def _log(x: Term) -> Term:
    return apply("log", x)


def _xlogy(x: Term, y: Term) -> Term:
    return _times_logarithm("log", x, y)


def _xlog1py(x: Term, y: Term) -> Term:
    return _times_logarithm("log1p", x, y)


def _times_logarithm(name: str, x: Term, y: Term) -> Term:
    """``x * log(y)``, 0 where x is, even at the pole."""
    is_nothing = apply("logical_and", apply("equal", x, 0.0), apply("logical_not", apply("isnan", y)))
    return _where(is_nothing, 0.0, x * apply(name, _where(is_nothing, 1.0, y)))


def _entr(x: Term) -> Term:
    is_positive = apply("greater", x, 0.0)
    outside = _where(apply("equal", x, 0.0), 0.0, _where(apply("less", x, 0.0), -math.inf, x))
    return _where(is_positive, -(x * _log(_where(is_positive, x, 1.0))), outside)


def _are_positive(x: Term, y: Term) -> Term:
    return apply("logical_and", apply("greater", x, 0.0), apply("greater", y, 0.0))


def _outside(x: Term, y: Term, value: Any) -> Term:
    """A divergence where not both are positive: `value` for 0 and a number of at least 0, else infinite."""
    is_zero = apply("logical_and", apply("equal", x, 0.0), apply("greater_equal", y, 0.0))
    is_nan = apply("logical_or", apply("isnan", x), apply("isnan", y))
    return _where(is_zero, value, _where(is_nan, math.nan, math.inf))


def _rel_entr(x: Term, y: Term) -> Term:
    """``x * log(x / y)``, near 1 from the distance to it, and without overflow of the ratio."""
    is_inside = _are_positive(x, y)
    a, b = _where(is_inside, x, 1.0), _where(is_inside, y, 1.0)
    ratio = a / b
    tiny = float(np.finfo(x.node.dtype).tiny)
    is_near = apply("logical_and", apply("greater", ratio, 0.5), apply("less", ratio, 2.0))
    is_normal = apply("logical_and", apply("greater", ratio, tiny), apply("isfinite", ratio))
    logarithm = _where(is_normal, _log(_where(is_normal, ratio, 1.0)), _log(a) - _log(b))
    logarithm = _where(is_near, apply("log1p", _where(is_near, (a - b) / b, 0.0)), logarithm)
    return _where(is_inside, x * logarithm, _outside(x, y, 0.0))


def _kl_div(x: Term, y: Term) -> Term:
    is_inside = _are_positive(x, y)
    ratio = _where(is_inside, x, 1.0) / _where(is_inside, y, 1.0)
    return _where(is_inside, x * _log(ratio) - x + y, _outside(x, y, y))


def _logit(p: Term) -> Term:
    """``log(p / (1 - p))``, near 1/2 from the distance to it."""
    is_near = apply("logical_and", apply("greater", p, 0.3), apply("less", p, 0.65))
    s = _where(is_near, 2.0 * (p - 0.5), 0.0)
    return _where(is_near, apply("log1p", s) - apply("log1p", -s), _log(p / (1.0 - p)))


def _exprel(x: Term) -> Term:
    """``(exp(x) - 1) / x``."""
    is_zero = apply("equal", x, 0.0)
    quotient = apply("expm1", x) / _where(is_zero, 1.0, x)
    return _where(is_zero, 1.0, _where(apply("equal", x, math.inf), x, quotient))


def _ndtr(x: Term) -> Term:
    """The distribution function of the normal distribution."""
    t = x * math.sqrt(0.5)
    size = apply("absolute", t)
    tail = 0.5 * apply("erfc", size)
    outside = _where(apply("greater", t, 0.0), 1.0 - tail, tail)
    return _where(apply("less", size, math.sqrt(0.5)), 0.5 + 0.5 * apply("erf", t), outside)


LOG_NDTR_TERMS = (-1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0)
FAR = -20.0
"""Where the asymptotic series (DLMF 7.12.1) is exact to the last digit."""


def _log_ndtr(x: Term) -> Term:
    """Its logarithm: of erfc in the lower tail, by its asymptotic series further out."""
    t = x * math.sqrt(0.5)
    is_low, is_far = apply("less", x, -1.0), apply("less", x, FAR)
    near = apply("log1p", -0.5 * apply("erfc", _where(is_low, 0.0, t)))
    low = _log(0.5 * apply("erfc", -apply("maximum", t, FAR * math.sqrt(0.5))))
    far = apply("minimum", x, FAR)
    inverse = 1.0 / (far * far)
    series: Any = LOG_NDTR_TERMS[-1]
    for term in LOG_NDTR_TERMS[-2::-1]:
        series = series * inverse + term
    beyond = apply("log1p", series * inverse) - _log(-far) - (0.5 * math.log(2 * math.pi) + 0.5 * (far * far))
    return _where(is_far, beyond, _where(is_low, low, near))


COMPOSITIONS: dict[str, Callable[..., Term]] = {
    **{name: partial(apply, name) for name in ("erf", "erfc", "gamma", "cbrt", "exp2", "expm1", "log1p")},
    "gammaln": lambda x: _where(apply("equal", x, -math.inf), x, apply("lgamma", x)),
    "psi": lambda x: apply("digamma", x),
    "expit": lambda x: apply("sigmoid", x),
    "log_expit": lambda x: -apply("softplus", -x),
    "exprel": _exprel,
    "xlogy": _xlogy, "xlog1py": _xlog1py, "entr": _entr, "rel_entr": _rel_entr, "kl_div": _kl_div, "logit": _logit,
    "ndtr": _ndtr, "log_ndtr": _log_ndtr,
}  # fmt: skip
"""Universal functions by SciPy's names."""


IN_DOUBLE = frozenset({"ndtr", "log_ndtr"})
"""Functions whose last digits are those of a square, of which float32 has too few."""


def composition(ufunc: Any, loop: Sequence[str]) -> Callable[[list[Node]], Node] | None:
    """The operations that compute a universal function of SciPy in a loop; None for others."""
    name = str(ufunc.__name__)
    found = COMPOSITIONS.get(name)
    if found is None or any(dtype not in FLOATS for dtype in loop):
        return None
    if getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
        return None
    dtype = "float64" if name in IN_DOUBLE else loop[-1]
    return lambda nodes: builder.cast(found(*(Term(builder.cast(node, dtype)) for node in nodes)).node, loop[-1])
