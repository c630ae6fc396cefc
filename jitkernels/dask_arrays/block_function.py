"""The function of a task: one compiled call on the blocks of its arguments.

Chains of lazy calls are composed: the last one's block function runs all of them as one compiled function.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.api import function_pickle
from jitkernels.compiler.api.jit import JitFunction
from jitkernels.compiler.dispatch import dispatch_chain
from jitkernels.compiler.export.function_token import token_of
from jitkernels.core.fork_locks import build_lock
from jitkernels.runtime import vectorcall

MAX_SHAPES = 16
"""The most combinations of extents of blocks that code is made for ahead; most have the same code."""


class Wiring(NamedTuple):
    """Where one function of a chain takes its arguments from: numbers of operands, then of earlier results."""

    positions: tuple[int, ...]
    keywords: tuple[tuple[str, int], ...]


class Examples(NamedTuple):
    """The blocks that the function is compiled for before it is sent to other processes.

    `indices`: the index of each axis of each block; `sizes`: the different extents of blocks along each index; `parts`:
    whether blocks may be parts of the rows of larger arrays.
    """

    dtypes: tuple[str, ...]
    indices: tuple[tuple[int, ...], ...]
    sizes: tuple[tuple[int, tuple[int, ...]], ...]
    parts: tuple[bool, ...]

    def blocks(self) -> Iterator[list[Any]]:
        """Blocks of all shapes, each of its own, and as parts of larger arrays."""
        names = [index for index, _ in self.sizes]
        shapes = itertools.islice(itertools.product(*(sizes for _, sizes in self.sizes)), MAX_SHAPES)
        for extents in shapes:
            extent_of = dict(zip(names, extents, strict=True))
            shape_of = [tuple(extent_of[index] for index in own) for own in self.indices]
            for is_part in sorted({False, any(self.parts)}):
                yield [
                    _example(shape, dtype, is_part=is_part and part)
                    for shape, dtype, part in zip(shape_of, self.dtypes, self.parts, strict=True)
                ]


def _example(shape: tuple[int, ...], dtype: str, *, is_part: bool) -> Any:
    if not is_part:
        return np.empty(shape, dtype)
    *outer, last = shape
    return np.empty((*outer, last + 1), dtype)[..., :last]


class BlockFunction:
    """Calls a compiled function with blocks and with other arguments, which all blocks share.

    `wiring` numbers the blocks first, then the `shared` arguments.
    """

    def __init__(self, function: Any, wiring: Wiring, shared: tuple[Any, ...], examples: Examples) -> None:
        self.function, self.wiring, self.shared, self.examples = function, wiring, shared, examples
        self.__name__ = name_of(function)
        self._is_compiled = False

    def __call__(self, *blocks: Any) -> Any:
        args, kwargs = self._arguments([*map(_aligned, blocks)])
        return self.function(*args, **kwargs)

    def _arguments(self, blocks: list[Any]) -> tuple[list[Any], dict[str, Any]]:
        operands, (positions, keywords) = [*blocks, *self.shared], self.wiring
        return [operands[i] for i in positions], {name: operands[i] for name, i in keywords}

    def __reduce__(self) -> tuple[Any, ...]:
        """The function comes first, as its objects are needed by the first import of this module."""
        self.compile()
        return function_pickle.restored_from(self.function, BlockFunction, self.wiring, self.shared, self.examples)

    def __dask_tokenize__(self) -> str:
        return token_of(self.function, self.wiring, self.shared)

    def compile(self) -> None:
        """Compile the function for the examples, if that was not done, so that its pickle has the objects."""
        if self._is_compiled:
            return
        self._is_compiled = True
        if self.function.pickle_state is not None and self.function.pickle_state.received.content:
            return  # which came from elsewhere with objects, or runs here
        for blocks in self.examples.blocks():
            args, kwargs = self._arguments(blocks)
            with build_lock:
                specialization, call = self.function._compile_for(tuple(args), kwargs)
                if specialization is not None and specialization.graph is not None and call is not None:
                    self.function._link(specialization, call)


def name_of(function: Any) -> str:
    """The name of a function in those of layers."""
    return str(function.__name__).strip("<>")


def _aligned(block: Any) -> Any:
    """A block that comes in lists, as along axes that no result has, or at any address, as in a message."""
    while type(block) is list:
        (block,) = block
    return block if type(block) is not np.ndarray or block.flags.aligned else block.copy()


class ChainFunction(JitFunction[Any, Any]):
    """One compiled function that calls others one after another, and returns the last result."""

    def __init__(self, stages: tuple[Any, ...], wiring: tuple[Wiring, ...]) -> None:
        self._stages, self._wiring = stages, wiring
        super().__init__(_chain(stages, tuple(map(tuple, wiring))), ("wiring",), stages[-1].config)

    def _recipe(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return ChainFunction, (self._stages, self._wiring)


if dispatch_chain.base is not None:
    vectorcall.prepare(ChainFunction)


def _chain(stages: tuple[Any, ...], wiring: tuple[Any, ...]) -> Callable[..., Any]:
    def chain(*operands: Any) -> Any:
        values = [*operands]
        for number, (positions, keywords) in enumerate(wiring):
            named = {name: values[i] for name, i in keywords}
            values.append(stages[number](*[values[i] for i in positions], **named))
        return values[-1]

    chain.__name__ = chain.__qualname__ = "_".join(map(name_of, stages))
    return chain
