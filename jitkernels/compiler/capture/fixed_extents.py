"""Extents of arguments that a model fixes: constants of the code, by which products and reshapes are simpler."""

from collections.abc import Sequence

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, same


def fix_extents(array: Traced, sizes: Sequence[int | None]) -> None:
    """Make extents of an argument constants where sizes are known; guards require them. Before the first operation."""
    view, storage = array.view, array.view.storage
    node = storage.node
    if all(size is None or type(extent) is int for size, extent in zip(sizes, node.shape, strict=True)):
        return
    shape = [extent if size is None else int(extent) for size, extent in zip(sizes, node.shape, strict=True)]
    strides = builder.contiguous(shape) if storage.is_c else _strides(node, shape)
    storage.node = Node("input", (), node.dtype, shape, {**node.options, "strides": strides})
    storage.strides, view.shape = strides, tuple(shape)
    tracer = array.tracer
    tracer.inputs[node.options["index"]] = storage.node
    bound = {name for one in tracer.inputs for extent in one.shape for name in symbolic_dims.symbols_of(extent)}
    for extent in node.shape:  # the guards stay, but nothing binds these symbols any more
        if symbolic_dims.bare(extent) not in bound:
            tracer.scope.values.pop(symbolic_dims.bare(extent) or "", None)


def _strides(node: Node, shape: Sequence[Number]) -> tuple[Number, ...]:
    """The strides of an argument that is not in C order: those in Fortran order are products of its extents."""
    strides: tuple[Number, ...] = node.options["strides"]
    extents = {symbolic_dims.bare(extent) for extent in node.shape}
    if not any(extents & symbolic_dims.symbols_of(stride) for stride in strides):
        return strides
    columns = builder.contiguous(shape[::-1])[::-1]
    return tuple(0 if same(old, 0) else new for old, new in zip(strides, columns, strict=True))
