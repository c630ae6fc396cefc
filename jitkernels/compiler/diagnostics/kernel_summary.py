"""What a program runs, step by step: loop nests with all that they compute, products, and calls of NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels.graph import extents, flows
from jitkernels.graph.flows import Flow
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.kernel_calls import KernelCall
from jitkernels.graph.numpy_calls import NumpyCall
from jitkernels.graph.regions import nodes_within, regions_of

SILENT = frozenset({"input", "constant", "extent"})
"""What is no work in itself."""


@dataclass(frozen=True)
class Group:
    """One step. `kind`: ``kernel``, ``product`` or ``NumPy``; `reads` and `writes` are arrays in memory.

    `variant` says of a kernel how many vectors a step of its loop takes at once, and whether this was measured.
    `parts`: what a profile has the time of; `inner`: the same of what runs inside of a loop or branch; `times`: what
    they took, its own first.
    """

    kind: str
    nodes: tuple[Node, ...]
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    variant: str = ""
    parts: tuple[Any, ...] = ()
    inner: tuple[Any, ...] = ()
    times: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        """The operations, in order."""
        return ", ".join(
            label(node) for node in self.nodes if node.operation not in (*SILENT, "view", "cast")
        )


def groups_of(program: Any, graph: Graph) -> list[Group]:
    """The steps of a program; of one that NumPy runs, every operation is one."""
    if not hasattr(program, "steps"):
        return [
            Group("NumPy", (node,), node.inputs, (node,)) for node in graph if node.operation not in SILENT
        ]
    found: list[Group] = []
    for step in program.steps:
        if isinstance(step, Node):
            found.append(Group("NumPy", (step,), step.inputs, (step,), parts=(step,)))
            continue
        for nest in step.nests:
            group = group_of(nest)
            if getattr(nest, "product", None) is not None:
                group = _joined(found.pop(), group, program)
            found.append(group)
    return found


def _joined(product: Group, nest: Group, program: Any) -> Group:
    """A product with the nest that takes its rows."""
    made = {id(node) for node in product.writes}
    reads = [*product.reads, *(node for node in nest.reads if id(node) not in made)]
    elsewhere = [node for node in product.writes if any(node is one for one in program.made)]
    return Group(
        "product",
        product.nodes + nest.nodes,
        tuple(reads),
        (*elsewhere, *nest.writes),
        nest.variant,
        parts=product.parts + nest.parts,
    )


def group_of(nest: Any) -> Group:
    """One step of compiled code."""
    if isinstance(nest, Flow):
        changed_ones = [nest.node.inputs[place] for place in flows.changed(nest.node)]
        read = [one for one in nest.node.inputs if one.operation not in SILENT or one.operation == "input"]
        written = [*changed_ones, *(one for one in nest.items if not one.ndim)]
        found = *inside(nest.node), nest.node
        within = tuple(_nests_in(nest))
        return Group(nest.node.operation, found, tuple(read), tuple(written), parts=(nest,), inner=within)
    if isinstance(nest, KernelCall | NumpyCall):
        kind = "kernel" if isinstance(nest, KernelCall) else "NumPy"
        return Group(kind, (nest.node,), nest.node.inputs, tuple(nest.items), parts=(nest,))
    if not hasattr(nest, "stores"):
        return Group("product", (nest.node,), (nest.left, nest.right), (nest.node,), parts=(nest,))
    nodes: dict[int, Node] = {}
    reads: dict[int, Node] = {}
    for cone in nest.cones:
        nodes |= {id(node): node for node in cone.nodes}
        reads |= cone.leaves
    writes = {id(store.target): store.target for store in nest.stores}
    return Group(
        "kernel",
        tuple(nodes.values()),
        tuple(reads.values()),
        tuple(writes.values()),
        nest.variant,
        parts=(nest,),
    )


def _nests_in(flow: Flow) -> list[Any]:
    """The nests and products of a loop or branch."""
    groups = (group for body in flow.bodies.values() for _, group in body.stages if group)
    return [step for group in groups for step in group.steps]


def inside(node: Node) -> list[Node]:
    """What the rounds of a loop compute, or the sides of a branch."""
    found = [one for region in regions_of(node) for one in nodes_within(region)]
    return [one for one in found if one.operation not in ("parameter", "item")]


def label(node: Node) -> str:
    """What an operation is called."""
    match node.operation:
        case "reduce" | "scan":
            over = node.options["axes"] if node.operation == "reduce" else node.options["axis"]
            kind = node.options["kind"] if node.operation == "reduce" else f"cum{node.options['kind']}"
            return f"{kind} over {', '.join(map(str, over)) if isinstance(over, tuple) else over}"
        case "call":
            function = node.options["function"]
            function = getattr(function, "func", function)
            return f"numpy.{getattr(function, '__name__', 'call')}"
        case "kernel":
            return f"jk.{node.options['function'].__name__}"
        case "constant":
            return f"{node.options['value']}"
        case "extent":
            return str(node.options["extent"])
    return node.operation


def size_of(node: Node) -> int:
    """Bytes of an array, for the extents of the call that was traced."""
    return int(np.dtype(node.dtype).itemsize * extents.value_of(extents.product(node.shape)))


def moved(groups: Sequence[Group]) -> int:
    """Bytes that steps read from memory and write to it."""
    return sum(size_of(node) for group in groups for node in (*group.reads, *group.writes))


def moved_by_numpy(graph: Graph) -> int:
    """Bytes that are read and written if every operation is one of NumPy's."""
    total = 0
    for node in graph:
        if node.operation not in (*SILENT, "view", "reshape"):
            read = [one for one in node.inputs if one.operation not in ("constant", "extent")]
            total += size_of(node) + sum(map(size_of, read))
    return total
