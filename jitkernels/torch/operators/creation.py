"""Arrays of given shapes and elements."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.torch.array_values import created
from jitkernels.torch.aten_table import operator


@operator("full.default")
def full(size: Sequence[Any], fill_value: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.full, tuple(size), fill_value, result.dtype)


@operator("full_like.default")
def full_like(x: Any, fill_value: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.full, x.shape, fill_value, result.dtype)


@operator("fill.Scalar")
def fill(x: Any, value: Any) -> Any:
    return created(np.full, x.shape, value, x.dtype)


@operator("fill.Tensor")
def fill_with_element(x: Any, value: Any) -> Any:
    return np.broadcast_to(value.astype(x.dtype), x.shape)


@operator("zeros.default", "empty.memory_format", "new_zeros.default", "new_empty.default")
def zeros(*size: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.zeros, tuple(size[-1]), result.dtype)


@operator("ones.default", "new_ones.default")
def ones(*size: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.ones, tuple(size[-1]), result.dtype)


@operator("new_full.default")
def new_full(x: Any, size: Sequence[Any], fill_value: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.full, tuple(size), fill_value, result.dtype)


@operator("zeros_like.default", "empty_like.default")
def zeros_like(x: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.zeros, x.shape, result.dtype)


@operator("ones_like.default")
def ones_like(x: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.ones, x.shape, result.dtype)


@operator("scalar_tensor.default")
def scalar_tensor(s: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.full, (), s, result.dtype)


@operator("arange.start_step")
def arange(start: Any, end: Any, step: Any = 1, dtype: Any = None, result: Any = None) -> Any:
    """``start + i * step`` for as many i as torch infers. Ints are counted from bounds without their fractions."""
    count, dtype = result.shape[0], result.dtype
    if count is None:
        return created(np.arange, start, end, step, dtype=dtype)
    if dtype.kind in "iu":
        start, step = (int(one) if isinstance(one, float) else one for one in (start, step))
        return (start + step * np.arange(count)).astype(dtype)
    return (start + step * np.arange(count, dtype=np.float64)).astype(dtype)


@operator("arange.start")
def arange_from(start: Any, end: Any, dtype: Any = None, result: Any = None) -> Any:
    return arange(start, end, 1, dtype, result)


@operator("arange.default")
def arange_to(end: Any, dtype: Any = None, result: Any = None) -> Any:
    return arange(0, end, 1, dtype, result)


@operator("eye.default")
def eye(n: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.eye, n, dtype=result.dtype)


@operator("eye.m")
def eye_of_columns(n: Any, m: Any, dtype: Any = None, result: Any = None) -> Any:
    return created(np.eye, n, m, dtype=result.dtype)
