"""Kernel nodes of a trace: registry kernels that compiled code calls at their addresses."""

import types
from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.kernels.inline_reference import Fields
from jitkernels.compiler.capture.kernels.operand_checks import (
    Before,
    check_index_bounds,
    check_number_limits,
    is_index_input,
    within,
)
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes
from jitkernels.compiler.capture.symint import Whole, as_symint
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import UnknownError
from jitkernels.compiler.schedule.kernel_step import NamedKernel


def kernel(
    tracer: Tracer, shapes: KernelShapes, options: Mapping[str, Any], instead: Sequence[Node] | None = None
) -> list[Node] | None:
    """The results of the row's kernel, called at its address; None where its attr cannot be had for other sizes.

    `instead` is what may stand in place of the results, for code that has more to do with them.
    """
    before, form = Before(tracer), shapes.form
    fields = form.attr.fields()
    numbers = {name: value for name, value in options.items() if type(value) is Traced}
    try:
        demand(form.attr, {name: as_symint(tracer, value) for name, value in shapes.values.items()} | numbers)
    except (Exception, UnknownError):  # noqa: BLE001  # whatever the fields of a row are asked for
        before.restore()
        return None
    shapes_of = [shapes.result_shape(a) for a, _ in form.results]
    if all(any(symbolic_dims.same(size, 0) for size in shape) for shape in shapes_of):
        zeros = [builder.constant(0, a.dtype_in(fields)) for a, _ in form.results]
        return [builder.broadcast_to(zero, shape) for zero, shape in zip(zeros, shapes_of, strict=True)]
    named = [str(a.domain[1]) for a in form.present if is_index_input(a)]
    if any(symbolic_dims.same(shapes.values[name], 0) for name in named):
        return None  # no index is valid
    inputs = []
    for argument in form.present:
        node = builder.cast(shapes.nodes[argument.name], argument.dtype_in(fields))
        if is_index_input(argument):
            if instead is None:
                check_index_bounds(tracer, argument, node, shapes)
            node = within(argument, node, shapes)
        inputs.append(node)
    for name, value in numbers.items():
        inputs.append(builder.cast(builder.cast(value.node, fields["dtype"]), "float64"))
        if instead is None:
            check_number_limits(tracer, form.attr, name, value.node)
    sizes = {name: value for name, value in shapes.values.items() if type(fields[name]) is int}
    sizes |= {name: value.extent for name, value in options.items() if type(value) is Whole}
    made = NamedKernel(form.attr, sizes, [*numbers])
    asked = tuple((a.dtype_in(fields), shape) for (a, _), shape in zip(form.results, shapes_of, strict=True))
    node = tracer.placed(
        Node("kernel", inputs, *asked[0], {"function": made, "results": asked, "instead": instead and tuple(instead)})
    )
    return [Node("item", (node,), *one, {"index": i}) for i, one in enumerate(asked)]


def demand(attr: Any, values: Mapping[str, Any]) -> None:
    """Run a row's field validation on traced fields; its decisions become guards."""

    class Above:
        def __post_init__(self) -> None:
            """What all attrs do with their fields."""

    class Asked(Above, Fields):
        pass

    found = type(attr).__post_init__
    if found is KernelAttr.__post_init__:
        return
    cells = {"__class__": types.CellType(Asked)}
    around = zip(found.__code__.co_freevars, found.__closure__ or (), strict=True)
    closure = tuple(cells.get(name, cell) for name, cell in around)
    types.FunctionType(found.__code__, found.__globals__, closure=closure)(Asked(attr, values))
