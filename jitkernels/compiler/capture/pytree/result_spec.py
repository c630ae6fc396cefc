"""Result specifications: the outputs of a graph, and how a call's result is built from them and the arguments."""

import dataclasses
import enum
import sys
import types
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.dynamic_list import DeferredResult, ListSnapshot
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList
from jitkernels.compiler.capture.control_flow.tagged_union import TaggedUnion
from jitkernels.compiler.capture.dynamic import computed_size
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice
from jitkernels.compiler.capture.functionalization import Storage, View
from jitkernels.compiler.capture.pytree import dynamic_results, result_recipe
from jitkernels.compiler.capture.pytree.result_aliases import check_aliases
from jitkernels.compiler.capture.pytree.result_views import extent_reader, view_builder
from jitkernels.compiler.capture.pytree.transposed_results import transposed_axes
from jitkernels.compiler.capture.structured import structured_array
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, pytree, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.regions import leaked
from jitkernels.compiler.transforms import bounds_checks
from jitkernels.core.frozen_dataclass import frozen_dataclass


class ResultInputs(NamedTuple):
    """What a result is built from: leaves of the arguments, computed arrays, values of symbols.

    `leaves`: by number, perhaps only those that the plan names. `repeated`: objects that occur more than once, by key.
    """

    leaves: Sequence[Any] | Mapping[int, Any]
    arrays: Sequence[Any]
    values: Mapping[str, int]
    repeated: dict[int, Any] | None = None


Make = Callable[[ResultInputs], Any]
IMMUTABLE = (
    type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, type, enum.Enum, slice, range,
    types.FunctionType, types.BuiltinFunctionType, np.ufunc,
)  # fmt: skip


@frozen_dataclass
class ResultPlan:
    """How the result of a call is built.

    `is_tuple`: whether it is a tuple of the outputs, or the one output; None if `make` builds it from these `leaves`
    and, with `views` or numbers, the values of symbols. `itself`: the argument that the call returns unchanged.
    `kinds`: the returned type of each output: "array", "scalar" for NumPy scalars, or the name of a Python type.
    `axes`: for each output the axes by which it is returned transposed, None for one returned as it is.
    `are_arguments`: the call returns nothing but arguments. `recipe`: how a compiled entry builds the result, or None.
    """

    make: Make
    kinds: tuple[str, ...] = ()
    axes: tuple[tuple[int, ...] | None, ...] = ()
    is_tuple: bool | None = None
    leaves: tuple[int, ...] = ()
    views: int = 0
    itself: int | None = None
    are_arguments: bool = False
    recipe: result_recipe.WrittenRecipe | None = None

    def finisher(self, count: int, symbols: Sequence[str]) -> Callable[[tuple[Any, ...]], Any]:
        """A function that builds the result from a tuple: `count` outputs, the leaves, the values of `symbols`."""
        make, leaves, behind = self.make, self.leaves, count + len(self.leaves)
        if not leaves and not symbols:
            return lambda parts: make(ResultInputs((), parts, {}))

        def finish(parts: tuple[Any, ...]) -> Any:
            known_leaves = dict(zip(leaves, parts[count:behind], strict=True))
            return make(ResultInputs(known_leaves, parts, dict(zip(symbols, parts[behind:], strict=True))))

        return finish


class ResultPlanner:
    """Collects the outputs that a result needs, and how each of its parts is built. Values are known by their ids."""

    def __init__(self, tracer: Tracer, arguments: dict[int, int]) -> None:
        self.tracer, self.arguments = tracer, arguments
        self.nodes: list[Node] = []
        self.in_rows: set[int] = set()
        self.orders: dict[int, tuple[int, ...]] = {}
        self.outputs: dict[int, int] = {}
        self.arrays: dict[int, Traced] = {}
        self.shared: Counter[Storage] = Counter()
        self.users: dict[Storage, set[int]] = {}
        self.slices: dict[Storage, set[int]] = {}
        self.snapshots: dict[int, ListSnapshot] = {}
        self.occurrences: Counter[int] = Counter()
        self.repeated: dict[int, Make] = {}
        self.leaves: set[int] = set()
        self.views = 0
        self._alive: list[Any] = []

    def count(self, value: Any, owner: Any = None) -> None:
        """Count the arrays that share each storage, and the occurrences of each part of the result.

        `owner`: the structured array of which it is a field.
        """
        self.occurrences[id(value)] += 1
        if isinstance(value, structured_array.StructuredArray):
            owner = value
            for storage in structured_array.storages_of(value):
                self.users.setdefault(storage, set()).add(id(value))
        if type(value) is DynamicSlice:
            self.slices.setdefault(value.base.view.storage, set()).add(id(value))
        if type(value) is not Traced:
            for child in _children(value):
                self.count(child, owner)
            return
        self.users.setdefault(value.view.storage, set()).add(id(value if owner is None else owner))
        if id(value) not in self.arrays:
            self.arrays[id(value)] = value
            self.shared[value.view.storage] += 1

    def output(self, node: Node, of: Any) -> int:
        """The index of an output; the same array has one index."""
        if id(of) not in self.outputs:
            self.outputs[id(of)] = len(self.nodes)
            self.nodes.append(node)
            self._alive.append(of)
        return self.outputs[id(of)]

    def make(self, value: Any) -> Make:
        """How to build one part of the result; a part that occurs twice is built once per call."""
        key = id(value)
        is_constant = type(value) is not Traced and isinstance(value, IMMUTABLE)
        if self.occurrences[key] < 2 or type(value) is SymInt or is_constant:
            return self._part(value)
        if key not in self.repeated:
            self._alive.append(value)
            self.repeated[key] = partial(dynamic_results.build_once, key, self._part(value))
        return self.repeated[key]

    def _part(self, value: Any) -> Make:
        kind = type(value)
        builder_of_kind = PART_BUILDERS.get(kind)
        if builder_of_kind is not None:
            return builder_of_kind(self, value)
        if value is None or isinstance(value, IMMUTABLE):
            if _is_made_in_a_call(value):
                raise UnsupportedError("a function or method as a result that each call makes")
            return lambda _: value
        if kind in (list, tuple) or pytree.is_named_tuple(value):
            return self._sequence(value)
        if kind is dict:
            entries = {result_recipe.concrete_key(name): self.make(element) for name, element in value.items()}
            return lambda known: {name: make(known) for name, make in entries.items()}
        if dataclasses.is_dataclass(value):
            names = pytree.attribute_names(value)
            fields = [self.make(getattr(value, name)) for name in names]
            return lambda known: pytree.object_with(kind, names, [make(known) for make in fields])
        raise UnsupportedError(f"a result of type {kind.__name__}")

    def _slice(self, value: DynamicSlice) -> Make:
        build: Make = computed_size.build(value, self.make, is_shared=len(self.slices[value.base.view.storage]) > 1)
        return build

    def _list(self, value: GrowableList) -> Make:
        """A list, whose elements may be the rows of an array."""
        if value.dynamic is not None:
            self.snapshots[id(value)] = value.dynamic.snapshot()
            self._alive.append(value)
            return self._snapshot(self.snapshots[id(value)])
        if value.rows is None:
            return self._sequence([*value])
        array, kind = value.rows.array, value.rows.kind
        number = self.output(array.node, array)
        self._record_order(number, array.view.storage)
        if isinstance(kind, type):
            return lambda known: known.arrays[number].tolist()
        if kind is not None:
            return lambda known: list(known.arrays[number])
        return lambda known: [row.copy() for row in known.arrays[number]]

    def _snapshot(self, value: ListSnapshot) -> Make:
        return dynamic_results.build_list(value, self.output, self.in_rows)

    def _sequence(self, value: Any) -> Make:
        parts, kind = [self.make(element) for element in value], type(value)
        if kind is list:
            return lambda known: [make(known) for make in parts]
        if kind is tuple:
            return lambda known: tuple([make(known) for make in parts])
        return lambda known: kind(*[make(known) for make in parts])

    def _int(self, value: SymInt) -> Make:
        if value.leaf is not None:
            return self._leaf(value.leaf)
        self.views += 1
        read = extent_reader(value.extent)
        return lambda known: read(known.values)

    def _leaf(self, leaf: int) -> Make:
        self.leaves.add(leaf)
        return lambda known: known.leaves[leaf]

    def _array(self, value: Traced) -> Make:
        leaf = self.arguments.get(id(value))
        if leaf is not None:
            return self._leaf(leaf)
        view, storage = value.view, value.view.storage
        if storage.leaf is not None:
            return self._view(view, storage.leaf, is_leaf=True)
        is_shared = self.shared[storage] > 1 or view.is_readonly or view.may_overlap()
        is_whole = symbolic_dims.same(symbolic_dims.product(view.shape), symbolic_dims.product(storage.node.shape))
        if view.parent is not None and (is_shared or is_whole):
            number = self.output(storage.node, storage)
            self._record_order(number, storage)
            return self._view(view, number, is_leaf=False)
        number = self.output(view.node, storage if view.parent is None else value)
        if view.parent is None:
            self._record_order(number, storage)
        if value.is_weak:
            kind = value.python
            return lambda known: kind(known.arrays[number])
        if value.is_scalar:
            return lambda known: known.arrays[number][()]
        return lambda known: known.arrays[number]

    def _record_order(self, number: int, storage: Storage) -> None:
        """Record the memory order of an output."""
        if storage.is_c:
            self.in_rows.add(number)
        elif storage.order is not None:
            self.orders[number] = storage.order

    def _view(self, view: View, number: int, *, is_leaf: bool) -> Make:
        """A view of an argument or of a new array."""
        if is_leaf:
            self.leaves.add(number)
        self.views += 1
        is_readonly, build = view.is_readonly, view_builder(view)

        def make(known: ResultInputs) -> Any:
            array = build((known.leaves if is_leaf else known.arrays)[number], known.values)
            if is_readonly or (is_leaf and not known.leaves[number].flags.writeable):
                array.flags.writeable = False
            return array

        return make


def _is_made_in_a_call(value: Any) -> bool:
    """Whether a function is none that a module has by its name, as a nested or a traced one, or an object's method."""
    if type(value) is types.FunctionType:
        return getattr(sys.modules.get(value.__module__), value.__qualname__, None) is not value
    owner = getattr(value, "__self__", None) if type(value) is types.BuiltinFunctionType else None
    return not (owner is None or isinstance(owner, type | types.ModuleType))


PART_BUILDERS: dict[type, Callable[[ResultPlanner, Any], Make]] = {
    Traced: ResultPlanner._array,
    SymInt: ResultPlanner._int,
    DynamicSlice: ResultPlanner._slice,
    GrowableList: ResultPlanner._list,
    ListSnapshot: ResultPlanner._snapshot,
    TaggedUnion: lambda planner, value: dynamic_results.build_tagged(value, planner.make),
    DeferredResult: lambda planner, value: dynamic_results.build_later(value, planner.make),
    **dict.fromkeys(
        structured_array.RESULT_TYPES, lambda planner, v: structured_array.builder_of(v, planner.make, planner.users)
    ),
}


def _children(value: Any) -> Sequence[Any]:
    if type(value) is DynamicSlice:
        return [value.base, value.start, value.stop]
    if type(value) in (TaggedUnion, DeferredResult):
        return [value.tag, value.other] if type(value) is TaggedUnion else [value.operand]
    if isinstance(value, structured_array.StructuredArray):
        return value.parts()
    if type(value) is ListSnapshot or (type(value) is GrowableList and value.dynamic is not None):
        return ()  # its arrays are not shared
    if type(value) is GrowableList and value.rows is not None:
        return [value.rows.array]
    if isinstance(value, list | tuple):
        return value
    container = pytree.container_type(value, dataclasses_too=True)
    return () if container is None else container.children(value)


def plan_result(tracer: Tracer, result: Any, proxies: Sequence[Any]) -> tuple[Graph, ResultPlan]:
    """The graph of a trace, and the plan of its result. Raises UnsupportedError for unsupported results."""
    result = pytree.tree_map(structured_array.as_result, result, dataclasses_too=True, keeps_identity=True)
    planner = ResultPlanner(tracer, {id(proxy): i for i, proxy in enumerate(proxies)})
    planner.count(result)
    make = planner.make(result)
    if planner.repeated:
        make = partial(dynamic_results.build_with_repeated, make)
    storages = [proxy.view.storage for proxy in proxies if type(proxy) is Traced]
    check_aliases(tracer, storages, [array.view.storage for array in planner.arrays.values()])
    writes = tuple(
        (tracer.inputs[storage.leaf], storage.node)
        for storage in storages
        if storage.written and storage.leaf is not None and storage.node is not tracer.inputs[storage.leaf]
    )
    graph = Graph(
        tuple(tracer.inputs),
        tuple(planner.nodes),
        writes,
        tuple(tracer.notes),
        _any_of(tracer.checks),
        frozenset(planner.in_rows),
        tuple(planner.orders.items()),
    )
    if tracer.bailout_results:
        used = set(graph)
        lost = [node for node in tracer.bailout_results if node.inputs[0] not in used]
        if lost:  # their checks run even where the result is unused
            graph = graph.remade(graph.outputs, graph.writes, _any_of([*tracer.checks, *lost]))
    if tracer.has_flows and leaked(graph):
        raise UnsupportedError("a value of the inside of a loop is used outside of it")
    return bounds_checks.with_unused_gather_checks(graph, tracer.picks), _plan(planner, make, result)


def _any_of(checks: Sequence[Node]) -> tuple[Node, ...]:
    return (reduce(partial(builder.elementwise, "logical_or"), checks),) if checks else ()


def _plan(planner: ResultPlanner, make: Make, result: Any) -> ResultPlan:
    """The plan; the direct form where the result is the outputs in order."""
    if result is None:
        return ResultPlan(make, is_tuple=False)
    itself = planner.arguments.get(id(result))
    if itself is not None:
        return ResultPlan(make, leaves=tuple(sorted(planner.leaves)), itself=itself, are_arguments=True)
    parts = result if type(result) is tuple else (result,)
    kinds = _kinds_of_outputs(planner, parts)
    if kinds is not None:
        axes = tuple(None if value.view.parent is None else transposed_axes(value.view) for value in parts)
        return ResultPlan(make, tuple(kinds), axes if any(axes) else (), is_tuple=type(result) is tuple)
    return ResultPlan(
        make,
        leaves=tuple(sorted(planner.leaves)),
        views=planner.views,
        are_arguments=all(id(part) in planner.arguments for part in parts),
        recipe=result_recipe.write_recipe(result, planner.arguments, planner.outputs, planner.snapshots, IMMUTABLE),
    )


def _kinds_of_outputs(planner: ResultPlanner, parts: Sequence[Any]) -> list[str] | None:
    """The returned types of parts that are the outputs in order; None where a part is not."""
    kinds = []
    for i, value in enumerate(parts):
        if (
            type(value) is not Traced
            or (
                value.view.parent is not None
                and (planner.shared[value.view.storage] > 1 or transposed_axes(value.view) is None)
            )
            or value.view.storage.leaf is not None
            or id(value) in planner.arguments
            or planner.outputs.get(id(value.view.storage)) != i
        ):
            return None
        kind = result_recipe.kind_of_output(value)
        if kind is None or (kind == "array" and not value.view.shape):
            return None
        kinds.append(kind)
    return kinds
