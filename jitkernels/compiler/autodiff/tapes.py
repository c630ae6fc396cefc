"""Tapes: arrays with a row for each round of loops, in which those write down what is needed on the way back."""

from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent, Number, Scope
from jitkernels.graph.ir import Node
from jitkernels.graph.limits import limit
from jitkernels.graph.regions import parameter


class Position:
    """A parameter that counts positions on tapes, and the extent that it is where rows lie there.

    `checked`: the position as one where the tape has room; where it may have none, whoever calls makes larger ones.
    """

    def __init__(self, scope: Scope, most: Number, *, rows: bool, grows: bool = False) -> None:
        self.extent: Extent | None = moving_symbol(scope, most) if rows else None
        self.node = self.checked = parameter("int64", (), 0, str(self.extent) if rows else "")
        if grows:
            options = {"extent": most, "counts_back": False, "grows": True}
            self.checked = Node("bounded", (self.node,), "int64", (), options)


class Row:
    """A value that each round keeps: a row of a tape, at a position."""

    def __init__(self, node: Node, most: Number, position: Position) -> None:
        largest = [limit(one, is_upper=True) for one in node.shape]
        if None in largest:
            raise UnknownError("a loop with arrays of which nothing tells how large they get")
        self.node = node
        self.tape = parameter(node.dtype, (most, *largest), 0)
        if node.ndim:
            options = {"map": self._map(position), "extents": node.shape}
            self.written = Node("update", (self.tape, node), node.dtype, self.tape.shape, options)
        else:
            given = (self.tape, node, position.checked)
            self.written = Node("scatter", given, node.dtype, self.tape.shape, {"axis": 0})

    def _map(self, position: Position) -> Any:
        steps = [(0, ((i, 1),)) for i in range(self.node.ndim)]
        return ((position.extent, ()), *steps)

    def read(self, position: Position) -> Node:
        """The value that was kept at a position."""
        if self.node.ndim:
            return construct.view(self.tape, self._map(position), self.node.shape)
        return picked(self.tape, position.node)


def moving_symbol(scope: Scope, most: Number) -> Extent:
    """A new int of a loop, from 0 on and less than that."""
    name = f"sp{len(scope.values)}"
    found = scope.symbol(name, 2)
    scope.moving[name] = (0, most - 1)
    return found


def before_first(like: Node, *, is_open: bool) -> Node:
    """A tape, or a position on tapes, before the first round: `is_open` where loops around say what that is."""
    if is_open:
        return parameter(like.dtype, like.shape, 0)
    return construct.unwritten(like.dtype, like.shape) if like.ndim else construct.constant(0, like.dtype)


def picked(array: Node, index: Node) -> Node:
    """An element of a vector."""
    return Node("gather", (array, index), array.dtype, (), {"axis": 0})
