"""Ints that a loop carries and only adds to, or takes the least or most of: parts of the rounds have their own.

Floats are not among them: their sums depend on the order, as NaN and the sign of zero do in what is least or most.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from jitkernels.graph.flows import FLOWS
from jitkernels.graph.ir import Graph, Node

JOINED = {
    "add": "add", "subtract": "add", "bitwise_xor": "xor", "bitwise_and": "and", "bitwise_or": "or",
    "maximum": "max", "minimum": "min",
}  # fmt: skip
"""By operations of rounds what joins two parts, as LLVM calls it."""
ZEROED = frozenset({"add", "xor"})
"""Those that begin with zero in each part, as they would count twice what there was before."""
SIDES = ("yes", "no")
LARGER, SMALLER = frozenset({"greater", "greater_equal"}), frozenset({"less", "less_equal"})


class _OtherError(Exception):
    """A value is used for something else."""


@dataclass
class Joined:
    """What joins the parts of an int: an operation, none where it does not change; whether sums may be too large."""

    operation: str = ""
    is_checked: bool = False


@dataclass
class _Chain:
    """The way of an int through a region, from the input that it is to the output."""

    region: Graph
    given: Node
    joined: Joined
    moving: Container[str]
    values: dict[int, Node] = field(default_factory=dict)
    links: set[int] = field(default_factory=set)

    def follow(self, output: Node) -> None:
        """Find what is done to it. Raises _OtherError where it is used for anything else."""
        if self.given.options.get("symbol") in self.moving:
            raise _OtherError  # of which extents hang on it
        self.leads = {id(self.given)}
        for node in self.region:
            if any(id(one) in self.leads for one in node.inputs):
                self.leads.add(id(node))
        if id(output) not in self.leads:
            raise _OtherError
        self._from(output)
        for node in self.region:
            if id(node) not in self.links and any(id(one) in self.values for one in node.inputs):
                if node.operation != "overflows" or node.options["of"] not in ("add", "subtract"):
                    raise _OtherError
                if not any(node is one for one in self.region.checks):
                    raise _OtherError
                self.joined.is_checked = True
        others = [one for one in (*self.region.outputs, *self.region.checks) if one is not output]
        if (
            any(id(one) in self.values for one in others)
            or sum(one is output for one in self.region.outputs) > 1
        ):
            raise _OtherError

    def _from(self, node: Node) -> None:
        while True:
            self.values[id(node)] = node
            if node is self.given:
                return
            self.links.add(id(node))
            if node.operation == "item" and node.inputs[0].operation in FLOWS:
                self.links.add(id(node.inputs[0]))
                node = self._through(node.inputs[0], node.options["index"])
            elif node.operation == "where":
                node = self._chosen(node)
            elif node.operation in JOINED and node.dtype == "int64":
                self._note(JOINED[node.operation])
                node = self._one(
                    node.inputs[:1] if node.operation == "subtract" else node.inputs, node.inputs
                )
            else:
                raise _OtherError

    def _one(self, candidates: tuple[Node, ...], inputs: tuple[Node, ...]) -> Node:
        """That of the inputs which the value comes by."""
        found = [one for one in inputs if id(one) in self.leads]
        if len(found) != 1 or not any(one is found[0] for one in candidates):
            raise _OtherError
        return found[0]

    def _note(self, operation: str) -> None:
        if self.joined.operation not in ("", operation):
            raise _OtherError
        self.joined.operation = operation

    def _through(self, flow: Node, index: int) -> Node:
        """The value before a loop or branch that changes it."""
        options = flow.options
        if flow.operation == "loop":
            place = (3 if options["counts"] else 0) + index
            inside = place - (2 if options["counts"] else 0)
            before = self._one((flow.inputs[place],), flow.inputs)
            condition = options["condition"]
            if any(condition.inputs[inside] in node.inputs for node in condition):
                raise _OtherError
            body = options["body"]
            _Chain(body, body.inputs[inside], self.joined, self.moving).follow(body.outputs[index])
            return before
        if id(flow.inputs[0]) in self.leads:
            return self._compared(flow, index)
        before = self._one(flow.inputs[1:], flow.inputs)
        place = [one is before for one in flow.inputs].index(True) - 1
        for name in SIDES:
            side = options[name]
            _Chain(side, side.inputs[place], self.joined, self.moving).follow(side.outputs[index])
        return before

    def _chosen(self, node: Node) -> Node:
        """The value before it is the larger or smaller one of itself and another one."""
        condition, one, other = node.inputs
        value = self._one((one, other), (one, other))
        self._is_extreme(condition, one, other)
        return value

    def _is_extreme(self, condition: Node, yes: Node, no: Node) -> None:
        """Note that what is taken is the larger or smaller one of two."""
        pair = condition.inputs
        straight = len(pair) == 2 and pair[0] is yes and pair[1] is no
        turned = len(pair) == 2 and pair[0] is no and pair[1] is yes
        if yes.dtype != "int64" or no.dtype != "int64" or not (straight or turned):
            raise _OtherError
        if condition.operation not in LARGER | SMALLER:
            raise _OtherError
        self.links.add(id(condition))
        self._note("max" if (condition.operation in LARGER) == straight else "min")

    def _compared(self, branch: Node, index: int) -> Node:
        """The value before a branch takes another one instead, if that is larger or smaller."""
        condition = branch.inputs[0]
        before = self._one(condition.inputs, condition.inputs)
        outer = {
            name: dict(zip(map(id, branch.options[name].inputs), branch.inputs[1:], strict=True))
            for name in SIDES
        }
        taken: list[Node] = []
        for name in SIDES:
            output = branch.options[name].outputs[index]
            taken += [one for one in condition.inputs if _are_same(one, output, outer[name])][:1]
            uses = [
                one
                for one in branch.options[name]
                if any(outer[name].get(id(i)) is before for i in one.inputs)
            ]
            others = [one for i, one in enumerate(branch.options[name].outputs) if i != index]
            if uses or any(outer[name].get(id(one)) is before for one in others):
                raise _OtherError
        if len(taken) != 2:
            raise _OtherError
        self._is_extreme(condition, *taken)
        return before


def _are_same(node: Node, inside: Node, outer: Mapping[int, Node]) -> bool:
    """Whether a node of a branch is one from around it, or computed as that is."""
    if id(inside) in outer:
        return outer[id(inside)] is node
    return (
        inside.operation == node.operation
        and inside.operation not in FLOWS
        and inside.dtype == node.dtype
        and inside.options == node.options
        and len(inside.inputs) == len(node.inputs)
        and all(_are_same(a, b, outer) for a, b in zip(node.inputs, inside.inputs, strict=True))
    )


def joined_by(loop: Node, moving: Container[str]) -> dict[int, Joined]:
    """The ints that parts of the rounds may have their own of, by their numbers, and what joins them.

    `moving` are the symbols that extents hang on.
    """
    body, found = loop.options["body"], {}
    for number in range(loop.options["carried"]):
        given, output = body.inputs[1 + number], body.outputs[number]
        if given.ndim or given.dtype != "int64" or output is given:
            continue
        joined = Joined()
        try:
            _Chain(body, given, joined, moving).follow(output)
        except _OtherError:
            continue
        if joined.operation:
            found[number] = joined
    return found
