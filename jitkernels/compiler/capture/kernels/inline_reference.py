"""Inlines the reference of an op schema into a trace, where it is as fast as the kernel or gets differentiated."""

import inspect
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import implementation, is_compiled
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.kernels import operand_checks
from jitkernels.compiler.capture.kernels.operand_checks import TraceSnapshot
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes, value_of
from jitkernels.compiler.capture.numpy import numpy_callouts
from jitkernels.compiler.capture.symint import as_symint
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.transforms.unflatten_batch_dims import unflatten

UNFUSED = ("call", "scan", "update", "scatter", "concatenate", "loop", "branch", "kernel")
"""Operations that do not fuse into an elementwise loop nest."""
MAX_OPERATIONS = 32
"""Operations per element read or written, beyond which the tiles of a kernel win."""


_recursive: set[Any] = set()
"""Schemas whose references call their own kernels."""


class RecursiveReferenceError(Exception):
    """A reference calls its own kernel, as those of Fourier transforms do by functions of NumPy.

    It would be inlined without end. No reason for NumPy to serve the call, which the trace of the reference would take
    from an UnsupportedError.
    """


def inline_reference(tracer: Tracer, shapes: KernelShapes, options: Mapping[str, Any]) -> list[Node] | None:
    """The results of a schema's reference as nodes of the trace; None if it cannot or should not be inlined.

    Raises RecursiveReferenceError in the trace of this reference; UnsupportedError where derivatives are wanted, which
    the function of NumPy that the reference calls may have.
    """
    snapshot, schema = TraceSnapshot(tracer), type(shapes.form.attr)
    if schema in tracer.inlined_references:
        error = UnsupportedError if tracer.differentiates else RecursiveReferenceError
        raise error(f"a reference of {schema.kernel_type.name} that calls its own kernel")
    if schema in _recursive and not tracer.differentiates:
        return None
    tracer.inlined_references.append(schema)
    try:
        for splitting in _splittings(shapes):
            try:
                return _trace_reference(tracer, shapes, options, splitting)
            except RecursiveReferenceError:
                snapshot.restore()
                _recursive.add(schema)
                return None
            except (Exception, UnsupportedError):  # noqa: BLE001  # concretization may raise anything
                snapshot.restore()
    finally:
        tracer.inlined_references.pop()
    return None


def has_own_code(schema: Any) -> bool:
    """Whether the best kernel of a schema is its compiled reference anyway."""
    return is_compiled(schema) or any(argument.transposed is not None for argument in schema.arrays)


def _splittings(shapes: KernelShapes) -> list[dict[str, tuple[Number, ...]]]:
    """By symbol, the batch dimensions that the reference sees collapsed into one; then, as a retry, none."""
    splitting: dict[str, tuple[Number, ...]] = {}
    for argument in shapes.form.present:
        spread = [(argument.extents[0], shapes.lead)] if argument.spreads else []
        spread += [(argument.extents[-1], shapes.trail)] if argument.trailing is not None else []
        for extent, dimensions in spread:
            if len(dimensions) != 1 and not any(same(dimension, 0) for dimension in dimensions):
                splitting[extent.symbols[0]] = tuple(dimensions)
    return [splitting, {}] if splitting else [{}]


def _trace_reference(
    tracer: Tracer, shapes: KernelShapes, options: Mapping[str, Any], splitting: Mapping[str, tuple[Number, ...]]
) -> list[Node]:
    """Trace the reference, with batch dimensions collapsed under fresh symbols."""
    form, values, own = shapes.form, dict(shapes.values), dict[str, tuple[Number, ...]]()
    snapshot, since = TraceSnapshot(tracer), serial()
    for symbol, dimensions in splitting.items():
        name = f"all{len(tracer.scope.values)}"
        values[symbol] = tracer.scope.symbol(name, max(traced_product(dimensions), 2))
        own[name] = dimensions
    try:
        unsplit: dict[Node, Node] = {}
        inputs: list[Node] = []
        for argument in form.present:
            node = builder.cast(shapes.nodes[argument.name], argument.dtype_in(form.attr.fields()))
            sizes: list[Number] = []
            for extent in argument.extents:
                symbol = extent.symbols[0] if extent.spread else ""
                sizes += splitting[symbol] if symbol in splitting else (value_of(extent, shapes.values),)
            inputs.append(builder.reshape(node, sizes))
            if splitting:
                shape = [value_of(extent, values) for extent in argument.extents]
                collapsed = Node("parameter", (), node.dtype, shape)
                unsplit[collapsed], inputs[-1] = inputs[-1], collapsed
            if operand_checks.is_index_input(argument):
                operand_checks.check_index_bounds(tracer, argument, node, shapes)
        nodes = _run_reference(tracer, form, values, options, inputs)
        if any(not symbolic_dims.symbols_of(guard.extent).isdisjoint(own) for guard in tracer.scope.guards.values()):
            raise UnsupportedError("a reference that depends on the number of rows")
        nodes = unflatten(nodes, unsplit, own) if splitting else nodes
        if not (
            tracer.differentiates or is_compiled(type(form.attr)) or _is_worth_it(nodes, since, snapshot, form.attr)
        ):
            raise UnsupportedError("a reference that is slower than its kernel")
    finally:
        for name in own:
            del tracer.scope.values[name]
    return [
        builder.reshape(node, shapes.result_shape(argument))
        for (argument, _), node in zip(form.results, nodes, strict=True)
    ]


def _is_worth_it(nodes: Sequence[Node], since: int, snapshot: TraceSnapshot, attr: Any) -> bool:
    """Whether the inlined reference is as fast as the kernel, so that fusion is a gain.

    It is for one loop nest of any size in memory order, or one float matmul with its epilogue, unless the work per
    element is so large that the kernel's tiles dominate.
    """
    nodes_of_reference = new_nodes(nodes, since)
    products = [node for node in nodes_of_reference if node.operation == "matmul"]
    is_plain = all(node.operation not in UNFUSED and not _mixes_dimensions(node) for node in nodes_of_reference)
    are_floats = all(np.dtype(source.dtype).kind == "f" for node in products for source in _sources(node, since))
    moves = any(argument.moves is not None for argument in attr.arrays)
    elements = sum(math.prod(array.shape) for array in attr.signature().arrays)
    is_light = bool(products) or attr.operations() <= MAX_OPERATIONS * elements
    return (
        is_plain and len(products) < 2 and are_floats and is_light and not (moves or snapshot.is_specialized_to_sizes())
    )


def new_nodes(roots: Sequence[Node], since: int) -> list[Node]:
    """The nodes reachable from `roots` that are newer than `since`."""
    new: dict[Node, None] = {}
    worklist = list(roots)
    while worklist:
        node = worklist.pop()
        if node.serial > since and node not in new:
            new[node] = None
            worklist.extend(node.inputs)
    return list(new)


def _sources(node: Node, since: int) -> list[Node]:
    """The older operands of the new nodes below `node`."""
    return [source for new in new_nodes([node], since) for source in new.inputs if source.serial <= since]


def _mixes_dimensions(node: Node) -> bool:
    """Whether a reshape neither collapses nor splits dimensions."""
    return node.operation == "reshape" and builder.map_of_split(node.shape, node.inputs[0].shape) is None


def _run_reference(
    tracer: Tracer, form: Any, values: Mapping[str, Number], options: Mapping[str, Any], inputs: Sequence[Node]
) -> list[Node]:
    """Run a reference on traced arrays; the nodes it writes to its results."""
    attr, fields = form.attr, form.attr.fields()
    zeros = []
    for argument, _ in form.results:
        shape = [value_of(extent, values) for extent in argument.extents]
        zeros.append(builder.broadcast_to(builder.constant(0, argument.dtype_in(fields)), shape))
    arrays, results = ([Traced(tracer, View(Storage(node), node.shape)) for node in nodes] for nodes in (inputs, zeros))
    traced_fields: dict[str, Any] = {"check_data": lambda _: None, "wide": np.dtype(fields["dtype"])}
    traced_fields |= {name: as_symint(tracer, value) for name, value in values.items()}
    for name, value in options.items():
        if type(value) is Traced:
            # Before rounding, which could move it back into the limits.
            operand_checks.check_number_limits(tracer, attr, name, value.node)
            number = operand_checks.round_to_dtype(value, fields["dtype"])
            traced_fields[name] = as_number(tracer, number, float)
    is_quiet, picks = tracer.is_quiet, len(tracer.picks)
    try:
        numpy_callouts.traced_copy(implementation(type(attr), "refer").function)(
            TracedFields(attr, traced_fields), *arrays, *results
        )
    finally:
        tracer.is_quiet = is_quiet
        del tracer.picks[picks:]  # `check_index_bounds` adds the checks
    return [array.node for array in results]


class TracedFields:
    """An attr in a trace: some of its fields are traced values."""

    def __init__(self, attr: Any, values: Mapping[str, Any]) -> None:
        self.__dict__.update(attr.fields() | values)
        self._schema = type(attr)

    def __getattr__(self, name: str) -> Any:
        member = inspect.getattr_static(self._schema, name)
        if isinstance(member, property):
            return numpy_callouts.traced_copy(member.fget)(self)
        if isinstance(member, types.FunctionType):
            return types.MethodType(numpy_callouts.traced_copy(member), self)
        raise UnsupportedError(f"the attribute {name} of {self._row.__name__}")
