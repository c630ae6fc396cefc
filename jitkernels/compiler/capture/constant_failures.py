"""Floating-point warnings of constant expressions, which NumPy raises in each call and compiled code folds when traced.

While a function is traced, NumPy evaluates every operation of constants, used or not, and the warnings are recorded:
text and source line. Compiled code raises the flags of the recorded kinds in each call (see
`jitkernels.compiler.lowering.compiled_program.CompiledProgram.raised`), so that its warnings report them.
"""

import math
import weakref
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jitkernels.compiler.ir import interpreter
from jitkernels.compiler.ir.elementwise_ops import SCALARS
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import UnsupportedError
from jitkernels.runtime.errstate import KIND_TEXTS, Recording

if TYPE_CHECKING:
    from jitkernels.compiler.capture.trace_context import Tracer

MAX_EVALUATED_ELEMENTS = 1 << 16
"""Largest constant array that is evaluated while tracing; code computes larger ones in each call anyway."""
VARIABLE = frozenset({"input", "parameter", "extent", "loop", "branch", "item", "kernel"})
"""Operations that are never constants."""
WARNING_PREFIX = "Warning: "


class Failure(NamedTuple):
    """A NumPy warning and its source line.

    `is_certain`: every call raises it, as it is outside loops, branches and masked operations.
    """

    text: str
    file: str
    line: int
    is_certain: bool

    @property
    def kind(self) -> str:
        """NumPy's name of the kind of failure."""
        return next((kind for kind, text in KIND_TEXTS.items() if self.text.startswith(text)), "invalid")


class ConstantFailures:
    """The warnings of one trace. NumPy calls `write` inside `listening`; `evaluate` computes constant nodes.

    `user_frame` finds the frame of the traced function.
    """

    def __init__(self, tracer: "Tracer", user_frame: Callable[[], FrameType | None]) -> None:
        self._tracer: Tracer = weakref.proxy(tracer)  # no cycle: arguments are freed without the collector
        self._user_frame = user_frame
        self._values: dict[Node, Any] = {}
        self._is_masked = False
        self.found: dict[Failure, None] = {}

    def listening(self) -> np.errstate:
        """A context that records NumPy's floating-point failures instead of warning."""
        return np.errstate(divide="log", over="log", invalid="log", under="ignore", call=Recording(self.write))

    def write(self, text: str) -> None:
        """Record a NumPy warning for the user's line that is being traced."""
        frame, tracer = self._user_frame(), self._tracer
        if frame is not None:
            message = text.removeprefix(WARNING_PREFIX).rstrip()
            is_certain = not (tracer.depth or tracer.differentiates or self._is_masked)
            self.found.setdefault(Failure(message, frame.f_code.co_filename, frame.f_lineno, is_certain))

    def evaluate(self, node: Node, *, is_masked: bool = False) -> None:
        """Evaluate a node of constants by NumPy, and record its failures."""
        self._is_masked = is_masked
        try:
            self._value(node)
        finally:
            self._is_masked = False

    def _value(self, node: Node) -> Any:
        """The value of a constant node, 0-d where all elements are equal; None for other nodes."""
        worklist = [] if node in self._values else [node]
        while worklist:
            current = worklist[-1]
            missing = [other for other in current.inputs if other not in self._values]
            if missing and current.operation not in VARIABLE:
                worklist += missing
                continue
            worklist.pop()
            if current not in self._values:
                self._values[current] = self._computed(current)
        return self._values[node]

    def _computed(self, node: Node) -> Any:
        if node.operation in VARIABLE:
            return None
        operands = [self._values[operand] for operand in node.inputs]
        if any(operand is None for operand in operands) or not _is_pure(node):
            return None
        is_uniform = all(not operand.ndim for operand in operands)
        if is_uniform and operands and (node.operation in ("view", "reshape", "update")):
            first = operands[-1]
            if node.operation != "update" or np.array_equal(operands[0], first, equal_nan=True):
                return first
        if is_uniform and (node.operation in SCALARS or node.operation in ("cast", "call")):
            return self._run(node, operands)
        try:
            shapes = [[*map(self._tracer.extent_value, operand.shape)] for operand in (node, *node.inputs)]
        except UnsupportedError:  # it is loop-variant
            return None
        if any(math.prod(shape) > MAX_EVALUATED_ELEMENTS for shape in shapes):
            return None
        full = [np.broadcast_to(operand, shape) for operand, shape in zip(operands, shapes[1:], strict=True)]
        return self._run(node, full)

    def _run(self, node: Node, operands: list[Any]) -> Any:
        try:
            value = interpreter.of_node(node, operands, self._tracer.extent_value)
        except UnsupportedError:  # a loop-variant index
            return None
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
            return None  # the call itself will raise
        return None if isinstance(value, tuple) else np.asarray(value)


def _is_pure(node: Node) -> bool:
    return node.operation != "call" or isinstance(node.options["function"], np.ufunc)
