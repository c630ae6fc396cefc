"""Kernels that are no rows of the registry, called by address: Euclidean distances, and k-means."""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.errors import WorkspaceError
from jitkernels.microkernels.distance.euclidean_distance import EuclideanOptions, euclidean_kernel
from jitkernels.microkernels.distance.sample_panels import (
    closest_kernel,
    nearest_kernel,
    packing_kernel,
    panel_elements,
)
from jitkernels.runtime.loading.loader import address_of

MIN_PARALLEL_MULTIPLICATIONS = 1 << 20
"""Multiplications of a call from which on a second thread pays for being woken: some 50 microseconds of work."""


def _function(kernel: RangeKernel) -> Callable[..., None]:
    kinds = [ctypes.c_void_p if "*" in text else ctypes.c_int64 for text in kernel.arguments]
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address_of(kernel))

    def checked(*arguments: int) -> None:
        if call(*arguments):
            raise WorkspaceError(f"{kernel.name}: no memory for its workspace")

    return checked


@functools.cache
def _euclidean(dtype: str, options: EuclideanOptions, parallel: bool) -> Callable[..., None]:
    return _function(euclidean_kernel(dtype, cpu_target.target(), options, parallel=parallel))


def euclidean_distances(
    x: AnyArray, y: AnyArray, norms: tuple[AnyArray, AnyArray] | None = None, *, squared: bool
) -> AnyArray:
    """The distances of the rows of two matrices in C order; y may be x itself.

    By products if `norms`, the squared norms of the rows of both, are given, else by differences.
    """
    (m, d), n = x.shape, len(y)
    distances = np.empty((m, n), x.dtype)
    options = EuclideanOptions(not squared, x is y, norms is not None)
    call = _euclidean(x.dtype.name, options, m * n * d >= MIN_PARALLEL_MULTIPLICATIONS)
    xx, yy = (one.ctypes.data for one in norms) if norms else (0, 0)
    call(x.ctypes.data, y.ctypes.data, xx, yy, distances.ctypes.data, m, n, d)
    return distances


@functools.cache
def _packing(dtype: str, parallel: bool) -> Callable[..., None]:
    return _function(packing_kernel(dtype, cpu_target.target(), parallel=parallel))


@functools.cache
def _closest(dtype: str, parallel: bool) -> Callable[..., None]:
    return _function(closest_kernel(dtype, cpu_target.target(), parallel=parallel))


@functools.cache
def _nearest(dtype: str, is_packed: bool, parallel: bool) -> Callable[..., None]:
    return _function(nearest_kernel(dtype, cpu_target.target(), is_packed=is_packed, parallel=parallel))


def nearest_rows(x: AnyArray, y: AnyArray, labels: AnyArray) -> None:
    """Write the index of the nearest row of y for each row of x to `labels`, of int32."""
    _label(_nearest, False, x, x.shape[0], y, labels)


def _label(kernel: Any, is_packed: bool, samples: AnyArray, n: int, y: AnyArray, labels: AnyArray) -> None:
    m, d = y.shape
    half_norms = np.einsum("ij,ij->i", y, y) / 2
    call = kernel(y.dtype.name, is_packed, m * n * d >= MIN_PARALLEL_MULTIPLICATIONS)
    call(samples.ctypes.data, y.ctypes.data, half_norms.ctypes.data, labels.ctypes.data, m, n, d)


class SamplePanels:
    """A transposed copy of samples, a matrix in C order, for several passes over them."""

    def __init__(self, samples: AnyArray) -> None:
        self.n, self.d = samples.shape
        dtype = samples.dtype.name
        self.panels = np.empty(panel_elements(self.n, self.d, dtype, cpu_target.target()), samples.dtype)
        pack = _packing(dtype, samples.size >= MIN_PARALLEL_MULTIPLICATIONS)
        pack(samples.ctypes.data, self.panels.ctypes.data, 0, self.n, self.d)

    def label(self, y: AnyArray, labels: AnyArray) -> None:
        """As `nearest_rows`."""
        _label(_nearest, True, self.panels, self.n, y, labels)

    def closest_squares(self, y: AnyArray, closest: AnyArray, z: AnyArray) -> None:
        """Write ``min(closest[j], |y[i] - sample[j]|^2)`` to ``z[i, j]``; all are of the samples' dtype, in C order."""
        m = len(y)
        call = _closest(y.dtype.name, m * self.n * self.d >= MIN_PARALLEL_MULTIPLICATIONS)
        call(self.panels.ctypes.data, y.ctypes.data, closest.ctypes.data, z.ctypes.data, m, self.n, self.d)
