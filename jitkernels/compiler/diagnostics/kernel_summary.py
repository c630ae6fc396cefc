"""The steps of a program: loop nests with their operations, GEMM calls, and calls of NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels.compiler.ir import region_memory
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.regions import regions_of, walk_nodes
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.numpy_step import NumpyCall

OMITTED_FROM_SUMMARY = frozenset({"input", "constant", "extent"})
"""Operations that a summary omits."""


@dataclass(frozen=True)
class Group:
    """One step. `kind`: ``loop nest``, ``product``, ``kernel`` or ``NumPy``; `reads`, `writes`: arrays in memory.

    `variant`: the unroll factor and vector width of a loop nest, and whether they were measured. `steps`: what a
    profile times; `inner`: the steps inside a loop or branch; `times`: the times of these, its own first.
    """

    kind: str
    nodes: tuple[Node, ...]
    reads: tuple[Node, ...]
    writes: tuple[Node, ...]
    variant: str = ""
    steps: tuple[Any, ...] = ()
    inner: tuple[Any, ...] = ()
    times: tuple[Any, ...] = ()

    @property
    def text(self) -> str:
        """The operations, in order."""
        return ", ".join(
            label(node) for node in self.nodes if node.operation not in (*OMITTED_FROM_SUMMARY, "view", "cast")
        )


def groups_of(program: Any, graph: Graph) -> list[Group]:
    """The steps of a program; for the interpreter each operation is a step."""
    if not hasattr(program, "steps"):
        return [
            Group("NumPy", (node,), node.inputs, (node,))
            for node in graph
            if node.operation not in OMITTED_FROM_SUMMARY
        ]
    groups: list[Group] = []
    for step in program.steps:
        if isinstance(step, Node):
            groups.append(Group("NumPy", (step,), step.inputs, (step,), steps=(step,)))
            continue
        for nest in step.nests:
            group = group_of(nest)
            if getattr(nest, "product", None) is not None:
                group = _joined(groups.pop(), group, program)
            groups.append(group)
    return groups


def _joined(product: Group, nest: Group, program: Any) -> Group:
    """A product together with its epilogue."""
    product_ids = {id(node) for node in product.writes}
    reads = [*product.reads, *(node for node in nest.reads if id(node) not in product_ids)]
    stored = [node for node in product.writes if any(node is allocated for allocated in program.allocated)]
    return Group(
        "product",
        product.nodes + nest.nodes,
        tuple(reads),
        (*stored, *nest.writes),
        nest.variant,
        steps=product.steps + nest.steps,
    )


def group_of(nest: Any) -> Group:
    """One step of compiled code."""
    if isinstance(nest, Flow):
        updated = [nest.node.inputs[index] for index in region_memory.updated_operands(nest.node)]
        read = [
            operand
            for operand in nest.node.inputs
            if operand.operation not in OMITTED_FROM_SUMMARY or operand.operation == "input"
        ]
        written = [*updated, *(value for value in nest.items if not value.ndim)]
        inner_nodes = *inside(nest.node), nest.node
        inner = tuple(_nests_in(nest))
        return Group(nest.node.operation, inner_nodes, tuple(read), tuple(written), steps=(nest,), inner=inner)
    if isinstance(nest, KernelCall | NumpyCall):
        kind = "kernel" if isinstance(nest, KernelCall) else "NumPy"
        return Group(kind, (nest.node,), nest.node.inputs, tuple(nest.items), steps=(nest,))
    if not hasattr(nest, "stores"):
        return Group("product", (nest.node,), (nest.left, nest.right), (nest.node,), steps=(nest,))
    writes = dict.fromkeys(store.target for store in nest.stores)
    return Group("loop nest", tuple(nest.nodes), tuple(nest.leaves), tuple(writes), nest.variant, steps=(nest,))


def _nests_in(flow: Flow) -> list[Any]:
    """The nests and products inside a loop or branch."""
    return [step for body in flow.bodies.values() for group in body.groups for step in group.steps]


def inside(node: Node) -> list[Node]:
    """The operations inside a loop or branch."""
    nodes = [value for region in regions_of(node) for value in walk_nodes(region)]
    return [value for value in nodes if value.operation not in ("parameter", "item")]


def label(node: Node) -> str:
    """The display name of an operation."""
    match node.operation:
        case "reduce" | "scan":
            axes = node.options["axes"] if node.operation == "reduce" else node.options["axis"]
            kind = node.options["kind"] if node.operation == "reduce" else f"cum{node.options['kind']}"
            return f"{kind} over {', '.join(map(str, axes)) if isinstance(axes, tuple) else axes}"
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
    """Bytes of an array, for the extents of the traced call."""
    return int(np.dtype(node.dtype).itemsize * traced_product(node.shape))


def moved(groups: Sequence[Group]) -> int:
    """Bytes that steps load from and store to memory."""
    return sum(size_of(node) for group in groups for node in (*group.reads, *group.writes))


def bytes_moved_by_numpy(graph: Graph) -> int:
    """Bytes that NumPy loads and stores if each operation runs separately."""
    total = 0
    for node in graph:
        if node.operation not in (*OMITTED_FROM_SUMMARY, "view", "reshape"):
            read = [operand for operand in node.inputs if operand.operation not in ("constant", "extent")]
            total += size_of(node) + sum(map(size_of, read))
    return total
