"""The operands of a kernel call in a trace, in the shapes that its schema declares.

It does for nodes with symbolic extents what `jitkernels.attrs.schema.argument_binding` does for arrays: axes, batch and
trailing dimensions. The argument errors of a call are detected there, on placeholders without data.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.attrs.schema.argument_binding import Form
from jitkernels.attrs.schema.schema_queries import AXIS, SHAPE, inputs_of, integer_options_of, spread_of
from jitkernels.attrs.schema.shape_inference import behind_of, fixed_of, from_end
from jitkernels.attrs.schema.signature import Argument, DeclaredExtent
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, same


class KernelShapes:
    """The inputs of a call, with the axis last and batch dimensions broadcast to `lead`; `trail`: trailing dimensions.

    `values`: extents by symbol of the schema. `at_end`: the caller's axis, counted from the end, -1 if it is the last.
    """

    def __init__(self, form: Form, inputs: Mapping[str, Node], options: Mapping[str, Any]) -> None:
        self.form, self.schema = form, type(form.attr)
        self.at_end = self._axis(inputs, options)
        nodes = {name: self._move_axis_last(argument, inputs[name]) for name, argument in self._present()}
        for argument in form.present:
            if argument.along is not None:
                nodes[argument.name] = _match_dimensions(argument, nodes, form.present)
        behind, leads = len(form.trail), []
        for argument in form.present:
            node, own = nodes[argument.name], behind_of(argument, behind)
            if argument.spreads:
                leads.append(node.shape[: node.ndim - fixed_of(argument, node) - own])
        self.lead = form.lead if SHAPE in self.schema.options else builder.broadcast_shapes(leads)
        trailing = next((nodes[a.name] for a in form.present if a.trailing is not None), None)
        self.trail = () if trailing is None or not behind else trailing.shape[trailing.ndim - behind :]
        self.nodes = {a.name: self._broadcast(a, nodes[a.name]) for a in form.present}
        self.values = self._match_symbols()

    def _present(self) -> list[tuple[str, Argument]]:
        return [(argument.name, argument) for argument in self.form.present]

    def _axis(self, inputs: Mapping[str, Node], options: Mapping[str, Any]) -> int:
        if self.form.behind is None:
            return -1
        first = next(a.name for a in inputs_of(self.schema) if a.name in inputs and any(e.spread for e in a.extents))
        return from_end(self.schema.__name__, first, inputs[first].ndim, options[AXIS])

    def _move_axis_last(self, argument: Argument, node: Node) -> Node:
        """An input with the axis last; a number as an array of one element."""
        if argument.is_number and not node.ndim:
            return builder.expand_dims(node, [0])
        axis = node.ndim + self.at_end
        if self.at_end == -1 or axis < 0 or not any(e.spread for e in argument.extents):
            return node
        return builder.transpose(node, [*(i for i in range(node.ndim) if i != axis), axis])

    def _broadcast(self, argument: Argument, node: Node) -> Node:
        """An input broadcast to the batch dimensions; a missing optional extent becomes 1."""
        fixed = fixed_of(argument, node) + behind_of(argument, len(self.form.trail))
        if argument.spreads:
            node = builder.broadcast_to(node, (*self.lead, *node.shape[node.ndim - fixed :]))
        if fixed_of(argument, node) < len(argument.fixed) and not argument.spreads:
            node = builder.expand_dims(node, [node.ndim])
        return node

    def _match_symbols(self) -> dict[str, Number]:
        """The value of each symbol. Raises UnsupportedError for shapes that do not fit."""
        attr, values = (
            self.form.attr,
            {name: getattr(self.form.attr, name) for name in integer_options_of(self.schema)},
        )
        sizes = {name: self._sizes(argument, self.nodes[name]) for name, argument in self._present()}
        if SHAPE in self.schema.options:
            values |= dict.fromkeys(spread_of(self.schema), symbolic_dims.product(self.lead))
        for plain in (True, False):
            for name, argument in self._present():
                for extent, size in zip(argument.extents, sizes[name], strict=True):
                    if extent.is_plain == plain and len(extent.symbols) == 1 and extent.symbols[0] not in values:
                        values[extent.symbols[0]] = (size - extent.more) // extent.factor
        if self.schema.derived:
            values |= self.schema.derive(attr.fields() | values)
        for name, argument in self._present():
            for extent, size in zip(argument.extents, sizes[name], strict=True):
                wanted = value_of(extent, values)
                if not same(wanted, size) and not bool(wanted == size):
                    raise UnsupportedError(f"{attr.name}: {name} of another shape")
        return values

    def _sizes(self, argument: Argument, node: Node) -> tuple[Number, ...]:
        """The extents of an input as its schema declares them."""
        before = len(self.lead) if argument.spreads else 0
        behind = node.ndim - behind_of(argument, len(self.form.trail))
        return (
            *((symbolic_dims.product(node.shape[:before]),) if argument.spreads else ()),
            *node.shape[before:behind],
            *((symbolic_dims.product(node.shape[behind:]),) if argument.trailing is not None else ()),
        )

    def result_shape(self, argument: Argument) -> tuple[Number, ...]:
        """The shape of a result, whose axis is at the end."""
        own = [e for e in argument.fixed if not (e.optional and e.symbols[0] in self.form.missing)]
        return (
            *(self.lead if argument.spreads else ()),
            *(value_of(extent, self.values) for extent in own),
            *(self.trail if argument.trailing is not None else ()),
        )

    def caller_shape(self, argument: Argument) -> tuple[Number, ...]:
        """The shape of a result as the caller sees it."""
        shape = [*self.result_shape(argument)]
        if self.at_end != -1 and argument.fixed:
            shape.insert(len(shape) + self.at_end, shape.pop())
        return tuple(shape)

    def in_caller_axis_order(self, argument: Argument, node: Node) -> Node:
        """A result with its axis where the caller has it."""
        if self.at_end == -1 or not argument.fixed:
            return node
        order = [*range(node.ndim - 1)]
        order.insert(node.ndim + self.at_end, node.ndim - 1)
        return builder.transpose(node, order)


def value_of(extent: DeclaredExtent, values: Mapping[str, Number]) -> Number:
    """A declared extent, evaluated with `values` for its symbols."""
    return extent.factor * symbolic_dims.product(values[symbol] for symbol in extent.symbols) + extent.more


def _match_dimensions(argument: Argument, nodes: Mapping[str, Node], present: Sequence[Argument]) -> Node:
    """An input reshaped to its declared dimensions, see `attrs.schema.argument_binding`."""
    node, other = nodes[argument.name], nodes[argument.along or ""]
    own = tuple(_extent_of_symbol(extent.symbols[0], argument, nodes, present) for extent in argument.fixed[1:])
    node = builder.broadcast_to(node, builder.broadcast_shapes([node.shape, own]))
    lead = node.shape[: -len(own)]
    if len(lead) > 1 and not all(same(extent, 1) for extent in lead):
        node = builder.broadcast_to(node, (*other.shape[:-1], own[-1]))
        lead = node.shape[: -len(own)]
    return builder.reshape(node, (symbolic_dims.product(lead), *node.shape[-len(own) :]))


def _extent_of_symbol(
    symbol: str, argument: Argument, nodes: Mapping[str, Node], present: Sequence[Argument]
) -> Number:
    for other in present:
        names = [extent.symbols[0] for extent in other.fixed if extent.is_plain] if other is not argument else []
        shape = nodes[other.name].shape
        if symbol in names and len(shape) >= len(names):
            return shape[names.index(symbol) - len(names)]
    return 1
