"""Kernels that are no rows of the registry, called by address: distances and nearest rows by products."""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.errors import WorkspaceError
from jitkernels.microkernels.gemm.distance_by_products import euclidean_kernel, nearest_kernel
from jitkernels.runtime.loading.loader import address_of

MIN_PARALLEL_OPERATIONS = 1 << 20
"""Multiplications of a call from which on a second thread pays for being woken: some 50 microseconds of work."""


def _function(kernel: RangeKernel) -> Callable[..., None]:
    kinds = [ctypes.c_void_p if "*" in text else ctypes.c_int64 for text in kernel.arguments]
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address_of(kernel))

    def checked(*arguments: int) -> None:
        if call(*arguments):
            raise WorkspaceError(f"{kernel.name}: no memory for its workspace")

    return checked


@functools.cache
def _euclidean(dtype: str, is_root: bool, is_symmetric: bool, parallel: bool) -> Callable[..., None]:
    target = cpu_target.target()
    return _function(
        euclidean_kernel(dtype, target, is_root=is_root, is_symmetric=is_symmetric, parallel=parallel)
    )


@functools.cache
def _nearest(dtype: str, parallel: bool) -> Callable[..., None]:
    return _function(nearest_kernel(dtype, cpu_target.target(), parallel=parallel))


def euclidean_by_products(
    x: AnyArray, y: AnyArray, xx: AnyArray, yy: AnyArray, *, squared: bool
) -> AnyArray:
    """The distances of the rows of two matrices in C order, with their squared norms; y may be x itself."""
    (m, d), n = x.shape, len(y)
    distances = np.empty((m, n), x.dtype)
    call = _euclidean(x.dtype.name, not squared, x is y, m * n * d >= MIN_PARALLEL_OPERATIONS)
    call(x.ctypes.data, y.ctypes.data, xx.ctypes.data, yy.ctypes.data, distances.ctypes.data, m, n, d)
    return distances


def nearest_rows(x: AnyArray, y: AnyArray, half_norms: AnyArray, labels: AnyArray) -> None:
    """Write the index of the nearest row of y for each row of x to `labels`, of int32.

    `half_norms`: half the squared norms of the rows of y.
    """
    (m, d), n = x.shape, len(y)
    call: Any = _nearest(x.dtype.name, m * n * d >= MIN_PARALLEL_OPERATIONS)
    call(x.ctypes.data, y.ctypes.data, half_norms.ctypes.data, labels.ctypes.data, m, n, d)
