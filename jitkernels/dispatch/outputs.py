"""Where everyday calls that Python serves put their results: memory of the caller's, checked, or new memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels import bfloat16
from jitkernels.attrs.base import Call
from jitkernels.errors import ArgumentError, ArgumentTypeError, WorkspaceError
from jitkernels.signature import AnyArray, Array, Signature


def targets(kernel: str, call: Call, outputs: Sequence[Array], out: Any) -> list[AnyArray | None]:
    """For each output the memory of ``out`` in the kernel's shape, or None where it cannot be used directly.

    Raises ArgumentTypeError and ArgumentError for what cannot take the results.
    """
    if out is None:
        return [None] * len(outputs)
    shapes = [tuple(shape) for shape in call.shapes]
    if call.finish:
        shapes = [
            finish(np.empty(shape, np.bool_)).shape for finish, shape in zip(call.finish, shapes, strict=True)
        ]
    given = checked(kernel, out, [output.dtype for output in outputs], shapes)
    found: list[AnyArray | None] = []
    for array, output in zip(given, outputs, strict=True):
        direct = not call.finish and array.flags.carray and output.takes(array.dtype)
        direct = direct and array.dtype.isnative
        found.append(array.reshape(output.shape) if direct else None)
    return found


def dtype_of(out: Any) -> Any:
    """The dtype of what is given, where it is one that kernels compute in."""
    name = out.dtype.newbyteorder("=").name if isinstance(out, np.ndarray) else None
    return {"float32": np.float32, "float64": np.float64}.get(str(name))


def put(kernel: str, results: Any, out: Any) -> None:
    """Results to where the dispatcher cannot put them. Raises what `targets` does."""
    made = several(results)
    given = checked(kernel, out, [str(result.dtype) for result in made], [result.shape for result in made])
    for array, result in zip(given, made, strict=True):
        with np.errstate(all="ignore"):
            array[...] = result


def lies_strangely(array: Any) -> bool:
    """Whether it is an array that the dispatcher does not write to, and nothing else may be wrong with it."""
    return type(array) is np.ndarray and not (array.flags.aligned and array.dtype.isnative)


def several(out: Any) -> tuple[Any, ...]:
    """What was given as ``out``, as several; of types derived from tuple what is really in them."""
    return (*tuple.__iter__(out),) if isinstance(out, tuple) else (out,)


def checked(
    kernel: str, out: Any, dtypes: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> tuple[AnyArray, ...]:
    """The arrays of ``out``, for results of these dtypes and shapes."""
    given = several(out)
    if len(given) != len(dtypes):
        came = f"{len(given)} of them" if isinstance(out, tuple) else type(out).__name__
        raise ArgumentTypeError(f"{kernel}: out: expected a tuple of {len(dtypes)} arrays, got {came}")
    for array, dtype, shape in zip(given, dtypes, shapes, strict=True):
        _check_out(kernel, dtype, array, shape)
    if any(np.may_share_memory(one, other) for i, one in enumerate(given) for other in given[:i]):
        raise ArgumentError(f"{kernel}: out: expected arrays that do not overlap")
    return given


def new(kernel: str, output: Array) -> AnyArray:
    """Memory for a result. Raises WorkspaceError where there is none."""
    try:
        return np.empty(output.shape, output.numpy)
    except (MemoryError, ValueError) as error:
        raise WorkspaceError(f"{kernel}: {output.name}: no memory for {output.describe()}: {error}") from None


def as_asked(call: Call, output: Array, result: AnyArray) -> AnyArray:
    """A result as an array of the caller's bfloat16, where it has bits of such numbers."""
    narrow = call.narrow if output.dtype == bfloat16.NAME else None
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
    if folds(array):
        raise ArgumentError(f"{expected}, got one whose own elements overlap, with strides {array.strides}")


def _can_hold(given: "np.dtype[Any]", dtype: str) -> bool:
    """Whether memory of a dtype takes results of another: floats any floats, integers what loses nothing."""
    if dtype == bfloat16.NAME:
        return given.kind in "fc" or bfloat16.is_foreign(given)
    if bfloat16.is_float(dtype):
        return given.kind in "fc" and np.can_cast(dtype, given, "same_kind")
    return given.kind in "iufc" and np.can_cast(dtype, given, "safe")


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
