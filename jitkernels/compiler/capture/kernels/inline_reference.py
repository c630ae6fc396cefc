"""Inlines the reference of a registry row into a trace, where it is as fast as the kernel or gets differentiated."""

import inspect
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import implementation, is_compiled
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.kernels.operand_checks import (
    Before,
    check_index_bounds,
    check_number_limits,
    in_dtype,
    is_index_input,
)
from jitkernels.compiler.capture.kernels.operand_shapes import KernelShapes, value_of
from jitkernels.compiler.capture.numpy import numpy_callouts
from jitkernels.compiler.capture.symint import as_symint
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.dim_bounds import product_now
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.compiler.transforms.unflatten_batch_dims import unflatten

PIECES = ("call", "scan", "update", "scatter", "concatenate", "loop", "branch", "kernel")
"""Operations that do not fuse into an elementwise loop nest."""
MOST_OPERATIONS = 32
"""Operations per element read or written, beyond which the tiles of a kernel win."""


def inlined(tracer: Tracer, shapes: KernelShapes, options: Mapping[str, Any]) -> list[Node] | None:
    """The results of a row's reference as nodes of the trace; None if it cannot or should not be inlined."""
    before = Before(tracer)
    for splitting in _splittings(shapes):
        try:
            return _traced(tracer, shapes, options, splitting)
        except (Exception, UnknownError):  # noqa: BLE001  # concretization may raise anything
            before.restore()
    return None


def has_own_code(row: Any) -> bool:
    """Whether the best kernel of a row is its compiled reference anyway."""
    return is_compiled(row) or any(argument.transposed is not None for argument in row.arrays)


def _splittings(shapes: KernelShapes) -> list[dict[str, tuple[Number, ...]]]:
    """By symbol, the batch dimensions that the reference sees collapsed into one; then, as a retry, none."""
    found: dict[str, tuple[Number, ...]] = {}
    for argument in shapes.form.present:
        spread = [(argument.extents[0], shapes.lead)] if argument.spreads else []
        spread += [(argument.extents[-1], shapes.trail)] if argument.trailing is not None else []
        for extent, dimensions in spread:
            if len(dimensions) != 1 and not any(same(one, 0) for one in dimensions):
                found[extent.symbols[0]] = tuple(dimensions)
    return [found, {}] if found else [{}]


def _traced(
    tracer: Tracer, shapes: KernelShapes, options: Mapping[str, Any], splitting: Mapping[str, tuple[Number, ...]]
) -> list[Node]:
    """Trace the reference, with batch dimensions collapsed under fresh symbols."""
    form, values, own = shapes.form, dict(shapes.values), dict[str, tuple[Number, ...]]()
    before, since, fields = Before(tracer), serial(), form.attr.fields()
    for symbol, dimensions in splitting.items():
        name = f"all{len(tracer.scope.values)}"
        values[symbol] = tracer.scope.symbol(name, max(product_now(dimensions), 2))
        own[name] = dimensions
    try:
        parts: dict[Node, Node] = {}
        inputs: list[Node] = []
        for argument in form.present:
            node = builder.cast(shapes.nodes[argument.name], argument.dtype_in(fields))
            sizes: list[Number] = []
            for extent in argument.extents:
                symbol = extent.symbols[0] if extent.spread else ""
                sizes += splitting[symbol] if symbol in splitting else (value_of(extent, shapes.values),)
            whole = builder.reshape(node, sizes)
            inputs.append(whole)
            if splitting:
                shape = [value_of(extent, values) for extent in argument.extents]
                inputs[-1] = Node("parameter", (), node.dtype, shape)
                parts[inputs[-1]] = whole
            if is_index_input(argument):
                check_index_bounds(tracer, argument, node, shapes)
        nodes = _of_reference(tracer, form, values, options, inputs)
        if any(not symbolic_dims.symbols_of(guard.extent).isdisjoint(own) for guard in tracer.scope.guards.values()):
            raise UnknownError("a reference that depends on the number of rows")
        nodes = unflatten(nodes, parts, own) if splitting else nodes
        if not (tracer.differentiates or is_compiled(type(form.attr)) or _is_worth_it(nodes, since, before, form.attr)):
            raise UnknownError("a reference that is slower than its kernel")
    finally:
        for name in own:
            del tracer.scope.values[name]
    return [
        builder.reshape(node, shapes.result_shape(argument))
        for (argument, _), node in zip(form.results, nodes, strict=True)
    ]


def _is_worth_it(nodes: Sequence[Node], since: int, before: "Before", attr: Any) -> bool:
    """Whether the inlined reference is as fast as the kernel, so that fusion is a gain.

    It is for one loop nest of any size in memory order, or one float matmul with its epilogue, unless the work per
    element is so large that the kernel's tiles dominate.
    """
    nodes_of_reference = new_nodes(nodes, since)
    products = [node for node in nodes_of_reference if node.operation == "matmul"]
    is_plain = all(node.operation not in PIECES and not _is_scattered(node) for node in nodes_of_reference)
    are_floats = all(np.dtype(one.dtype).kind == "f" for node in products for one in _sources(node, since))
    moves = any(argument.moves is not None for argument in attr.arrays)
    elements = sum(math.prod(array.shape) for array in attr.signature().arrays)
    is_light = bool(products) or attr.operations() <= MOST_OPERATIONS * elements
    return is_plain and len(products) < 2 and are_floats and is_light and not (moves or before.is_for_sizes())


def new_nodes(roots: Sequence[Node], since: int) -> list[Node]:
    """The nodes reachable from `roots` that are newer than `since`."""
    found: dict[int, Node] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node.serial > since and id(node) not in found:
            found[id(node)] = node
            waiting.extend(node.inputs)
    return list(found.values())


def _sources(node: Node, since: int) -> list[Node]:
    """The older operands of the new nodes below `node`."""
    return [one for young in new_nodes([node], since) for one in young.inputs if one.serial <= since]


def _is_scattered(node: Node) -> bool:
    """Whether a reshape neither collapses nor splits dimensions."""
    return node.operation == "reshape" and builder.map_of_split(node.shape, node.inputs[0].shape) is None


def _of_reference(
    tracer: Tracer, form: Any, values: Mapping[str, Number], options: Mapping[str, Any], inputs: Sequence[Node]
) -> list[Node]:
    """Run a reference on traced arrays; the nodes it writes to its results."""
    attr = form.attr
    fields = attr.fields()
    results_of = []
    for argument, _ in form.results:
        shape = [value_of(extent, values) for extent in argument.extents]
        empty = builder.broadcast_to(builder.constant(0, argument.dtype_in(fields)), shape)
        results_of.append(Traced(tracer, View(Storage(empty), shape)))
    numbers = {name: in_dtype(tracer, value, fields) for name, value in options.items() if type(value) is Traced}
    whole = {name: as_symint(tracer, value) for name, value in values.items()}
    for name in numbers:  # before rounding, which could move it back into the limits
        check_number_limits(tracer, attr, name, options[name].node)
    attr_fields = Fields(attr, {**numbers, **whole, "check_data": lambda _: None, "wide": np.dtype(fields["dtype"])})
    arrays = [Traced(tracer, View(Storage(node), node.shape)) for node in inputs]
    is_quiet, picks = tracer.is_quiet, len(tracer.picks)
    try:
        numpy_callouts.traced_copy(implementation(type(attr), "refer").function)(attr_fields, *arrays, *results_of)
    finally:
        tracer.is_quiet = is_quiet
        del tracer.picks[picks:]  # `check_index_bounds` adds the checks
    return [one.node for one in results_of]


class Fields:
    """An attr in a trace: some of its fields are traced values."""

    def __init__(self, attr: Any, values: Mapping[str, Any]) -> None:
        self.__dict__.update(attr.fields() | values)
        self._row = type(attr)

    def __getattr__(self, name: str) -> Any:
        found = inspect.getattr_static(self._row, name)
        if isinstance(found, property):
            return numpy_callouts.traced_copy(found.fget)(self)
        if isinstance(found, types.FunctionType):
            return types.MethodType(numpy_callouts.traced_copy(found), self)
        raise UnknownError(f"the attribute {name} of {self._row.__name__}")
