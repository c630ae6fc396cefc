"""The graph IR: immutable nodes in SSA form, each of which computes an array from others.

A node is one operation of the table in `jitkernels.compiler.ir.ops`. Shapes consist of ints and `Extent`s. Operands of
elementwise nodes broadcast to the node's shape as in NumPy; casts are explicit, so that an operation sees operands of
its own dtypes. A `Graph` also lists the inputs that receive a node's value at the end: what assignments to the arrays
of the caller become.
"""

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any

from jitkernels.compiler.ir.symbolic_dims import Extent, Number, key_of_shape
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.frozen_dataclass import frozen_dataclass

NONE: Mapping[str, Any] = MappingProxyType({})
_serials = itertools.count(1)


class Node:
    """One array or 0-d scalar of a graph. `options`: attributes of the operation. `serial`: grows with creation.

    `origin`: the serial of the node that this one is a copy of with other operands; its own where it is none.
    """

    __slots__ = ("dtype", "inputs", "operation", "options", "origin", "serial", "shape")

    def __init__(
        self,
        operation: str,
        inputs: Iterable["Node"],
        dtype: str,
        shape: Iterable[Number],
        options: Mapping[str, Any] = NONE,
    ) -> None:
        self.operation, self.inputs, self.dtype = operation, tuple(inputs), dtype
        self.shape, self.options = tuple(shape), options
        self.serial = self.origin = next(_serials)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def with_inputs(self, inputs: Iterable["Node"]) -> "Node":
        """The same operation on other operands of the same dtypes and shapes."""
        node = Node(self.operation, inputs, self.dtype, self.shape, self.options)
        node.origin = self.origin
        return node

    def replace_inputs(self, inputs: Sequence["Node"]) -> "Node":
        """The node with these operands: itself where they are its own."""
        return self if all(map(operator.is_, inputs, self.inputs)) else self.with_inputs(inputs)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value}" for name, value in self.options.items())
        shape = ", ".join(map(str, self.shape))
        return f"<{self.operation}({len(self.inputs)} inputs{options}) {self.dtype}[{shape}]>"


def serial() -> int:
    """A number larger than the `serial` of all nodes so far, and smaller than those of all later ones."""
    return next(_serials)


@frozen_dataclass
class Graph:
    """Inputs in the order of the arguments, outputs, and writes to inputs after all is computed.

    `checks`: boolean scalars; where one is true, the call bails out: nothing is written and NumPy computes. `in_rows`:
    indices of outputs in C order, `orders`: those with an explicit order; others lie as their operands do.
    """

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    writes: tuple[tuple[Node, Node], ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    checks: tuple[Node, ...] = ()
    in_rows: frozenset[int] = frozenset()
    orders: tuple[tuple[int, tuple[int, ...]], ...] = ()

    def remade(
        self, outputs: Iterable[Node], writes: Iterable[tuple[Node, Node]], checks: Iterable[Node] = ()
    ) -> "Graph":
        """The same function of the same inputs with other roots."""
        return Graph(self.inputs, tuple(outputs), tuple(writes), self.notes, tuple(checks), self.in_rows, self.orders)

    @property
    def roots(self) -> tuple[Node, ...]:
        return (*self.checks, *self.outputs, *(value for _, value in self.writes))

    @unlocked_cached_property
    def _sorted(self) -> list[Node]:
        return sorted_nodes(self.roots)

    def __iter__(self) -> Iterator[Node]:
        """All nodes that roots depend on, in topological order."""
        return iter(self._sorted)


def sorted_nodes(
    roots: Iterable[Node], before: Callable[[Node], Sequence[Node]] = operator.attrgetter("inputs")
) -> list[Node]:
    """The nodes that roots depend on in topological order, without recursion: graphs may be deep.

    `before`: the predecessors of a node.
    """
    done: dict[Node, None] = {}
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if node in done:
                continue
            earlier = () if expanded else before(node)
            if not earlier:
                done[node] = None
                continue
            stack.append((node, True))
            stack += [(node, False) for node in earlier[::-1]]  # a generator is slow under a profiler hook
    return list(done)


def transformed(graph: Graph, rule: Callable[[Node], Node]) -> Graph:
    """The graph rebuilt node by node: `rule` maps each node with its new operands to its replacement."""
    new: dict[Node, Node] = {}
    for node in graph:
        new[node] = rule(node.replace_inputs([new[operand] for operand in node.inputs]))
    return rebuild_roots(graph, new.__getitem__)


def rebuild_roots(graph: Graph, new: Callable[[Node], Node]) -> Graph:
    """The graph with its roots mapped by `new`."""
    outputs, checks = [[new(node) for node in nodes] for nodes in (graph.outputs, graph.checks)]
    return graph.remade(outputs, [(target, new(value)) for target, value in graph.writes], checks)


def readers(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The users of each node, once for each use."""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        users.setdefault(node, [])
        for operand in node.inputs:
            users.setdefault(operand, []).append(node)
    return users


def number_of(node: Node) -> Number | None:
    """The int that a 0-d node is in all calls, or the extent that gives it; None for other nodes."""
    if node.operation == "constant":
        return int(node.options["value"])
    return node.options["extent"] if node.operation == "extent" else None


def has_value(node: Node, value: float) -> bool:
    """Whether a node is the constant `value`."""
    return node.operation == "constant" and bool(node.options["value"] == value)


def key_of(node: Node, inputs: tuple[int, ...]) -> tuple[Any, ...]:
    """A key that is equal for nodes that compute the same from equal operands, given by numbers."""
    options = tuple((name, frozen(value)) for name, value in sorted(node.options.items()))
    return node.operation, inputs, options, node.dtype, key_of_shape(node.shape)


def frozen(value: Any) -> Any:
    if isinstance(value, Extent):
        return value.key
    if isinstance(value, tuple | list):
        return tuple(frozen(element) for element in value)
    if isinstance(value, float):
        return value.hex()  # 0.0 and -0.0 are equal, and NaN is not equal to itself
    if isinstance(value, int | str | bytes | None):
        return type(value).__name__, value
    return id(value)
