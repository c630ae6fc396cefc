"""Universal functions of a function of numbers, or of rows, in plain Python: what `jitkernels.vectorize` compiles.

A trace never runs this code: it has loops of its own, see `traced_ufunc`. Calls that are not compiled do.
"""

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.numba_dispatchers import UfuncSource
from jitkernels.errors import ArgumentError


class PlainUfunc:
    """A function of numbers over broadcast arrays. `loop_types`: as in `numpy.ufunc.types`; any numbers without."""

    def __init__(self, function: types.FunctionType, loop_types: tuple[str, ...]) -> None:
        self.function, self.loop_types = function, loop_types

    def __jitkernels_ufunc__(self) -> UfuncSource:
        return UfuncSource(self.function, "", self.loop_types)

    def __call__(self, *arguments: Any) -> Any:
        arrays, dtypes = resolved([*map(np.asarray, arguments)], self.loop_types)
        broadcast = np.broadcast_arrays(*arrays)
        shape = broadcast[0].shape
        if 0 in shape:
            return self._empty(broadcast, dtypes)
        results = [self.function(*elements) for elements in zip(*(array.ravel() for array in broadcast), strict=True)]
        columns = [*zip(*results, strict=True)] if type(results[0]) is tuple else [results]
        found = [np.asarray(column).reshape(shape)[()] for column in columns]
        found = [one.astype(dtype) for one, dtype in zip(found, dtypes, strict=True)] if dtypes else found
        return tuple(found) if type(results[0]) is tuple else found[0]

    def _empty(self, arrays: Sequence[Any], dtypes: Sequence[Any]) -> Any:
        """The results of no elements: they have the dtypes that are declared, or those of results for ones."""
        result = self.function(*[np.ones((), array.dtype)[()] for array in arrays])
        results = result if type(result) is tuple else (result,)
        found = [np.empty(arrays[0].shape, dtype) for dtype in dtypes or [np.asarray(one).dtype for one in results]]
        return tuple(found) if type(result) is tuple else found[0]

    def reduce(self, array: Any, axis: int, keepdims: bool) -> Any:
        """The function of the result so far and the next row along an axis."""
        rows = np.moveaxis(np.asarray(array), axis, 0)
        if not len(rows):
            raise ArgumentError("array: expected elements along the axis, got none")
        total = rows[0]
        for row in rows[1:]:
            total = self(total, row)
        return np.expand_dims(total, axis) if keepdims else total

    def accumulate(self, array: Any, axis: int) -> Any:
        """All results so far along an axis."""
        rows = np.moveaxis(np.asarray(array), axis, 0)
        totals = [*rows[:1]]
        for row in rows[1:]:
            totals.append(self(totals[-1], row))
        return np.moveaxis(np.asarray(totals), 0, axis)

    def outer(self, first: Any, second: Any) -> Any:
        """The function of all pairs."""
        first, second = np.asarray(first), np.asarray(second)
        return self(first.reshape((*first.shape, *[1] * second.ndim)), second)


class PlainGufunc:
    """A function of rows, which writes to its last arguments, over broadcast arrays. `layout`: as ``(n),(n)->()``."""

    def __init__(self, function: types.FunctionType, layout: str, loop_types: tuple[str, ...]) -> None:
        self.function, self.layout, self.loop_types = function, layout, loop_types

    def __jitkernels_ufunc__(self) -> UfuncSource:
        return UfuncSource(self.function, self.layout, self.loop_types)

    def __call__(self, *arguments: Any) -> Any:
        inputs, outputs = dimensions_of(self.layout)
        count = len(inputs)
        if len(arguments) not in (count, count + len(outputs)):
            raise ArgumentError(
                f"expected {count} arguments for {self.layout}, or the outputs too, got {len(arguments)}"
            )
        arrays, dtypes = resolved([*map(np.asarray, arguments[:count])], self.loop_types)
        batch, sizes = batch_of([array.shape for array in arrays], inputs, np.broadcast_shapes)
        whole = [
            np.broadcast_to(array, (*batch, *(sizes[name] for name in names)))
            for array, names in zip(arrays, inputs, strict=True)
        ]
        results = [
            np.empty((*batch, *([sizes[name] for name in names] or [1])), dtype)
            for names, dtype in zip(outputs, dtypes, strict=True)
        ]
        for index in np.ndindex(*batch):
            self.function(*[array[index] for array in whole], *[result[index] for result in results])
        shaped = [
            result if names else result.reshape(batch)[()] for result, names in zip(results, outputs, strict=True)
        ]
        for output, result in zip(arguments[count:], shaped, strict=False):
            output[...] = result
        shaped = [*arguments[count:]] or shaped
        return tuple(shaped) if len(shaped) > 1 else shaped[0]


def resolved(arrays: list[Any], loop_types: Sequence[str]) -> tuple[list[Any], list[np.dtype[Any]]]:
    """The arrays cast for the first loop that accepts them, and the dtypes of its results. Raises ArgumentError."""
    if not loop_types:
        return arrays, []
    for loop in loop_types:
        inputs, _, outputs = loop.partition("->")
        dtypes = [np.dtype(code) for code in inputs]
        if len(inputs) == len(arrays) and all(
            np.can_cast(np.dtype(str(array.dtype)), dtype, "safe") for array, dtype in zip(arrays, dtypes, strict=True)
        ):
            cast = [
                array if str(array.dtype) == dtype.name else array.astype(dtype)
                for array, dtype in zip(arrays, dtypes, strict=True)
            ]
            return cast, [np.dtype(code) for code in outputs]
    found = ", ".join(str(array.dtype) for array in arrays)
    raise ArgumentError(f"arguments: expected the types of a loop ({', '.join(loop_types)}), got {found}")


def dimensions_of(layout: str) -> tuple[list[list[str]], list[list[str]]]:
    """The names of the dimensions of each input and output: ``(m,n),()->(m)`` has those of 2 and 1."""
    sides = [
        [[name for name in part.strip("()").split(",") if name] for part in side.split("),(")]
        for side in layout.replace(" ", "").split("->")
    ]
    return sides[0], sides[1]


def batch_of(
    shapes: Sequence[Any], inputs: Sequence[Sequence[str]], broadcast: Callable[..., Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The shape of the loops, and the extents of the dimensions by name. Raises ArgumentError."""
    sizes: dict[str, Any] = {}
    batches = []
    for number, (shape, names) in enumerate(zip(shapes, inputs, strict=True)):
        ndim = len(shape) - len(names)
        if ndim < 0:
            raise ArgumentError(f"argument {number}: expected at least {len(names)} dimensions, got {len(shape)}")
        batches.append(tuple(shape[:ndim]))
        for name, extent in zip(names, shape[ndim:], strict=True):
            if sizes.setdefault(name, extent) != extent:
                raise ArgumentError(f"argument {number}: expected the extent {sizes[name]} as {name}, got {extent}")
    return tuple(broadcast(*batches)), sizes
