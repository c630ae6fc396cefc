"""Loops whose rounds can be run in any order, and so by several threads: none reads or writes what another one writes.

That is so where nothing but arrays, and ints that parts of the rounds may have their own of (see
`jitkernels.graph.carried`), goes from round to round, and all that is read or written of each of them lies, in
one of its dimensions, at ``factor * count + offset``, the same for all: then each round has rows of its own. What
nests compute in a round has memory that the thread lends (see `jitkernels.graph.emit.shared_rounds`).
"""

from collections.abc import Container, Sequence
from typing import Any

from jitkernels.graph.carried import Joined, joined_by
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.extents import Atom, Extent, Number, is_moving, made, same, terms_of
from jitkernels.graph.flows import is_direct
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.leaving import is_constant
from jitkernels.records import record


@record
class Row:
    """An index that another round does not have: so many times the count, and an offset."""

    factor: int
    offset: Number


class _DependentError(Exception):
    """A round may need what another one does."""


Known = dict[int, Any]
"""What nodes are, by their ids: a `Row`, the number of an array that the loop carries, or nothing of interest."""


class _Reader:
    """Goes through a round and notes in which dimensions each array is accessed by rows."""

    def __init__(self, symbol: str) -> None:
        """`symbol` is the count's, in extents."""
        self.symbol = symbol
        self.rows: dict[int, list[tuple[int, Row]]] = {}

    def region(self, graph: Graph, given: Sequence[Any]) -> list[Any]:
        """What the outputs of a region are, for what its inputs are."""
        known: Known = {
            id(node): one for node, one in zip(graph.inputs, given, strict=True) if one is not None
        }
        for node in graph:
            if id(node) not in known:
                found = self._node(node, known)
                if found is not None:
                    known[id(node)] = found
        return [known.get(id(node)) for node in graph.outputs]

    def _node(self, node: Node, known: Known) -> Any:
        given = [known.get(id(one)) for one in node.inputs]
        if node.operation == "call" or "grows" in node.options:
            raise _DependentError  # of Python, or in what order is not the same
        if not is_direct(node):
            return self._of_arrays(node, given)
        match node.operation:
            case "parameter" | "constant" | "extent":
                return None
            case "loop":
                return self._loop(node, given)
            case "branch":
                return self._branch(node, given)
            case "item":
                return given[0][node.options["index"]] if isinstance(given[0], list) else None
            case "gather":
                self._access(given[0], given[1:])
                return None
            case "scatter":
                self._access(given[0], given[2:])
                return given[0]
            case "add" | "subtract" | "multiply":
                return _combined(node, given)
            case "bounded":
                return None if node.options["counts_back"] else given[0]
            case "cast":
                return given[0] if node.dtype == "int64" else None
        if any(type(one) is int for one in given):
            raise _DependentError
        return None

    def _of_arrays(self, node: Node, given: Sequence[Any]) -> Any:
        """What nests read and write of an array that the loop carries are parts of it."""
        if any(type(one) is int for one in given[1:]) or (
            type(given[0] if given else None) is int and node.operation not in ("view", "update")
        ):
            raise _DependentError
        if node.operation == "view":
            self._access(given[0], self._places(node.options["map"], node.shape))
        if node.operation == "update":
            self._access(given[0], self._places(node.options["map"], node.options["extents"]))
            return given[0]
        return None

    def _places(self, index_map: IndexMap, shape: Sequence[Number]) -> list[Any]:
        """The rows, by dimensions of an array, that a part of it is; None for all else."""
        found: list[Any] = []
        for start, steps in index_map:
            count = terms_of(start)
            factor = count.get((Atom(self.symbol),), 0)
            rest = start - self.symbol_times(factor, start) if factor else 0
            is_one = all(same(shape[dimension], 1) for dimension, _ in steps)
            found.append(Row(factor, rest) if factor and is_one and not is_moving(rest) else None)
        return found

    def symbol_times(self, factor: int, of: Number) -> Number:
        """So many times the count, as part of an extent."""
        assert isinstance(of, Extent), "it moves"
        return made({(Atom(self.symbol),): factor}, of.scope)

    def _access(self, array: Any, places: Sequence[Any]) -> None:
        if array is None:
            return
        rows = [(i, one) for i, one in enumerate(places) if isinstance(one, Row)]
        before = self.rows.setdefault(array, rows)
        self.rows[array] = [one for one in before if any(_are_same(one, other) for other in rows)]
        if not self.rows[array]:
            raise _DependentError

    def _loop(self, node: Node, given: list[Any]) -> list[Any]:
        counts, many = node.options["counts"], node.options["carried"]
        first = 3 if counts else 0
        carried = [one if type(one) is int else None for one in given[first : first + many]]
        inside = [*([None] if counts else []), *carried, *given[first + many :]]
        self.region(node.options["condition"], inside)
        after = self.region(node.options["body"], inside)
        if [one if type(one) is int else None for one in after] != carried:
            raise _DependentError
        return carried

    def _branch(self, node: Node, given: list[Any]) -> list[Any]:
        sides = [
            [one if type(one) is int else None for one in self.region(node.options[name], given[1:])]
            for name in ("yes", "no")
        ]
        if sides[0] != sides[1]:
            raise _DependentError
        return sides[0]


def _are_same(one: tuple[int, Row], other: tuple[int, Row]) -> bool:
    (first, row), (second, own) = one, other
    return first == second and row.factor == own.factor and same(row.offset, own.offset)


def _combined(node: Node, given: Sequence[Any]) -> Row | None:
    """What a sum, difference or product with a number that all rounds have is; None for all else."""
    one, other = given
    if node.dtype != "int64" or isinstance(one, Row) == isinstance(other, Row):
        return None
    row, number = (one, _number(node.inputs[1])) if isinstance(one, Row) else (other, _number(node.inputs[0]))
    if number is None:
        return None
    if node.operation == "add":
        return Row(row.factor, row.offset + number)
    if node.operation == "multiply":
        known = type(number) is int and number != 0
        return Row(row.factor * int(number), row.offset * number) if known else None
    return Row(row.factor, row.offset - number) if row is one else Row(-row.factor, number - row.offset)


def _number(node: Node) -> Number | None:
    if node.operation == "constant":
        return int(node.options["value"])
    found: Number | None = node.options["extent"] if node.operation == "extent" else None
    return found


def independent(loop: Node, moving: Container[str]) -> dict[int, Joined] | None:
    """What joins the ints that a loop carries, by their numbers, if its rounds can be run in any order; None if not.

    `moving` are the symbols that extents hang on.
    """
    options = loop.options
    if loop.operation != "loop" or not options["counts"]:
        return None
    if not is_constant(options["condition"].outputs[0], value=True) or options["condition"].checks:
        return None
    if loop.inputs[2].operation != "constant" or loop.inputs[2].options["value"] != 1:
        return None
    body, many = options["body"], options["carried"]
    arrays = [i if loop.inputs[3 + i].ndim else None for i in range(many)]
    joined = joined_by(loop, moving)
    if not joined and not any(one is not None for one in arrays):
        return None
    for i, one in enumerate(arrays):
        if (
            one is None
            and i not in joined
            and body.outputs[i] is not body.inputs[1 + i]
            and body.outputs[i].operation != "constant"
        ):
            return None
    reader = _Reader(body.inputs[0].options.get("symbol", ""))
    try:
        after = reader.region(body, [Row(1, 0), *arrays, *[None] * (len(body.inputs) - 1 - many)])
    except _DependentError:
        return None
    return joined if all(a == b for a, b in zip(after, arrays, strict=True) if b is not None) else None
