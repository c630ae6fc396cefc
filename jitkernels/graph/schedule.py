"""From a graph to steps: which nodes become arrays in memory, and which of these one loop nest computes.

Rules, in the order in which they are applied:

1. What the graph gives back or writes is kept, and so is what an operation reads that is no loop nest.
2. A reduction is computed inside of what reads it if that takes it once for every row: then the row is read, reduced and
   read again while it is in the cache. It is kept if its readers need it for other rows, or if there is one row in all.
3. What takes long is kept if it would be computed more than once for an element: at several places of a nest, for every
   step of a loop that it does not depend on, or in several nests.
4. Kept nodes of the same rows and the same loops are computed by one nest, if none of them has to wait for another.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import cones, extents
from jitkernels.graph.cones import Cone
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Graph, Node, sorted_nodes


@dataclass
class Nest:
    """Loops over `rows`, and inside of them over `columns`, that compute `roots`, each in a cone of its own.

    A root has the extents of both, or of the rows alone. `order`: which dimension of a root each loop is.
    """

    rows: tuple[Number, ...]
    columns: tuple[Number, ...]
    cones: list[Cone] = field(default_factory=list)
    orders: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def roots(self) -> list[Node]:
        return [cone.root for cone in self.cones]


@dataclass
class Single:
    """One operation that is no loop nest."""

    node: Node


Step = Nest | Single


def scheduled(graph: Graph, *, fuse: bool = True) -> list[Step]:
    """The steps of a graph, each behind those that it needs. Where it does not `fuse`, every node is a step."""
    kept = _kept(graph, fuse=fuse)
    while True:
        more: dict[int, Node] = {}
        roots = [node for node in graph if id(node) in kept and node.operation not in ("input",)]
        made = [Cone(node, kept) for node in roots if cones.is_inline(node)]
        for cone in made:
            more |= cone.misfits
        if not more:
            for cone in made:
                more |= {id(node): node for node in cone.wasteful()}
        if not more:
            more = _computed_twice(made)
        if not more:
            return _grouped(roots, {id(cone.root): cone for cone in made}, kept)
        kept |= set(more)


def _kept(graph: Graph, *, fuse: bool) -> set[int]:
    """Nodes that are arrays in memory whatever becomes of the others."""
    kept = {id(node) for node in (*graph.inputs, *graph.roots)}
    for node in graph:
        if not cones.is_inline(node):
            kept.add(id(node))
            kept |= {id(one) for one in node.inputs}
        elif not fuse and node.operation not in ("view", "constant", "extent"):
            kept.add(id(node))
    return kept


def _computed_twice(made: Iterable[Cone]) -> dict[int, Node]:
    """Nodes that take long and are inside of nests that will not be one."""
    owners: dict[int, set[Any]] = {}
    nodes: dict[int, Node] = {}
    costs: dict[int, float] = {}
    for cone in made:
        domain = _domain(cone)
        for node in cone.nodes:
            costs[id(node)] = cones.own_cost(node) + sum(costs.get(id(one), 0.0) for one in {*node.inputs})
            if node is not cone.root and node.operation != "view" and costs[id(node)] >= cones.COSTLY:
                owners.setdefault(id(node), set()).add(domain)
                nodes[id(node)] = node
    found = {key: nodes[key] for key, domains in owners.items() if len(domains) > 1}
    # The last of a chain alone: those before it are inside of it then.
    inner = {id(one) for node in found.values() for one in node.inputs}
    return {key: node for key, node in found.items() if key not in inner} or found


def _domain(cone: Cone) -> Any:
    rows, columns, _ = split(cone)
    return extents.key_of_shape(rows), extents.key_of_shape(columns)


def split(cone: Cone) -> tuple[tuple[Number, ...], tuple[Number, ...], tuple[int, ...]]:
    """Extents of the rows and of the columns of a cone, and the root's dimensions in this order."""
    rows = sorted(cone.rows or ())
    columns = [i for i in range(cone.root.ndim) if i not in rows]
    shape = cone.root.shape
    return tuple(shape[i] for i in rows), tuple(shape[i] for i in columns), (*rows, *columns)


def _grouped(roots: list[Node], made: dict[int, Cone], kept: set[int]) -> list[Step]:
    """Steps in order; nests take in what fits and need not wait."""
    steps: list[Step] = []
    step_of: dict[int, int] = {}
    for node in roots:
        cone = made.get(id(node))
        leaves = cone.leaves.values() if cone else node.inputs
        after = max((step_of.get(id(one), -1) for one in leaves), default=-1)
        if cone is None:
            step_of[id(node)] = len(steps)
            steps.append(Single(node))
            continue
        rows, columns, order = split(cone)
        where = _fitting(steps, after, cone, rows, columns, order)
        if where is None:
            where = len(steps)
            steps.append(Nest(rows, columns))
        nest = steps[where]
        assert isinstance(nest, Nest), "chosen as one"
        if not nest.columns:
            nest.columns = columns
        nest.cones.append(cone)
        nest.orders.append(order)
        step_of[id(node)] = where
    return steps


def _fitting(
    steps: list[Step],
    after: int,
    cone: Cone,
    rows: tuple[Number, ...],
    columns: tuple[Number, ...],
    order: tuple[int, ...],
) -> int | None:
    """The nest that a root can join: of the same loops, and behind all that it reads."""
    for i in range(len(steps) - 1, after, -1):
        step = steps[i]
        if not isinstance(step, Nest) or not _same(step.rows, rows):
            continue
        if _same(step.columns, columns) or (rows and not (columns and step.columns)):
            return i
    return None


def _same(one: Iterable[Number], other: Iterable[Number]) -> bool:
    return extents.key_of_shape(one) == extents.key_of_shape(other)


def needed_by(nodes: Iterable[Node]) -> list[Node]:
    """All nodes that some depend on."""
    return sorted_nodes(nodes)
