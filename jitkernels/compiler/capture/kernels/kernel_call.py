"""Kernels that are called by name in a trace: as their references, at their addresses, or by their everyday functions.

The first is what fuses and is differentiated, the last what looks at each call anew.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels import results
from jitkernels.attrs import binding
from jitkernels.attrs.roles import SHAPE, fewest_results, inputs_of
from jitkernels.frontends import foreign
from jitkernels.frontends.traced import Traced, fresh, traced
from jitkernels.frontends.tracer import Tracer, current
from jitkernels.frontends.universal import cast_to, kind_of, operand, stored
from jitkernels.frontends.watching import unwatched
from jitkernels.frontends.whole import Whole
from jitkernels.graph import extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node
from jitkernels.named.inlining import has_own_code, inlined
from jitkernels.named.nodes import kernel
from jitkernels.named.shapes import KernelShapes

Row = Any


class Maker:
    """An everyday function without inputs as a traced function sees it: no array tells it of the trace."""

    def __init__(self, row: Row, function: Any) -> None:
        self.row, self.function = row, function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        tracer = current()
        if tracer is None:
            return self.function(*arguments, **named)
        return call(tracer, self.row, self.function, arguments, named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


def stand_in(function: Any) -> Any:
    """What a traced function sees in place of an everyday function: that, if it has inputs."""
    row = function.__self__.row
    return function if inputs_of(row) else Maker(row, function)


def call(tracer: Tracer, row: Row, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """An everyday call in a trace. Raises what it raises elsewhere for such arguments."""
    with unwatched():
        return _called_in_trace(tracer, row, function, arguments, named)


def _called_in_trace(
    tracer: Tracer, row: Row, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    named = dict(named)
    out = named.pop("out", None)
    if out is None and len(arguments) == len(row.parameters().parameters) + 1:
        *rest, out = arguments
        arguments = tuple(rest)
    values = binding.given_values(row, arguments, named)
    given = {a.name: operand(tracer, values[a.name]) for a in inputs_of(row) if values[a.name] is not None}
    options = {name: _option(tracer, row, name, values[name]) for name in row.options}
    plain = {name: _default(tracer, row, name, value) for name, value in options.items()}
    form = binding.form_of(row, values | plain | {name: _nothing(value) for name, value in given.items()})
    shapes = KernelShapes(form, {name: traced(tracer, value).node for name, value in given.items()}, plain)
    nodes = None
    if _are_exact(shapes, given):
        nodes = inlined(tracer, shapes, options) if given else None
        is_best = nodes is not None and (tracer.differentiates or tracer.depth or has_own_code(row))
        nodes = nodes if is_best else kernel(tracer, shapes, options, nodes) or nodes
    if nodes is not None:
        nodes = [shapes.as_asked(a, node) for (a, _), node in zip(form.results, nodes, strict=True)]
    else:
        called = {**options, **{name: given.get(name) for name in values if name not in options}}
        nodes = _called(tracer, shapes, function, called)
    if out is not None:
        return _stored(tracer, row, nodes, out)
    found = [fresh(tracer, node) for node in nodes]
    return found[0] if len(found) == 1 else tuple(found)


def _option(tracer: Tracer, row: Row, name: str, value: Any) -> Any:
    """An option as it is, or as a number of the trace where its row takes one; what else is traced has to be known."""
    if name == SHAPE and isinstance(value, tuple | list):
        return tuple(operator.index(one) for one in value)
    if type(value) not in (Traced, Whole):
        return value
    field = row.known_fields().get(name)
    if type(value) is Whole and field is not None and field.kind == "whole" and not field.is_size:
        return value
    if name in row.floats and (type(value) is Whole or value.ndim == 0):
        number = fresh(tracer, cast_to(tracer, value, "float64"), is_scalar=True)
        number.is_weak = True
        return number
    if type(value) is Whole:
        return int(value)
    return value._value()


def _default(tracer: Tracer, row: Row, name: str, value: Any) -> Any:
    """A number that is right where an option is right: its value now, if anything tells that."""
    if type(value) is Whole:
        return value.value
    if type(value) is not Traced:
        return value
    return tracer.value(value.node).item() if tracer.is_known(value.node) else getattr(row, name)


def _nothing(value: Any) -> Any:
    """An array of nothing in place of a traced one, with its shape and dtype; a number of Python's in place of one."""
    if type(value) is Whole:
        return value.value
    if type(value) is not Traced:
        return value
    if value.python is not None:
        return value.python(1)
    return np.broadcast_to(np.zeros((), value.dtype), [extents.value_of(one) for one in value.extents])


def _are_exact(shapes: KernelShapes, given: Mapping[str, Any]) -> bool:
    """Whether integers are all such as the row takes: others are looked at in each call."""
    fields = shapes.form.attr.fields()
    for argument in shapes.form.present:
        kind = kind_of(given[argument.name])
        is_known = argument.dtype is None or kind not in (int, bool)
        if not is_known or (argument.dtype and not np.can_cast(kind, argument.dtype_in(fields), "safe")):
            return False
    return True


def _called(tracer: Tracer, shapes: KernelShapes, function: Any, arguments: dict[str, Any]) -> list[Node]:
    """The results of the everyday function, called between kernels."""
    call, nodes = foreign.emptied(function, (), arguments, sizes=False)
    fields = shapes.form.attr.fields()
    asked = [(a.dtype_in(fields), shapes.asked_shape(a)) for a, _ in shapes.form.results]
    tracer.note(f"{shapes.form.attr.name} is called between kernels")
    node = tracer.placed(Node("call", nodes, *asked[0], {"function": call}))
    if len(asked) == 1:
        return [node]
    return [Node("item", (node,), *one, {"index": i}) for i, one in enumerate(asked)]


def _stored(tracer: Tracer, row: Row, nodes: Sequence[Node], out: Any) -> Any:
    """Let arrays of the trace have the results. Raises what the everyday function raises for what cannot take them."""
    given = results.several(out)
    if len(given) == fewest_results(row) == 1:
        out = given[0]
    for one in given:
        if type(one) is not Traced and isinstance(one, np.ndarray):
            raise UnknownError("an output that is no array of the function")
    stand = [
        np.empty([extents.value_of(size) for size in one.extents], one.dtype) if type(one) is Traced else one
        for one in given
    ]
    shown = tuple(stand) if isinstance(out, tuple) else stand[0]
    sizes = [tuple(map(extents.value_of, node.shape)) for node in nodes]
    results.checked(row.kernel_type.name.lower(), shown, [node.dtype for node in nodes], sizes)
    if len({id(one.view.storage) for one in given}) < len(given):
        raise UnknownError("outputs that may overlap")
    for node, one in zip(nodes, given, strict=True):
        stored(tracer, node, one, casting="unsafe")
    return out
