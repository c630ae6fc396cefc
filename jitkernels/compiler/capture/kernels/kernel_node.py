"""Rows whose kernels are called at their addresses, as nodes of a trace."""

import types
from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.attrs.base import KernelAttr
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import Whole, as_whole
from jitkernels.graph import construct, extents
from jitkernels.graph.ir import Node
from jitkernels.graph.kernel_calls import NamedKernel
from jitkernels.graph.unknown import UnknownError
from jitkernels.named.checks import Before, look_at_indices, look_at_number, names_rows, within
from jitkernels.named.inlining import Fields
from jitkernels.named.shapes import KernelShapes


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
        demand(form.attr, {name: as_whole(tracer, value) for name, value in shapes.values.items()} | numbers)
    except (Exception, UnknownError):  # noqa: BLE001  # whatever the fields of a row are asked for
        before.restore()
        return None
    shapes_of = [shapes.result_shape(a) for a, _ in form.results]
    if all(any(extents.same(size, 0) for size in shape) for shape in shapes_of):
        zeros = [construct.constant(0, a.dtype_in(fields)) for a, _ in form.results]
        return [construct.broadcast_to(zero, shape) for zero, shape in zip(zeros, shapes_of, strict=True)]
    named = [str(a.domain[1]) for a in form.present if names_rows(a)]
    if any(extents.same(shapes.values[name], 0) for name in named):
        return None  # there is nothing that numbers could name
    inputs = []
    for argument in form.present:
        node = construct.cast(shapes.nodes[argument.name], argument.dtype_in(fields))
        if names_rows(argument):
            if instead is None:
                look_at_indices(tracer, argument, node, shapes)
            node = within(argument, node, shapes)
        inputs.append(node)
    for name, value in numbers.items():
        inputs.append(construct.cast(construct.cast(value.node, fields["dtype"]), "float64"))
        if instead is None:
            look_at_number(tracer, form.attr, name, value.node)
    sizes = {name: value for name, value in shapes.values.items() if type(fields[name]) is int}
    sizes |= {name: value.extent for name, value in options.items() if type(value) is Whole}
    made = NamedKernel(form.attr, sizes, [*numbers])
    asked = tuple((a.dtype_in(fields), shape) for (a, _), shape in zip(form.results, shapes_of, strict=True))
    node = tracer.placed(
        Node(
            "kernel",
            inputs,
            *asked[0],
            {"function": made, "results": asked, "instead": instead and tuple(instead)},
        )
    )
    return [Node("item", (node,), *one, {"index": i}) for i, one in enumerate(asked)]


def demand(attr: Any, values: Mapping[str, Any]) -> None:
    """Let a row refuse its fields as it does, where some are none of numbers; what it decides by becomes guards."""

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
