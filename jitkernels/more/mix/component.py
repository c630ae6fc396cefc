"""Other kernels of the registry as functions that loop nests call."""

from typing import Any

from jitkernels.attrs.vector import VectorAttr
from jitkernels.choosing import choose_component
from jitkernels.native import load
from jitkernels.native.source import Source, inlined


def component(attr: VectorAttr, source: Source | None = None) -> Any:
    """An elementwise kernel as a function of its arrays and their length, which returns a status.

    `source` is whose code is called; if it is None, that of the best kernel that runs on one thread, which was
    measured before or is static: nothing is measured here. It runs on the calling thread, and the same object
    serves every length. A status other than 0 is the caller's to return.
    """
    if source is None:
        choice = choose_component(attr)
        source = choice.implementation.source(attr, choice.variant)
    arguments = attr.signature().c_arguments
    if not source.has_range:
        return load.entry_of(source, arguments)
    ranged = load.range_of(source, arguments)

    @inlined()
    def unary(x: Any, y: Any, n: int) -> Any:
        return ranged(x, y, n, 0, n)

    @inlined()
    def binary(x: Any, y: Any, z: Any, n: int) -> Any:
        return ranged(x, y, z, n, 0, n)

    return unary if len(attr.signature().arrays) == 2 else binary
