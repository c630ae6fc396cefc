"""The shapes of everyday calls: extents from those of arrays, leading and trailing dimensions, axes and results."""

import math
import operator
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels import bfloat16
from jitkernels.attrs.roles import AXIS, inputs_of, spread_of, trailing_of
from jitkernels.errors import ArgumentError, ArgumentTypeError, WorkspaceError, shown
from jitkernels.signature import AnyArray, Argument, Array

if TYPE_CHECKING:
    from jitkernels.attrs.base import KernelAttr

MOST_DIMENSIONS = 64
"""Of NumPy's arrays."""


def trail_of(
    kernel: str,
    row: "type[KernelAttr]",
    present: Sequence[Argument],
    arrays: dict[str, AnyArray],
    values: dict[str, Any],
) -> tuple[int, ...]:
    """The trailing dimensions, which all inputs that may have some have alike."""
    first, *others = [a for a in present if a.trailing is not None]
    shape: tuple[int, ...] = arrays[first.name].shape
    if AXIS in row.options:
        count = -1 - from_end(kernel, first.name, len(shape), values[AXIS])
    else:
        count = max(len(shape) - len(first.fixed), 0)
    trail = shape[len(shape) - count :]
    for other in others:
        came = arrays[other.name].shape
        if len(came) < count or came[len(came) - count :] != trail:
            raise ArgumentError(
                f"{kernel}: {other.name}: expected the last dimensions {trail}, as {first.name} has them, got {came}"
            )
    return trail


def from_end(kernel: str, name: str, dimensions: int, given: Any) -> int:
    """An axis of an array, counted from the end."""
    axis = _index(kernel, given)
    if dimensions == 0:
        raise ArgumentError(f"{kernel}: {name}: expected at least 1 dimension, got 0")
    if not -dimensions <= axis < dimensions:
        raise ArgumentError(f"{kernel}: axis: expected -{dimensions} to {dimensions - 1}, got {shown(axis)}")
    return axis % dimensions - dimensions


def _index(kernel: str, axis: Any) -> int:
    why: Exception | None = None
    if not isinstance(axis, bool):
        try:
            return operator.index(axis)
        except Exception as error:  # noqa: BLE001  # whatever an object that is asked for its number raises
            why = error
    raise ArgumentTypeError(f"{kernel}: axis: expected an int, got {shown(axis)}") from why


def given_shape(kernel: str, given: Any) -> tuple[int, ...]:
    """The leading dimensions that a call names: an int, or several."""
    extents = given if isinstance(given, tuple | list) else (given,)
    found = []
    for extent in extents:
        if isinstance(extent, bool) or not isinstance(extent, int | np.integer):
            raise ArgumentTypeError(
                f"{kernel}: shape: expected an int or a tuple of ints, got {shown(given)}"
            )
        if extent < 0 or len(extents) > MOST_DIMENSIONS:
            raise ArgumentError(
                f"{kernel}: shape: expected at most {MOST_DIMENSIONS} ints of 0 or more, got {shown(given)}"
            )
        found.append(int(extent))
    most_bytes = 8 * math.prod(max(extent, 1) for extent in found)
    if most_bytes > sys.maxsize:  # NumPy makes none such, empty or not
        raise ArgumentError(f"{kernel}: shape: expected one that memory can have, got {shown(given)}")
    return tuple(found)


def moved_axis(
    kernel: str, row: "type[KernelAttr]", arrays: dict[str, AnyArray], values: dict[str, Any]
) -> tuple[dict[str, AnyArray], Callable[[AnyArray], AnyArray] | None]:
    """The arrays with their axis at the end, and what moves it back in a result (None if it was there)."""
    if AXIS not in row.options:
        return arrays, None
    turned = [a.name for a in inputs_of(row) if a.name in arrays and any(e.spread for e in a.extents)]
    place = from_end(kernel, turned[0], arrays[turned[0]].ndim, values[AXIS])
    if place == -1:
        return arrays, None
    shifted = {
        n: np.moveaxis(arrays[n], place, -1) if arrays[n].ndim >= -place else arrays[n] for n in turned
    }
    return arrays | shifted, lambda result: np.moveaxis(result, -1, place)


def fixed_of(argument: Argument, array: Any) -> int:
    """How many of an array's dimensions, or a node's, are neither leading nor trailing ones."""
    own = argument.fixed
    short = own and own[-1].optional and not argument.spreads and array.ndim == len(own) - 1
    return len(own) - 1 if short else len(own)


def lead_of(
    kernel: str, present: Sequence[Argument], arrays: dict[str, AnyArray], behind: int
) -> tuple[int, ...]:
    """The common leading dimensions. Raises ArgumentError where they do not broadcast."""
    shapes = {}
    for argument in present:
        array, spreads = arrays[argument.name], argument.spreads
        fixed = fixed_of(argument, array) + behind_of(argument, behind)
        if array.ndim < fixed or (array.ndim > fixed and not spreads):
            fixed = len(argument.fixed)
            spreads = spreads or argument.trailing is not None
            many = f"{'at least ' if spreads else ''}{fixed} dimension{'s' * (fixed != 1)}"
            raise ArgumentError(
                f"{kernel}: {argument.name}: expected {many} {argument.symbols}, got {array.ndim}"
            )
        if spreads:
            shapes[argument.name] = array.shape[: array.ndim - fixed]
    different = list(dict.fromkeys(shapes.values()))
    if len(different) < 2:
        return different[0] if different else ()
    try:
        return np.broadcast_shapes(*different)
    except (ValueError, RuntimeError):  # the latter for more dimensions than NumPy broadcasts
        listed = " and ".join(str(arrays[name].shape) for name in shapes)
        raise ArgumentError(
            f"{kernel}: {' and '.join(shapes)}: expected shapes that broadcast, got {listed}"
        ) from None


def extents_of(
    kernel: str,
    row: "type[KernelAttr]",
    present: Sequence[Argument],
    arrays: dict[str, AnyArray],
    lead: tuple[int, ...],
    trail: tuple[int, ...],
    told: dict[str, int],
) -> tuple[dict[str, int], set[str]]:
    """The value of each symbol, some of which options told, and the symbols whose extents an array left out."""
    values = dict(told)
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
    values |= dict.fromkeys(spread_of(row), math.prod(lead))
    behind = trailing_of(row)
    if behind is not None:
        values[behind] = math.prod(trail)
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
    """How many trailing dimensions an array has where a call has so many."""
    return behind if argument.trailing is not None else 0


def _before(argument: Argument, array: AnyArray, behind: int) -> tuple[int, ...]:
    """The shape of an array without its trailing dimensions."""
    shape: tuple[int, ...] = array.shape
    return shape[: len(shape) - behind_of(argument, behind)]


def result_shape(
    argument: Argument,
    values: dict[str, int],
    lead: tuple[int, ...],
    missing: set[str],
    trail: tuple[int, ...],
) -> tuple[int, ...]:
    own = [e for e in argument.fixed if not (e.optional and e.symbols[0] in missing)]
    fixed = tuple(extent.value(values) for extent in own)
    return (lead if argument.spreads else ()) + fixed + (trail if argument.trailing is not None else ())


def lies_turned(argument: Argument, array: AnyArray, lead: tuple[int, ...]) -> bool:
    """Whether matrices lie in memory as the transposes of C-contiguous ones, which needs no copy."""
    if array.flags.c_contiguous or array.ndim < 2:
        return False
    if array.ndim > 2 and (len(argument.fixed) < 2 or array.shape[:-2] != lead):
        return False
    return bool(array.swapaxes(-1, -2).flags.c_contiguous)


def flat(
    kernel: str, argument: Argument, array: AnyArray, lead: tuple[int, ...], wanted: Array, behind: int
) -> AnyArray:
    """An input in the kernel's own shape: contiguous, aligned, of its dtype; the caller's memory if possible."""
    turned = argument.turned is not None and lies_turned(
        argument, array, lead
    )  # as it came, before it is repeated
    if argument.spreads:
        fixed = fixed_of(argument, array) + behind_of(argument, behind)
        whole = lead + array.shape[array.ndim - fixed :]
        array = array if array.shape == whole else np.broadcast_to(array, whole)
    if turned:
        array = array.swapaxes(-1, -2)
    if array.size != math.prod(wanted.shape):
        return np.empty(wanted.shape, wanted.numpy)  # no result has an element, so nobody reads it
    if wanted.dtype == bfloat16.NAME:
        array = array.view(np.uint16) if bfloat16.is_foreign(array.dtype) else bfloat16.stored(array)
    if array.dtype == wanted.numpy and array.flags.c_contiguous and array.flags.aligned:
        return array.reshape(wanted.shape)
    try:
        with np.errstate(all="ignore"):
            return np.require(array, wanted.numpy, ["C", "A"]).reshape(wanted.shape)
    except (MemoryError, ValueError) as error:  # as many bytes as no machine has are a ValueError
        raise WorkspaceError(
            f"{kernel}: {argument.name}: no memory for {wanted.describe()}: {error}"
        ) from None
