"""Which nodes can have the memory of what they change, so that nothing is copied: `a[1:] = b` in the memory of a."""

from jitkernels.graph import cones, products
from jitkernels.graph.cones import Cone
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.directions import Directions, directions_of
from jitkernels.graph.extents import Extent, Number, least_of
from jitkernels.graph.ir import Graph, Node

Made = dict[int, list[tuple[Cone, IndexMap | None]]]
"""The cones of each root, and the region of it that each is stored in if it is not all of it."""


def shared_memory(graph: Graph, roots: list[Node], made: Made) -> dict[int, Node]:
    """Nodes that can have the memory of what they change: nothing reads the old values once new ones are written.

    The memory of an input is that of the value which is written to it in the end, and of nodes on the way there; not
    that of a factor of a matrix product, unless it is as kernels take it.
    """
    last_read: dict[int, int] = {}
    for position, node in enumerate(roots):
        leaves = (
            [leaf for cone, _ in made[id(node)] for leaf in cone.leaves]
            if id(node) in made
            else map(id, _read(node))
        )
        for leaf in leaves:
            last_read[leaf] = position
    given, written = {id(node) for node in graph.inputs}, {id(target): target for target, _ in graph.writes}
    outputs = {id(node) for node in graph.outputs}
    final: dict[int, Node] = {}
    for target, value in graph.writes:
        node = value
        while cones.changes(node) and id(node) not in final:
            final[id(node)] = target
            node = node.inputs[0]
    shared: dict[int, Node] = {}
    targets = {id(value): target for target, value in graph.writes}
    factors = products.factors(roots)
    for position, node in enumerate(roots):
        if cones.changes(node):
            base = node.inputs[0]
            kept = id(base) in given or id(base) in outputs or id(base) in targets  # written in the end
            own = id(base) in made and not kept
            ours = id(base) in written and final.get(id(node)) is base
            if id(base) in shared:
                own = (
                    final.get(id(node)) is memory_of(base, shared)
                    or memory_of(base, shared) not in graph.inputs
                )
            apart = id(base) not in outputs and id(node) not in outputs
            fits = id(node) not in factors or products.is_dense(memory_of(base, shared))
            if (own or ours) and last_read.get(id(base), -1) <= position and apart and fits:
                shared[id(node)] = base
        elif id(node) in targets and id(node) in made and id(node) not in outputs:
            target = targets[id(node)]
            fits = id(node) not in factors or products.is_dense(target)
            # Parts of an array are written one after another, whatever the later ones read.
            parts = made[id(node)]
            fits = fits and (len(parts) == 1 or not any(_reads(cone, target, shared) for cone, _ in parts))
            if last_read.get(id(target), -1) <= position and target not in shared.values() and fits:
                shared[id(node)] = target
    return shared


def _reads(cone: Cone, memory: Node, shared: dict[int, Node]) -> bool:
    return any(memory_of(leaf, shared) is memory for leaf in cone.leaves.values())


def _read(node: Node) -> tuple[Node, ...]:
    """The arrays in memory that an operation reads which is no loop nest."""
    return products.operands(node)[0] if node.operation == "matmul" else node.inputs


def memory_of(node: Node, shared: dict[int, Node]) -> Node:
    """The node that has the memory of a node first."""
    while id(node) in shared:
        node = shared[id(node)]
    return node


def overwritten(
    roots: list[Node], made: Made, shared: dict[int, Node], kept: set[int]
) -> tuple[dict[int, Node], dict[int, Directions]]:
    """Values that read the memory that they are stored in, but elsewhere: they are kept first.

    Unless loops can go in directions in which that does no harm, which is told by the ids of the cones.
    """
    more: dict[int, Node] = {}
    directions: dict[int, Directions] = {}
    for node in roots:
        if id(node) not in shared or id(node) not in made:
            continue
        memory = memory_of(node, shared)
        for cone, region in made[id(node)]:
            if cones.changes(node) and region is None:
                continue  # the copy, which is not made
            target = region if region is not None else cones.identity(node.ndim)
            where = cones.key_of(target)
            harmed = [
                key
                for key, leaf in cone.leaves.items()
                if memory_of(leaf, shared) is memory
                and any(
                    own != where and (cone.reductions or not _is_apart(place, target, cone.root))
                    for own, place in cone.places[key].items()
                )
            ]
            if not harmed:
                continue
            value = cone.root.inputs[0] if region is not None else None
            found = directions_of(cone, target, harmed) if node.operation == "update" else None
            if found is not None:
                directions[id(cone)] = found
            elif value is not None and id(value) not in kept:
                more[id(value)] = value
            else:
                shared.pop(id(node), None)
    return more, directions


def _is_apart(place: IndexMap, target: IndexMap, root: Node) -> bool:
    """Whether what is read in an array, and what is stored in it, have surely no element in common."""
    for one, other in zip(place, target, strict=False):
        read, stored = _limits(one, root), _limits(other, root)
        if read is None or stored is None:
            continue
        if (least_of(stored[0] - read[1]) or 0) > 0 or (least_of(read[0] - stored[1]) or 0) > 0:
            return True
    return False


def _limits(moves: tuple[Number, tuple[tuple[int, Number], ...]], root: Node) -> tuple[Number, Number] | None:
    """The first and the last index in a dimension; None where it is no plain walk along one loop."""
    start, steps = moves
    if not steps:
        return start, start
    (loop, step), *others = steps
    if others or not 0 <= loop < root.ndim or isinstance(step, Extent) or step < 1:
        return None
    return start, start + (root.shape[loop] - 1) * step
