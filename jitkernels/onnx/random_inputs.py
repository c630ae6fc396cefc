"""Random inputs of a model, for measurements and comparisons: the same for the same seed."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.errors import ArgumentError
from jitkernels.onnx.model_interface import ValueType
from jitkernels.onnx.values import MAX_MODEL_ELEMENTS


def random_inputs(declared: Sequence[ValueType], sizes: Mapping[str, int], seed: int = 0) -> dict[str, AnyArray]:
    """Arrays of declared types and shapes by name: floats of the normal distribution, and zeros and ones.

    Integers are 0 or 1, which as indices are in the bounds of most arrays. `sizes`: those of symbolic dimensions, and
    of unnamed ones by input and axis, such as ``x.0``. Raises ArgumentError for a size that is not known or
    too large, and for inputs that are no tensors of numbers.
    """
    rng = np.random.default_rng(seed)
    return {one.name: _array(one, shape_of(one, sizes), rng) for one in declared}


def open_dimensions(declared: Sequence[ValueType]) -> dict[str, None]:
    """The names of the dimensions of inputs whose sizes the model does not fix, in order."""
    return {
        size if isinstance(size, str) else f"{one.name}.{axis}": None
        for one in declared
        for axis, size in enumerate(one.shape or ())
        if not isinstance(size, int)
    }


def shape_of(declared: ValueType, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The declared shape with these sizes of symbolic dimensions."""
    if declared.shape is None:
        raise ArgumentError(f"{declared.name}: expected an array, as the model declares no shape of it")
    shape = []
    for axis, size in enumerate(declared.shape):
        name = size if isinstance(size, str) else f"{declared.name}.{axis}"
        if not isinstance(size, int) and name not in sizes:
            raise ArgumentError(f"{declared}: expected a size of the dimension {name!r}, such as {name}=1")
        shape.append(size if isinstance(size, int) else sizes[name])
    if math.prod(shape) > MAX_MODEL_ELEMENTS:
        raise ArgumentError(f"{declared}: expected at most {MAX_MODEL_ELEMENTS} elements, got the shape {shape}")
    return tuple(shape)


def _array(declared: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> AnyArray:
    if not declared.type.startswith("tensor(") or declared.dtype in ("", "object"):
        raise ArgumentError(f"{declared}: expected an array, as there are no random ones of its type")
    if np.dtype(declared.dtype).kind in "fc":
        return np.asarray(rng.standard_normal(shape)).astype(declared.dtype)
    if np.dtype(declared.dtype).kind == "V":  # floats that NumPy lacks, of ml_dtypes
        return np.asarray(rng.standard_normal(shape), np.float32).astype(declared.dtype)
    return rng.integers(0, 2, shape).astype(declared.dtype)
