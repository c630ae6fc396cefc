"""Repeated calls of everyday functions that have no dispatch table, as of options that are pairs of ints.

The shapes and dtypes of the arrays, and the options as they are given, determine the kernel, its integers and the
results' shapes. Such a call costs some microseconds in place of some hundred.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.base import BoundCall, KernelAttr
from jitkernels.dispatch.kernel import Kernel

MAX_CALLS = 256
"""Calls that are remembered of a function; all are forgotten when there are more."""
PLAIN = frozenset({int, float, str, bool, type(None)})
"""Types of options that are remembered."""
Arguments = tuple[Any, ...]


class RememberedCall(NamedTuple):
    """The kernel of a call's class and the one of its sizes, which of its values are inputs, and its one result.

    `address` is that of the kernel of the class when the call was remembered: other code takes another one. `shapes`:
    those of the kernel's arrays, the result last; the caller's may have other dimensions in front, or none.
    """

    of_class: Kernel
    address: int
    kernel: Kernel
    inputs: Sequence[int]
    shapes: Sequence[tuple[int, ...]]
    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"

    def takes(self, out: Any) -> bool:
        """Whether the kernel can write to an array as it is; that it is contiguous is in the key."""
        is_plain = type(out) is np.ndarray and out.flags.writeable
        return is_plain and bool(out.shape == self.shape and out.dtype == self.dtype)


class CallMemo:
    """The remembered calls of one everyday function."""

    def __init__(self) -> None:
        self._calls: dict[Arguments, RememberedCall] = {}

    def call(self, arguments: Arguments, named: Mapping[str, Any]) -> Any:
        """The result of a call that is known; None for all others."""
        values = (*arguments, *named.values())
        out = named.get("out")
        key = _key(values, named)
        known = self._calls.get(key) if key is not None else None
        if known is None or known.of_class.address != known.address:
            return None
        arrays = [values[number] for number in known.inputs]
        if out is None:
            out = np.empty(known.shape, known.dtype)
        elif not known.takes(out) or any(np.may_share_memory(out, array) for array in arrays):
            return None
        arrays.append(out)
        for number, (array, shape) in enumerate(zip(arrays, known.shapes, strict=True)):
            if array.shape != shape:
                arrays[number] = array.reshape(shape)
        known.kernel.callable(*arrays)
        known.of_class.count(1)
        return out

    def remember(self, arguments: Arguments, named: Mapping[str, Any], call: BoundCall, kernel: Kernel) -> None:
        """Remember a call that was computed by a kernel, if its inputs are arrays as they were given."""
        values = (*arguments, *named.values())
        key, inputs = _key(values, named), [_place_of(array, values) for array in call.inputs]
        if key is None or not kernel.address or call.finish or len(call.shapes) != 1 or None in inputs:
            return
        addresses = [value.ctypes.data for value in values if type(value) is np.ndarray]
        if len(set(addresses)) < len(addresses):  # the same array twice: which of both is read is not known
            return
        if type(call.attr).check_data is not KernelAttr.check_data or call.narrow is not None:
            return
        if len(self._calls) >= MAX_CALLS:
            self._calls.clear()
        signature, places = call.attr.signature(), [number for number in inputs if number is not None]
        (result,) = signature.outputs
        shapes = [*(array.shape for array in signature.inputs), result.shape]
        given = [*(values[number].shape for number in places), tuple(call.shapes[0])]
        if all(math.prod(a) == math.prod(b) for a, b in zip(shapes, given, strict=True)):
            of_sizes = kernel.of_sizes(call.attr)
            self._calls[key] = RememberedCall(kernel, kernel.address, of_sizes, places, shapes, given[-1], result.numpy)

    def forget(self) -> None:
        """Forget all calls."""
        self._calls.clear()


def _place_of(array: Any, values: Arguments) -> int | None:
    """Which of the values has the memory of an input; None if it was converted."""
    for number, value in enumerate(values):
        if type(value) is np.ndarray and value.size == array.size and value.ctypes.data == array.ctypes.data:
            return number if value.dtype == array.dtype and array.flags.c_contiguous else None
    return None


def _key(values: Arguments, named: Mapping[str, Any]) -> Arguments | None:
    """What tells a call from others; None for arrays that kernels cannot read as they are, and for other options.

    True and 1.0 are no ints, so that types count.
    """
    parts: list[Any] = [*named]
    for value in values:
        if type(value) is np.ndarray:
            flags = value.flags
            if not (flags.c_contiguous and flags.aligned):
                return None
            parts.append((value.shape, value.dtype))
        elif _is_plain(value):
            parts.append((_types_of(value), value))
        else:
            return None
    return tuple(parts)


def _is_plain(value: Any) -> bool:
    """Whether an option is a number, a string, or a tuple of such, whose hash no one else has written."""
    return type(value) in PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _types_of(value: Any) -> Any:
    return tuple(map(_types_of, value)) if type(value) is tuple else type(value)
