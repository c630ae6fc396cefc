"""Loops and branches as steps of a program: what they can hold, and which arrays are changed where they lie."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import construct, numpy_calls
from jitkernels.graph.ir import Graph, Node, readers, remade_of, sorted_nodes
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.regions import nodes_within, regions_of

FLOWS = frozenset({"loop", "branch"})
IN_NESTS = frozenset(
    {
        "cast",
        "concatenate",
        "constant",
        "extent",
        "gather",
        "iota",
        "matmul",
        "reduce",
        "reshape",
        "scan",
        "scatter",
        "update",
        "view",
    }
)
"""What nests and kernels of a region compute, beside what is elementwise."""
VIEWS = frozenset({"view", "reshape"})
NUMBERS = frozenset({"constant", "extent", "cast", "bounded", "overflows", "parameter", "item"})


@dataclass
class Flow:
    """A loop or branch, those of its results that somebody reads, and its regions by their ids, as they are run."""

    node: Node
    items: list[Node] = field(default_factory=list)
    bodies: dict[int, Any] = field(default_factory=dict)


def is_flow(node: Node) -> bool:
    return node.operation in FLOWS


def is_result(node: Node) -> bool:
    """Whether a node is one of the results of a loop or branch."""
    return node.operation == "item" and is_flow(node.inputs[0])


def is_of_kernel(node: Node) -> bool:
    """Whether a node is one of the results of a kernel, or of a function of NumPy, that code calls."""
    return node.operation == "item" and is_called(node.inputs[0])


def is_called(node: Node) -> bool:
    """Whether a node is a kernel, or a function of NumPy that code can call."""
    return node.operation == "kernel" or numpy_calls.is_in_code(node)


def is_direct(node: Node) -> bool:
    """Whether a node of a region is a number, an element or a flow, and no array that a nest computes."""
    if node.operation == "item":
        return not is_of_kernel(node)
    if is_flow(node) or node.operation == "parameter":
        return True
    if node.operation in ("gather", "scatter"):
        array, count = node.inputs[0], 1 if node.operation == "gather" else 2
        return len(node.inputs) - count == array.ndim and not any(one.ndim for one in node.inputs[count:])
    return not node.ndim and (node.operation in NUMBERS or OPERATIONS[node.operation].is_elementwise)


def unsupported(graph: Graph) -> str:
    """What a region holds that no code is made for; nothing if it can be compiled."""
    for node in graph:
        for region in regions_of(node):
            found = unsupported(region)
            if found:
                return found
        if (
            is_direct(node)
            or is_of_kernel(node)
            or is_called(node)
            or node.operation in IN_NESTS
            or OPERATIONS[node.operation].is_elementwise
        ):
            continue
        return node.operation
    return ""


def may_refuse(flow: Node) -> bool:
    """Whether there are checks in a loop or branch, or kernels that may have no memory to work in."""
    inside = [one for region in regions_of(flow) for one in nodes_within(region)]
    return any(region.checks for node in (flow, *inside) for region in regions_of(node)) or any(
        node.operation in ("matmul", "kernel", "call") or "grows" in node.options for node in inside
    )


def base_of(node: Node) -> Node:
    """The array whose memory a changed one has."""
    while True:
        if node.operation in ("scatter", "update"):
            node = node.inputs[0]
        elif is_result(node):
            place = place_of_base(node)
            if place is None:
                return node
            node = node.inputs[0].inputs[place]
        else:
            return node


def laid_in(node: Node, first: Node | None = None) -> Node:
    """The array in whose memory flows and elements have left one; of these the `first`, where it is there."""
    while (
        node is not first
        and is_direct(node)
        and (node.operation == "scatter" or (is_result(node) and node.ndim))
    ):
        place = place_of_base(node) if node.operation == "item" else 0
        if place is None:
            return node
        node = node.inputs[0] if node.operation == "scatter" else node.inputs[0].inputs[place]
    return node


def landed(node: Node, place: Node) -> Node:
    """A value as code of a region can leave it in a parameter's memory: a copy where it lies in that of another."""
    if not node.ndim or laid_in(node, place) is place:
        return node
    is_of_another = base_of(node) is not place and base_of(node).operation == "parameter"
    return construct.copy(node) if is_direct(node) or is_of_another else node


def place_of_base(item: Node) -> int | None:
    """The input of a loop or branch in whose memory a result is; None for numbers."""
    flow, index = item.inputs[0], item.options["index"]
    if not item.ndim:
        return None
    if flow.operation == "loop":
        place: int = index + (3 if flow.options["counts"] else 0)
        return place
    place = flow.options["bases"][index]
    return place + 1 if place >= 0 else None


def place_in(region: Graph, index: int) -> int | None:
    """The input of a region that one of its results is, changed."""
    base = base_of(region.outputs[index])
    return next((i for i, one in enumerate(region.inputs) if one is base), None)


def targets_of(loop: Node) -> dict[int, int]:
    """By the number of each array that a loop carries, the input of the body in whose memory a round leaves it.

    It is another one than its own where arrays change places.
    """
    body, first = loop.options["body"], 1 if loop.options["counts"] else 0
    found: dict[int, int] = {}
    for i, one in enumerate(body.outputs):
        if one.ndim:
            place = place_in(body, i)
            is_carried = place is not None and first <= place < first + loop.options["carried"]
            found[i] = place if place is not None and is_carried else first + i
    return found


def changed(flow: Node) -> list[int]:
    """The places of the inputs whose memory a loop or branch changes."""
    if flow.operation == "loop":
        first = 3 if flow.options["counts"] else 0
        count: int = flow.options["carried"]
        return [i for i in range(first, first + count) if flow.inputs[i].ndim]
    return [place + 1 for place in flow.options["bases"] if place >= 0]


def with_copies(graph: Graph) -> Graph:
    """The graph with copies of what loops and branches change and others still need as it was.

    Where a call may be refused when a part of it is done, arguments are changed in copies, and written in the end.
    """
    nodes = list(graph)
    if not any(map(is_flow, nodes)):
        return graph
    read = readers(nodes)
    late = bool(graph.checks) or any(is_flow(node) and may_refuse(node) for node in nodes)
    kept = {id(one) for one in graph.outputs} | {id(value) for _, value in graph.writes}
    targets = {id(target) for target, _ in graph.writes}
    new: dict[int, Node] = {}
    for node in nodes:
        inputs = [new[id(one)] for one in node.inputs]
        if is_flow(node):
            before = {id(one) for one in sorted_nodes(node.inputs)}
            for place in changed(node):
                one = node.inputs[place]
                reading = _reading(one, read, kept, node)
                others = [other for other in reading if other is not node]
                alone = len(reading) - len(others) == 1
                is_given = one.operation in ("input", "reshape")  # which may be an argument in another shape
                own = id(one) in targets and not late if is_given else id(one) not in kept
                if not (
                    own
                    and alone
                    and all(id(other) in before and other.operation not in VIEWS for other in others)
                ):
                    inputs[place] = construct.copy(inputs[place])
        new[id(node)] = _remade(node, inputs)
    return remade_of(graph, lambda node: new[id(node)])


def _remade(node: Node, inputs: list[Node]) -> Node:
    """A node of other inputs, with copies in its regions if it has any."""
    options = node.options
    if is_flow(node):
        regions = {name: one for name, one in options.items() if isinstance(one, Graph)}
        found = {name: _with_copies_inside(one, _changed_inside(node)) for name, one in regions.items()}
        if any(found[name] is not regions[name] for name in regions):
            options = {**options, **found}
    if options is node.options and all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return node
    return Node(node.operation, inputs, node.dtype, node.shape, options)


def _changed_inside(flow: Node) -> set[int]:
    """The inputs of its regions whose memory a loop or branch changes: those that it carries."""
    if flow.operation == "branch":
        return {place for place in flow.options["bases"] if place >= 0}
    first = 1 if flow.options["counts"] else 0
    return set(range(first, first + flow.options["carried"]))


def _with_copies_inside(region: Graph, own: set[int]) -> Graph:
    """A region with copies of what it takes from around and would write over, which others still need as it was."""
    nodes = list(region)
    taken = {id(one) for place, one in enumerate(region.inputs) if place not in own}
    new: dict[int, Node] = {}
    for node in nodes:
        inputs = [new[id(one)] for one in node.inputs]
        is_placed = node.operation == "scatter" and is_direct(node)
        for place in [0] if is_placed else changed(node) if is_flow(node) else []:
            one = node.inputs[place]
            if id(seen(one) if one.operation == "reshape" else one) in taken:
                inputs[place] = construct.copy(inputs[place])
        new[id(node)] = _remade(node, inputs)
    if all(new[id(node)] is node for node in nodes):
        return region
    return remade_of(region, lambda node: new[id(node)])


def _reading(array: Node, read: Mapping[int, list[Node]], kept: set[int], flow: Node) -> list[Node]:
    """Who reads an array, also by its views, which are no arrays of their own; views that are results among them.

    An element that the flow is given is a number of its own: it is read before the flow begins.
    """
    found: list[Node] = []
    for one in read[id(array)]:
        if one.operation in VIEWS:
            found += [other for other in _reading(one, read, kept, flow) if one.ndim or other is not flow]
        if one.operation not in VIEWS or id(one) in kept:
            found.append(one)
    return found


def seen(node: Node) -> Node:
    """The array that a view is of."""
    while node.operation in VIEWS:
        node = node.inputs[0]
    return node


def in_place(nodes: Iterable[Node]) -> dict[int, Node]:
    """By the id of each array that a loop or branch gives, the one in whose memory it is."""
    found: dict[int, Node] = {}
    for node in nodes:
        if is_result(node):
            place = place_of_base(node)
            if place is not None:
                found[id(node)] = node.inputs[0].inputs[place]
    return found
