"""Shape inference of everyday calls: extents, leading and trailing dimensions, axes and result shapes."""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.attrs.schema.schema_queries import AXIS, inputs_of, spread_of, trailing_of
from jitkernels.attrs.schema.signature import AnyArray, Argument, Array
from jitkernels.core import bfloat16
from jitkernels.errors import ArgumentError, ArgumentTypeError, WorkspaceError, shown

if TYPE_CHECKING:
    from jitkernels.attrs.schema.base import KernelAttr

MAX_NUMPY_DIMENSIONS = 64
"""The most dimensions of a NumPy array."""


def trail_of(
    kernel: str,
    schema: "type[KernelAttr]",
    present: Sequence[Argument],
    arrays: dict[str, AnyArray],
    values: dict[str, Any],
) -> tuple[int, ...]:
    """The trailing dimensions, which must be equal in all inputs that have them."""
    first, *others = [a for a in present if a.trailing is not None]
    shape: tuple[int, ...] = arrays[first.name].shape
    if AXIS in schema.options:
        count = -1 - from_end(kernel, first.name, len(shape), values[AXIS])
    else:
        count = max(len(shape) - len(first.fixed), 0)
    trail = shape[len(shape) - count :]
    for other in others:
        got = arrays[other.name].shape
        if len(got) < count or got[len(got) - count :] != trail:
            raise ArgumentError(
                f"{kernel}: {other.name}: expected the last dimensions {trail}, as {first.name} has them, got {got}"
            )
    return trail


def from_end(kernel: str, name: str, dimensions: int, axis_argument: Any) -> int:
    """An axis of an array, counted from the end."""
    axis = _index(kernel, axis_argument)
    if dimensions == 0:
        raise ArgumentError(f"{kernel}: {name}: expected at least 1 dimension, got 0")
    if not -dimensions <= axis < dimensions:
        raise ArgumentError(f"{kernel}: axis: expected -{dimensions} to {dimensions - 1}, got {shown(axis)}")
    return axis % dimensions - dimensions


def _index(kernel: str, axis: Any) -> int:
    cause: Exception | None = None
    if not isinstance(axis, bool):
        try:
            return operator.index(axis)
        except Exception as error:  # noqa: BLE001  # any error of the object's __index__
            cause = error
    raise ArgumentTypeError(f"{kernel}: axis: expected an int, got {shown(axis)}") from cause


def requested_shape(kernel: str, shape: Any) -> tuple[int, ...]:
    """The leading dimensions that a call passes as ``shape``: an int or a tuple of ints."""
    extents = shape if isinstance(shape, tuple | list) else (shape,)
    result = []
    for extent in extents:
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer):
            raise ArgumentTypeError(f"{kernel}: shape: expected an int or a tuple of ints, got {shown(shape)}")
        if extent < 0 or len(extents) > MAX_NUMPY_DIMENSIONS:
            raise ArgumentError(
                f"{kernel}: shape: expected at most {MAX_NUMPY_DIMENSIONS} ints of 0 or more, got {shown(shape)}"
            )
        result.append(int(extent))
    most_bytes = 8 * math.prod(max(extent, 1) for extent in result)
    if most_bytes > sys.maxsize:  # NumPy rejects such shapes even if they are empty
        raise ArgumentError(f"{kernel}: shape: expected at most {sys.maxsize} bytes, got {shown(shape)}")
    return tuple(result)


def moved_axis(
    kernel: str, schema: "type[KernelAttr]", arrays: dict[str, AnyArray], values: dict[str, Any]
) -> tuple[dict[str, AnyArray], Callable[[AnyArray], AnyArray] | None]:
    """The arrays with their axis moved to the end, and the function that moves it back in a result, or None."""
    if AXIS not in schema.options:
        return arrays, None
    names = [a.name for a in inputs_of(schema) if a.name in arrays and any(e.spread for e in a.extents)]
    axis = from_end(kernel, names[0], arrays[names[0]].ndim, values[AXIS])
    if axis == -1:
        return arrays, None
    shifted = {n: np.moveaxis(arrays[n], axis, -1) if arrays[n].ndim >= -axis else arrays[n] for n in names}
    return arrays | shifted, lambda result: np.moveaxis(result, -1, axis)


def fixed_of(argument: Argument, array: Any) -> int:
    """How many dimensions of an array, or of an IR node, are neither leading nor trailing."""
    own = argument.fixed
    short = own and own[-1].optional and not argument.spreads and array.ndim == len(own) - 1
    return len(own) - 1 if short else len(own)


def lead_of(kernel: str, present: Sequence[Argument], arrays: dict[str, AnyArray], behind: int) -> tuple[int, ...]:
    """The common leading dimensions. Raises ArgumentError where they do not broadcast."""
    shapes = {}
    for argument in present:
        array, spreads = arrays[argument.name], argument.spreads
        fixed = fixed_of(argument, array) + behind_of(argument, behind)
        if array.ndim < fixed or (array.ndim > fixed and not spreads):
            fixed = len(argument.fixed)
            spreads = spreads or argument.trailing is not None
            expected = f"{'at least ' if spreads else ''}{fixed} dimension{'s' * (fixed != 1)}"
            raise ArgumentError(f"{kernel}: {argument.name}: expected {expected} {argument.symbols}, got {array.ndim}")
        if spreads:
            shapes[argument.name] = array.shape[: array.ndim - fixed]
    different = list(dict.fromkeys(shapes.values()))
    if len(different) < 2:
        return different[0] if different else ()
    try:
        return np.broadcast_shapes(*different)
    except (ValueError, RuntimeError):  # the latter for more dimensions than NumPy broadcasts
        listed = " and ".join(str(arrays[name].shape) for name in shapes)
        raise ArgumentError(f"{kernel}: {' and '.join(shapes)}: expected shapes that broadcast, got {listed}") from None


def extents_of(
    kernel: str,
    schema: "type[KernelAttr]",
    present: Sequence[Argument],
    arrays: dict[str, AnyArray],
    lead: tuple[int, ...],
    trail: tuple[int, ...],
    optional: dict[str, int],
) -> tuple[dict[str, int], set[str]]:
    """The value of each symbol, those of `optional` by options, and the symbols whose extents an array omitted.

    Of a row with derived extents, `optional` has all options that these may depend on, which are among the values, too.
    """
    values = dict(optional)
    missing: set[str] = set()
    for plain in (True, False):  # plain symbols first, so that the others are checked against them
        for argument in present:
            array = arrays[argument.name]
            shape = _before(argument, array, len(trail))
            fixed, own = fixed_of(argument, array), argument.fixed
            for extent, size in zip(own, shape[len(shape) - fixed :], strict=False):
                product = size - extent.more
                divides = len(extent.symbols) == 1 and product >= 0 and product % extent.factor == 0
                if divides and extent.is_plain == plain:
                    values.setdefault(extent.symbols[0], product // extent.factor)
            if fixed < len(own):
                missing.add(own[-1].symbols[0])
                values.setdefault(own[-1].symbols[0], 1)
    values |= dict.fromkeys(spread_of(schema), math.prod(lead))
    behind = trailing_of(schema)
    if behind is not None:
        values[behind] = math.prod(trail)
    if schema.derived:
        values |= schema.derive(values)
    for argument in present:
        array = arrays[argument.name]
        own = argument.fixed[: fixed_of(argument, array)]
        known = all(symbol in values for extent in own for symbol in extent.symbols)
        wanted = tuple(extent.value(values) for extent in own) if known else None
        shape = _before(argument, array, len(trail))
        if shape[len(shape) - len(own) :] != wanted:
            meant = f"shape {argument.symbols}" + (f" = {wanted}" if wanted is not None else "")
            raise ArgumentError(f"{kernel}: {argument.name}: expected {meant}, got {array.shape}")
    return values, missing


def behind_of(argument: Argument, behind: int) -> int:
    """How many of a call's `behind` trailing dimensions an array has."""
    return behind if argument.trailing is not None else 0


def _before(argument: Argument, array: AnyArray, behind: int) -> tuple[int, ...]:
    """The shape of an array without its trailing dimensions."""
    shape: tuple[int, ...] = array.shape
    return shape[: len(shape) - behind_of(argument, behind)]


def result_shape(
    argument: Argument, values: dict[str, int], lead: tuple[int, ...], missing: set[str], trail: tuple[int, ...]
) -> tuple[int, ...]:
    own = [e for e in argument.fixed if not (e.optional and e.symbols[0] in missing)]
    fixed = tuple(extent.value(values) for extent in own)
    return (lead if argument.spreads else ()) + fixed + (trail if argument.trailing is not None else ())


def is_transpose(argument: Argument, array: AnyArray, lead: tuple[int, ...]) -> bool:
    """Whether matrices are stored transposed, as transposes of C-contiguous ones, which needs no copy."""
    if array.flags.c_contiguous or array.ndim < 2:
        return False
    if array.ndim > 2 and (len(argument.fixed) < 2 or array.shape[:-2] != lead):
        return False
    return bool(array.swapaxes(-1, -2).flags.c_contiguous)


def flat(
    kernel: str, argument: Argument, array: AnyArray, lead: tuple[int, ...], declared: Array, behind: int
) -> AnyArray:
    """Convert an input to the kernel's shape: contiguous, aligned, of its dtype; without a copy if possible."""
    transposed = argument.transposed is not None and is_transpose(argument, array, lead)  # before it is broadcast
    if argument.spreads:
        fixed = fixed_of(argument, array) + behind_of(argument, behind)
        full = lead + array.shape[array.ndim - fixed :]
        array = array if array.shape == full else np.broadcast_to(array, full)
    if transposed:
        array = array.swapaxes(-1, -2)
    if array.size != math.prod(declared.shape):
        return np.empty(declared.shape, declared.numpy)  # all results are empty, so it is never read
    if declared.dtype == bfloat16.BFLOAT16_NAME:
        array = array.view(np.uint16) if bfloat16.is_foreign(array.dtype) else bfloat16.stored(array)
    if array.dtype == declared.numpy and array.flags.c_contiguous and array.flags.aligned:
        return array.reshape(declared.shape)
    try:
        with np.errstate(all="ignore"):
            return np.require(array, declared.numpy, ["C", "A"]).reshape(declared.shape)
    except (MemoryError, ValueError) as error:  # NumPy raises ValueError for absurd sizes
        raise WorkspaceError(f"{kernel}: {argument.name}: no memory for {declared.describe()}: {error}") from None
