"""Other kernels of the registry as functions that range kernels call."""

from typing import Any

from jitkernels.attrs.vector import VectorAttr
from jitkernels.codegen.source_protocol import Source, inlined
from jitkernels.runtime.loading import loader
from jitkernels.selection.select import choose_component


def component(attr: VectorAttr, source: Source | None = None) -> Any:
    """Return an elementwise kernel as a function of its arrays and their length, which returns a status.

    `source` is the implementation to call; None selects the best serial kernel, measured before or static: nothing is
    measured here. It runs on the calling thread, and the same object serves every length. The caller returns a status
    other than 0.
    """
    if source is None:
        choice = choose_component(attr)
        source = choice.implementation.source(attr, choice.variant)
    arguments = attr.signature().c_arguments
    if not source.has_range:
        return loader.entry_of(source, arguments)
    ranged = loader.range_of(source, arguments)

    @inlined()
    def unary(x: Any, y: Any, n: int) -> Any:
        return ranged(x, y, n, 0, n)

    @inlined()
    def binary(x: Any, y: Any, z: Any, n: int) -> Any:
        return ranged(x, y, z, n, 0, n)

    return unary if len(attr.signature().arrays) == 2 else binary
