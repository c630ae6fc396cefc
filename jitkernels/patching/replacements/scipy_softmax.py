"""`scipy.special`: softmax, its logarithm, and logsumexp."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.api.jit import jit
from jitkernels.dispatch.operators import everyday
from jitkernels.patching.conditions import are_finite, is_plain
from jitkernels.patching.piece import piece
from jitkernels.patching.replacements.numpy_reductions import own_axis
from jitkernels.patching.sample_arrays import calls_of

_kernel_log_softmax = everyday("log_softmax")
_kernel_softmax = everyday("softmax")

FINITE_ARRAYS = "exact arrays of float32 and float64, finite, one axis or all"


def _rows(x: Any, axis: Any) -> tuple[AnyArray, int] | None:
    """The array and the axis of a kernel; all axes as one. None where they are not served.

    SciPy warns of infinities, in ways that differ between the functions: these stay its own.
    """
    if not is_plain(x) or x.size == 0 or x.ndim == 0 or not are_finite(x):
        return None
    if axis is None:
        return (x.reshape(-1), 0) if x.flags.c_contiguous else None
    along = own_axis(x, axis)
    return None if along is None else (x, along)


def _shaped(result: AnyArray, x: AnyArray) -> AnyArray:
    return result if result.shape == x.shape else result.reshape(x.shape)


@piece("scipy.special:softmax", serves=FINITE_ARRAYS, calls=lambda: calls_of("scipy.special:softmax", axis=1))
def softmax(x: Any, axis: Any = None) -> Any:
    rows = _rows(x, axis)
    return NotImplemented if rows is None else _shaped(_kernel_softmax(rows[0], axis=rows[1]), x)


@piece("scipy.special:log_softmax", serves=FINITE_ARRAYS, calls=lambda: calls_of("scipy.special:log_softmax", axis=1))
def log_softmax(x: Any, axis: Any = None) -> Any:
    rows = _rows(x, axis)
    return NotImplemented if rows is None else _shaped(_kernel_log_softmax(rows[0], axis=rows[1]), x)


@functools.cache
def _logsumexp(axis: int, keepdims: bool) -> Callable[..., Any]:
    def logsumexp(x: Any) -> Any:
        """As SciPy does it: the largest elements are left out of the sum, which may be tiny beside them."""
        largest = x.max(axis=axis, keepdims=True)
        is_largest = x == largest
        count = is_largest.sum(axis=axis, keepdims=True).astype(x.dtype)
        rest = np.where(is_largest, 0, np.exp(x - largest)).sum(axis=axis, keepdims=True)
        result = np.log1p(rest / count) + np.log(count) + largest
        return result if keepdims else result.sum(axis=axis)

    return jit(logsumexp)


@piece(
    "scipy.special:logsumexp",
    serves=f"{FINITE_ARRAYS}, without `b` and `return_sign`",
    calls=lambda: calls_of("scipy.special:logsumexp", axis=1),
)
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: Any = False, return_sign: Any = False) -> Any:
    rows = _rows(a, axis)
    if rows is None or b is not None or type(keepdims) is not bool or return_sign is not False:
        return NotImplemented
    if axis is None and keepdims:
        return NotImplemented
    return _logsumexp(rows[1], keepdims)(rows[0])
