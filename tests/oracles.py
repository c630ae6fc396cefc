"""True results, computed without the package: in long double, sums with `math.fsum` where that is no wider.

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


def total(values: AnyArray, axis: int) -> AnyArray:
    """A sum without rounding errors that double can show; of negative zeros alone, a negative zero."""
    if np.finfo(WIDE).nmant > 60 or not np.isfinite(values).all():
        return np.asarray(np.add.reduce(np.ascontiguousarray(np.moveaxis(values, axis, -1)), axis=-1))
    negative = np.asarray(((values == 0) & np.signbit(values)).all(axis))
    sums = np.apply_along_axis(lambda row: fsum(map(float, row)), axis, values).astype(WIDE)
    return np.asarray(np.where(negative & (values.shape[axis] > 0), WIDE(-0.0), sums))


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
    if x.size == 0:
        return [x]
    terms = exp(x - x.max(axis=-1, keepdims=True))
    return [terms / total(terms, -1)[:, np.newaxis]]


@oracle
def layer_norm(attr: Any, x: AnyArray, scale: Any = None, bias: Any = None) -> list[AnyArray]:
    """Centred twice, the first time on an element, so that a constant row is exactly zero."""
    if x.size == 0:
        return [x]
    near = x - x[:, :1]
    centred = near - (total(near, -1) / attr.n)[:, np.newaxis]
    centred = centred - (total(centred, -1) / attr.n)[:, np.newaxis]
    variance = total(centred * centred, -1) / attr.n
    y = centred / np.sqrt(variance + WIDE(attr.eps))[:, np.newaxis]
    return [y * scale + bias if attr.affine else y]


def pooled(pool: str, rows: AnyArray) -> AnyArray:
    """The rows of one sequence (the last axis but one) pooled column by column."""
    if pool == "max":
        return np.asarray(rows.max(axis=-2))
    height = WIDE(rows.shape[-2])
    divisor = {"sum": WIDE(1), "mean": height, "sqrt": np.sqrt(height)}[pool]
    return np.asarray(total(rows, -2) / divisor)


@oracle
def seq_pool(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [pooled(attr.pool, x)]


@oracle
def emb_seq_pool(attr: Any, table: AnyArray, ids: AnyArray) -> list[AnyArray]:
    if ids.size == 0:
        return [np.zeros(attr.idx_w * attr.table_w, WIDE)]
    return [pooled(attr.pool, table[ids.T]).reshape(-1)]


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
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE  # long double is NumPy's plain loop
    left: Any = (a.T if attr.trans_a else a).astype(narrow)
    right: Any = (b.T if attr.trans_b else b).astype(narrow)
    product = (left @ right).astype(WIDE)
    return [product + WIDE(attr.beta) * c if attr.beta else product]
