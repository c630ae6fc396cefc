"""Structured control flow: loop and branch nodes that hold regions, which are graphs with explicit captures.

``loop``: operands are the bounds (begin, end, step) of the induction variable if it `counts`, then `carried` initial
values, then captured values. While `condition` is true, `body` computes the carried values of the next iteration; both
take the induction variable, the carried and the captured values as parameters, in this order. The results are the
carried values after the last iteration.

``branch``: operands are a condition and captured values; the results are those of the region `yes` or `no`. `bases`
gives for each result the index of the captured value in whose memory it is, -1 for scalars.

Each result is an ``item`` node. Inputs of regions are ``parameter`` nodes, each of which belongs to one region.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.ir.dim_bounds import Values
from jitkernels.compiler.ir.graph import Graph, Node, sorted_nodes

REGIONS = ("condition", "body", "yes", "no")
"""The node options that hold regions."""
COPIED = frozenset({"constant", "extent"})
"""Operations that regions clone instead of capturing their results."""


Ran = Callable[[Graph, Sequence[Any], Callable[[Any], int]], list[Any]]
"""Evaluates a region: (region, values of its inputs, evaluator of extents) to its outputs."""


class BailoutError(ValueError):
    """A check of a region is true: the compiled call bails out and NumPy computes the result."""


def parameter(dtype: str, shape: Iterable[Any], index: int, symbol: str = "") -> Node:
    """An input of a region. `symbol`: the symbol that extents in the region use for it, if it is a loop-variant int."""
    return Node("parameter", (), dtype, shape, {"index": index, **({"symbol": symbol} if symbol else {})})


def regions_of(node: Node) -> list[Graph]:
    """The regions that a node holds."""
    return [node.options[name] for name in REGIONS if name in node.options]


def items(node: Node, like: Iterable[Node]) -> list[Node]:
    """The results of a loop or branch; `like`: nodes of their dtypes and shapes."""
    return [Node("item", (node,), result.dtype, result.shape, {"index": i}) for i, result in enumerate(like)]


def walk_nodes(graph: Graph) -> Iterable[Node]:
    """The nodes of a graph and of all regions in it, recursively."""
    for node in graph:
        yield node
        for region in regions_of(node):
            yield from walk_nodes(region)


class Closing:
    """Builds regions from nodes that use `parameters`: a node with a serial number below `start` is captured.

    `hoisted`: by the ids of nodes, what to capture instead of them.
    """

    def __init__(self, parameters: Sequence[Node], start: int) -> None:
        self.parameters, self.start = list(parameters), start
        self.taken: list[Node] = []
        self.hoisted: dict[int, Node] = {}
        self._new: dict[int, Node] = {id(node): node for node in parameters}
        self._kept: list[Node] = []

    def inside(self, roots: Sequence[Node]) -> list[Node]:
        """Clone the nodes into the region."""
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
                    self._new[id(node)] = node.with_inputs([self._new[id(operand)] for operand in node.inputs])
                else:
                    stack.append((node, True))
                    stack.extend((operand, False) for operand in node.inputs if id(operand) not in self._new)
                    continue
                self._kept.append(node)
        return [self._new[id(root)] for root in roots]

    def captured(self, node: Node) -> Node:
        """The parameter for a captured node."""
        self.taken.append(node)
        new_parameter = parameter(node.dtype, node.shape, len(self.parameters) + len(self.taken) - 1)
        self._kept.append(new_parameter)
        self._new[id(node)] = new_parameter
        return new_parameter

    def graph(self, outputs: Sequence[Node], checks: Sequence[Node]) -> Graph:
        """A region, after all roots of all regions of the node went through `inside`."""
        inputs = [*self.parameters, *(self._new[id(node)] for node in self.taken)]
        return Graph(tuple(inputs), tuple(outputs), checks=tuple(dict.fromkeys(checks)))


def leaked(graph: Graph) -> bool:
    """Whether a value from inside a region is used outside of it."""
    input_ids = {id(node) for node in graph.inputs}
    return any(
        (node.operation == "parameter" and id(node) not in input_ids) or any(map(leaked, regions_of(node)))
        for node in sorted_nodes(graph.roots)
    )


def run_loop(run_region: Ran, node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> tuple[Any, ...]:
    """Evaluate a loop with NumPy, iteration by iteration."""
    options = node.options
    begin, end, step = map(int, inputs[:3]) if options["counts"] else (0, 0, 1)
    carried_begin = 3 if options["counts"] else 0
    carried_end = carried_begin + options["carried"]
    carried, captured = ([np.array(initial) for initial in inputs[carried_begin:carried_end]], inputs[carried_end:])
    induction = begin
    while not options["counts"] or (induction < end if step > 0 else induction > end):
        arguments = [*([np.int64(induction)] if options["counts"] else []), *carried, *captured]
        for operand, number in zip(options["body"].inputs, arguments, strict=True):
            if "symbol" in operand.options and isinstance(value, Values):
                value.symbols[operand.options["symbol"]] = int(number)
        (condition,) = run_region(options["condition"], arguments, value)
        if not condition:
            break
        carried = [np.array(initial) for initial in run_region(options["body"], arguments, value)]
        induction += step
    return tuple(carried)


def run_branch(run_region: Ran, node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> tuple[Any, ...]:
    """Evaluate a branch with NumPy."""
    condition, *captured = inputs
    return tuple(run_region(node.options["yes" if condition else "no"], captured, value))


def run_bounded(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    """The index wrapped to count from 0. Raises BailoutError if it is out of bounds."""
    extent, index = value(node.options["extent"]), int(inputs[0])
    if not -extent <= index < extent:
        raise BailoutError(f"index {index} is out of bounds for axis with size {extent}")
    return np.int64(index + extent if index < 0 else index)


WHOLE: dict[str, Callable[[int, int], int]] = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul}
"""Operations that may overflow 64 bits, as Python functions without overflow."""


def run_overflows(node: Node, inputs: Sequence[Any], value: Callable[[Any], int]) -> Any:
    """Whether a sum, difference or product of two int64 overflows."""
    result = WHOLE[node.options["of"]](*map(int, inputs))
    return np.bool_(not -(2**63) <= result < 2**63)
