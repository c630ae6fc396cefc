"""Parts of an extent: which elements of each array belong to one, and whether the truth of a part is a part of it."""

import functools
from typing import Any

import numpy as np
import oracles

from jitkernels import testing
from jitkernels.attrs.base import KernelAttr
from jitkernels.errors import JitKernelsError
from jitkernels.signature import AnyArray, Argument

WHOLE, BEGIN, END = 67, 21, 42
"""A short extent and a part of it, to see whether the parts of a row's extent are independent."""


def arguments_of(attr: KernelAttr) -> list[Argument]:
    """The arrays that an attr has, as its row declares them."""
    fields = attr.fields()
    return [a for a in type(attr).arrays if a.when is None or fields[a.when]]


def symbol_in(argument: Argument, name: str) -> bool:
    return any(name in extent.symbols for extent in argument.extents)


def part(array: AnyArray, argument: Argument, attr: KernelAttr, name: str, begin: int, end: int) -> AnyArray:
    """What of an array belongs to a part of an extent: a view."""
    extents = list(argument.extents)
    if argument.turned is not None and attr.fields()[argument.turned]:
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
    """The arrays of the same call of a part of an extent alone."""
    small = testing.changed(attr, {name: end - begin})
    assert small is not None, f"{attr} with {name} of {end - begin}"
    own = zip(arrays, arguments_of(attr), small.signature().arrays, strict=True)
    return [
        np.ascontiguousarray(part(array, argument, attr, name, begin, end)).reshape(parameter.shape)
        for array, argument, parameter in own
    ]


@functools.cache
def is_independent(attr: KernelAttr, name: str) -> bool:
    """Whether the truth of any part of an extent is that part of the truth of the whole: nothing else tells."""
    whole = testing.changed(attr, {name: WHOLE})
    small = testing.changed(attr, {name: END - BEGIN})
    if whole is None or small is None:
        return False
    try:
        arrays = whole.signature().sample(5)
        results = [n for n, p in enumerate(whole.signature().arrays) if p.output]
        expected = [array.copy() for array in arrays]
        for place, right in zip(results, oracles.expected(whole, arrays), strict=True):
            expected[place] = right
        parts = cut(whole, expected, name, BEGIN, END)
        alone = oracles.expected(small, cut(whole, arrays, name, BEGIN, END))
    except (JitKernelsError, ValueError, IndexError):
        return False
    return all(
        symbol_in(arguments_of(whole)[place], name) and np.array_equal(parts[place], right, equal_nan=True)
        for place, right in zip(results, alone, strict=True)
    )
