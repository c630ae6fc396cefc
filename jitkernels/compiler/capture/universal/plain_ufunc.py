"""Universal functions of a function of numbers, or of rows, in plain Python: what `jitkernels.vectorize` compiles.

A trace never runs this code: it has loops of its own, see `traced_ufunc`. Calls that are not compiled do.
"""

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.numba_dispatchers import UfuncSource
from jitkernels.errors import ArgumentError, ArgumentTypeError, shown


class PlainUfunc:
    """A function of numbers over broadcast arrays. `loop_types`: as in `numpy.ufunc.types`; any numbers without."""

    def __init__(self, function: types.FunctionType, loop_types: tuple[str, ...]) -> None:
        self.function, self.loop_types = function, loop_types
        self.count_of_inputs = None

    def __jitkernels_ufunc__(self) -> UfuncSource:
        return UfuncSource(self.function, "", self.loop_types)

    def __call__(self, *arguments: Any) -> Any:
        if not arguments:
            raise ArgumentTypeError(f"{self.function.__name__}: expected arguments of a vectorized function, got none")
        weak = [type(one) for one in arguments]
        arrays, dtypes = resolved([*map(np.asarray, arguments)], self.loop_types, weak, _converted)
        broadcast = np.broadcast_arrays(*arrays)
        shape = broadcast[0].shape
        if 0 in shape:
            return self._empty(broadcast, dtypes)
        results = [self.function(*elements) for elements in zip(*(array.ravel() for array in broadcast), strict=True)]
        counts = {len(one) if type(one) is tuple else 0 for one in results}
        if len(counts) > 1 or (dtypes and len(dtypes) not in (counts if 0 not in counts else {1})):
            name = self.function.__name__
            raise ArgumentError(
                f"{name}: expected as many results of each call, {len(dtypes) or min(counts)}, got others"
            )
        columns = [*zip(*results, strict=True)] if type(results[0]) is tuple else [results]
        found = [np.asarray(column) for column in columns]
        if any(one.ndim > 1 for one in found):
            raise ArgumentTypeError(f"{self.function.__name__}: expected numbers as results, got {shown(results[0])}")
        found = [one.reshape(shape)[()] for one in found]
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
        self._check_fold(rows)
        rows, _ = in_loop_types(rows, self.loop_types, _converted)
        total = rows[0]
        for row in rows[1:]:
            total = self(total, row)
        return np.expand_dims(total, axis) if keepdims else total

    def accumulate(self, array: Any, axis: int) -> Any:
        """All results so far along an axis."""
        rows = np.moveaxis(np.asarray(array), axis, 0)
        self._check_fold(rows)
        rows, _ = in_loop_types(rows, self.loop_types, _converted)
        totals = [*rows[:1]]
        for row in rows[1:]:
            totals.append(self(totals[-1], row))
        return np.moveaxis(np.asarray(totals), 0, axis)

    def _check_fold(self, rows: Any) -> None:
        """Raise ArgumentError for a function that does not make one number of two."""
        name, most = self.function.__name__, self.function.__code__.co_argcount
        least = most - len(self.function.__defaults__ or ())
        is_one = least <= 2 and most != 1
        if is_one and rows.shape[0] > 1 and 0 not in rows.shape:
            is_one = type(self(rows[:1], rows[1:2])) is not tuple
        if not is_one:
            raise ArgumentError(f"{name}: expected a function of two numbers with one result")

    def outer(self, first: Any, second: Any) -> Any:
        """The function of all pairs."""
        first, second = np.asarray(first), np.asarray(second)
        return self(first.reshape((*first.shape, *[1] * second.ndim)), second)


class PlainGufunc:
    """A function of rows, which writes to its last arguments, over broadcast arrays. `layout`: as ``(n),(n)->()``."""

    def __init__(self, function: types.FunctionType, layout: str, loop_types: tuple[str, ...]) -> None:
        self.function, self.layout, self.loop_types = function, layout, loop_types
        self.count_of_inputs = len(dimensions_of(layout)[0])

    def __jitkernels_ufunc__(self) -> UfuncSource:
        return UfuncSource(self.function, self.layout, self.loop_types)

    def __call__(self, *arguments: Any) -> Any:
        inputs, outputs = dimensions_of(self.layout)
        count = len(inputs)
        if len(arguments) not in (count, count + len(outputs)):
            raise ArgumentError(
                f"expected {count} arguments for {self.layout}, or the outputs too, got {len(arguments)}"
            )
        weak = [type(one) for one in arguments[:count]]
        arrays, dtypes = resolved([*map(np.asarray, arguments[:count])], self.loop_types, weak, _converted)
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
        for number, (output, result) in enumerate(zip(arguments[count:], shaped, strict=False), start=count):
            if not isinstance(output, np.ndarray):
                raise ArgumentTypeError(f"argument {number}: expected an array for results, got {shown(output)}")
            if not np.can_cast(result.dtype, output.dtype, "same_kind"):
                raise ArgumentTypeError(
                    f"argument {number}: expected an array that takes {result.dtype}, got {output.dtype}"
                )
            output[...] = result
        shaped = [*arguments[count:]] or shaped
        return tuple(shaped) if len(shaped) > 1 else shaped[0]


WEAK = {int: "iufc", float: "fc", complex: "c"}
"""The kinds of dtypes that Python's numbers take, by their type."""


def resolved(
    arrays: list[Any], loop_types: Sequence[str], weak: Sequence[Any], convert: Callable[..., Any]
) -> tuple[list[Any], list[np.dtype[Any]]]:
    """The arrays cast for the first loop that accepts them, and the dtypes of its results. Raises ArgumentError.

    `weak`: the types of the arguments. Python's numbers take the dtype of a loop, as those of `numpy.ufunc` do, unless
    they are of a kind beyond those of all arrays, as floats beside ints are. `convert` casts an array to a dtype; its
    third argument is whether it was such a number.
    """
    if not loop_types:
        return arrays, []
    kinds = [WEAK.get(kind, "") for kind in weak]
    strong = {array.dtype.kind for array, kind in zip(arrays, kinds, strict=True) if not kind}
    if any(kind and strong.isdisjoint(kind) for kind in kinds):
        kinds = [""] * len(kinds)
    for loop in loop_types:
        inputs, _, outputs = loop.partition("->")
        dtypes = [np.dtype(code) for code in inputs]
        if len(inputs) == len(arrays) and all(
            dtype.kind in kind if kind else np.can_cast(np.dtype(str(array.dtype)), dtype, "safe")
            for array, dtype, kind in zip(arrays, dtypes, kinds, strict=True)
        ):
            cast = [
                array if str(array.dtype) == dtype.name else convert(array, dtype, bool(kind))
                for array, dtype, kind in zip(arrays, dtypes, kinds, strict=True)
            ]
            return cast, [np.dtype(code) for code in outputs]
    found = ", ".join(str(array.dtype) for array in arrays)
    raise ArgumentError(f"arguments: expected the types of a loop ({', '.join(loop_types)}), got {found}")


def in_loop_types(rows: Any, loop_types: Sequence[str], convert: Callable[..., Any]) -> tuple[Any, bool]:
    """The rows of a fold in the dtype of the first declared loop that accepts them, and whether its results are too."""
    if not loop_types:
        return rows, True
    (cast, _), dtypes = resolved([rows, rows], loop_types, [None, None], convert)
    is_same = [one.name for one in dtypes] == [str(cast.dtype)]
    return cast if is_same else rows, is_same


def _converted(array: Any, dtype: np.dtype[Any], is_weak: bool) -> Any:
    """An array of a dtype. Raises OverflowError for a Python int that it does not hold."""
    return np.asarray(dtype.type(array.item())) if is_weak else array.astype(dtype)


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
