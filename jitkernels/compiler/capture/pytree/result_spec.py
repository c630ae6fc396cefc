"""Result specifications: the outputs of a graph, and how a call's result is built from them and the arguments."""

import dataclasses
import enum
import operator
import types
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.dynamic_list import DeferredResult, ListSnapshot
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList
from jitkernels.compiler.capture.control_flow.tagged_union import TaggedUnion
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.pytree import dynamic_results, result_recipe
from jitkernels.compiler.capture.symint import Whole
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.call_abi import NUMBERS
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.ops import strided_view
from jitkernels.compiler.ir.regions import leaked
from jitkernels.compiler.transforms import bounds_checks


class Known(NamedTuple):
    """The inputs of a result: leaves of the arguments, computed arrays, values of symbols.

    `leaves` is indexed by number and may hold only those that the plan names. `repeated`: objects that occur more than
    once in the result of this call, by key of the plan; None if there are none.
    """

    leaves: Sequence[Any] | Mapping[int, Any]
    arrays: Sequence[Any]
    values: Mapping[str, int]
    repeated: dict[int, Any] | None = None


Make = Callable[[Known], Any]
IMMUTABLE = (
    type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, type, enum.Enum, slice, range,
    types.FunctionType, types.BuiltinFunctionType, np.ufunc,
)  # fmt: skip


class Plan:
    """How the result of a call is built.

    `is_tuple`: whether it is a tuple of the outputs, or the one output; None if `make` builds it from these `leaves`
    and, with `views` or numbers, the values of symbols. `itself`: the argument that the call returns unchanged.
    `kinds`: the returned type of each output: "array", "scalar" for NumPy scalars, or the name of a Python type.
    `are_arguments`: the call returns nothing but arguments. `recipe`: how a compiled entry builds the result, if it
    can.
    """

    def __init__(
        self,
        make: Make,
        kinds: tuple[str, ...],
        is_tuple: bool | None,
        leaves: Iterable[int] = (),
        *,
        views: int = 0,
        itself: int | None = None,
        are_arguments: bool = False,
        recipe: result_recipe.Made | None = None,
    ) -> None:
        self.make, self.kinds, self.is_tuple, self.itself = make, kinds, is_tuple, itself
        self.are_arguments, self.recipe = are_arguments, recipe
        self.leaves, self.views = tuple(sorted(leaves)), views

    def finisher(self, count: int, symbols: Sequence[str]) -> Callable[[tuple[Any, ...]], Any]:
        """A function that builds the result from a tuple: `count` outputs, the leaves, the values of `symbols`."""
        make, leaves, behind = self.make, self.leaves, count + len(self.leaves)
        if not leaves and not symbols:
            return lambda parts: make(Known((), parts, {}))

        def finished(parts: tuple[Any, ...]) -> Any:
            known = dict(zip(leaves, parts[count:behind], strict=True))
            return make(Known(known, parts, dict(zip(symbols, parts[behind:], strict=True))))

        return finished


class _Planner:
    def __init__(self, tracer: Tracer, given: Sequence[Any]) -> None:
        self.tracer = tracer
        self.arguments = {id(one): i for i, one in enumerate(given)}
        self.nodes: list[Node] = []
        self.in_rows: set[int] = set()
        self.orders: dict[int, tuple[int, ...]] = {}
        self.made: dict[int, int] = {}
        self.counts: dict[int, int] = {}
        self.storages: list[Storage] = []
        self.finished: dict[int, ListSnapshot] = {}
        self.kept: list[Any] = []
        self.times: Counter[int] = Counter()
        self.makes: dict[int, Make] = {}
        self.leaves: set[int] = set()
        self.views = 0

    def count(self, value: Any) -> None:
        """Count the arrays that share each storage, and the occurrences of each part of the result."""
        self.times[id(value)] += 1
        if type(value) is Traced:
            if id(value) not in (id(one) for one in self.kept):
                self.kept.append(value)
                storage = value.view.storage
                self.counts[id(storage)] = self.counts.get(id(storage), 0) + 1
                self.storages.append(storage)
        else:
            for one in _children(value):
                self.count(one)

    def output(self, node: Node, of: Any) -> int:
        """The index of an output; the same array has one index."""
        if id(of) not in self.made:
            self.made[id(of)] = len(self.nodes)
            self.nodes.append(node)
            self.kept.append(of)
        return self.made[id(of)]

    def make(self, value: Any) -> Make:
        """How to build one part of the result; a part that occurs twice is built once per call."""
        key = id(value)
        is_constant = type(value) is not Traced and isinstance(value, IMMUTABLE)
        if self.times[key] < 2 or type(value) is Whole or is_constant:
            return self._made(value)
        if key not in self.makes:
            self.kept.append(value)
            self.makes[key] = partial(dynamic_results.once, key, self._made(value))
        return self.makes[key]

    def _made(self, value: Any) -> Make:
        if type(value) is Traced:
            return self._array(value)
        if type(value) is Whole:
            return self._whole(value)
        if value is None or isinstance(value, IMMUTABLE):
            return lambda _: value
        if type(value) is GrowableList:
            return self._listed(value)
        if type(value) is TaggedUnion:
            return dynamic_results.chosen(value, self.make)
        if type(value) is ListSnapshot:
            return dynamic_results.finished(value, self.output, self.in_rows)
        if type(value) is DeferredResult:
            return dynamic_results.later(value, self.make)
        if type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            return self._sequence(value)
        if type(value) is dict:
            parts = {result_recipe.key_of(name): self.make(one) for name, one in value.items()}
            return lambda known: {name: one(known) for name, one in parts.items()}
        if dataclasses.is_dataclass(value):
            return self._dataclass(value)
        raise UnknownError(f"a result of type {type(value).__name__}")

    def _listed(self, value: GrowableList) -> Make:
        """A list, whose elements may be the rows of an array."""
        if value.dynamic is not None:
            self.finished[id(value)] = value.dynamic.snapshot()
            self.kept.append(value)
            return dynamic_results.finished(self.finished[id(value)], self.output, self.in_rows)
        if value.rows is None:
            return self._sequence([*value])
        array, kind = value.rows.array, value.rows.kind
        number = self.output(array.node, array)
        self._lies(number, array.view.storage)
        if isinstance(kind, type):
            return lambda known: known.arrays[number].tolist()
        if kind is not None:
            return lambda known: list(known.arrays[number])
        return lambda known: [row.copy() for row in known.arrays[number]]

    def _sequence(self, value: Any) -> Make:
        parts = [self.make(one) for one in value]
        kind = type(value)
        if kind is list:
            return lambda known: [one(known) for one in parts]
        if kind is tuple:
            return lambda known: tuple([one(known) for one in parts])
        return lambda known: kind(*[one(known) for one in parts])

    def _dataclass(self, value: Any) -> Make:
        kind = type(value)
        names = tuple(vars(value)) if hasattr(value, "__dict__") else tuple(f.name for f in dataclasses.fields(value))
        parts = [(name, self.make(getattr(value, name))) for name in names]

        def made(known: Known) -> Any:
            result = object.__new__(kind)
            for name, one in parts:
                object.__setattr__(result, name, one(known))
            return result

        return made

    def _whole(self, value: Whole) -> Make:
        if value.leaf is not None:
            leaf = value.leaf
            self.leaves.add(leaf)
            return lambda known: known.leaves[leaf]
        self.views += 1
        read = _reader(value.extent)
        return lambda known: read(known.values)

    def _array(self, value: Traced) -> Make:
        leaf = self.arguments.get(id(value))
        if leaf is not None:
            self.leaves.add(leaf)
            return lambda known: known.leaves[leaf]
        view, storage = value.view, value.view.storage
        if storage.leaf is not None:
            return self._view(view, storage.leaf, is_leaf=True)
        shared = self.counts[id(storage)] > 1 or view.is_readonly
        whole = symbolic_dims.same(symbolic_dims.product(view.shape), symbolic_dims.product(storage.node.shape))
        if view.parent is None or not (shared or whole):
            number = self.output(view.node, storage if view.parent is None else value)
            if view.parent is None:
                self._lies(number, storage)
            if value.is_weak:
                kind = value.python
                return lambda known: kind(known.arrays[number])
            if value.is_scalar:
                return lambda known: known.arrays[number][()]
            return lambda known: known.arrays[number]
        number = self.output(storage.node, storage)
        self._lies(number, storage)
        return self._view(view, number, is_leaf=False)

    def _lies(self, number: int, storage: Storage) -> None:
        if storage.is_c:
            self.in_rows.add(number)
        elif storage.order is not None:
            self.orders[number] = storage.order

    def _view(self, view: View, number: int, *, is_leaf: bool) -> Make:
        """A view of an argument or of a new array."""
        if is_leaf:
            self.leaves.add(number)
        self.views += 1
        steps: list[View] = []
        one: View | None = view
        while one is not None and one.parent is not None:
            steps.insert(0, one)
            one = one.parent
        is_readonly = view.is_readonly
        moves = [(step.map, [_reader(extent) for extent in step.shape]) for step in steps]

        def made(known: Known) -> Any:
            found = (known.leaves if is_leaf else known.arrays)[number]
            if not steps:
                return found.view()
            values = known.values
            for index_map, readers in moves:
                shape = tuple([read(values) for read in readers])
                if index_map is None:
                    found = found.reshape(shape)
                else:
                    found = strided_view(found, index_map, shape, partial(_read, values))
            if is_readonly or (is_leaf and not known.leaves[number].flags.writeable):
                found.flags.writeable = False
            return found

        return made


def _reader(extent: Any) -> Callable[[Mapping[str, int]], int]:
    """A function that evaluates an extent, with fast paths for constants and symbols."""
    if type(extent) is int:
        return lambda _: extent
    name = symbolic_dims.bare(extent)
    return operator.itemgetter(name) if name is not None else partial(symbolic_dims.evaluated, extent)


def _read(values: Mapping[str, int], extent: Any) -> int:
    return extent if type(extent) is int else symbolic_dims.evaluated(extent, values)


def _children(value: Any) -> Sequence[Any]:
    if type(value) is GrowableList and value.rows is not None:
        return [value.rows.array]
    if type(value) is TaggedUnion:
        return [value.tag, value.other]
    if type(value) is DeferredResult:
        return [value.operand]
    if type(value) is ListSnapshot or (type(value) is GrowableList and value.dynamic is not None):
        return ()  # its arrays are not shared
    if isinstance(value, list | tuple):
        return value
    if type(value) is dict:
        return list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)]
    return ()


def _are_equal(one: Node, other: Node) -> Node:
    """A node that says whether two arrays that may alias have equal elements; then NumPy decides."""
    equal = builder.elementwise("equal", one, other)
    if np.dtype(one.dtype).kind == "f":
        both_nan = [builder.elementwise("isnan", node) for node in (one, other)]
        equal = builder.elementwise("logical_or", equal, builder.elementwise("logical_and", *both_nan))
    return builder.reduce("all", equal, range(equal.ndim))


def planned(tracer: Tracer, result: Any, traced_arguments: Sequence[Any]) -> tuple[Graph, Plan]:
    """The graph of a trace, and the plan of its result. Raises UnknownError for unsupported results."""
    planner = _Planner(tracer, traced_arguments)
    planner.count(result)
    make = planner.make(result)
    if planner.makes:
        make = partial(dynamic_results.with_repeated, make)
    arrays = [one.view.storage for one in traced_arguments if type(one) is Traced]
    own = {id(one) for one in (*arrays, *planner.storages)}
    for storage in planner.storages:
        for other in {id(one): one for one in storage.may_aliases if id(one) in own}.values():
            if tracer.differentiates or not storage.is_whole_alias(other):
                raise UnknownError("a result that may be a view or a copy")
            tracer.checks.append(_are_equal(storage.node, other.node))
    writes = tuple(
        (tracer.inputs[storage.leaf], storage.node)
        for storage in arrays
        if storage.written and storage.leaf is not None and storage.node is not tracer.inputs[storage.leaf]
    )
    graph = Graph(
        tuple(tracer.inputs),
        tuple(planner.nodes),
        writes,
        tuple(tracer.notes),
        (reduce(partial(builder.elementwise, "logical_or"), tracer.checks),) if tracer.checks else (),
        frozenset(planner.in_rows),
        tuple(planner.orders.items()),
    )
    if tracer.bailout_results:
        used = {id(node) for node in graph}
        lost = [one for one in tracer.bailout_results if id(one.inputs[0]) not in used]
        if lost:  # their checks run even where the result is unused
            refusing = (*tracer.checks, *lost)
            graph = graph.remade(
                graph.outputs, graph.writes, (reduce(partial(builder.elementwise, "logical_or"), refusing),)
            )
    if tracer.has_flows and leaked(graph):
        raise UnknownError("a value of the inside of a loop is used outside of it")
    return bounds_checks.with_unused_gather_checks(graph, tracer.picks), _plan(planner, make, result)


def _plan(planner: _Planner, make: Make, result: Any) -> Plan:
    """The plan; the direct form where the result is the outputs in order."""
    if result is None:
        return Plan(make, (), is_tuple=False)
    itself = planner.arguments.get(id(result))
    if itself is not None:
        return Plan(make, (), None, planner.leaves, itself=itself, are_arguments=True)
    several = type(result) is tuple
    parts = result if several else (result,)
    are_arguments = all(id(one) in planner.arguments for one in parts)
    kinds = []
    for i, value in enumerate(parts):
        if (
            type(value) is not Traced
            or value.view.parent is not None
            or value.view.storage.leaf is not None
            or id(value) in planner.arguments
            or planner.made.get(id(value.view.storage)) != i
        ):
            return _put_together(planner, make, result, are_arguments=are_arguments)
        kinds.append(value.python.__name__ if value.is_weak else "scalar" if value.is_scalar else "array")
        if value.is_weak and NUMBERS.get(kinds[-1]) != value.node.dtype:
            return _put_together(planner, make, result)
    is_plain = all(view.shape or kind != "array" for view, kind in zip((one.view for one in parts), kinds, strict=True))
    if not is_plain:
        return _put_together(planner, make, result)
    return Plan(make, tuple(kinds), several)


def _put_together(planner: _Planner, make: Make, result: Any, *, are_arguments: bool = False) -> Plan:
    """The plan of a result other than a tuple of outputs."""
    recipe = result_recipe.written(result, planner.arguments, planner.made, planner.finished, IMMUTABLE)
    return Plan(make, (), None, planner.leaves, views=planner.views, are_arguments=are_arguments, recipe=recipe)
