"""Where everyday calls that Python serves put their results: memory of the caller's, checked, or new memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.base import Call
from jitkernels.errors import ArgumentError, ArgumentTypeError, WorkspaceError
from jitkernels.signature import AnyArray, Array, Signature


def targets(kernel: str, call: Call, outputs: Sequence[Array], out: Any) -> list[AnyArray | None]:
    """For each output the memory of ``out`` in the kernel's shape, or None where it cannot be used directly.

    Raises ArgumentTypeError and ArgumentError for what cannot take the results.
    """
    if out is None:
        return [None] * len(outputs)
    given = several(out)
    if len(given) != len(outputs):
        came = f"{len(given)} of them" if isinstance(out, tuple) else type(out).__name__
        raise ArgumentTypeError(f"{kernel}: out: expected a tuple of {len(outputs)} arrays, got {came}")
    found: list[AnyArray | None] = []
    for array, output, shape in zip(given, outputs, call.shapes, strict=True):
        wanted = call.finish(np.empty(shape, np.bool_)).shape if call.finish else tuple(shape)
        _check_out(kernel, output, array, wanted)
        direct = call.finish is None and array.flags.carray and array.dtype == output.dtype
        direct = direct and array.dtype.isnative
        found.append(array.reshape(output.shape) if direct else None)
    if any(np.may_share_memory(one, other) for i, one in enumerate(given) for other in given[:i]):
        raise ArgumentError(f"{kernel}: out: expected arrays that do not overlap")
    return found


def several(out: Any) -> tuple[Any, ...]:
    """What was given as ``out``, as several."""
    return out if isinstance(out, tuple) else (out,)


def new(kernel: str, output: Array) -> AnyArray:
    """Memory for a result. Raises WorkspaceError where there is none."""
    try:
        return np.empty(output.shape, output.dtype)
    except (MemoryError, ValueError) as error:
        raise WorkspaceError(f"{kernel}: {output.name}: no memory for {output.describe()}: {error}") from None


def _check_out(kernel: str, output: Array, array: Any, shape: tuple[int, ...]) -> None:
    expected = f"{kernel}: out: expected a writeable {output.dtype} array of shape {shape}"
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"{expected}, got {type(array).__name__}")
    if array.dtype.kind not in "fc" or not np.can_cast(output.dtype, array.dtype, "same_kind"):
        raise ArgumentTypeError(f"{expected}, got dtype {array.dtype}")
    if array.shape != shape:
        raise ArgumentError(f"{expected}, got shape {array.shape}")
    if not array.flags.writeable:
        raise ArgumentError(f"{expected}, got a read-only array")
    if folds(array):
        raise ArgumentError(f"{expected}, got one whose own elements overlap, with strides {array.strides}")


def folds(array: AnyArray) -> bool:
    """Whether two elements may share memory: NumPy then keeps one of the values written there, no matter which.

    All that slicing and transposing make of an array is nested: every stride goes beyond all that smaller ones reach.
    """
    reach = array.itemsize
    for stride, extent in sorted(zip(map(abs, array.strides), array.shape, strict=True)):
        if extent > 1 and stride < reach:
            return array.size > 0
        reach += stride * (extent - 1)
    return False


def apart(signature: Signature, inputs: Sequence[AnyArray], arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """Inputs that overlap an output in a way the kernel cannot take are copied first, as NumPy does."""
    separate = []
    for parameter, value in zip(signature.inputs, inputs, strict=True):
        clash = any(
            np.may_share_memory(value, array)
            and not (parameter.in_place and output.in_place and value.ctypes.data == array.ctypes.data)
            for array, output in zip(arrays, signature.outputs, strict=True)
        )
        separate.append(value.copy() if clash else value)
    return separate
