"""What a traced function returned: what the graph computes, and how results are made of that and of arguments."""

import dataclasses
import enum
import operator
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from jitkernels.frontends import counted_results, recipes
from jitkernels.frontends.flow.alternatives import Chosen
from jitkernels.frontends.flow.counted import Finished, Later
from jitkernels.frontends.flow.growing import Listed
from jitkernels.frontends.storage import Storage, View
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import Whole
from jitkernels.graph import checks, construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.emit.interface import NUMBERS
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.operations import region_of
from jitkernels.graph.regions import leaked


class Known(NamedTuple):
    """What results are made of: the leaves of the arguments, the arrays that were computed, the values of symbols.

    Leaves by their numbers; those that the plan names are enough.
    """

    leaves: Sequence[Any] | Mapping[int, Any]
    arrays: Sequence[Any]
    values: Mapping[str, int]


Make = Callable[[Known], Any]
IMMUTABLE = (
    type(None), bool, int, float, complex, str, bytes, np.generic, np.dtype, type, enum.Enum, slice, range,
    types.FunctionType, types.BuiltinFunctionType, np.ufunc,
)  # fmt: skip


class Plan:
    """How the results of a call are made.

    `is_tuple`: whether they are the outputs in a tuple, or one alone; None if they are put together by `make`, which
    needs these `leaves` and, if there are any `views` or numbers, the values of symbols. `itself`: the one argument
    that is given back as it is. `kinds` says of the outputs what they are given back as: "array", "scalar" for NumPy's
    numbers, or the name of Python's type. `are_arguments`: whether nothing but arguments is given back. `recipe`: how
    compiled calls make them, where they can.
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
        recipe: recipes.Made | None = None,
    ) -> None:
        self.make, self.kinds, self.is_tuple, self.itself = make, kinds, is_tuple, itself
        self.are_arguments, self.recipe = are_arguments, recipe
        self.leaves, self.views = tuple(sorted(leaves)), views

    def finisher(self, count: int, symbols: Sequence[str]) -> Callable[[tuple[Any, ...]], Any]:
        """What makes the results of a tuple: so many outputs, the leaves, and the values of these symbols."""
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
        self.finished: dict[int, Finished] = {}
        self.kept: list[Any] = []
        self.leaves: set[int] = set()
        self.views = 0

    def count(self, value: Any) -> None:
        """How many different arrays share each storage."""
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
        """The number of an output; the same one for the same array."""
        if id(of) not in self.made:
            self.made[id(of)] = len(self.nodes)
            self.nodes.append(node)
            self.kept.append(of)
        return self.made[id(of)]

    def make(self, value: Any) -> Make:
        if type(value) is Traced:
            return self._array(value)
        if type(value) is Whole:
            return self._whole(value)
        if value is None or isinstance(value, IMMUTABLE):
            return lambda _: value
        if type(value) is Listed:
            return self._listed(value)
        if type(value) is Chosen:
            return counted_results.chosen(value, self.make)
        if type(value) is Finished:
            return counted_results.finished(value, self.output, self.in_rows)
        if type(value) is Later:
            return counted_results.later(value, self.make)
        if type(value) in (list, tuple) or (isinstance(value, tuple) and hasattr(value, "_fields")):
            return self._sequence(value)
        if type(value) is dict:
            parts = {recipes.key_of(name): self.make(one) for name, one in value.items()}
            return lambda known: {name: one(known) for name, one in parts.items()}
        if dataclasses.is_dataclass(value):
            return self._dataclass(value)
        raise UnknownError(f"a result of type {type(value).__name__}")

    def _listed(self, value: Listed) -> Make:
        """A list, whose elements may be the rows of an array."""
        if value.counted is not None:
            self.finished[id(value)] = value.counted.finished()
            self.kept.append(value)
            return counted_results.finished(self.finished[id(value)], self.output, self.in_rows)
        if value.array is None:
            return self._sequence([*value])
        number, storage = self.output(value.array.node, value.array), value.array.view.storage
        self._lies(number, storage)
        if isinstance(value.kind, type):
            return lambda known: known.arrays[number].tolist()
        if value.kind is not None:
            return lambda known: list(known.arrays[number])
        return lambda known: [row.copy() for row in known.arrays[number]]

    def _sequence(self, value: Any) -> Make:
        parts = [self.make(one) for one in value]
        kind = type(value)
        first = [next(i for i, other in enumerate(value) if other is one) for one in value]
        if len(set(first)) < len(first):
            return lambda known: _repeated(kind, parts, first, known)
        if kind is list:
            return lambda known: [one(known) for one in parts]
        if kind is tuple:
            return lambda known: tuple([one(known) for one in parts])
        return lambda known: kind(*[one(known) for one in parts])

    def _dataclass(self, value: Any) -> Make:
        kind = type(value)
        names = (
            tuple(vars(value))
            if hasattr(value, "__dict__")
            else tuple(f.name for f in dataclasses.fields(value))
        )
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
        whole = extents.same(extents.product(view.shape), extents.product(storage.node.shape))
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
                    found = region_of(found, index_map, shape, partial(_read, values))
            if is_readonly or (is_leaf and not known.leaves[number].flags.writeable):
                found.flags.writeable = False
            return found

        return made


def _reader(extent: Any) -> Callable[[Mapping[str, int]], int]:
    """What finds an extent, quickly where it is a number or a symbol."""
    if type(extent) is int:
        return lambda _: extent
    name = extents.bare(extent)
    return operator.itemgetter(name) if name is not None else partial(extents.evaluated, extent)


def _read(values: Mapping[str, int], extent: Any) -> int:
    return extent if type(extent) is int else extents.evaluated(extent, values)


def _repeated(kind: Any, parts: Sequence[Make], first: Sequence[int], known: Known) -> Any:
    """A sequence in which the same array is more than once."""
    made: list[Any] = []
    for i, part in enumerate(parts):
        made.append(part(known) if first[i] == i else made[first[i]])
    return kind(made) if kind in (list, tuple) else kind(*made)


def _children(value: Any) -> Sequence[Any]:
    if type(value) is Listed and value.array is not None:
        return [value.array]
    if type(value) is Chosen:
        return [value.tag, value.other]
    if type(value) is Later:
        return [value.given]
    if type(value) is Finished or (type(value) is Listed and value.counted is not None):
        return ()  # whose arrays nobody else has
    if isinstance(value, list | tuple):
        return value
    if type(value) is dict:
        return list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [
            getattr(value, field.name) for field in dataclasses.fields(value) if hasattr(value, field.name)
        ]
    return ()


def _are_equal(one: Node, other: Node) -> Node:
    """Whether arrays have the same elements: one may be the other then, and NumPy tells."""
    found = construct.elementwise("equal", one, other)
    if np.dtype(one.dtype).kind == "f":
        nothing = [construct.elementwise("isnan", node) for node in (one, other)]
        found = construct.elementwise("logical_or", found, construct.elementwise("logical_and", *nothing))
    return construct.reduce("all", found, range(found.ndim))


def planned(tracer: Tracer, found: Any, given: Sequence[Any]) -> tuple[Graph, Plan]:
    """The graph, and how results are made of what it computes."""
    planner = _Planner(tracer, given)
    planner.count(found)
    make = planner.make(found)
    arrays = [one.view.storage for one in given if type(one) is Traced]
    own = {id(one) for one in (*arrays, *planner.storages)}
    for storage in planner.storages:
        for other in {id(one): one for one in storage.doubts if id(one) in own}.values():
            if tracer.differentiates or not storage.is_whole(other):
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
        (reduce(partial(construct.elementwise, "logical_or"), tracer.checks),) if tracer.checks else (),
        frozenset(planner.in_rows),
        tuple(planner.orders.items()),
    )
    if tracer.risky:
        used = {id(node) for node in graph}
        lost = [one for one in tracer.risky if id(one.inputs[0]) not in used]
        if lost:  # what they refuse is refused, used or not
            refusing = (*tracer.checks, *lost)
            graph = graph.remade(
                graph.outputs, graph.writes, (reduce(partial(construct.elementwise, "logical_or"), refusing),)
            )
    if tracer.has_flows and leaked(graph):
        raise UnknownError("a value of the inside of a loop is used outside of it")
    return checks.with_picks(graph, tracer.picks), _plan(planner, make, found)


def _plan(planner: _Planner, make: Make, found: Any) -> Plan:
    """The plan; with what compiled calls need where results are just the outputs, in order."""
    if found is None:
        return Plan(make, (), is_tuple=False)
    itself = planner.arguments.get(id(found))
    if itself is not None:
        return Plan(make, (), None, planner.leaves, itself=itself, are_arguments=True)
    several = type(found) is tuple
    listed = found if several else (found,)
    are_arguments = all(id(one) in planner.arguments for one in listed)
    kinds = []
    for i, value in enumerate(listed):
        if (
            type(value) is not Traced
            or value.view.parent is not None
            or value.view.storage.leaf is not None
            or id(value) in planner.arguments
            or planner.made.get(id(value.view.storage)) != i
        ):
            return _put_together(planner, make, found, are_arguments=are_arguments)
        kinds.append(value.python.__name__ if value.is_weak else "scalar" if value.is_scalar else "array")
        if value.is_weak and NUMBERS.get(kinds[-1]) != value.node.dtype:
            return _put_together(planner, make, found)
    is_plain = all(
        view.shape or kind != "array" for view, kind in zip((one.view for one in listed), kinds, strict=True)
    )
    if not is_plain:
        return _put_together(planner, make, found)
    return Plan(make, tuple(kinds), several)


def _put_together(planner: _Planner, make: Make, found: Any, *, are_arguments: bool = False) -> Plan:
    """The plan of a result that is more than outputs in a tuple."""
    recipe = recipes.written(found, planner.arguments, planner.made, planner.finished, IMMUTABLE)
    return Plan(
        make,
        (),
        None,
        planner.leaves,
        views=planner.views,
        are_arguments=are_arguments,
        recipe=recipe,
    )
