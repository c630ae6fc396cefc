"""What a function computes: nodes that give arrays, each from others, none ever changed.

A node is one operation of the table in `jitkernels.graph.operations`. Shapes are ints and `Extent`s. Inputs of
elementwise nodes have the node's shape once broadcast as NumPy does; casts are nodes, so that an operation sees the
dtypes of its own loop. A `Graph` also says which inputs take the value of a node when all is computed: that is what
becomes of assignments to the arrays of the caller.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from jitkernels.graph.extents import Extent, Number, key_of_shape
from jitkernels.kept import kept_property
from jitkernels.records import record

NONE: Mapping[str, Any] = MappingProxyType({})
_serials = itertools.count(1)


class Node:
    """One array, or 0-d number, of a graph. `options` are what the operation takes beside arrays.

    `serial`: later nodes have larger ones.
    """

    __slots__ = ("dtype", "inputs", "operation", "options", "serial", "shape")

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
        self.serial = next(_serials)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def with_inputs(self, inputs: Iterable["Node"]) -> "Node":
        """The same operation of other inputs of the same dtypes and shapes."""
        return Node(self.operation, inputs, self.dtype, self.shape, self.options)

    def __repr__(self) -> str:
        options = "".join(f", {name}={value}" for name, value in self.options.items())
        shape = ", ".join(map(str, self.shape))
        return f"<{self.operation}({len(self.inputs)} inputs{options}) {self.dtype}[{shape}]>"


def serial() -> int:
    """A number larger than those of all nodes so far, and smaller than those of all others."""
    return next(_serials)


@record
class Graph:
    """Inputs in the order of the arguments; what is given back; what is written to inputs afterwards.

    `checks` are numbers without dimensions: where one is true, nothing is written and NumPy computes. `in_rows` are the
    places of outputs that lie row by row, `orders` those of outputs with an order of their own; others lie as what they
    are computed from does.
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
        """The same function of the same inputs, computed otherwise."""
        return Graph(
            self.inputs, tuple(outputs), tuple(writes), self.notes, tuple(checks), self.in_rows, self.orders
        )

    @property
    def roots(self) -> tuple[Node, ...]:
        return (*self.checks, *self.outputs, *(value for _, value in self.writes))

    @kept_property
    def _sorted(self) -> list[Node]:
        return sorted_nodes(self.roots)

    def __iter__(self) -> Iterator[Node]:
        """All nodes that roots depend on, each behind its inputs."""
        return iter(self._sorted)


def sorted_nodes(
    roots: Iterable[Node], before: Callable[[Node], Sequence[Node]] = attrgetter("inputs")
) -> list[Node]:
    """Nodes that roots depend on, each once and behind its inputs. Graphs may be deep: nothing here recurs.

    `before`: behind what else a node comes.
    """
    done: dict[int, Node] = {}
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            key = id(node)
            if key in done:
                continue
            earlier = () if expanded else before(node)
            if not earlier:
                done[key] = node
                continue
            stack.append((node, True))
            stack += [(one, False) for one in earlier[::-1]]  # a generator is slow while calls are looked at
    return list(done.values())


def transformed(graph: Graph, rule: Callable[[Node], Node]) -> Graph:
    """The graph made again node by node: each from its new inputs, and then what the rule makes of it."""
    new: dict[int, Node] = {}
    for node in graph:
        inputs = tuple(new[id(one)] for one in node.inputs)
        kept = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
        new[id(node)] = rule(node if kept else node.with_inputs(inputs))
    return remade_of(graph, lambda node: new[id(node)])


def remade_of(graph: Graph, new: Callable[[Node], Node]) -> Graph:
    """The graph with other nodes for its roots."""
    outputs, checks = [[new(node) for node in nodes] for nodes in (graph.outputs, graph.checks)]
    return graph.remade(outputs, [(target, new(value)) for target, value in graph.writes], checks)


def readers(nodes: Iterable[Node]) -> dict[int, list[Node]]:
    """By the id of each node, the nodes that read it, once for each time."""
    found: dict[int, list[Node]] = {}
    for node in nodes:
        found.setdefault(id(node), [])
        for one in node.inputs:
            found.setdefault(id(one), []).append(node)
    return found


def key_of(node: Node, inputs: tuple[int, ...]) -> tuple[Any, ...]:
    """Equal for nodes that compute the same from equal inputs, which are given as numbers."""
    options = tuple((name, frozen(value)) for name, value in sorted(node.options.items()))
    return node.operation, inputs, options, node.dtype, key_of_shape(node.shape)


def frozen(value: Any) -> Any:
    if isinstance(value, Extent):
        return value.key
    if isinstance(value, tuple | list):
        return tuple(frozen(one) for one in value)
    if isinstance(value, float):
        return value.hex()  # 0.0 and -0.0 are equal, and NaN is not equal to itself
    if isinstance(value, int | str | bytes | None):
        return type(value).__name__, value
    return id(value)
