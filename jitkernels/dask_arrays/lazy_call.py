"""Calls of compiled functions with dask arrays: a lazy array, of which each block is one compiled call.

A call whose argument is the result of such a call is composed with it, so that a chain becomes one kernel per block.
That recomputes an intermediate array which is a result, too; it reads the arguments instead of the array between.
"""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import dask.array as da
import numpy as np
from dask import config as dask_config
from dask.base import is_dask_collection
from dask.tokenize import tokenize

from jitkernels.dask_arrays.block_function import BlockFunction, ChainFunction, Examples, Wiring
from jitkernels.dask_arrays.block_pattern import BlockPattern, BlockResult, SplitArray, block_pattern
from jitkernels.errors import ArgumentError, ArgumentTypeError

MAX_CHAIN = 16
"""The most functions of a chain: compile time grows with them, and arrays between them are recomputed."""
UNKNOWN_EXTENT = 1009
"""The extent of examples for blocks of unknown extents."""
COMPOSE = "jitkernels.compose"
"""Dask's configuration that switches composition off."""


class Stage(NamedTuple):
    """One function of a chain, and its arguments: dask arrays, numbers of earlier stages, other values."""

    function: Any
    args: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]


class Earlier(NamedTuple):
    """The result of an earlier stage."""

    number: int


class Chain:
    """The stages of a lazy call; known as long as its array is."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages = stages


_chains: "WeakValueDictionary[str, Chain]" = WeakValueDictionary()
"""Chains by the names of the arrays that they compute."""
CHAIN = "_jitkernels_chain"
"""The attribute by which a layer keeps its chain alive."""


def call_lazily(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The lazy result of a compiled function of dask arrays: an array, or a tuple of arrays.

    Other arguments are passed to each block; arrays of NumPy are split like the dask arrays that they meet. Raises
    ArgumentError where blocks do not suffice, with the argument and what to do.
    """
    if kwargs.get("out") is not None:
        raise ArgumentError(f"{function.__name__}: out: expected None beside dask arrays, got an array")
    for name, value in (*((f"argument {i}", one) for i, one in enumerate(args)), *kwargs.items()):
        if is_dask_collection(value) and not isinstance(value, da.Array):
            raise ArgumentTypeError(f"{function.__name__}: {name}: expected a dask array, got {type(value).__name__}")
    args = tuple(da.asarray(one) if type(one) is np.ndarray and one.ndim else one for one in args)
    kwargs = {name: da.asarray(one) if type(one) is np.ndarray and one.ndim else one for name, one in kwargs.items()}
    stage = Stage(function, args, tuple(kwargs.items()))
    extended = _extended(stage)
    if len(extended) > 1:
        try:
            return _Call(extended).result()
        except ArgumentError:  # the chain needs an axis whole that its first part does not
            pass
    return _Call((stage,)).result()


def _extended(stage: Stage) -> tuple[Stage, ...]:
    """The stages of the arguments that are results of lazy calls, and this one."""
    stages: list[Stage] = []
    if not dask_config.get(COMPOSE, True):
        return (stage,)
    numbers: dict[str, Earlier] = {}

    def taken(value: Any) -> Any:
        chain = _chain_of(value)
        if chain is None or len(stages) + len(chain.stages) >= MAX_CHAIN:
            return value
        if value.name not in numbers:
            first = len(stages)
            stages.extend(_moved(one, first) for one in chain.stages)
            numbers[value.name] = Earlier(len(stages) - 1)
        return numbers[value.name]

    args = tuple(map(taken, stage.args))
    keywords = tuple((name, taken(value)) for name, value in stage.keywords)
    return (*stages, Stage(stage.function, args, keywords))


def _moved(stage: Stage, first: int) -> Stage:
    def moved(value: Any) -> Any:
        return Earlier(value.number + first) if isinstance(value, Earlier) else value

    keywords = tuple((name, moved(value)) for name, value in stage.keywords)
    return Stage(stage.function, tuple(map(moved, stage.args)), keywords)


def _chain_of(value: Any) -> Chain | None:
    """The chain that computes an array; None once it is computed, as those that are persisted are."""
    if not isinstance(value, da.Array) or value.name not in _chains:
        return None
    layer = getattr(value.dask, "layers", {}).get(value.name)
    return getattr(layer, CHAIN, None)


class _Call:
    """A lazy call of a chain of stages."""

    def __init__(self, stages: tuple[Stage, ...]) -> None:
        self.stages, self.arrays, self.shared = stages, dict[str, Any](), list[Any]()
        values = [value for one in stages for value in (*one.args, *(value for _, value in one.keywords))]
        for value in values:
            if isinstance(value, da.Array):
                self.arrays.setdefault(value.name, value)
            elif not isinstance(value, Earlier):
                self.shared.append(value)
        self._next_shared = len(self.arrays)
        self._numbers = {name: number for number, name in enumerate(self.arrays)}
        wirings = [
            Wiring(tuple(map(self._number, one.args)), tuple((name, self._number(v)) for name, v in one.keywords))
            for one in stages
        ]
        if len(stages) == 1:
            self.function, self.wiring = stages[0].function, wirings[0]
        else:
            self.function = ChainFunction(tuple(one.function for one in stages), tuple(wirings))
            self.wiring = Wiring(tuple(range(len(self.arrays) + len(self.shared))), ())

    def _number(self, value: Any) -> int:
        if isinstance(value, da.Array):
            return self._numbers[value.name]
        if isinstance(value, Earlier):
            return len(self.arrays) + len(self.shared) + value.number
        self._next_shared += 1
        return self._next_shared - 1

    def _arguments(self, blocks: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        operands = [*blocks, *self.shared]
        return (
            tuple(operands[i] for i in self.wiring.positions),
            {name: operands[i] for name, i in self.wiring.keywords},
        )

    def result(self) -> Any:
        """The lazy result. Raises ArgumentError."""
        arrays = [*self.arrays.values()]
        pattern = block_pattern(self.function, [*map(self._split, arrays)], self._arguments)
        pairs = [part for one, index in zip(arrays, pattern.arguments, strict=True) for part in (one, index)]
        _, arrays = da.core.unify_chunks(*pairs)
        pairs[::2] = arrays
        block = BlockFunction(self.function, self.wiring, tuple(self.shared), _examples(arrays, pattern.arguments))
        if not pattern.is_tuple:
            result = self._lazy(block, pattern.results[0], pairs)
            self._remember(result)
            return result
        return self._several(block, pattern, pairs)

    def _split(self, array: Any) -> SplitArray:
        counts = tuple(
            count if extent == extent else max(count, 2)
            for count, extent in zip(array.numblocks, array.shape, strict=True)
        )
        return SplitArray(self._name(array), array.shape, counts, array.dtype)

    def _name(self, array: Any) -> str:
        """The name of the parameter that an array is passed for."""
        for stage in self.stages:
            for i, value in enumerate(stage.args):
                names = stage.function._signature.names
                if value is array:
                    return str(names[i]) if i < len(names) else f"argument {i}"
            for name, value in stage.keywords:
                if value is array:
                    return name
        return "an argument"

    def _lazy(self, block: Any, result: BlockResult, pairs: Sequence[Any]) -> Any:
        return da.blockwise(
            block, result.indices, *pairs, new_axes=dict(result.new_axes) or None, dtype=result.dtype,
            meta=np.empty((0,) * len(result.indices), result.dtype), name=self._layer_name(block, pairs),
            concatenate=None, align_arrays=False,
        )  # fmt: skip

    def _layer_name(self, block: Any, pairs: Sequence[Any]) -> str:
        return f"{block.__name__}-{tokenize(block, *pairs)}"

    def _remember(self, array: Any) -> None:
        layer = getattr(array.dask, "layers", {}).get(array.name)
        if layer is not None:
            chain = Chain(self.stages)
            setattr(layer, CHAIN, chain)
            _chains[array.name] = chain

    def _several(self, block: Any, pattern: BlockPattern, pairs: Sequence[Any]) -> tuple[Any, ...]:
        """An array of tuples of blocks, along the indices of all results, and an array for each result."""
        arrays = [*self.arrays.values()]
        axes = [
            (index, count, extent)
            for one, own in zip(arrays, pattern.arguments, strict=True)
            for index, count, extent in zip(own, one.numblocks, one.shape, strict=True)
        ]
        split = {index for index, count, _ in axes if count > 1}
        if any(split & set(one.indices) != split & set(pattern.results[0].indices) for one in pattern.results):
            way = "return each from a function of its own"
            raise ArgumentError(f"{block.__name__} of dask arrays: expected results that are split alike: {way}")
        common = tuple(sorted(split & set(pattern.results[0].indices)))
        extents = {index: extent for index, _, extent in axes if index not in split}
        name = self._layer_name(block, pairs)
        tuples = da.blockwise(
            block, common, *pairs, dtype=object, meta=np.empty((0,) * len(common), object), name=name, concatenate=None
        )
        return tuple(
            da.blockwise(
                operator.itemgetter(number), one.indices, tuples, common,
                new_axes={i: one.new_axes.get(i, extents.get(i)) for i in one.indices if i not in common} or None,
                dtype=one.dtype, meta=np.empty((0,) * len(one.indices), one.dtype), name=f"{name}-{number}",
                concatenate=None,
            )
            for number, one in enumerate(pattern.results)
        )  # fmt: skip


def _examples(arrays: Sequence[Any], indices: tuple[tuple[int, ...], ...]) -> Examples:
    """Blocks like those of arrays; unknown extents are those of some example."""
    sizes: dict[int, tuple[int, ...]] = {}
    for array, index in zip(arrays, indices, strict=True):
        for number, chunks in zip(index, array.chunks, strict=True):
            known = dict.fromkeys(int(size) if size == size else UNKNOWN_EXTENT for size in chunks)
            if number not in sizes or sizes[number] == (1,):
                sizes[number] = tuple(known)
    parts = tuple(array.ndim > 1 and array.numblocks[-1] > 1 for array in arrays)
    return Examples(tuple(array.dtype.str for array in arrays), indices, tuple(sizes.items()), parts)
