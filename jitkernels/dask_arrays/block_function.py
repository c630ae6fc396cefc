"""The function of a task: one compiled call on the blocks of its arguments.

Chains of lazy calls are composed: the last one's block function runs all of them as one compiled function.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.api.jit import jit
from jitkernels.compiler.export.function_token import token_of
from jitkernels.core.fork_locks import build_lock


class Wiring(NamedTuple):
    """Where one function of a chain takes its arguments from: numbers of operands, then of earlier results."""

    positions: tuple[int, ...]
    keywords: tuple[tuple[str, int], ...]


class Example(NamedTuple):
    """A block that the function is compiled for before it is sent to other processes."""

    shape: tuple[int, ...]
    dtype: str


class BlockFunction:
    """Calls a compiled function with blocks and with other arguments, which all blocks share.

    `wiring` numbers the blocks first, then the `shared` arguments.
    """

    def __init__(
        self, function: Any, wiring: Wiring, shared: tuple[Any, ...], examples: tuple[Example | None, ...]
    ) -> None:
        self.function, self.wiring, self.shared, self.examples = function, wiring, shared, examples
        self.__name__ = name_of(function)
        self._is_compiled = False

    def __call__(self, *blocks: Any) -> Any:
        operands = [block if type(block) is np.ndarray else _only(block) for block in blocks]
        operands += self.shared
        positions, keywords = self.wiring
        named = {name: operands[i] for name, i in keywords}
        return self.function(*[operands[i] for i in positions], **named)

    def __reduce__(self) -> tuple[Any, ...]:
        self.compile()
        return BlockFunction, (self.function, self.wiring, self.shared, self.examples)

    def __dask_tokenize__(self) -> str:
        return token_of(self.function, self.wiring, self.shared)

    def compile(self) -> None:
        """Compile the function for the examples, if that was not done, so that its pickle has the objects."""
        if self._is_compiled:
            return
        self._is_compiled = True
        if self.function.pickle_state is not None and self.function.pickle_state.received.content:
            return  # which came from elsewhere with objects, or runs here
        operands = [example and np.empty(example.shape, example.dtype) for example in self.examples]
        if any(operand is None for operand in operands):
            return
        operands += self.shared
        positions, keywords = self.wiring
        args, kwargs = tuple(operands[i] for i in positions), {name: operands[i] for name, i in keywords}
        with build_lock:
            specialization, call = self.function._compile_for(args, kwargs)
            if specialization is not None and specialization.graph is not None and call is not None:
                self.function._link(specialization, call)


def name_of(function: Any) -> str:
    """The name of a function in those of layers."""
    return str(function.__name__).strip("<>")


def _only(block: Any) -> Any:
    """A block along axes that are whole comes in lists of one."""
    while isinstance(block, list):
        (block,) = block
    return block


def composed(functions: Sequence[Any], wirings: Sequence[Wiring]) -> Any:
    """One compiled function that calls others one after another, and returns the last result."""
    stages, wiring = tuple(functions), tuple(map(tuple, wirings))

    def chain(*operands: Any) -> Any:
        values = [*operands]
        for number, (positions, keywords) in enumerate(wiring):
            named = {name: values[i] for name, i in keywords}
            values.append(stages[number](*[values[i] for i in positions], **named))
        return values[-1]

    chain.__name__ = chain.__qualname__ = "_".join(map(name_of, functions))
    return jit(chain, static_argnames=("wiring",), config=functions[-1].config)
