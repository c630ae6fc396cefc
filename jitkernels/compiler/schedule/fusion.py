"""From a graph to steps: which nodes become arrays in memory, and which of these one loop nest computes.

Rules, in the order in which they are applied:

1. What the graph gives back or writes is kept, and so is what an operation reads that is no loop nest.
2. A reduction is computed inside of what reads it if that takes it once for every row: then the row is read,
   reduced and read again while it is in the cache. It is kept if its readers need it for other rows, or if there is
   one row in all; in its place what is made of it element by element, where nothing else reads it.
3. What takes long is kept if it would be computed more than once for an element: at several places of a nest, for every
   step of a loop that it does not depend on, or in several nests.
4. What numbers pick elements of is kept; that these are in bounds is looked at ahead.
5. Where a nest would read too many arrays, what reads the most of them is kept.
6. Kept nodes of the same rows and the same loops are computed by one nest, if none of them has to wait for another and
   they do not read too many arrays. Numbers that are made of numbers come first, so that none has to wait for these.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.graph import cones, extents, flows, products
from jitkernels.graph.cones import Cone
from jitkernels.graph.directions import Directions
from jitkernels.graph.extents import Number
from jitkernels.graph.finishing import Finishing
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.nests import Nest, Store
from jitkernels.graph.pieces import copied, is_in_pieces, pieces_of
from jitkernels.graph.reuse import Made, memory_of, overwritten, shared_memory


@dataclass
class Single:
    """One operation that is no loop nest."""

    node: Node


Step = Nest | Single


@dataclass
class Schedule:
    """Steps, each behind those that it needs, and which nodes have the memory of another."""

    steps: list[Step]
    shared: dict[int, Node]


def scheduled(
    graph: Graph,
    *,
    fuse: bool = True,
    fuse_reduce: bool = True,
    largest: int = cones.LARGEST,
    most_inputs: int = cones.MOST_INPUTS,
) -> Schedule:
    """The steps of a graph, of at most about `largest` nodes for each root, that read at most about `most_inputs`.

    Where it does not `fuse`, every node is a step; without `fuse_reduce`, nothing has a reduction inside.
    """
    kept = _kept(graph, fuse=fuse)
    if not fuse_reduce:
        kept |= {id(node) for node in graph if node.operation == "reduce"}
    pieces = {id(node): pieces_of(node) for node in graph if is_in_pieces(node, graph)}
    order, finishing = _numbers_first(graph), Finishing(graph)
    known: dict[int, Cone] = {}
    more: dict[int, Node] = {}
    while True:
        # A cone that was cut short has what it was cut at outside.
        known = {
            key: cone
            for key, cone in known.items()
            if not any(one in cone.inside or one in cone.misfits for one in more)
        }
        roots = [node for node in order if id(node) in kept and node.operation != "input"]
        made: Made = {}
        for node in roots:
            if id(node) not in pieces and not cones.is_inline(node):
                continue
            made[id(node)] = []
            for value, region in pieces.get(id(node), [(node, None)]):
                if id(value) not in known:
                    known[id(value)] = Cone(value, kept, largest)
                made[id(node)].append((known[id(value)], region))
        listed = [cone for found in made.values() for cone, _ in found]
        more = {}
        for cone in listed:
            more |= cone.misfits
        more = {id(last): last for last in (finishing.last(one, kept) for one in more.values())}
        if not more:
            for cone in listed:
                more |= cone.wasteful
        if not more:
            for cone in listed:
                more |= cone.crowded(most_inputs)
        if not more:
            more = _computed_twice(listed) or _read_late(roots, made)
        shared = shared_memory(graph, roots, made) | flows.in_place(order)
        directions: dict[int, Directions] = {}
        if not more:
            more, directions = overwritten(roots, made, shared, kept)
        more = {key: node for key, node in more.items() if key not in kept}
        if not more:
            checks = frozenset(id(node) for node in graph.checks)
            steps = _grouped(roots, made, shared, kept, checks, directions, most_inputs if fuse else 0)
            return Schedule([*steps, *_written(graph, shared, kept)], shared)
        kept |= set(more)


def _numbers_first(graph: Graph) -> list[Node]:
    """The nodes of a graph, before all others the numbers that are made of numbers: no nest has to wait for them."""
    numbers: set[int] = set()
    order, written = list(graph), {id(value) for _, value in graph.writes}
    for node in order:
        is_plain = cones.is_inline(node) and not cones.changes(node) or node.operation == "input"
        if node.ndim or not is_plain or id(node) in written:
            continue
        if all(id(one) in numbers for one in node.inputs):
            numbers.add(id(node))
    return sorted(order, key=lambda node: id(node) not in numbers)


def _kept(graph: Graph, *, fuse: bool) -> set[int]:
    """Nodes that are arrays in memory whatever becomes of the others."""
    kept = {id(node) for node in (*graph.inputs, *graph.roots)}
    for node in graph:
        if not cones.is_inline(node):
            kept.add(id(node))
            if node.operation == "matmul":
                kept |= {id(one) for one in products.operands(node)[0]}
            elif flows.is_flow(node):
                kept |= {id(one) for one in node.inputs if one.operation not in ("constant", "extent")}
            elif not is_in_pieces(node, graph):
                kept |= {id(one) for one in node.inputs}
            elif cones.changes(node) and not cones.is_inline(node.inputs[0]):
                kept.add(id(node.inputs[0]))
        elif not fuse and node.operation not in ("view", "constant", "extent"):
            kept.add(id(node))
        if node.operation == "gather":
            kept.add(id(cones.memory_picked_from(node)))
    return kept


def _written(graph: Graph, shared: dict[int, Node], kept: set[int]) -> list[Step]:
    """What is written to inputs when all is computed, but for what was computed in their memory."""
    found: list[Step] = []
    for target, value in graph.writes:
        if memory_of(value, shared) is not target:
            cone = Cone(copied(value, target.shape), kept)
            rows, columns, order = split(cone)
            found.append(Nest(rows, columns, [Store(cone, order, target)]))
    return found


def _computed_twice(made: Iterable[Cone]) -> dict[int, Node]:
    """Nodes that take long and are inside of nests that will not be one: the last ones that these have in common."""
    owners: dict[int, set[int]] = {}
    domains: dict[int, Any] = {}
    costs: dict[int, float] = {}
    listed = list(made)
    for number, cone in enumerate(listed):
        domains[number] = _domain(cone)
        for node in cone.nodes:
            costs[id(node)] = cones.own_cost(node) + sum(costs.get(id(one), 0.0) for one in {*node.inputs})
            if node is not cone.root:
                owners.setdefault(id(node), set()).add(number)
    found: dict[int, Node] = {}
    for cone in listed:
        for node in cone.nodes:
            for one in node.inputs:
                key = id(one)
                if key in found or key not in owners or one.operation == "view" or costs[key] < cones.COSTLY:
                    continue
                last = node is cone.root or owners[id(node)] != owners[key]
                if last and len({domains[owner] for owner in owners[key]}) > 1:
                    found[key] = one
    return found


def _read_late(roots: Sequence[Node], made: Made) -> dict[int, Node]:
    """What nests would compute again of arrays that a loop or branch has changed by then: it is kept from before."""
    gone: dict[int, int] = {}
    for position, node in enumerate(roots):
        for place in flows.changed(node) if flows.is_flow(node) else ():
            gone.setdefault(id(node.inputs[place]), position)
    found: dict[int, Node] = {}
    for position, node in enumerate(roots):
        for cone, _ in made.get(id(node), ()):
            late = {key for key in cone.leaves if gone.get(key, position) < position}
            for one in cone.nodes if late else ():
                if one.operation not in flows.VIEWS and any(
                    id(flows.seen(other)) in late for other in one.inputs
                ):
                    found[id(one)] = one
    return found


def _domain(cone: Cone) -> Any:
    rows, columns, _ = split(cone)
    return extents.key_of_shape(rows), extents.key_of_shape(columns)


def split(cone: Cone) -> tuple[tuple[Number, ...], tuple[Number, ...], tuple[int, ...]]:
    """Extents of the rows and of the columns of a cone, and the root's dimensions in this order."""
    rows = sorted(cone.rows or ())
    columns = [i for i in range(cone.root.ndim) if i not in rows]
    shape = cone.root.shape
    return tuple(shape[i] for i in rows), tuple(shape[i] for i in columns), (*rows, *columns)


def _grouped(
    roots: list[Node],
    made: Made,
    shared: dict[int, Node],
    kept: set[int],
    checks: frozenset[int],
    directions: Mapping[int, Directions],
    most_inputs: int,
) -> list[Step]:
    """Steps in order; nests take in what fits and need not wait, up to so many arrays that they read."""
    steps: list[Step] = []
    step_of: dict[int, int] = {}
    barrier = looked = -1
    for node in roots:
        if flows.is_result(node) or flows.is_of_kernel(node):
            step_of[id(node)] = step_of[id(node.inputs[0])]
            continue
        if id(node) not in made:
            step_of[id(node)] = len(steps)
            steps.append(Single(node))
            continue
        for cone, region in made[id(node)]:
            if cones.changes(node) and region is None and id(node) in shared:
                continue
            after = max((step_of.get(key, -1) for key in cone.leaves), default=-1)
            if cone.goes_by_numbers:
                after = max(after, looked + 1)
            if cones.changes(node):
                after = len(steps)  # behind all that reads what is written now, and alone
            elif id(node) in shared:
                after = max(after, len(steps) - 1)
            store = Store(cone, split(cone)[2], node, region, directions.get(id(cone), {}))
            where = _placed(steps, max(after, barrier), store, step_of, kept, shared, checks, most_inputs)
            if where is None:
                rows, columns, _ = split(cone)
                where = len(steps)
                steps.append(Nest(rows, columns, [store]))
            step_of[id(node)] = max(where, step_of.get(id(node), -1))
            if id(node) in checks:
                looked = max(looked, where)
            if cones.changes(node) or id(node) in shared:
                barrier = len(steps) - 1
    return steps


def _placed(
    steps: list[Step],
    after: int,
    store: Store,
    step_of: dict[int, int],
    kept: set[int],
    shared: dict[int, Node],
    checks: frozenset[int],
    most_inputs: int,
) -> int | None:
    """Put a root in a nest of the same loops behind all that it reads, or in which that is at hand, if there is one."""
    rows, columns, _ = split(store.cone)
    for i in range(len(steps) - 1, max(after, 0) - 1, -1) if most_inputs else ():
        step = steps[i]
        if not isinstance(step, Nest) or not _same(step.rows, rows):
            continue
        if any((id(one.target) in checks) != (id(store.target) in checks) for one in step.stores):
            continue  # nothing is written before all is looked at
        if not (_same(step.columns, columns) or (rows and not (columns and step.columns))):
            continue
        if not (columns or step.columns or _reduced(store) == _reduced(step.stores[0])):
            continue  # lanes go along one loop
        read = store.cone.arrays.union(*(one.cone.arrays for one in step.stores))
        if len(read - {id(one.target) for one in step.stores}) > most_inputs:
            continue
        if i == after and not _at_hand(step, store, {key for key, at in step_of.items() if at == i}, kept):
            continue
        if id(store.target) in shared and any(_is_read_elsewhere(one, store, shared) for one in step.stores):
            continue
        if not step.columns:
            step.columns = columns
        step.stores.append(store)
        return i
    return None


def _reduced(store: Store) -> frozenset[Any]:
    """What the reductions of a root are over."""
    return frozenset(
        extents.key_of_shape(node.inputs[0].shape[axis] for axis in node.options["axes"])
        for node in store.cone.nodes
        if node.operation == "reduce"
    )


def _is_read_elsewhere(one: Store, store: Store, shared: dict[int, Node]) -> bool:
    """Whether a root of a nest reads the memory that another is stored in, but for the element that is stored then."""
    memory = memory_of(store.target, shared)
    at_once = (
        store.region is None
        and one.order == store.order
        and not (one.cone.reductions or store.cone.reductions)
    )
    own = {cones.key_of(cones.identity(one.cone.root.ndim))}
    return any(
        memory_of(leaf, shared) is memory and not (at_once and set(one.cone.places[key]) == own)
        for key, leaf in one.cone.leaves.items()
    )


def _at_hand(nest: Nest, store: Store, inside: set[int], kept: set[int]) -> bool:
    """Whether a root can be computed in a nest with roots that it reads: where it needs each, the nest has it then."""
    own = {id(one.target): one for one in nest.stores}
    needed = [key for key in store.cone.leaves if key in inside]
    if not needed:
        return True
    if any(
        key not in own or own[key].region is not None or own[key].cone.root is not own[key].target
        for key in needed
    ):
        return False
    if store.region is not None or any(one.region is not None for one in nest.stores):
        return False
    if store.cone.picked_from & set(needed):
        return False
    cone = Cone(store.cone.root, kept - set(needed))
    if cone.misfits or split(cone)[:2] != split(store.cone)[:2] and not _same_split(cone, store.cone):
        return False
    for key in needed:
        order = own[key].order
        if len(order) > len(store.order):
            return False
        place = tuple((0, ((store.order[order.index(i)], 1),)) for i in range(own[key].cone.root.ndim))
        if set(store.cone.places[key]) != {cones.key_of(place)}:
            return False
    store.cone = cone
    return True


def _same_split(one: Cone, other: Cone) -> bool:
    first, second = split(one), split(other)
    return _same(first[0], second[0]) and _same(first[1], second[1]) and first[2] == second[2]


def _same(one: Iterable[Number], other: Iterable[Number]) -> bool:
    return extents.key_of_shape(one) == extents.key_of_shape(other)
