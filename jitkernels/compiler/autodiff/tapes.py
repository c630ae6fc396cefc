"""Tapes: arrays with one row per loop iteration, which store the forward values that the backward loop reads."""

from typing import Any

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.dim_bounds import limit
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.regions import parameter
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, Scope


class TapePosition:
    """The loop-carried row index of the tapes of a loop, and the extent symbol that views of rows use for it.

    `checked`: the position behind a bounds check. A tape of a loop of unknown trip count may be full; the caller then
    grows it and starts the call again.
    """

    def __init__(self, scope: Scope, most: Number, *, rows: bool, grows: bool = False) -> None:
        self.extent: Extent | None = tape_symbol(scope, most) if rows else None
        self.node = self.checked = parameter("int64", (), 0, str(self.extent) if rows else "")
        if grows:
            options = {"extent": most, "counts_back": False, "grows": True}
            self.checked = Node("bounded", (self.node,), "int64", (), options)


class TapeRow:
    """A value that each iteration stores: one row of a tape."""

    def __init__(self, node: Node, most: Number, position: TapePosition) -> None:
        largest = [limit(extent, is_upper=True) for extent in node.shape]
        if None in largest:
            raise UnsupportedError("a loop with arrays whose largest size is unknown")
        self.node = node
        self.tape = parameter(node.dtype, (most, *largest), 0)
        if node.ndim:
            options = {"map": self._map(position), "extents": node.shape}
            self.written = Node("update", (self.tape, node), node.dtype, self.tape.shape, options)
        else:
            operands = (self.tape, node, position.checked)
            self.written = Node("scatter", operands, node.dtype, self.tape.shape, {"axis": 0})

    def _map(self, position: TapePosition) -> Any:
        steps = [(0, ((i, 1),)) for i in range(self.node.ndim)]
        return ((position.extent, ()), *steps)

    def read(self, position: TapePosition) -> Node:
        """The value that was stored at a position."""
        if self.node.ndim:
            return builder.view(self.tape, self._map(position), self.node.shape)
        return load_element(self.tape, position.node)


def tape_symbol(scope: Scope, most: Number) -> Extent:
    """A new loop-variant integer symbol from 0 to `most` - 1."""
    name = f"sp{len(scope.values)}"
    symbol = scope.symbol(name, 2)
    scope.loop_variant[name] = (0, most - 1)
    return symbol


def value_before_loop(like: Node, *, is_nested: bool) -> Node:
    """The initial value of a tape or position; a parameter where `is_nested`, as the enclosing loop carries it."""
    if is_nested:
        return parameter(like.dtype, like.shape, 0)
    return builder.unwritten(like.dtype, like.shape) if like.ndim else builder.constant(0, like.dtype)


def load_element(array: Node, index: Node) -> Node:
    """The element of a vector at an index."""
    return Node("gather", (array, index), array.dtype, (), {"axis": 0})
