"""Slices of an extent: their elements in each array, and whether outputs of a slice are slices of the outputs."""

import functools
from typing import Any

import numpy as np
import oracles

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import JitKernelsError
from jitkernels.tools import testing

WHOLE, BEGIN, END = 67, 21, 42
"""A short extent and a slice of it, to determine whether slices of a row's extent are independent."""


def arguments_of(attr: KernelAttr) -> list[Argument]:
    """Return the arrays of an attr, as its schema declares them."""
    fields = attr.fields()
    return [a for a in type(attr).arrays if a.when is None or fields[a.when]]


def symbol_in(argument: Argument, name: str) -> bool:
    return any(name in extent.symbols for extent in argument.extents)


def part(array: AnyArray, argument: Argument, attr: KernelAttr, name: str, begin: int, end: int) -> AnyArray:
    """Return a view of an array's part of a slice of an extent."""
    extents = list(argument.extents)
    if argument.transposed is not None and attr.fields()[argument.transposed]:
        extents[-2:] = reversed(extents[-2:])
    shape: list[int] = []
    index: list[Any] = []
    for extent in extents:
        if extent.factor != 1 or not extent.symbols:
            shape.append(extent.factor)
            index.append(slice(None))
        for symbol in extent.symbols:
            shape.append(getattr(attr, symbol))
            index.append(slice(begin, end) if symbol == name else slice(None))
    view: AnyArray = array.reshape(shape)[tuple(index)]
    return view


def cut(attr: KernelAttr, arrays: list[AnyArray], name: str, begin: int, end: int) -> list[AnyArray]:
    """Return the arrays of the same call for a slice of an extent."""
    small = testing.changed(attr, {name: end - begin})
    assert small is not None, f"{attr} with {name} of {end - begin}"
    own = zip(arrays, arguments_of(attr), small.signature().arrays, strict=True)
    return [
        np.ascontiguousarray(part(array, argument, attr, name, begin, end)).reshape(parameter.shape)
        for array, argument, parameter in own
    ]


@functools.cache
def has_independent_slices(attr: KernelAttr, name: str) -> bool:
    """Return whether the true outputs of any slice of an extent equal the slice of the true outputs."""
    full = testing.changed(attr, {name: WHOLE})
    small = testing.changed(attr, {name: END - BEGIN})
    if full is None or small is None:
        return False
    try:
        arrays = full.signature().sample(5)
        results = [n for n, p in enumerate(full.signature().arrays) if p.output]
        expected = [array.copy() for array in arrays]
        for slots, right in zip(results, oracles.expected(full, arrays), strict=True):
            expected[slots] = right
        parts = cut(full, expected, name, BEGIN, END)
        alone = oracles.expected(small, cut(full, arrays, name, BEGIN, END))
    except (JitKernelsError, ValueError, IndexError):
        return False
    return all(
        symbol_in(arguments_of(full)[slots], name) and np.array_equal(parts[slots], right, equal_nan=True)
        for slots, right in zip(results, alone, strict=True)
    )
