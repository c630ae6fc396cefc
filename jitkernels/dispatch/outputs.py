"""Outputs of everyday calls that Python serves: the caller's memory, checked, or new memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import BoundCall
from jitkernels.attrs.schema.signature import AnyArray, Array, Signature
from jitkernels.core import bfloat16
from jitkernels.errors import ArgumentError, ArgumentTypeError, WorkspaceError


def direct_targets(kernel: str, call: BoundCall, outputs: Sequence[Array], out: Any) -> list[AnyArray | None]:
    """For each output the memory of ``out`` in the kernel's shape, or None where the kernel cannot write it directly.

    Raises ArgumentTypeError and ArgumentError for an ``out`` that cannot hold the results.
    """
    if out is None:
        return [None] * len(outputs)
    shapes = [tuple(shape) for shape in call.shapes]
    if call.finish:
        shapes = [finish(np.empty(shape, np.bool_)).shape for finish, shape in zip(call.finish, shapes, strict=True)]
    arrays = check_out(kernel, out, [output.dtype for output in outputs], shapes)
    direct_targets: list[AnyArray | None] = []
    for array, output in zip(arrays, outputs, strict=True):
        direct = not call.finish and array.flags.carray and output.takes(array.dtype)
        direct = direct and array.dtype.isnative
        direct_targets.append(array.reshape(output.shape) if direct else None)
    return direct_targets


def dtype_of(out: Any) -> Any:
    """The dtype of ``out``, if kernels compute in it, else None."""
    name = out.dtype.newbyteorder("=").name if isinstance(out, np.ndarray) else None
    return {"float32": np.float32, "float64": np.float64}.get(str(name))


def copy_to_out(kernel: str, results: Any, out: Any) -> None:
    """Copy results to an ``out`` that the dispatcher cannot write. Raises the errors of `direct_targets`."""
    new_results = as_tuple(results)
    arrays = check_out(
        kernel, out, [str(result.dtype) for result in new_results], [result.shape for result in new_results]
    )
    for array, result in zip(arrays, new_results, strict=True):
        with np.errstate(all="ignore"):
            array[...] = result


def is_unusual_memory(array: Any) -> bool:
    """Whether it is an array with unaligned or byte-swapped elements, which the dispatcher does not write."""
    return type(array) is np.ndarray and not (array.flags.aligned and array.dtype.isnative)


def as_tuple(out: Any) -> tuple[Any, ...]:
    """``out`` as a tuple; for subclasses of tuple, its actual items."""
    return (*tuple.__iter__(out),) if isinstance(out, tuple) else (out,)


def check_out(kernel: str, out: Any, dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> tuple[AnyArray, ...]:
    """The arrays of ``out``, checked for results of these dtypes and shapes."""
    arrays = as_tuple(out)
    if len(arrays) != len(dtypes):
        got = f"{len(arrays)} of them" if isinstance(out, tuple) else type(out).__name__
        raise ArgumentTypeError(f"{kernel}: out: expected a tuple of {len(dtypes)} arrays, got {got}")
    for array, dtype, shape in zip(arrays, dtypes, shapes, strict=True):
        _check_out(kernel, dtype, array, shape)
    if any(np.may_share_memory(array, other) for i, array in enumerate(arrays) for other in arrays[:i]):
        raise ArgumentError(f"{kernel}: out: expected arrays that do not overlap")
    return arrays


def allocate(kernel: str, output: Array) -> AnyArray:
    """Memory for a result. Raises WorkspaceError if there is none."""
    try:
        return np.empty(output.shape, output.numpy)
    except (MemoryError, ValueError) as error:
        raise WorkspaceError(f"{kernel}: {output.name}: no memory for {output.describe()}: {error}") from None


def as_caller_dtype(call: BoundCall, output: Array, result: AnyArray) -> AnyArray:
    """A result viewed as the caller's bfloat16 dtype, if it holds bits of bfloat16."""
    narrow = call.narrow if output.dtype == bfloat16.BFLOAT16_NAME else None
    return result if narrow is None or result.dtype == narrow else result.view(narrow)


def _check_out(kernel: str, dtype: str, array: Any, shape: tuple[int, ...]) -> None:
    expected = f"{kernel}: out: expected a writeable {dtype} array of shape {shape}"
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"{expected}, got {type(array).__name__}")
    if not _can_hold(array.dtype, dtype):
        raise ArgumentTypeError(f"{expected}, got dtype {array.dtype}")
    if array.shape != shape:
        raise ArgumentError(f"{expected}, got shape {array.shape}")
    if not array.flags.writeable:
        raise ArgumentError(f"{expected}, got a read-only array")
    if overlaps_itself(array):
        raise ArgumentError(f"{expected}, got one whose own elements overlap, with strides {array.strides}")


def _can_hold(memory: "np.dtype[Any]", dtype: str) -> bool:
    """Whether memory of a dtype can hold results of another: floats any floats, integers if nothing is lost."""
    if dtype == bfloat16.BFLOAT16_NAME:
        return memory.kind in "fc" or bfloat16.is_foreign(memory)
    if bfloat16.is_float(dtype):
        return memory.kind in "fc" and np.can_cast(dtype, memory, "same_kind")
    return memory.kind in "iufc" and np.can_cast(dtype, memory, "safe")


def overlaps_itself(array: AnyArray) -> bool:
    """Whether two elements may share memory: NumPy then keeps one of the values written there, no matter which.

    Slices and transposes are never folded: every stride exceeds the reach of all smaller ones.
    """
    reach = array.itemsize
    for stride, extent in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if extent > 1 and stride < reach:
            return array.size > 0
        reach += stride * (extent - 1)
    return False


def copy_overlapping(signature: Signature, inputs: Sequence[AnyArray], arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """Copy inputs that overlap an output in a way the kernel does not support, as NumPy does."""
    separate = []
    for parameter, value in zip(signature.inputs, inputs, strict=True):
        clash = any(
            np.may_share_memory(value, array)
            and not (parameter.in_place and output.in_place and value.ctypes.data == array.ctypes.data)
            for array, output in zip(arrays, signature.outputs, strict=True)
        )
        separate.append(value.copy() if clash else value)
    return separate
