"""References of rows made part of a trace, where that is no slower than their kernels, or differentiates them."""

import inspect
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.frontends import foreign
from jitkernels.frontends.storage import Storage, View
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import as_whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node, serial
from jitkernels.graph.splitting import split
from jitkernels.named.checks import Before, in_dtype, look_at_indices, look_at_number, names_rows
from jitkernels.named.shapes import KernelShapes, value_of
from jitkernels.registry import implementation, is_compiled

PIECES = ("call", "scan", "update", "scatter", "concatenate", "loop", "branch", "kernel")
"""Operations that are no part of a loop nest along all elements of its result."""
MOST_OPERATIONS = 32
"""For each element that is read or written, beyond which a kernel has tiles."""


def inlined(tracer: Tracer, shapes: KernelShapes, options: Mapping[str, Any]) -> list[Node] | None:
    """What the reference of a row computes, as nodes of the trace; None where that is not to be traced."""
    before = Before(tracer)
    for splitting in _splittings(shapes):
        try:
            return _traced(tracer, shapes, options, splitting)
        except (Exception, UnknownError):  # noqa: BLE001  # there are many ways to ask for values
            before.restore()
    return None


def has_own_code(row: Any) -> bool:
    """Whether the best kernel of a row is what its reference becomes in any case."""
    return is_compiled(row) or any(argument.turned is not None for argument in row.arrays)


def _splittings(shapes: KernelShapes) -> list[dict[str, tuple[Number, ...]]]:
    """By symbols of the row, dimensions that only the reference is to have as one; and, if that fails, none."""
    found: dict[str, tuple[Number, ...]] = {}
    for argument in shapes.form.present:
        spread = [(argument.extents[0], shapes.lead)] if argument.spreads else []
        spread += [(argument.extents[-1], shapes.trail)] if argument.trailing is not None else []
        for extent, dimensions in spread:
            if len(dimensions) != 1 and not any(same(one, 0) for one in dimensions):
                found[extent.symbols[0]] = tuple(dimensions)
    return [found, {}] if found else [{}]


def _traced(
    tracer: Tracer,
    shapes: KernelShapes,
    options: Mapping[str, Any],
    splitting: Mapping[str, tuple[Number, ...]],
) -> list[Node]:
    """The results of the reference, for which dimensions are one by symbols that nothing else has."""
    form, values, own = shapes.form, dict(shapes.values), dict[str, tuple[Number, ...]]()
    before, since, fields = Before(tracer), serial(), form.attr.fields()
    for symbol, dimensions in splitting.items():
        name = f"all{len(tracer.scope.values)}"
        values[symbol] = tracer.scope.symbol(name, max(extents.value_of(extents.product(dimensions)), 2))
        own[name] = dimensions
    try:
        parts: dict[int, Node] = {}
        inputs: list[Node] = []
        for argument in form.present:
            node = construct.cast(shapes.nodes[argument.name], argument.dtype_in(fields))
            sizes: list[Number] = []
            for extent in argument.extents:
                symbol = extent.symbols[0] if extent.spread else ""
                sizes += splitting[symbol] if symbol in splitting else (value_of(extent, shapes.values),)
            whole = construct.reshape(node, sizes)
            inputs.append(whole)
            if splitting:
                shape = [value_of(extent, values) for extent in argument.extents]
                inputs[-1] = Node("parameter", (), node.dtype, shape)
                parts[id(inputs[-1])] = whole
            if names_rows(argument):
                look_at_indices(tracer, argument, node, shapes)
        nodes = _of_reference(tracer, form, values, options, inputs)
        if any(
            not extents.symbols_of(guard.extent).isdisjoint(own) for guard in tracer.scope.guards.values()
        ):
            raise UnknownError("a reference that asks how many rows there are")
        nodes = split(nodes, parts, own) if splitting else nodes
        if not (
            tracer.differentiates
            or is_compiled(type(form.attr))
            or _is_worth_it(nodes, since, before, form.attr)
        ):
            raise UnknownError("a reference that is no kernel")
    finally:
        for name in own:
            del tracer.scope.values[name]
    return [
        construct.reshape(node, shapes.result_shape(argument))
        for (argument, _), node in zip(form.results, nodes, strict=True)
    ]


def _is_worth_it(nodes: Sequence[Node], since: int, before: "Before", attr: Any) -> bool:
    """Whether the code of a reference takes no longer than the kernel, and what fusion saves.

    It does not where it is a loop nest for all sizes that goes along arrays as they lie, or one product of floats with
    what is around it; nor where each element takes so much that it is the kernel's tiles which count.
    """
    found = new_nodes(nodes, since)
    products = [node for node in found if node.operation == "matmul"]
    is_plain = all(node.operation not in PIECES and not _is_scattered(node) for node in found)
    are_floats = all(np.dtype(one.dtype).kind == "f" for node in products for one in _sources(node, since))
    moves = any(argument.moves is not None for argument in attr.arrays)
    elements = sum(math.prod(array.shape) for array in attr.signature().arrays)
    is_light = bool(products) or attr.operations() <= MOST_OPERATIONS * elements
    return is_plain and len(products) < 2 and are_floats and is_light and not (moves or before.is_for_sizes())


def new_nodes(roots: Sequence[Node], since: int) -> list[Node]:
    """The nodes that roots are computed by and that are younger."""
    found: dict[int, Node] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node.serial > since and id(node) not in found:
            found[id(node)] = node
            waiting.extend(node.inputs)
    return list(found.values())


def _sources(node: Node, since: int) -> list[Node]:
    """What young nodes that a node is computed by read."""
    return [one for young in new_nodes([node], since) for one in young.inputs if one.serial <= since]


def _is_scattered(node: Node) -> bool:
    """Whether a reshape neither takes dimensions together nor apart."""
    return node.operation == "reshape" and construct.map_of_split(node.shape, node.inputs[0].shape) is None


def _of_reference(
    tracer: Tracer,
    form: Any,
    values: Mapping[str, Number],
    options: Mapping[str, Any],
    inputs: Sequence[Node],
) -> list[Node]:
    """What a reference writes to its results."""
    attr = form.attr
    fields = attr.fields()
    results_of = []
    for argument, _ in form.results:
        shape = [value_of(extent, values) for extent in argument.extents]
        empty = construct.broadcast_to(construct.constant(0, argument.dtype_in(fields)), shape)
        results_of.append(Traced(tracer, View(Storage(empty), shape)))
    numbers = {
        name: in_dtype(tracer, value, fields) for name, value in options.items() if type(value) is Traced
    }
    whole = {name: as_whole(tracer, value) for name, value in values.items()}
    for name, value in numbers.items():
        look_at_number(tracer, attr, name, value.node)
    told = Fields(attr, {**numbers, **whole, "check_data": lambda _: None, "wide": np.dtype(fields["dtype"])})
    arrays = [Traced(tracer, View(Storage(node), node.shape)) for node in inputs]
    is_quiet, picks = tracer.is_quiet, len(tracer.picks)
    try:
        foreign.traced_copy(implementation(type(attr), "refer").function)(told, *arrays, *results_of)
    finally:
        tracer.is_quiet = is_quiet
        del tracer.picks[picks:]  # what is not computed is looked at, see `look_at_indices`
    return [one.node for one in results_of]


class Fields:
    """An attr as its reference sees it in a trace, where some of its fields are no numbers."""

    def __init__(self, attr: Any, values: Mapping[str, Any]) -> None:
        self.__dict__.update(attr.fields() | values)
        self._row = type(attr)

    def __getattr__(self, name: str) -> Any:
        found = inspect.getattr_static(self._row, name)
        if isinstance(found, property):
            return foreign.traced_copy(found.fget)(self)
        if isinstance(found, types.FunctionType):
            return types.MethodType(foreign.traced_copy(found), self)
        raise UnknownError(f"the attribute {name} of {self._row.__name__}")
