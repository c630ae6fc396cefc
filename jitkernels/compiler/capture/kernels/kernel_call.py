"""Kernel calls in a trace: inlined as references, called at their addresses, or called through their operators.

Inlined references fuse and can be differentiated; operators check each call again.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema import argument_binding
from jitkernels.attrs.schema.argument_binding import Form
from jitkernels.attrs.schema.schema_queries import SHAPE, inputs_of, min_results
from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.callee_monitor import monitor_suspended
from jitkernels.compiler.capture.kernels.inline_reference import has_own_code, inline_reference
from jitkernels.compiler.capture.kernels.kernel_node import PackedCall, build_kernel_node, result_items
from jitkernels.compiler.capture.kernels.kernel_vjp import differentiable_call
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes
from jitkernels.compiler.capture.numpy import numpy_callouts
from jitkernels.compiler.capture.numpy.ufuncs import kind_of, operand, stored, weak
from jitkernels.compiler.capture.static_arrays import Frozen, packed_array
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.dispatch import outputs

Schema = Any


class KernelProxy:
    """A traced operator without inputs: it has no traced argument by which to detect the trace."""

    def __init__(self, schema: Schema, function: Any) -> None:
        self.schema, self.function = schema, function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        tracer = current()
        if tracer is None:
            return self.function(*arguments, **named)
        return call(tracer, self.schema, self.function, arguments, named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


def operator_proxy(function: Any) -> Any:
    """The replacement of an operator in traced functions: itself if it has inputs."""
    schema = function.__self__.schema
    return function if inputs_of(schema) else KernelProxy(schema, function)


def call(tracer: Tracer, schema: Schema, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call an operator in a trace. Raises what it raises outside for such arguments."""
    with monitor_suspended():
        return _trace_call(tracer, schema, function, arguments, named)


def _trace_call(
    tracer: Tracer, schema: Schema, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    named = dict(named)
    out = named.pop("out", None)
    if out is None and len(arguments) == len(schema.parameters().parameters) + 1:
        *rest, out = arguments
        arguments = tuple(rest)
    values = argument_binding.arguments_by_name(schema, arguments, named)
    inputs = {a.name: operand(tracer, values[a.name]) for a in inputs_of(schema) if values[a.name] is not None}
    options = {name: _option(tracer, schema, name, values[name]) for name in schema.options}
    examples = {name: _example(tracer, schema, name, value) for name, value in options.items()}
    placeholders = {name: _placeholder(value) for name, value in inputs.items()}
    form = argument_binding.form_of(schema, values | examples | placeholders)
    has_exact_dtypes, packed = _has_exact_dtypes(form, inputs), None
    if has_exact_dtypes and not tracer.differentiates:
        constants = {name: values[name] for name in inputs if type(values[name]) is Frozen}
        packed = _packed(form, constants, winograd=tracer.winograd)
    unread = packed[1] if packed is not None and not tracer.depth else ()  # constants that are not copied into code
    sources = {name: _unread(v) if name in unread else traced(tracer, v).node for name, v in inputs.items()}
    shapes, nodes = KernelShapes(form, sources, examples), None
    if has_exact_dtypes and tracer.differentiates:
        nodes = differentiable_call(tracer, shapes, function, values, options)
    if has_exact_dtypes and nodes is None:
        # A kernel of packed constants beats its inlined reference, which reads them as they are.
        if inputs and (packed is None or tracer.depth):
            nodes = inline_reference(tracer, shapes, options)
        is_best = nodes is not None and (tracer.differentiates or tracer.depth or has_own_code(schema))
        if not is_best:
            nodes = build_kernel_node(tracer, shapes, options, nodes, packed) or nodes
    if nodes is not None:
        nodes = [shapes.in_caller_axis_order(a, node) for (a, _), node in zip(form.results, nodes, strict=True)]
    else:
        operands = {**options, **{name: inputs.get(name) for name in values if name not in options}}
        nodes = _call_operator(tracer, shapes, function, operands)
    if out is not None:
        return _store(tracer, schema, nodes, out)
    results = [fresh(tracer, node) for node in nodes]
    return results[0] if len(results) == 1 else tuple(results)


def _packed(form: Form, constants: Mapping[str, Any], *, winograd: bool) -> PackedCall | None:
    """The call of the packed form of a schema, with its packed inputs; None where there is none."""
    packed = form.attr.prepacked(constants, winograd=winograd)
    if packed is None:
        return None
    attr, inputs = packed
    return attr, {name: packed_array(constants[name], layout, pack) for name, (layout, pack) in inputs.items()}


def _option(tracer: Tracer, schema: Schema, name: str, value: Any) -> Any:
    """An option as is, or as a traced number where its schema accepts one; other traced options are concretized."""
    if name == SHAPE and isinstance(value, tuple | list):
        return tuple(map(operator.index, value))
    if type(value) not in (Traced, SymInt):
        return value
    field = schema.known_fields().get(name)
    if type(value) is SymInt and field is not None and field.kind == "whole" and not field.is_size:
        return value
    if name in schema.floats and (type(value) is SymInt or value.ndim == 0):
        return weak(tracer, value)
    if type(value) is SymInt:
        return int(value)
    return value._value()


def _example(tracer: Tracer, schema: Schema, name: str, value: Any) -> Any:
    """A representative valid value of an option: its value in this call, if known."""
    if type(value) is SymInt:
        return value.value
    if type(value) is not Traced:
        return value
    return tracer.value(value.node).item() if tracer.is_known(value.node) else getattr(schema, name)


def _placeholder(value: Any) -> Any:
    """A placeholder for a traced value: an array of its shape and dtype without data, or a Python number."""
    if type(value) is SymInt:
        return value.value
    if type(value) is not Traced:
        return value
    if value.python is not None:
        return value.python(1)
    return np.broadcast_to(np.zeros((), value.dtype), [*map(symbolic_dims.value_of, value.extents)])


def _unread(array: Any) -> Node:
    """A node of an array's shape and dtype."""
    return Node("parameter", (), array.dtype, array.shape)


def _has_exact_dtypes(form: Form, inputs: Mapping[str, Any]) -> bool:
    """Whether integers are all such as the schema takes: each call tests others."""
    fields = form.attr.fields()
    for argument in form.present:
        kind = kind_of(inputs[argument.name])
        is_known = argument.dtype is None or kind not in (int, bool)
        if not is_known or (argument.dtype and not np.can_cast(kind, argument.dtype_in(fields), "safe")):
            return False
    return True


def _call_operator(tracer: Tracer, shapes: KernelShapes, function: Any, arguments: dict[str, Any]) -> list[Node]:
    """The results of the everyday function, called between kernels."""
    call, nodes = numpy_callouts.emptied(function, (), arguments, sizes=False)
    fields = shapes.form.attr.fields()
    results = [(a.dtype_in(fields), shapes.caller_shape(a)) for a, _ in shapes.form.results]
    tracer.note(f"{shapes.form.attr.name} is called between kernels")
    node = tracer.placed(Node("call", nodes, *results[0], {"function": call}))
    return [node] if len(results) == 1 else result_items(node, results)


def _store(tracer: Tracer, schema: Schema, nodes: Sequence[Node], out: Any) -> Any:
    """Store results in traced ``out`` arrays. Raises what the operator raises for unsuitable ones."""
    outs = outputs.as_tuple(out)
    if len(outs) == min_results(schema) == 1:
        out = outs[0]
    if any(type(array) is not Traced and isinstance(array, np.ndarray) for array in outs):
        raise UnsupportedError("an output that is no array of the function")
    placeholders = [
        np.empty([*map(symbolic_dims.value_of, array.extents)], array.dtype) if type(array) is Traced else array
        for array in outs
    ]
    given = tuple(placeholders) if isinstance(out, tuple) else placeholders[0]
    sizes = [tuple(map(symbolic_dims.value_of, node.shape)) for node in nodes]
    outputs.check_out(schema.kernel_type.name.lower(), given, [node.dtype for node in nodes], sizes)
    if len({array.view.storage for array in outs}) < len(outs):
        raise UnsupportedError("outputs that may overlap")
    for node, array in zip(nodes, outs, strict=True):
        stored(tracer, node, array, casting="unsafe")
    return out
