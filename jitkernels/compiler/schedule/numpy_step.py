"""NumPy functions that compiled code calls back, with arrays that wrap existing memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.ir import numpy_call_spec
from jitkernels.compiler.ir.graph import Node
from jitkernels.runtime import python_callback, vectorcall


@dataclass
class NumpyCall:
    """The step of a node ``call``, and those of its results that are read. `reports_warnings`: by its flags."""

    node: Node
    items: list[Node] = field(default_factory=list)
    reports_warnings: bool = False
    work: int = 0

    @property
    def externals(self) -> tuple[External, ...]:
        """The external symbols that the code links to."""
        name = numpy_call_spec.name_of(self.node.options["function"])
        assert name is not None, "`call_of` tests it"
        nodes = (*self.node.inputs, *self.items)
        return (
            python_callback.entry(),
            External(name, "void", (), lambda: id(numpy_call_spec.named(name))),
            *(vectorcall.dtype_object(dtype) for dtype in dict.fromkeys(node.dtype for node in nodes)),
        )


def call_of(node: Node, items: Sequence[Node]) -> NumpyCall | None:
    """The step of a node; None if Python must call the function between segments."""
    return NumpyCall(node, [*items] or [node]) if numpy_call_spec.is_callable_from_code(node) else None
