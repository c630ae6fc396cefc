"""Strides of traced arrays, and views by strides (`numpy.lib.stride_tricks.as_strided`)."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.numpy.shape_ops import extents_of, of_array, reshape
from jitkernels.compiler.capture.override_registry import overrides, serves
from jitkernels.compiler.capture.symint import as_symint
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.symbolic_dims import Number, same


@serves("strides")
def strides(array: Traced) -> tuple[Any, ...]:
    """``array.strides``, in bytes. Raises UnsupportedError where only NumPy knows them."""
    steps = array.view.strides()
    if steps is None:
        raise UnsupportedError("ndarray.strides of an array whose memory order only NumPy knows")
    return tuple(as_symint(array.tracer, step * array.dtype.itemsize) for step in steps)


@overrides(np.lib.stride_tricks.as_strided)
def as_strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """A view of a contiguous array.

    Raises UnsupportedError for views beyond the array, of which NumPy would read what lies behind it.
    """
    array = of_array(x)
    if array.view.is_c() is not True:
        raise UnsupportedError("as_strided of an array that is not known to be contiguous")
    steps = array.strides if strides is None else strides
    extents = array.extents if shape is None else extents_of(shape)
    sizes = [_elements(step, array.dtype.itemsize) for step in extents_of(steps)]
    if len(sizes) != len(extents):
        raise UnsupportedError("as_strided with as many strides as dimensions")
    flat = array if array.ndim == 1 else reshape(array, -1)
    last: Number = 0
    for extent, size in zip(extents, sizes, strict=True):
        if extent < 1 or size < 0:
            raise UnsupportedError("as_strided with negative strides or without elements")
        last = last + (extent - 1) * size
    if last >= flat.extents[0]:
        raise UnsupportedError("as_strided beyond the end of the array")
    index_map = ((0, tuple((dimension, size) for dimension, size in enumerate(sizes))),)
    return flat.region(index_map, extents, is_readonly=not writeable)


def _elements(stride: Number, itemsize: int) -> Number:
    """A stride in elements."""
    elements = stride // itemsize
    if not same(elements * itemsize, stride):
        raise UnsupportedError("as_strided by strides that are no multiples of elements")
    return elements
