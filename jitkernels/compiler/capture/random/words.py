"""Numbers that traced code changes: the words of a random generator's state, one storage each."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node


class StateWord:
    """A number of one dtype. Loops and branches carry it as they carry arrays that they write to."""

    def __init__(self, tracer: Tracer, node: Node) -> None:
        self.tracer, self.storage = tracer, Storage(node)

    @property
    def value(self) -> Any:
        self.storage.is_read = True
        return fresh(self.tracer, self.storage.node, is_scalar=True)

    @value.setter
    def value(self, value: Any) -> None:
        self.storage.change(converted(value, self.storage.node.dtype))


def converted(value: Any, dtype: str) -> Node:
    """The node of a number of this dtype."""
    return (
        builder.cast(value.node, dtype)
        if type(value) is Traced
        else builder.constant(np.dtype(dtype).type(value).item(), dtype)
    )


def cast(value: Any, dtype: str) -> Any:
    """The number as a NumPy scalar of a dtype."""
    return fresh(value.tracer, builder.cast(value.node, dtype), is_scalar=True)
