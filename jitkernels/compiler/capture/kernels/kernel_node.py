"""Kernel nodes of a trace: registry kernels that compiled code calls at their addresses."""

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.kernels import operand_checks
from jitkernels.compiler.capture.kernels.inline_reference import TracedFields
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes
from jitkernels.compiler.capture.symint import SymInt, as_symint
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.ir.unsupported import UnsupportedError
from jitkernels.compiler.schedule.kernel_step import NamedKernel

ResultTypes = Sequence[tuple[str, Sequence[Number]]]
"""The dtypes and shapes of the results of a call."""
PackedCall = tuple[KernelAttr, Mapping[str, AnyArray]]
"""The attr of a schema of packed inputs, and these inputs."""


def build_kernel_node(
    tracer: Tracer,
    shapes: KernelShapes,
    options: Mapping[str, Any],
    decomposition: Sequence[Node] | None = None,
    packed: PackedCall | None = None,
    vjp: Callable[..., Any] | None = None,
) -> list[Node] | None:
    """The results of the schema's kernel, called at its address; None where its attr cannot be had for other sizes.

    `decomposition` is what may stand in place of the results, for code that has more to do with them. `packed`: the
    attr that is called in place of the form's, and its inputs in another layout. `vjp`: gives the cotangents of the
    inputs, from the node and the cotangents of its results by their indices.
    """
    snapshot, form = operand_checks.TraceSnapshot(tracer), shapes.form
    fields = form.attr.fields()
    numbers = {name: value for name, value in options.items() if type(value) is Traced}
    try:
        _validate_fields(form.attr, {name: as_symint(tracer, n) for name, n in shapes.values.items()} | numbers)
    except (Exception, UnsupportedError):  # noqa: BLE001  # whatever the validation of a schema raises
        snapshot.restore()
        return None
    results = [(argument.dtype_in(fields), shapes.result_shape(argument)) for argument, _ in form.results]
    if all(any(symbolic_dims.same(size, 0) for size in shape) for _, shape in results):
        return [builder.broadcast_to(builder.constant(0, dtype), shape) for dtype, shape in results]
    indexed = [str(argument.domain[1]) for argument in form.present if operand_checks.is_index_input(argument)]
    if any(symbolic_dims.same(shapes.values[name], 0) for name in indexed):
        return None  # no index is valid
    attr, constants = packed or (form.attr, {})
    inputs = []
    for argument in form.present:
        if argument.name in constants:
            inputs.append(tracer.packed_constant(constants[argument.name]))
            continue
        node = builder.cast(shapes.nodes[argument.name], argument.dtype_in(fields))
        if operand_checks.is_index_input(argument):
            if decomposition is None:
                operand_checks.check_index_bounds(tracer, argument, node, shapes)
            node = operand_checks.clamp_indices(argument, node, shapes)
        inputs.append(node)
    for name, value in numbers.items():
        inputs.append(operand_checks.round_to_dtype(value, fields["dtype"]))
        if decomposition is None:
            operand_checks.check_number_limits(tracer, form.attr, name, value.node)
    sizes = shapes.values | {name: value.extent for name, value in options.items() if type(value) is SymInt}
    if packed is not None:
        sizes |= attr.derive(attr.fields() | {name: sizes[name] for name in attr.fields() if name in sizes})
    integers = {name for name, _ in attr.signature().integers}
    sizes = {name: value for name, value in sizes.items() if name in integers}
    kernel = NamedKernel(attr, sizes, [*numbers])
    if decomposition is None:
        kernel.begin_build()
    node_options = {"function": kernel, "results": tuple(results), "instead": decomposition and tuple(decomposition)}
    if vjp is not None:
        node_options["vjp"] = vjp
    return result_items(tracer.placed(Node("kernel", inputs, *results[0], node_options)), results)


def result_items(call: Node, results: ResultTypes) -> list[Node]:
    """The results of the call of a kernel or function."""
    return [Node("item", (call,), dtype, shape, {"index": i}) for i, (dtype, shape) in enumerate(results)]


def _validate_fields(attr: Any, values: Mapping[str, Any]) -> None:
    """Run a schema's field validation on traced fields; its decisions become guards."""

    class Base:
        def __post_init__(self) -> None:
            """What all attrs do with their fields."""

    class ValidatedFields(Base, TracedFields):
        pass

    validate = type(attr).__post_init__
    if validate is KernelAttr.__post_init__:
        return
    cells = {"__class__": types.CellType(ValidatedFields)}
    free_variables = zip(validate.__code__.co_freevars, validate.__closure__ or (), strict=True)
    closure = tuple(cells.get(name, cell) for name, cell in free_variables)
    types.FunctionType(validate.__code__, validate.__globals__, closure=closure)(ValidatedFields(attr, values))
