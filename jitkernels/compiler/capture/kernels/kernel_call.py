"""Kernel calls in a trace: inlined as references, called at their addresses, or called through their operators.

Inlined references fuse and can be differentiated; operators check each call again.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema import argument_binding
from jitkernels.attrs.schema.schema_queries import SHAPE, inputs_of, min_results
from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.callee_monitor import monitor_suspended
from jitkernels.compiler.capture.kernels.inline_reference import has_own_code, inlined
from jitkernels.compiler.capture.kernels.kernel_node import kernel
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes
from jitkernels.compiler.capture.numpy import numpy_callouts
from jitkernels.compiler.capture.numpy.ufuncs import cast_to, kind_of, operand, stored
from jitkernels.compiler.capture.symint import Whole
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.graph import Node
from jitkernels.dispatch import outputs

Row = Any


class KernelProxy:
    """A traced operator without inputs: it has no traced argument by which to detect the trace."""

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
    """The replacement of an operator in traced functions: itself if it has inputs."""
    row = function.__self__.row
    return function if inputs_of(row) else KernelProxy(row, function)


def call(tracer: Tracer, row: Row, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call an operator in a trace. Raises what it raises outside for such arguments."""
    with monitor_suspended():
        return _called_in_trace(tracer, row, function, arguments, named)


def _called_in_trace(tracer: Tracer, row: Row, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    named = dict(named)
    out = named.pop("out", None)
    if out is None and len(arguments) == len(row.parameters().parameters) + 1:
        *rest, out = arguments
        arguments = tuple(rest)
    values = argument_binding.arguments_by_name(row, arguments, named)
    given = {a.name: operand(tracer, values[a.name]) for a in inputs_of(row) if values[a.name] is not None}
    options = {name: _option(tracer, row, name, values[name]) for name in row.options}
    plain = {name: _default(tracer, row, name, value) for name, value in options.items()}
    form = argument_binding.form_of(row, values | plain | {name: _nothing(value) for name, value in given.items()})
    shapes = KernelShapes(form, {name: traced(tracer, value).node for name, value in given.items()}, plain)
    nodes = None
    if _are_exact(shapes, given):
        nodes = inlined(tracer, shapes, options) if given else None
        is_best = nodes is not None and (tracer.differentiates or tracer.depth or has_own_code(row))
        nodes = nodes if is_best else kernel(tracer, shapes, options, nodes) or nodes
    if nodes is not None:
        nodes = [shapes.in_caller_axis_order(a, node) for (a, _), node in zip(form.results, nodes, strict=True)]
    else:
        called = {**options, **{name: given.get(name) for name in values if name not in options}}
        nodes = _called(tracer, shapes, function, called)
    if out is not None:
        return _stored(tracer, row, nodes, out)
    found = [fresh(tracer, node) for node in nodes]
    return found[0] if len(found) == 1 else tuple(found)


def _option(tracer: Tracer, row: Row, name: str, value: Any) -> Any:
    """An option as is, or as a traced number where its row accepts one; other traced options are concretized."""
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
    """A representative valid value of an option: its value in this call, if known."""
    if type(value) is Whole:
        return value.value
    if type(value) is not Traced:
        return value
    return tracer.value(value.node).item() if tracer.is_known(value.node) else getattr(row, name)


def _nothing(value: Any) -> Any:
    """A placeholder for a traced value: an array of its shape and dtype without data, or a Python number."""
    if type(value) is Whole:
        return value.value
    if type(value) is not Traced:
        return value
    if value.python is not None:
        return value.python(1)
    return np.broadcast_to(np.zeros((), value.dtype), [symbolic_dims.value_of(one) for one in value.extents])


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
    call, nodes = numpy_callouts.emptied(function, (), arguments, sizes=False)
    fields = shapes.form.attr.fields()
    asked = [(a.dtype_in(fields), shapes.caller_shape(a)) for a, _ in shapes.form.results]
    tracer.note(f"{shapes.form.attr.name} is called between kernels")
    node = tracer.placed(Node("call", nodes, *asked[0], {"function": call}))
    if len(asked) == 1:
        return [node]
    return [Node("item", (node,), *one, {"index": i}) for i, one in enumerate(asked)]


def _stored(tracer: Tracer, row: Row, nodes: Sequence[Node], out: Any) -> Any:
    """Store results in traced ``out`` arrays. Raises what the operator raises for unsuitable ones."""
    outs = outputs.several(out)
    if len(outs) == min_results(row) == 1:
        out = outs[0]
    for one in outs:
        if type(one) is not Traced and isinstance(one, np.ndarray):
            raise UnknownError("an output that is no array of the function")
    placeholders = [
        np.empty([symbolic_dims.value_of(size) for size in one.extents], one.dtype) if type(one) is Traced else one
        for one in outs
    ]
    shown = tuple(placeholders) if isinstance(out, tuple) else placeholders[0]
    sizes = [tuple(map(symbolic_dims.value_of, node.shape)) for node in nodes]
    outputs.checked(row.kernel_type.name.lower(), shown, [node.dtype for node in nodes], sizes)
    if len({id(one.view.storage) for one in outs}) < len(outs):
        raise UnknownError("outputs that may overlap")
    for node, one in zip(nodes, outs, strict=True):
        stored(tracer, node, one, casting="unsafe")
    return out
