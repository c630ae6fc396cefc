"""Which operations treat the batch dimension, dimension 0, independently: row i of the result needs row i of operands.

`row_operands` is the analysis, `for_one_row` rebuilds such a node for one row. Both know dimension 0 alone: an array
whose batch lies elsewhere is transposed before, or is no operand of a tiled loop.
"""

from collections.abc import Mapping, Sequence

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.schedule.kernel_step import NamedKernel
from jitkernels.errors import AttrError

Operands = tuple[int, ...]
RowOperands = Mapping[Node, Operands]
"""Of nodes that map over the batch: `row_operands`."""


def row_operands(node: Node, batch: Number) -> Operands | None:
    """The indices of the operands of which a row of the result needs that row alone; it may need all of the others.

    None where the result has no rows along the batch, or where they depend on one another.
    """
    operation = node.operation
    if operation == "item":
        return (0,) if node.inputs[0].operation == "kernel" and _has_rows(node, batch) else None
    if not _has_rows(node, batch):
        return None
    if OPERATIONS[operation].is_elementwise or operation == "cast":
        return tuple(i for i, one in enumerate(node.inputs) if one.ndim == node.ndim and _has_rows(one, batch))
    match operation:
        case "view":
            return _of_view(node, batch)
        case "reshape":
            return (0,) if _has_rows(node.inputs[0], batch) else None
        case "reduce":
            return (0,) if 0 not in node.options["axes"] else None
        case "scan":
            return (0,) if node.options["axis"] else None
        case "concatenate":
            return tuple(range(len(node.inputs))) if node.options["axis"] else None
        case "update":
            return _of_update(node, batch)
        case "matmul":
            return tuple(i for i, one in enumerate(node.inputs) if one.ndim == node.ndim and _is_batched(one, i, batch))
        case "kernel":
            return _of_kernel(node, batch)
    return None


def for_one_row(node: Node, inputs: Sequence[Node]) -> Node:
    """A node of `row_operands` for one row: `inputs` are one row of those operands, and all of the others."""
    options = node.options
    if node.operation == "update":
        options = {**options, "extents": (1, *options["extents"][1:])}
    elif node.operation == "kernel":
        results = tuple((dtype, (1, *shape[1:])) for dtype, shape in options["results"])
        kernel = options["function"]
        options = {
            "function": _kernel_of_one_row(kernel, batch_symbol(kernel.attr)),
            "results": results,
            "instead": None,
        }
    one = Node(node.operation, inputs, node.dtype, (1, *node.shape[1:]), options)
    one.origin = node.origin
    return one


def _has_rows(node: Node, batch: Number) -> bool:
    return node.ndim > 0 and same(node.shape[0], batch)


def _is_batched(operand: Node, position: int, batch: Number) -> bool:
    """Whether dimension 0 of a product's operand is that of the result: its matrices, or the rows of the left one."""
    return _has_rows(operand, batch) and (operand.ndim > 2 or position == 0)


def _keeps_rows(index_map: IndexMap) -> bool:
    """Whether dimension 0 of an array is dimension 0 of a view, which no other one of the array depends on."""
    (start, steps), *others = index_map
    is_itself = same(start, 0) and len(steps) == 1 and steps[0][0] == 0 and same(steps[0][1], 1)
    return is_itself and all(dimension for _, inner in others for dimension, _ in inner)


def _of_view(node: Node, batch: Number) -> Operands | None:
    index_map = node.options["map"]
    if all(dimension for _, steps in index_map for dimension, _ in steps):
        return ()  # it broadcasts along the batch
    return (0,) if _has_rows(node.inputs[0], batch) and _keeps_rows(index_map) else None


def _of_update(node: Node, batch: Number) -> Operands | None:
    extents, value = node.options["extents"], node.inputs[1]
    if not extents or not same(extents[0], batch) or not _keeps_rows(node.options["map"]):
        return None
    return (0, 1) if value.ndim == len(extents) and _has_rows(value, batch) else (0,)


def batch_symbol(attr: KernelAttr) -> str | None:
    """The size of leading dimensions over which a kernel maps: that of all its outputs; None if there is none."""
    roles = {one.name: one.role for one in attr.signature().arrays}
    arguments = [one for one in attr.arrays if one.name in roles]
    symbols = {one.extents[0].symbols[0] if one.spreads else "" for one in arguments if one.role == "out"}
    is_other = any(one.along or (one.transposed and getattr(attr, one.transposed)) for one in arguments)
    if is_other or len(symbols) > 1 or "inout" in roles.values():
        return None
    return symbols.pop() or None


def row_inputs(attr: KernelAttr, symbol: str) -> Operands | None:
    """The indices of the inputs of which a row of a kernel's outputs needs that row; None where one has rows inside."""
    known = {one.name for one in attr.signature().inputs}
    rows = []
    for i, argument in enumerate(one for one in attr.arrays if one.name in known):
        names = [symbol in extent.symbols for extent in argument.extents]
        if any(names[1:]) or (names[0] and not argument.spreads):
            return None
        if names[0]:
            rows.append(i)
    return tuple(rows) or None


def _of_kernel(node: Node, batch: Number) -> Operands | None:
    kernel: NamedKernel = node.options["function"]
    symbol = batch_symbol(kernel.attr)
    if symbol is None or not same(kernel.values.get(symbol, 0), batch):
        return None
    rows = row_inputs(kernel.attr, symbol)
    shapes = [node.inputs[i].shape for i in rows or ()] + [shape for _, shape in node.options["results"]]
    # One leading dimension is the batch, as others would be a part of it.
    is_mapped = rows is not None and all(len(shape) and same(shape[0], batch) for shape in shapes)
    return rows if is_mapped and _kernel_of_one_row(kernel, symbol) is not None else None


def _kernel_of_one_row(kernel: NamedKernel, symbol: str | None) -> NamedKernel | None:
    """The kernel for a batch of one; None where compiled code cannot call it, or where other sizes depend on that."""
    if symbol is None:
        return None
    attr, values = kernel.attr, kernel.values
    try:
        one = type(attr)(**{**attr.fields(), symbol: 1})
    except AttrError:
        return None
    others = [{**dict(each.signature().integers), symbol: 1} for each in (attr, one)]
    if others[0] != others[1]:
        return None
    result = NamedKernel(one, {**values, symbol: 1}, kernel.numbers, serves_all_sizes=kernel.serves_all_sizes)
    return result if result.external is not None else None
