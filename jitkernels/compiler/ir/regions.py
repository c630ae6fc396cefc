"""Control flow: nodes that carry regions, which are graphs of their own, closed over what they are given.

``loop``: inputs are the limits of a count (begin, end, step) if it `counts`, then `carried` values, then what the
regions take from around. As long as `condition` gives true, `body` gives the carried values of the next round; both
take the count, the carried values and the others, in this order. What is carried in the end is the result.

``branch``: inputs are a condition and what the regions take from around; the result is what `yes` or `no` gives.
`bases` says of each result in the memory of which of their inputs it is, counted from 0; -1 for numbers.

Results are several values, each an ``item``. Inputs of regions are ``parameter`` nodes, which belong to one region.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.graph.ir import Graph, Node, sorted_nodes
from jitkernels.graph.limits import Values

REGIONS = ("condition", "body", "yes", "no")
"""The options of nodes that are regions."""
COPIED = frozenset({"constant", "extent"})
"""What regions have of their own instead of taking it from around."""


Ran = Callable[[Graph, Sequence[Any], Callable[[Any], int]], list[Any]]
"""What runs a region: it gives the outputs for values of the inputs."""


class RefusedError(ValueError):
    """A check of a region is true: NumPy has to compute."""


def parameter(dtype: str, shape: Iterable[Any], index: int, symbol: str = "") -> Node:
    """One of the inputs of a region. `symbol`: what extents in the region have it as, if it is an int of a loop."""
    return Node("parameter", (), dtype, shape, {"index": index, **({"symbol": symbol} if symbol else {})})


def regions_of(node: Node) -> list[Graph]:
    """The regions that a node carries."""
    return [node.options[name] for name in REGIONS if name in node.options]


def items(node: Node, like: Iterable[Node]) -> list[Node]:
    """The results of a loop or branch, one like each node."""
    return [Node("item", (node,), one.dtype, one.shape, {"index": i}) for i, one in enumerate(like)]


def nodes_within(graph: Graph) -> Iterable[Node]:
    """The nodes of a graph and of all regions in it."""
    for node in graph:
        yield node
        for region in regions_of(node):
            yield from nodes_within(region)


class Closing:
    """Makes regions of nodes that were built with `parameters`: what is older than `start` is taken from around.

    `hoisted`: by the ids of nodes, what is taken from around in their place.
    """

    def __init__(self, parameters: Sequence[Node], start: int) -> None:
        self.parameters, self.start = list(parameters), start
        self.taken: list[Node] = []
        self.hoisted: dict[int, Node] = {}
        self._new: dict[int, Node] = {id(one): one for one in parameters}
        self._kept: list[Node] = []

    def inside(self, roots: Sequence[Node]) -> list[Node]:
        """The nodes again, made of the region's inputs."""
        for root in roots:
            stack = [(root, False)]
            while stack:
                node, expanded = stack.pop()
                if id(node) in self._new:
                    continue
                if id(node) in self.hoisted:
                    self._new[id(node)] = self.captured(self.hoisted[id(node)])
                elif node.serial < self.start:
                    self._new[id(node)] = node if node.operation in COPIED else self.captured(node)
                elif expanded:
                    self._new[id(node)] = node.with_inputs([self._new[id(one)] for one in node.inputs])
                else:
                    stack.append((node, True))
                    stack.extend((one, False) for one in node.inputs if id(one) not in self._new)
                    continue
                self._kept.append(node)
        return [self._new[id(root)] for root in roots]

    def captured(self, node: Node) -> Node:
        """The region's input that a node is."""
        self.taken.append(node)
        made = parameter(node.dtype, node.shape, len(self.parameters) + len(self.taken) - 1)
        self._kept.append(made)
        self._new[id(node)] = made
        return made

    def graph(self, outputs: Sequence[Node], checks: Sequence[Node]) -> Graph:
        """A region, once all roots of all regions of the node are `inside`."""
        inputs = [*self.parameters, *(self._new[id(one)] for one in self.taken)]
        return Graph(tuple(inputs), tuple(outputs), checks=tuple(dict.fromkeys(checks)))


def leaked(graph: Graph) -> bool:
    """Whether a value of the inside of a region is used outside of it."""
    given = {id(one) for one in graph.inputs}
    return any(
        (node.operation == "parameter" and id(node) not in given) or any(map(leaked, regions_of(node)))
        for node in sorted_nodes(graph.roots)
    )


def run_loop(ran: Ran, node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> tuple[Any, ...]:
    """What NumPy makes of a loop, round by round."""
    options = node.options
    begin, end, step = map(int, inputs[:3]) if options["counts"] else (0, 0, 1)
    first = 3 if options["counts"] else 0
    last = first + options["carried"]
    carried, captured = [np.array(one) for one in inputs[first:last]], inputs[last:]
    count = begin
    while not options["counts"] or (count < end if step > 0 else count > end):
        given = [*([np.int64(count)] if options["counts"] else []), *carried, *captured]
        for one, number in zip(options["body"].inputs, given, strict=True):
            if "symbol" in one.options and isinstance(value, Values):
                value.symbols[one.options["symbol"]] = int(number)
        (goes_on,) = ran(options["condition"], given, value)
        if not goes_on:
            break
        carried = [np.array(one) for one in ran(options["body"], given, value)]
        count += step
    return tuple(carried)


def run_branch(ran: Ran, node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> tuple[Any, ...]:
    """What NumPy makes of a branch."""
    condition, *captured = inputs
    return tuple(ran(node.options["yes" if condition else "no"], captured, value))


def run_bounded(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    """An index from 0 on. Raises RefusedError for one that is beside the array."""
    extent, index = value(node.options["extent"]), int(inputs[0])
    if not -extent <= index < extent:
        raise RefusedError(f"index {index} is out of bounds for axis with size {extent}")
    return np.int64(index + extent if index < 0 else index)


WHOLE: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
}
"""What may need more than 64 bits."""


def run_overflows(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    """Whether a sum, difference or product of two int64 is none."""
    found = WHOLE[node.options["of"]](*map(int, inputs))
    return np.bool_(not -(2**63) <= found < 2**63)
