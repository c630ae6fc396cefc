"""Expressions that are not evaluated yet: nodes of functions and operands, compiled once per structure by `jk.jit`.

The key of a compiled expression consists of its functions and of how they are connected, so that a loop which builds
the same expression on other arrays in each iteration compiles it once; `jk.jit` specializes it to dtypes and ranks.
"""

import math
from typing import Any
from weakref import ref

import numpy as np

from jitkernels.compiler.api.jit import jit
from jitkernels.core.fork_locks import writing

MAX_LAZY_NODES = 128
"""Operands are evaluated before an expression grows beyond: longer ones take seconds to compile."""
MAX_STRUCTURES = 1024
"""Compiled structures that are kept."""
COMPILED_AT_ONCE = 1 << 22
"""Elements times functions from which the first evaluation of a structure is compiled, which takes some 10 ms; shorter
ones run as NumPy calls once, as most expressions of a script are evaluated once."""
SCALARS = (bool, int, float, complex)


class LazyNode:
    """A function of operands, each an expression, an array or a Python number. `result`: its array, once evaluated.

    `keywords` are constants of the code. `owner`: the array object that stands for it, if anything refers to that.
    """

    __slots__ = ("dtype", "function", "keywords", "operands", "owner", "result", "shape", "total")
    total: int

    def __init__(
        self, function: Any, operands: tuple[Any, ...], keywords: tuple[Any, ...], dtype: Any, shape: tuple[int, ...]
    ) -> None:
        self.function, self.operands, self.keywords = function, operands, keywords
        self.dtype, self.shape = dtype, shape
        self.result: Any = None
        self.owner: ref[Any] | None = None
        total: int = 1
        for operand in operands:
            if type(operand) is LazyNode and operand.result is None:
                total += operand.total
        self.total = total

    def evaluate(self) -> Any:
        """The array of the expression. Others of its nodes that array objects stand for are stored, too."""
        if self.result is None:
            _evaluate(self)
        return self.result


class _Structure:
    """How the functions of one expression are connected, and the operands of an evaluation."""

    def __init__(self, root: LazyNode) -> None:
        self.leaves: list[Any] = []
        self.outputs: list[LazyNode] = []
        self._numbers: dict[int, int] = {}
        program: list[Any] = []
        for node, operands in _sorted(root):
            program.append((node.function, tuple([self._number(one) for one in operands]), node.keywords))
            self._numbers[id(node)] = -len(program)
            owner = node.owner
            if node is root or (owner is not None and owner() is not None):
                self.outputs.append(node)
        self.program = tuple(program)
        self.returned = tuple([~self._numbers[id(node)] for node in self.outputs])

    def _number(self, operand: Any) -> int:
        """The position of a leaf, or ~ that of a node. Equal arrays are one leaf; numbers may differ by evaluation."""
        if type(operand) in SCALARS:
            self.leaves.append(operand)
            return len(self.leaves) - 1
        number = self._numbers.get(id(operand))
        if number is None:
            array = operand.result if type(operand) is LazyNode else operand
            number = self._numbers.get(id(array))
            if number is None:
                number = self._numbers[id(array)] = len(self.leaves)
                self.leaves.append(array)
        return number


def _sorted(root: LazyNode) -> list[tuple[LazyNode, tuple[Any, ...]]]:
    """The nodes to compute in topological order, with their operands.

    Another thread may evaluate a node meanwhile. It sets the result before it drops the operands, so operands that were
    read before are whole if there is still no result.
    """
    done: set[int] = set()
    order: list[tuple[LazyNode, tuple[Any, ...]]] = []
    stack: list[tuple[LazyNode, tuple[Any, ...] | None]] = [(root, None)]
    while stack:
        node, operands = stack.pop()
        if id(node) in done:
            continue
        if operands is not None:
            done.add(id(node))
            order.append((node, operands))
            continue
        operands = node.operands
        if node.result is None:
            stack.append((node, operands))
            stack += [(one, None) for one in reversed(operands) if type(one) is LazyNode]
    return order


class _Compiled:
    """The function of one structure: NumPy's calls at first, compiled code from the second evaluation on."""

    def __init__(self, program: tuple[Any, ...], returned: tuple[int, ...]) -> None:
        def expression(leaves: Any) -> Any:
            values: list[Any] = []
            for function, operands, keywords in program:
                given = [values[~i] if i < 0 else leaves[i] for i in operands]
                values.append(function(*given, **dict(keywords)))
            return tuple([values[i] for i in returned])

        self.plain = expression
        self.evaluations = 0
        self.compiled: Any = jit(expression, static_argnames=("program", "returned"))
        self.compiled.is_interpreter = True
        self.compiled.is_part = True  # what falls back is run by NumPy, as all else is that is no loop

    def __call__(self, leaves: tuple[Any, ...], work: int) -> Any:
        self.evaluations += 1
        is_compiled = self.evaluations > 1 or work >= COMPILED_AT_ONCE
        return (self.compiled if is_compiled else self.plain)(leaves)


_compiled: dict[Any, _Compiled] = {}


def _evaluate(root: LazyNode) -> None:
    structure = _Structure(root)
    if not structure.program:  # another thread was faster
        return
    key = structure.program, structure.returned, tuple([type(leaf) in SCALARS for leaf in structure.leaves])
    function = _compiled.get(key)
    if function is None:
        with writing:
            if len(_compiled) >= MAX_STRUCTURES:
                _compiled.pop(next(iter(_compiled)))
            function = _compiled.setdefault(key, _Compiled(structure.program, structure.returned))
    work = len(structure.program) * math.prod(root.shape)
    for node, result in zip(structure.outputs, function(tuple(structure.leaves), work), strict=True):
        array = result if type(result) is np.ndarray else np.asarray(result)
        node.result = array if array.dtype == node.dtype else array.astype(node.dtype)
        node.operands = ()  # frees what they hold


def structures() -> dict[Any, Any]:
    """The compiled functions by structure, for inspection."""
    return {key: function.compiled for key, function in _compiled.items()}
