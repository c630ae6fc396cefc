"""How a compiled function works on blocks: from the graph of a call with small examples of its arguments.

Axes that are split into blocks have other extents in the examples than in the arrays, so that a function that reads
such an extent is seen to do so. Equal extents stay equal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.trace_call import Trace, trace_call
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.symbolic_dims import evaluated, symbols_of
from jitkernels.core.fork_locks import build_lock
from jitkernels.dask_arrays.axis_classes import Axis, AxisClasses
from jitkernels.errors import ArgumentError

EXAMPLE_EXTENTS = (
    67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181,
)  # fmt: skip
"""Extents of axes that are split, in examples: long enough for the code of long axes, prime, so that none is a product
of others.
"""


class SplitArray(NamedTuple):
    """An argument that is split into blocks: its name, extents (NaN where unknown), numbers of chunks, dtype."""

    name: str
    shape: tuple[float, ...]
    counts: tuple[int, ...]
    dtype: np.dtype[Any]


class BlockResult(NamedTuple):
    """One result: its index in terms of `BlockPattern`, the extents of axes that no argument has, its dtype."""

    indices: tuple[int, ...]
    new_axes: Mapping[int, int]
    dtype: str


class BlockPattern(NamedTuple):
    """For each argument and result the numbers of the indices of its axes, as `dask.array.blockwise` takes them."""

    arguments: tuple[tuple[int, ...], ...]
    results: tuple[BlockResult, ...]
    is_tuple: bool


def block_pattern(function: Any, arrays: Sequence[SplitArray], arguments: Any) -> BlockPattern:
    """The pattern of a function of blocks. `arguments`: a function from examples to the arguments of a call.

    Raises ArgumentError where blocks do not suffice, with the argument and what to do.
    """
    error: ArgumentError | None = None
    for by_position in (True, False):
        try:
            return _pattern(function, arrays, arguments, _examples(arrays, by_position=by_position))
        except ArgumentError as one:
            error = one
    if all(extent == extent for array in arrays for extent in array.shape):
        # The function may want the very extents; which of them must be whole is known from its graph for these.
        _pattern(function, arrays, arguments, [_example(map(int, array.shape), array.dtype) for array in arrays])
    assert error is not None, "of the loop"
    raise error


def _examples(arrays: Sequence[SplitArray], *, by_position: bool) -> list[Any]:
    """Examples with short extents along split axes, equal ones where extents are: at one place from the end, or any."""
    split: dict[Any, int] = {}
    keys = [[*_keys(array, by_position=by_position)] for array in arrays]
    free = iter(EXAMPLE_EXTENTS)
    for array, own in zip(arrays, keys, strict=True):
        for count, extent, key in zip(array.counts, array.shape, own, strict=True):
            if (count > 1 or extent != extent) and key not in split:
                split[key] = next(free)
    return [
        _example((split.get(key, extent) for key, extent in zip(own, array.shape, strict=True)), array.dtype)
        for array, own in zip(arrays, keys, strict=True)
    ]


def _keys(array: SplitArray, *, by_position: bool) -> Iterator[Any]:
    """For each axis what axes of equal extents have in common."""
    for place, extent in enumerate(array.shape):
        yield extent if extent == extent else None, place - len(array.shape) if by_position else 0


def _example(shape: Iterable[float], dtype: "np.dtype[Any]") -> Any:
    """An array of which nothing is read. It takes no memory, and its strides say nothing about its extents."""
    extents = tuple(map(int, shape))
    return np.lib.stride_tricks.as_strided(np.zeros(1, dtype), extents, (0,) * len(extents))


def _pattern(function: Any, arrays: Sequence[SplitArray], arguments: Any, examples: Sequence[Any]) -> BlockPattern:
    args, kwargs = arguments(examples)
    name = function.__name__
    try:
        with build_lock:
            call = function._signature.flatten(args, kwargs)
            trace = trace_call(call.structure, call.leaves, exact=False, winograd=function.config.winograd)
    except UnsupportedError as error:
        raise ArgumentError(f"{name} of dask arrays: expected arguments that compile: {error}") from None
    _require_plain_result(name, trace)
    return _PatternFinder(name, arrays, examples, trace, call.leaves).pattern()


def _require_plain_result(name: str, trace: Trace) -> None:
    """Raise ArgumentError for a function that has no graph, or returns anything but new arrays."""
    graph, plan = trace.graph, trace.plan
    way = "map its blocks with dask.array.map_blocks"
    if graph is None or plan is None:
        raise ArgumentError(f"{name} of dask arrays: expected a function that compiles ({trace.reason}); {way}")
    if graph.writes:
        raise ArgumentError(f"{name} of dask arrays: expected a function that writes to no argument")
    if plan.is_tuple is None or Specialization(trace).has_tapes:
        raise ArgumentError(
            f"{name} of dask arrays: expected a function that returns new arrays, one or a tuple; {way}"
        )


class _PatternFinder:
    """The indices of one traced call."""

    def __init__(
        self, name: str, arrays: Sequence[SplitArray], examples: Sequence[Any], trace: Trace, leaves: Sequence[Any]
    ) -> None:
        assert trace.graph is not None, "checked"
        self.name, self.arrays, self.trace, self.graph = name, arrays, trace, trace.graph
        self.classes = AxisClasses()
        self.number_of = {id(example): number for number, example in enumerate(examples)}
        self.leaves = leaves
        self.axes: list[list[Axis]] = [[] for _ in arrays]
        self.symbols: dict[str, list[Axis]] = {}

    def pattern(self) -> BlockPattern:
        """The pattern. Raises ArgumentError."""
        self._enter_inputs()
        self.classes.add(self.graph.outputs)
        for symbol in self._symbols_read():
            for axis in self.symbols.get(symbol, ()):
                self.classes.require_whole(axis, "reads its extent")
        self._check_split_axes()
        indices = _IndexNumbers(self.classes)
        arguments = tuple(indices.of(axes) for axes in self.axes)
        plan = self.trace.plan
        assert plan is not None, "checked"
        results = []
        for number, node in enumerate(self.graph.outputs):
            axes, shape = self.classes.of[node], node.shape
            order = plan.axes[number] if plan.axes else None
            if order is not None:
                axes, shape = tuple(axes[i] for i in order), tuple(shape[i] for i in order)
            results.append(self._result(indices, axes, shape, node.dtype))
        return BlockPattern(arguments, tuple(results), plan.is_tuple is True)

    def _enter_inputs(self) -> None:
        for node in self.graph.inputs:
            leaf: Any = self.leaves[node.options["index"]] if node.options["index"] < len(self.leaves) else None
            number = self.number_of.get(id(leaf))
            if number is None:
                self.classes.of[node] = tuple(
                    None if type(extent) is int and extent == 1 else self.classes.new("meets an array of the function")
                    for extent in node.shape
                )
                continue
            # One array for several parameters has the axes of the first: what one of them requires holds for all.
            axes = self.axes[number] or [None if extent == 1 else self.classes.new() for extent in leaf.shape]
            self.classes.of[node] = tuple(axes)
            self.axes[number] = axes
        for axes, one in zip(self.axes, self.arrays, strict=True):
            axes += [None if extent == 1 else self.classes.new() for extent in one.shape[len(axes) :]]
        for binding in self.trace.tracer.bindings:
            leaf = self.leaves[binding.leaf] if binding.leaf < len(self.leaves) else None
            number = self.number_of.get(id(leaf))
            if binding.kind == "extent" and number is not None:
                for other, axes in enumerate(self.axes):
                    for place, axis in enumerate(axes):
                        example = self._example_extent(other, place)
                        if example == leaf.shape[binding.dimension]:
                            self.symbols.setdefault(binding.symbol, []).append(axis)

    def _example_extent(self, number: int, place: int) -> int:
        return int(next(leaf for leaf in self.leaves if self.number_of.get(id(leaf)) == number).shape[place])

    def _symbols_read(self) -> Iterator[str]:
        """Symbols of extents that the result, or what the code is, depends on."""
        for node in self.graph:
            if node.operation == "extent":
                yield from symbols_of(node.options["extent"])
        for guard in self.trace.tracer.scope.guards.values():
            if not guard.is_choice:
                yield from symbols_of(guard.extent)

    def _check_split_axes(self) -> None:
        """Raise ArgumentError where an axis is split that must be whole, or where two axes of an array meet."""
        for one, axes in zip(self.arrays, self.axes, strict=True):
            seen: dict[int, int] = {}
            for place, (axis, count) in enumerate(zip(axes, one.counts, strict=True)):
                if axis is None or count == 1:
                    continue
                reason = self.classes.reason(axis)
                if reason:
                    raise self._error(one, place, f"the function {reason}")
                if self.classes.find(axis) in seen:
                    other = seen[self.classes.find(axis)]
                    raise self._error(one, place, f"the function lets its axes {other} and {place} meet")
                seen[self.classes.find(axis)] = place

    def _error(self, one: SplitArray, place: int, why: str) -> ArgumentError:
        return ArgumentError(
            f"{self.name} of dask arrays: {one.name}: expected one chunk along axis {place}, as {why}, got "
            f"{one.counts[place]} chunks: rechunk it first, as in {one.name}.rechunk({{{place}: -1}})"
        )

    def _result(self, indices: "_IndexNumbers", axes: Sequence[Axis], shape: Sequence[Any], dtype: str) -> BlockResult:
        index: list[int] = []
        new_axes: dict[int, int] = {}
        for axis, extent in zip(axes, shape, strict=True):
            bound = axis if axis is not None else self._bound_axis(extent)
            known = None if bound is None else indices.known(bound)
            if known is not None and known not in index:
                index.append(known)
                continue
            if known is not None and self._is_split(bound):
                raise ArgumentError(f"{self.name} of dask arrays: expected each split axis at most once in a result")
            number = indices.new()
            new_axes[number] = evaluated(extent, self.trace.tracer.scope.values)
            index.append(number)
        return BlockResult(tuple(index), new_axes, dtype)

    def _bound_axis(self, extent: Any) -> Axis:
        """The axis of an argument whose extent a result has that is equal along it."""
        symbols = symbols_of(extent)
        bound = [axis for symbol in symbols for axis in self.symbols.get(symbol, ()) if axis is not None]
        split = [axis for axis in bound if self._is_split(axis)]
        if not split:
            return None
        if len({self.classes.find(axis) for axis in bound}) > 1 or len(symbols) > 1 or type(extent) is int:
            raise ArgumentError(f"{self.name} of dask arrays: expected results whose extents are those of arguments")
        return bound[0]

    def _is_split(self, axis: Axis) -> bool:
        """Whether any argument is split along the class of an axis."""
        return axis is not None and any(
            other is not None and self.classes.find(other) == self.classes.find(axis) and count > 1
            for one, axes in zip(self.arrays, self.axes, strict=True)
            for other, count in zip(axes, one.counts, strict=True)
        )


class _IndexNumbers:
    """Numbers of indices, one for each class; axes of an array that meet, and those of extent 1, have their own."""

    def __init__(self, classes: AxisClasses) -> None:
        self._classes, self._numbers, self._count = classes, dict[int, int](), 0

    def new(self) -> int:
        self._count += 1
        return self._count - 1

    def known(self, axis: int) -> int | None:
        return self._numbers.get(self._classes.find(axis))

    def of(self, axes: Sequence[Axis]) -> tuple[int, ...]:
        """The indices of an argument."""
        result: list[int] = []
        for axis in axes:
            if axis is None:
                result.append(self.new())
                continue
            own = self._classes.find(axis)
            if own not in self._numbers:
                self._numbers[own] = self.new()
            number = self._numbers[own]
            result.append(self.new() if number in result else number)
        return tuple(result)
