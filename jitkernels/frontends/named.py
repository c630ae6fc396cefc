"""Kernels that are called by name in a trace: their references become part of the graph, to be fused and differentiated.

What no graph says of a row is a call of its everyday function between kernels.
"""

import inspect
import operator
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels import results
from jitkernels.attrs import binding
from jitkernels.attrs.roles import SHAPE, fewest_results, inputs_of
from jitkernels.frontends import foreign
from jitkernels.frontends.kernel_shapes import KernelShapes, value_of
from jitkernels.frontends.storage import Storage, View, watched
from jitkernels.frontends.tables import serves
from jitkernels.frontends.traced import Traced, fresh, traced
from jitkernels.frontends.tracer import Tracer, current
from jitkernels.frontends.universal import cast_to, kind_of, operand, stored
from jitkernels.frontends.whole import Whole, as_whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node, serial
from jitkernels.graph.splitting import split
from jitkernels.registry import implementation
from jitkernels.signature import Argument

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


@serves("stand-in")
def stand_in(function: Any) -> Any:
    """What a traced function sees in place of an everyday function: that, if it has inputs."""
    row = getattr(function.__self__, "row", None)
    return function if row is None or inputs_of(row) else Maker(row, function)


@serves("kernel")
def call(tracer: Tracer, row: Row, function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """An everyday call in a trace. Raises what it raises elsewhere for such arguments."""
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
    nodes = _inlined(tracer, shapes, given, options) if given else None
    if nodes is None:
        called = {**options, **{name: given.get(name) for name in values if name not in options}}
        nodes = _called(tracer, shapes, function, called)
    if out is not None:
        return _stored(tracer, row, nodes, out)
    found = [fresh(tracer, node) for node in nodes]
    return found[0] if len(found) == 1 else tuple(found)


def _option(tracer: Tracer, row: Row, name: str, value: Any) -> Any:
    """An option as it is, or as a number of the trace where its row takes floats; what else is traced has to be known."""
    if name == SHAPE and isinstance(value, tuple | list):
        return tuple(operator.index(one) for one in value)
    if type(value) not in (Traced, Whole):
        return value
    field = row.known_fields().get(name)
    if type(value) is Whole and field is not None and field.kind == "whole" and not field.is_size:
        number = fresh(tracer, value.node, is_scalar=True)
        number.is_weak = True
        return number
    if name in row.floats and (type(value) is Whole or value.ndim == 0):
        number = fresh(tracer, cast_to(tracer, value, "float64"), is_scalar=True)
        number.is_weak = True
        return number
    if type(value) is Whole:
        return int(value)
    return value._value()


def _default(tracer: Tracer, row: Row, name: str, value: Any) -> Any:
    """A number that is right where an option is right: its value now, if anything tells that."""
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


def _inlined(
    tracer: Tracer, shapes: KernelShapes, given: Mapping[str, Any], options: Mapping[str, Any]
) -> list[Node] | None:
    """What the reference of a row computes, as nodes of the trace; None where that is not to be traced."""
    attr = shapes.form.attr
    fields = attr.fields()
    wanted = {a.name: a.dtype_in(fields) for a in shapes.form.present}
    for argument in shapes.form.present:
        if argument.dtype is not None and not _is_exact(kind_of(given[argument.name]), wanted[argument.name]):
            return None
    before = _Before(tracer)
    for splitting in _splittings(shapes):
        try:
            return _traced(tracer, shapes, wanted, options, splitting)
        except Exception:  # noqa: BLE001  # there are many ways to ask for values; the everyday function has them
            import os, traceback; os.environ.get('NAMED_DEBUG') and traceback.print_exc(limit=-3)
            before.restore()
    return None


def _is_exact(kind: Any, wanted: str) -> bool:
    """Whether integers of some type are all such of another."""
    return kind not in (int, bool) and np.can_cast(kind, wanted, "safe")


class _Before:
    """What a trace knew, to which it goes back where a reference cannot be traced."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.guards, self.extents = dict(tracer.guards), dict(tracer.scope.guards)
        self.notes, self.inputs = dict(tracer.notes), len(tracer.inputs)
        self.checks, self.picks = len(tracer.checks), len(tracer.picks)

    def restore(self) -> None:
        tracer = self.tracer
        tracer.guards, tracer.scope.guards, tracer.notes = dict(self.guards), dict(self.extents), dict(self.notes)
        del tracer.checks[self.checks :], tracer.picks[self.picks :], tracer.inputs[self.inputs :]
        del tracer.constants[len(tracer.constants) - (len(tracer.leaves) - self.inputs) :]
        del tracer.leaves[self.inputs :]


    def is_for_sizes(self) -> bool:
        """Whether the trace is for some sizes alone since then."""
        new = [guard.extent for key, guard in self.tracer.scope.guards.items() if key not in self.extents and key[1] == "=="]
        return any(() in one.terms and ((-one).key, "==") not in self.extents for one in new)


def _splittings(shapes: KernelShapes) -> list[dict[str, tuple[Number, ...]]]:
    """By symbols of the row, dimensions that only the reference is to have as one; and, if that fails, none."""
    found: dict[str, tuple[Number, ...]] = {}
    for argument in shapes.form.present:
        for extent, dimensions in ((argument.extents[0], shapes.lead), (argument.extents[-1], shapes.trail)):
            are_many = sum(not same(one, 1) for one in dimensions) > 1
            if extent.spread and are_many and not any(same(one, 0) for one in dimensions):
                found[extent.symbols[0]] = tuple(dimensions)
    return [found, {}] if found else [{}]


def _traced(
    tracer: Tracer,
    shapes: KernelShapes,
    wanted: Mapping[str, str],
    options: Mapping[str, Any],
    splitting: Mapping[str, tuple[Number, ...]],
) -> list[Node]:
    """The results of the reference, for which dimensions are one by symbols that nothing else has."""
    form, values, own = shapes.form, dict(shapes.values), dict[str, tuple[Number, ...]]()
    before, since = _Before(tracer), serial()
    for symbol, dimensions in splitting.items():
        name = f"all{len(tracer.scope.values)}"
        values[symbol] = tracer.scope.symbol(name, extents.value_of(extents.product(dimensions)))
        own[name] = dimensions
    try:
        parts: dict[int, Node] = {}
        inputs: list[Node] = []
        for argument in form.present:
            node = construct.cast(shapes.nodes[argument.name], wanted[argument.name])
            sizes = [
                one
                for extent in argument.extents
                for one in splitting.get(extent.symbols[0] if extent.spread else "", ())
                or (value_of(extent, shapes.values),)
            ]
            whole = construct.reshape(node, sizes)
            inputs.append(whole)
            if splitting:
                shape = [value_of(extent, values) for extent in argument.extents]
                inputs[-1] = Node("parameter", (), node.dtype, shape)
                parts[id(inputs[-1])] = whole
            _look_at_indices(tracer, argument, whole, shapes)
        nodes = _of_reference(tracer, form, values, options, inputs)
        if any(not extents.symbols_of(guard.extent).isdisjoint(own) for guard in tracer.scope.guards.values()):
            raise UnknownError("a reference that asks how many rows there are")
        nodes = split(nodes, parts, own) if splitting else nodes
        if not tracer.differentiates and not _is_worth_it(nodes, since, before):
            raise UnknownError("a reference that is no kernel")
    finally:
        for name in own:
            del tracer.scope.values[name]
    return [
        shapes.as_asked(argument, construct.reshape(node, shapes.result_shape(argument)))
        for (argument, _), node in zip(form.results, nodes, strict=True)
    ]


def _is_worth_it(nodes: Sequence[Node], since: int, before: "_Before") -> bool:
    """Whether the code of a reference takes no longer than the kernel by itself, but for what fusion saves.

    It does not where it is a loop nest for all sizes, or one product of floats with what is around it.
    """
    found = new_nodes(nodes, since)
    products = [node for node in found if node.operation == "matmul"]
    is_plain = all(node.operation != "call" and not _is_scattered(node) for node in found)
    are_floats = all(np.dtype(one.dtype).kind == "f" for node in products for one in _sources(node, since))
    return is_plain and len(products) < 2 and are_floats and not before.is_for_sizes()


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


def _look_at_indices(tracer: Tracer, argument: Argument, node: Node, shapes: KernelShapes) -> None:
    """Let the everyday function refuse numbers that name nothing."""
    low, high = argument.domain
    if argument.dtype is None or not isinstance(high, str):
        return
    last = construct.extent(shapes.values[high])
    outside = construct.elementwise(
        "logical_or",
        construct.elementwise("less", node, int(low)),
        construct.elementwise("greater_equal", node, last),
    )
    tracer.checks.append(construct.reduce("any", outside, [*range(node.ndim)]))


def _of_reference(
    tracer: Tracer, form: Any, values: Mapping[str, Number], options: Mapping[str, Any], inputs: Sequence[Node]
) -> list[Node]:
    """What a reference writes to its results."""
    attr = form.attr
    fields = attr.fields()
    results_of = []
    for argument, _ in form.results:
        shape = [value_of(extent, values) for extent in argument.extents]
        empty = construct.broadcast_to(construct.constant(0, argument.dtype_in(fields)), shape)
        results_of.append(Traced(tracer, View(Storage(empty), shape)))
    numbers = {name: value for name, value in options.items() if type(value) is Traced}
    whole = {name: as_whole(tracer, value) for name, value in values.items()}
    told = Fields(attr, {**numbers, **whole, "check_data": lambda _: None, "wide": np.dtype(fields.get("dtype", "float64"))})
    arrays = [Traced(tracer, View(Storage(node), node.shape)) for node in inputs]
    logs, is_quiet = watched.logs, tracer.is_quiet
    watched.logs = ()
    try:
        foreign.traced_copy(implementation(type(attr), "refer").function)(told, *arrays, *results_of)
    finally:
        watched.logs, tracer.is_quiet = logs, is_quiet
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
