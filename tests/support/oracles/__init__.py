"""True results, computed without the package: in long double, sums with `math.fsum` where that is no wider.

One file per family. A row without an oracle is checked against its own reference in long double. Where long
double is no wider than double, the exponential comes from mpmath, one element at a time.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from math import fsum
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.tools import testing

WIDE = np.longdouble
mpmath.mp.dps = 50
_oracles: dict[str, Callable[..., list[AnyArray]]] = {}


def expected(attr: KernelAttr, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
    """Return the true outputs of an attr: from the oracle of its kernel, or from its reference in long double."""
    oracle = _oracles.get(attr.name)
    if oracle is None:
        return testing.upcast_reference(attr, arrays)
    signature = attr.signature()
    pairs = zip(signature.arrays, arrays, strict=True)
    named = {p.name: wide(p.as_declared(p.numbers(a))) for p, a in pairs if p.role != "out"}
    with np.errstate(all="ignore"):
        return signature.outputs_as_given(oracle(attr, **named))


def oracle(function: Callable[..., list[AnyArray]]) -> Callable[..., list[AnyArray]]:
    """Register a function as the oracle of the kernel of its name."""
    _oracles[function.__name__] = function
    return function


def wide(array: AnyArray) -> AnyArray:
    """Convert floats to long double; integers stay."""
    return array.astype(WIDE) if array.dtype.kind == "f" else array


def mpmath_exp(x: AnyArray) -> AnyArray:
    """Return exp rounded once from 50 digits to long double (through text, which long double parses exactly)."""
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
    """Return exp with an error far below that of double."""
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
    """Sum without rounding errors visible in double; a sum of negative zeros alone is a negative zero."""
    if np.finfo(WIDE).nmant > 60 or not np.isfinite(values).all():
        return np.asarray(np.add.reduce(np.ascontiguousarray(np.moveaxis(values, axis, -1)), axis=-1))
    negative = np.asarray(((values == 0) & np.signbit(values)).all(axis))
    sums = np.apply_along_axis(lambda row: fsum(map(float, row)), axis, values).astype(WIDE)
    return np.asarray(np.where(negative & (values.shape[axis] > 0), WIDE(-0.0), sums))


for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
