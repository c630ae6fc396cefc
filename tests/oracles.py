"""True results, computed without the package: plain loops over rows in long double or with `math.fsum`.

A row that is not listed here is checked against its own reference in long double. Where long double is no
wider than double, the exponential comes from mpmath, one element at a time.
"""

from collections.abc import Callable, Sequence
from math import fsum
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

from jitkernels import testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.signature import AnyArray

WIDE = np.longdouble
mpmath.mp.dps = 50
_oracles: dict[str, Callable[..., list[AnyArray]]] = {}


def expected(attr: KernelAttr, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
    """The true outputs of an attr: from the oracle of its kernel, or from its reference in long double."""
    oracle = _oracles.get(attr.name)
    if oracle is None:
        return testing.upcast_reference(attr, arrays)
    named = {p.name: wide(a) for p, a in zip(attr.signature().arrays, arrays, strict=True) if p.role != "out"}
    with np.errstate(all="ignore"):
        return oracle(attr, **named)


def oracle(function: Callable[..., list[AnyArray]]) -> Callable[..., list[AnyArray]]:
    """Make a function the oracle of the kernel of its name."""
    _oracles[function.__name__] = function
    return function


def wide(array: AnyArray) -> AnyArray:
    """Floats as long double, integers as they are."""
    return array.astype(WIDE) if array.dtype.kind == "f" else array


def mpmath_exp(x: AnyArray) -> AnyArray:
    """exp rounded once from 50 digits to long double (through text, which long double reads exactly)."""
    values = [_exp_of(value) for value in x.reshape(-1)]
    return np.array(values, WIDE).reshape(x.shape)


def _exp_of(value: Any) -> Any:
    if np.isnan(value) or np.isinf(value) or abs(value) > 12000:
        return np.exp(value)
    mantissa, exponent = np.frexp(value)
    high = float(mantissa)
    exact = (mpmath.mpf(high) + mpmath.mpf(float(mantissa - WIDE(high)))) * mpmath.mpf(2) ** int(exponent)
    return WIDE(mpmath.nstr(mpmath.exp(exact), 30))


def exp(x: AnyArray) -> AnyArray:
    """exp with an error far below that of double."""
    return np.asarray(np.exp(x)) if np.finfo(WIDE).nmant > 60 else mpmath_exp(x)


def sigmoid(x: AnyArray) -> AnyArray:
    small = exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def tanh(x: AnyArray) -> AnyArray:
    return np.asarray(np.tanh(x))


ACTIVATIONS: dict[str, Callable[[AnyArray], AnyArray]] = {
    "sigmoid": sigmoid,
    "tanh": tanh,
    "relu": lambda x: np.where(x < 0, WIDE(0), x),
    "identity": lambda x: x,
}


def total(values: AnyArray) -> Any:
    """A sum without rounding errors that double can show; of negative zeros alone, a negative zero."""
    if values.size and bool((values == 0).all() and np.signbit(values).all()):
        return WIDE(-0.0)
    finite = values.size and bool(np.isfinite(values).all()) and float(np.abs(values).max()) < 1e300
    return WIDE(fsum(map(float, values))) if finite and _is_double(values) else values.sum(dtype=WIDE)


def _is_double(values: AnyArray) -> bool:
    return bool((values.astype(np.float64) == values).all())


@oracle
def vmul(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [x * y]


@oracle
def vexp(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [exp(x)]


@oracle
def vsigmoid(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [sigmoid(x)]


@oracle
def softmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    y = np.empty_like(x)
    for i in range(attr.rows):
        terms = exp(x[i] - max(x[i], key=_nan_first))
        y[i] = terms / total(terms)
    return [y]


def _nan_first(value: Any) -> Any:
    return np.inf if np.isnan(value) else value


@oracle
def layer_norm(attr: Any, x: AnyArray, scale: Any = None, bias: Any = None) -> list[AnyArray]:
    y = np.empty_like(x)
    for i in range(attr.rows):
        centred = x[i] - total(x[i]) / attr.n
        y[i] = centred / np.sqrt(total(centred * centred) / attr.n + WIDE(attr.eps))
        if attr.affine:
            y[i] = y[i] * scale + bias
    return [y]


def pooled(pool: str, rows: Sequence[AnyArray], width: int) -> AnyArray:
    """Rows of one sequence pooled column by column."""
    if pool == "max":
        return np.array([max((row[j] for row in rows), key=_nan_first) for j in range(width)], WIDE)
    sums = np.array([total(np.array([row[j] for row in rows], WIDE)) for j in range(width)], WIDE)
    divisor = {"sum": WIDE(1), "mean": WIDE(len(rows)), "sqrt": np.sqrt(WIDE(len(rows)))}[pool]
    return np.asarray(sums / divisor)


@oracle
def seq_pool(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [pooled(attr.pool, list(x), attr.w)]


@oracle
def emb_seq_pool(attr: Any, table: AnyArray, ids: AnyArray) -> list[AnyArray]:
    columns = [pooled(attr.pool, [table[i] for i in column], attr.table_w) for column in ids.T]
    return [np.concatenate([np.zeros(0, WIDE), *columns])]


@oracle
def lstm_ctht(attr: Any, gates: AnyArray, ct_1: AnyArray, wp: Any = None) -> list[AnyArray]:
    d = attr.d
    gate, candidate, cell = (ACTIVATIONS[name] for name in (attr.act_gate, attr.act_cand, attr.act_cell))
    c, i, f, o = (gates[part * d : (part + 1) * d] for part in range(4))
    if attr.use_peephole:
        i = i + wp[:d] * ct_1
        f = f + wp[d : 2 * d] * ct_1
    ct = candidate(c) * gate(i) + ct_1 * gate(f)
    if attr.use_peephole:
        o = o + wp[2 * d :] * ct
    return [ct, cell(ct) * gate(o)]


@oracle
def matmul(attr: Any, a: AnyArray, b: AnyArray, c: Any = None) -> list[AnyArray]:
    left, right = a.T if attr.trans_a else a, b.T if attr.trans_b else b
    product = np.zeros((attr.m, attr.n), WIDE)
    for k in range(attr.k):
        product += np.outer(left[:, k], right[k])
    return [product + WIDE(attr.beta) * c if attr.beta else product]
